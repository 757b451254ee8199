"""The launch description of a compiled kernel: its arguments, the payload its threads expect and the memory it needs.

Both containers are translated into the same records; names of payload values are those of zebin's `.ze_info` (`global_size`,
`arg_byvalue`, `buffer_address`, …).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from softgen.errors import DecodeError

ArgumentKind = Literal["buffer", "value", "local", "image", "sampler"]


@dataclass(frozen=True)
class Argument:
    """A parameter of the kernel function."""

    index: int
    kind: ArgumentKind
    name: str = ""
    type: str = ""  # the source's type name, such as "float*"
    size: int = 0  # bytes, of values only
    alignment: int = 1  # of __local memory
    surface: int | None = None  # binding table index
    sampler: int | None = None  # index into the sampler state table
    writable: bool = True


@dataclass(frozen=True)
class PayloadValue:
    """A value that the runtime stores into the cross-thread payload."""

    kind: str
    offset: int
    size: int
    argument: int = -1  # index, where it belongs to an argument
    source: int = 0  # first byte of the value that is stored


@dataclass(frozen=True)
class InlineSampler:
    """A sampler declared in the program source; `state` is its SAMPLER_STATE where the container holds one."""

    index: int
    addressing: str = ""  # none, repeat, clamp_border, clamp_edge, mirror
    filter: str = ""  # nearest, linear
    normalized: bool = False
    state: bytes = b""


@dataclass(frozen=True)
class Relocation:
    """A symbol's address that the loader stores into the code."""

    offset: int
    section: Literal["constant", "global", "code"]
    value: int  # of the symbol, in its section
    size: int
    shift: int = 0  # 32: the upper half


@dataclass(frozen=True)
class Launch:
    """What a runtime must know to dispatch a kernel."""

    arguments: tuple[Argument, ...] = ()
    values: tuple[PayloadValue, ...] = ()
    payload_bytes: int = 0  # of cross-thread payload, a multiple of a register
    local_ids: bool = True  # the per-thread payload holds local ids; else one unused register
    barrier: bool = False
    local_bytes: int = 0  # shared local memory of __local variables
    scratch_bytes: int = 0  # of a thread
    private_bytes: int = 0  # of a thread, in a buffer of its own
    samplers: tuple[InlineSampler, ...] = ()
    relocations: tuple[Relocation, ...] = ()
    constant_data: bytes = b""  # program-scope __constant data
    global_data: bytes = b""
    constant_surface: int | None = None  # binding table indices of the two
    global_surface: int | None = None
    private_surface: int | None = None
    required_local_size: tuple[int, int, int] = (0, 0, 0)  # reqd_work_group_size; zeros: any


@dataclass(frozen=True)
class KernelBinary:
    """A kernel of a compiled program."""

    name: str
    code: bytes  # without the padding after it
    simd: int  # 0: the file does not say
    gen: float | None  # None: compiled for a GPU softgen does not know
    container: str  # "patch tokens" or "zebin"
    member: str = ""  # of which archive member
    describe: Callable[[], Launch] | None = field(default=None, repr=False, compare=False)

    def launch(self) -> Launch:
        """The launch description, read when first needed."""
        if self.describe is None:
            raise DecodeError(f"{self.name}: the file does not describe its arguments")
        return self.describe()
