"""softgen: Intel's Gen graphics processor as software.

    import numpy as np
    import softgen

    with softgen.Gpu("kbl") as gpu:
        x = gpu.buffer(np.arange(1024, dtype=np.float32))
        kernel = softgen.load_kernels("scale.bin", "kbl")["scale"]
        gpu.launch(kernel, x, 2.5, global_size=1024)
        print(x.array)

The Python interface is softgen.api. It is loaded when one of its names is first used (PEP 562), so that `import softgen` costs nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from softgen.api import (
        Buffer,
        Capture,
        Command,
        FarmResult,
        Field,
        Gpu,
        Image,
        Instruction,
        Kernel,
        KernelCode,
        Listing,
        Local,
        Prepared,
        Probe,
        ReplayReport,
        Run,
        Sampler,
        Spec,
        State,
        Trace,
        TraceRow,
        assemble,
        decode,
        disassemble,
        farm,
        load_kernels,
        open,
        spec,
    )
    from softgen.errors import DecodeError, DriverError, GpuFault, SoftgenError, SpecError, Unsupported, UsageError

__version__ = "0.1.0"

_ERRORS = ("DecodeError", "DriverError", "GpuFault", "SoftgenError", "SpecError", "Unsupported", "UsageError")
_API = ("Buffer", "Capture", "Command", "FarmResult", "Field", "Gpu", "Image", "Instruction", "Kernel", "KernelCode", "Listing", "Local",
        "Prepared", "Probe", "ReplayReport", "Run", "Sampler", "Spec", "State", "Trace", "TraceRow", "assemble", "decode", "disassemble",
        "farm", "load_kernels", "open", "spec")  # fmt: skip
__all__ = [
    "Buffer", "Capture", "Command", "DecodeError", "DriverError", "FarmResult", "Field", "Gpu", "GpuFault", "Image", "Instruction",
    "Kernel", "KernelCode", "Listing", "Local", "Prepared", "Probe", "ReplayReport", "Run", "Sampler", "SoftgenError", "Spec", "SpecError",
    "State", "Trace", "TraceRow", "Unsupported", "UsageError", "__version__", "assemble", "decode", "disassemble", "farm",
    "load_kernels", "open", "spec",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name in _API:
        found = getattr(importlib.import_module("softgen.api"), name)
    elif name in _ERRORS:
        found = getattr(importlib.import_module("softgen.errors"), name)
    else:
        raise AttributeError(f"module 'softgen' has no attribute {name!r}")
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
