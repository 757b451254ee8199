"""C parts of the package, loaded."""

from __future__ import annotations

import ctypes
import importlib.util
from pathlib import Path
from types import ModuleType

from softgen.errors import SoftgenError

AGAIN = "build it again with `python setup.py build_ext --inplace`"


def load(module: str, *headers: ModuleType) -> ctypes.CDLL:
    """A C part. `headers` are the modules made of its headers (tools/structures.py), which may be older than those."""
    found = importlib.util.find_spec(module)
    if found is None or found.origin is None:
        raise SoftgenError(f"{module} is not built; run `make` or `python setup.py build_ext --inplace` at the repository's root")
    try:
        native, same = ctypes.CDLL(found.origin), all(_same_header(header) for header in headers)
    except OSError as error:
        raise SoftgenError(f"{found.origin} cannot be used: {error}; {AGAIN}") from None
    if not same:
        raise SoftgenError(f"{found.origin} is of another version; {AGAIN}")
    return native


def _same_header(module: ModuleType) -> bool:
    """Whether a module is that of the header beside it."""
    return bool(Path(module.__file__ or "").with_name(module.HEADER).read_bytes() == module.TEXT)
