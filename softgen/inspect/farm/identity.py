"""The hash of a unit: of everything that decides its result.

That is its input, the GPU, softgen's sources, the options; of programs also the executable, the files that its arguments name, the driver
libraries it may load and the variables that drivers read. Where a unit runs, and when, are not in it.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import stat
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path

import softgen
from softgen.inspect.farm import drivers

FORMAT = 1  # of the hash and of what it stands for
SOURCES = (".py", ".c", ".h", ".asm")  # and all of spec/


def key(*parts: object) -> str:
    """A hash of plain values."""
    return drivers.digest([json.dumps([FORMAT, version(), *parts], sort_keys=True)])[:40]


@lru_cache
def version() -> str:
    """softgen's version and a sum of its sources: in a checkout they change while the version stays."""
    root = Path(softgen.__file__).parent
    files = sorted(path for path in root.rglob("*") if path.suffix in SOURCES or root / "spec" in path.parents)
    plain = (path for path in files if path.is_file() and "__pycache__" not in path.parts)
    return f"{softgen.__version__}+{drivers.digest(f'{path.relative_to(root)} {drivers.file_sum(str(path))}' for path in plain)[:12]}"


@lru_cache(maxsize=4096)
def _file(path: str, size: int, changed: int) -> str:
    return drivers.file_sum(path)


def contents(path: str) -> str:
    """The sum of a plain file, read once for as long as it does not change; "" for anything else."""
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return ""
    if not stat.S_ISREG(status.st_mode):
        return ""
    return _file(os.path.abspath(path), status.st_size, status.st_mtime_ns)


def program_parts(command: list[str], folder: str) -> list[str]:
    """Sums of a command's executable and of the files among its arguments, as seen from the working folder."""
    found = shutil.which(os.path.join(folder, command[0]) if "/" in command[0] else command[0]) if command else None
    return [contents(found) if found else "", *(contents(os.path.join(folder, part)) for part in command[1:])]


def program_context(gpu: str, environment: Mapping[str, str]) -> str:
    """A sum of what all programs on a GPU have in common: the drivers and their settings."""
    return _context(gpu, tuple(drivers.driver_variables(environment).items()))


@lru_cache
def _context(gpu: str, variables: tuple[tuple[str, str], ...]) -> str:
    parts = sorted(drivers.driver_sums(gpu, dict(variables)).items()), drivers.settings(dict(variables)).items()
    return drivers.digest(f"{name}={value}" for part in parts for name, value in part)


def host_sum(gpu: str, environment: Mapping[str, str]) -> str:
    """A sum of softgen and the drivers on this machine: units run only where it is the same as in their hash."""
    return drivers.digest([version(), program_context(gpu, environment)])[:16]


def line_key(line: str, gpu: str, options: Iterable[object], context: str, folder: str) -> str:
    """The hash of a command of a list."""
    return key("run", gpu, list(options), line, program_parts(shlex.split(line), folder), context)


def tree_sum(path: str) -> str:
    """A sum of a file, or of all files of a folder with their names."""
    if not os.path.isdir(path):
        return contents(path)
    return drivers.digest(f"{os.path.relpath(file, path)} {contents(file)}" for file in _files(path))


def _files(path: str) -> Iterator[str]:
    for folder, names, files in os.walk(path):
        names.sort()
        yield from (os.path.join(folder, name) for name in sorted(files))
