"""Kernels of compiled OpenCL programs, and the payload that their threads start with."""

from __future__ import annotations

import os
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from softgen.api.html import table
from softgen.api.memory import Buffer, Image, Local, Sampler
from softgen.bits.generation import device, devices
from softgen.bits.units import GRF_BYTES
from softgen.errors import Unsupported, UsageError
from softgen.eu import binary
from softgen.eu.binary import Argument, Launch

MOST_ITEMS = 256  # work items of a group whose size is chosen here
FLOATS = {2: "<e", 4: "<f", 8: "<d"}
OTHER_KINDS = {  # kinds of NumPy scalars that an argument of this type, or a vector of it, is not
    **dict.fromkeys(("half", "float", "double"), "iub"),
    **dict.fromkeys(("char", "uchar", "short", "ushort", "int", "uint", "long", "ulong"), "f")}  # fmt: skip
ORDERS = {1: 0x10B0, 2: 0x10B2, 4: 0x10B5}  # CL_R, CL_RG, CL_RGBA
TYPES = {  # CL_SNORM_INT8 … CL_FLOAT by a channel's type and bits
    ("snorm", 8): 0x10D0, ("snorm", 16): 0x10D1, ("unorm", 8): 0x10D2, ("unorm", 16): 0x10D3, ("sint", 8): 0x10D7, ("sint", 16): 0x10D8,
    ("sint", 32): 0x10D9, ("uint", 8): 0x10DA, ("uint", 16): 0x10DB, ("uint", 32): 0x10DC, ("float", 16): 0x10DD, ("float", 32): 0x10DE,
}  # fmt: skip
ADDRESSES = {"none": 0x1130, "clamp_edge": 0x1131, "clamp_border": 0x1132, "repeat": 0x1133, "mirror": 0x1134}  # CL_ADDRESS_*

Value = Buffer | Image | Local | Sampler | np.generic | np.ndarray[Any, Any] | int | float | bytes


class Kernel:
    """A kernel of a compiled program: machine code, and what its arguments are."""

    def __init__(self, kernel: binary.BinaryKernel) -> None:
        self._binary = kernel
        self.name, self.code, self.simd, self.container = kernel.name, kernel.code, kernel.simd, kernel.container

    @property
    def gpus(self) -> tuple[str, ...]:
        """The GPUs that run its machine code."""
        return tuple(gpu.name for gpu in devices().values() if gpu.generation.number == self._binary.gen)

    @cached_property
    def launch(self) -> Launch:
        """The launch description: payload, surfaces, memory."""
        return self._binary.launch()

    @property
    def arguments(self) -> tuple[Argument, ...]:
        return self.launch.arguments

    def __repr__(self) -> str:
        return f"Kernel({self.name!r}, SIMD{self.simd}, {len(self.code):,} bytes, {' '.join(self.gpus)})"

    def _repr_html_(self) -> str:
        rows = [(argument.index, argument.name, argument.type, argument.kind, argument.size or "",
                 "" if argument.surface is None else argument.surface) for argument in self.arguments]  # fmt: skip
        return table(repr(self), ("argument", "name", "type", "kind", "bytes", "surface"), rows)


class Kernels(dict[str, Kernel]):
    """The kernels of a compiled program, by name."""

    def __missing__(self, name: str) -> Kernel:
        raise UsageError(f"no kernel is called {name!r}; there are {', '.join(self)}")


def load_kernels(source: str | os.PathLike[str] | bytes, gpu: str | None = None) -> Kernels:
    """The kernels of an OpenCL binary that ocloc wrote, by name. Of an archive for several GPUs, `gpu` selects.

    >>> import softgen
    >>> kernels = softgen.load_kernels("tests/data/kernels/cf_collatz.kbl.bin", "kbl")
    >>> kernels["cf_collatz"]
    Kernel('cf_collatz', SIMD16, 416 bytes, skl kbl)
    >>> [argument.name for argument in kernels["cf_collatz"].arguments]
    ['a', 'o']
    """
    name, data = ("binary", source) if isinstance(source, bytes) else _read(source)
    found = binary.kernels(data, name)
    if gpu is not None:
        gen = device(gpu).generation.number
        for_others = [kernel for kernel in found if kernel.gen != gen]
        found = [kernel for kernel in found if kernel.gen == gen]
        if not found:
            others = ", ".join(sorted({gpu for kernel in for_others for gpu in Kernel(kernel).gpus})) or "a GPU softgen does not know"
            raise UsageError(f"{name}: has no kernels for {gpu}; they are for {others}")
    return Kernels((kernel.name, Kernel(kernel)) for kernel in found)


def _read(path: str | os.PathLike[str]) -> tuple[str, bytes]:
    """A file's name and bytes."""
    if not isinstance(path, str | os.PathLike):
        raise UsageError(f"kernels are loaded from a path or bytes, not {type(path).__name__}")
    try:
        return os.fspath(path), Path(path).read_bytes()
    except (OSError, ValueError) as error:  # a name with a zero byte
        raise UsageError(f"{os.fspath(path)}: cannot be read: {getattr(error, 'strerror', None) or error}") from None


# -- payload -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Grid:
    """Sizes of a launch, three dimensions each."""

    global_size: tuple[int, int, int]
    local_size: tuple[int, int, int]
    offset: tuple[int, int, int] = (0, 0, 0)
    dimensions: int = 1

    @property
    def groups(self) -> tuple[int, int, int]:
        (x, y, z), (a, b, c) = self.global_size, self.local_size
        return x // a, y // b, z // c

    @property
    def items(self) -> int:
        """Work items of a group."""
        return self.local_size[0] * self.local_size[1] * self.local_size[2]


def check_arguments(kernel: Kernel, given: Sequence[Value]) -> None:
    """Refuse a wrong number of arguments, or one of the wrong kind."""
    declared = kernel.arguments
    count = declared[-1].index + 1 if declared else 0
    if len(given) != count:
        names = ", ".join(f"{argument.type} {argument.name}".strip() or argument.kind for argument in declared)
        raise UsageError(f"{kernel.name} takes {count} arguments ({names}), not {len(given)}")
    kinds = {"buffer": Buffer, "image": Image, "local": Local, "sampler": Sampler}
    for argument in declared:
        value, label = given[argument.index], f"argument {argument.index} ({argument.name}) of {kernel.name}"
        expected = kinds.get(argument.kind)
        if expected is not None and not isinstance(value, expected):
            raise UsageError(f"{label} must be a {expected.__name__}, not {type(value).__name__}")
        if expected is None and isinstance(value, tuple(kinds.values())):
            raise UsageError(f"{label} is a value, not a {type(value).__name__}")


def value_bytes(argument: Argument, value: object) -> bytes:
    """A by-value argument in the size the kernel expects; Python numbers take the argument's size and type."""
    label = f"argument {argument.index} ({argument.name})"
    if isinstance(value, bytes | np.generic | np.ndarray):
        data = value if isinstance(value, bytes) else value.astype(value.dtype.newbyteorder("<")).tobytes()
        if len(data) != argument.size:
            raise UsageError(f"{label} has {argument.size} bytes, not {len(data)}")
        if not isinstance(value, bytes) and value.dtype.kind in OTHER_KINDS.get(argument.type.rstrip("0123456789"), ""):
            raise UsageError(f"{label} is {argument.type}, not {value.dtype}")
        return data
    is_float = argument.type in ("float", "double", "half") or not argument.type and isinstance(value, float)
    try:
        if is_float and argument.size in FLOATS and isinstance(value, int | float):
            return struct.pack(FLOATS[argument.size], value)
        if isinstance(value, int) and not isinstance(value, bool):
            return value.to_bytes(argument.size, "little", signed=value < 0)
    except (OverflowError, struct.error):
        raise UsageError(f"{label}: {value} does not fit into {argument.size} bytes") from None
    if isinstance(value, bool):
        return int(value).to_bytes(argument.size, "little")
    raise UsageError(f"{label} is {argument.type or 'a value'} of {argument.size} bytes, not a {type(value).__name__}")


def cross_thread(kernel: Kernel, given: Sequence[Value], grid: Grid, local: Mapping[int, int], bases: Mapping[str, int]) -> bytes:
    """The part of the payload that all threads share. `local` are offsets of __local arguments, `bases` addresses of program data."""
    launch, arguments = kernel.launch, {argument.index: argument for argument in kernel.arguments}
    triples = {"global_id_offset": grid.offset, "local_size": grid.local_size, "enqueued_local_size": grid.local_size,
               "global_size": grid.global_size, "group_count": grid.groups}  # fmt: skip
    payload = bytearray(launch.payload_bytes)
    for slot in launch.values:
        value = given[slot.argument] if slot.argument >= 0 else None
        if slot.kind in triples:
            data = struct.pack("<3I", *triples[slot.kind])
        elif slot.kind in bases:
            data = struct.pack("<Q", bases[slot.kind])
        elif slot.kind == "arg_byvalue":
            data = value_bytes(arguments[slot.argument], value)
        elif slot.kind == "local_address":
            data = struct.pack("<Q", local[slot.argument])
        elif slot.kind == "buffer_address" and isinstance(value, Buffer):
            data = struct.pack("<Q", value.address)
        elif slot.kind == "work_dimensions":
            data = struct.pack("<I", grid.dimensions)
        elif slot.kind == "buffer_offset":
            data = bytes(slot.size)
        elif isinstance(value, Image | Sampler):
            data = struct.pack("<I", _described(slot.kind, value, kernel))
        else:
            raise Unsupported(f"{kernel.name}: its payload has a value {slot.kind!r}, which is not yet filled in")
        payload[slot.offset : slot.offset + slot.size] = data[slot.source : slot.source + slot.size].ljust(slot.size, b"\0")
    return bytes(payload)


def _described(kind: str, value: Image | Sampler, kernel: Kernel) -> int:
    """A property of an image or a sampler that a kernel's payload contains."""
    if isinstance(value, Image):
        width, height, *slices = value.size
        count = slices[0] if slices else 0
        channel = value.format.channels[0]
        found = {"image_width": width, "image_height": height, "image_depth": 0 if value.layered else count,
                 "image_array_size": count if value.layered else 0, "image_channel_order": ORDERS.get(len(value.format.channels), 0),
                 "image_channel_data_type": TYPES.get((channel.type, channel.bits), 0), "image_num_samples": 0, "image_num_mip_levels": 0}
    else:
        snaps = value.addressing == "clamp_border" and value.filter == "nearest"
        found = {"sampler_address": ADDRESSES[value.addressing], "sampler_normalized": int(value.normalized),
                 "sampler_snap_wa": 0xFFFFFFFF if snaps else 0}  # fmt: skip
    if kind not in found:
        raise Unsupported(f"{kernel.name}: its payload has a value {kind!r}, which is not yet filled in")
    return found[kind]


def local_ids(grid: Grid, simd: int) -> list[bytes]:
    """The per-thread payload: x, y and z of a thread's work items as words, a row each."""
    width, height, _ = grid.local_size
    row = 2 * GRF_BYTES if simd == 32 else GRF_BYTES
    items = np.arange(grid.items)
    found = []
    for first in range(0, grid.items, simd):
        part = items[first : first + simd]
        rows = (part % width, part // width % height, part // (width * height))
        found.append(b"".join(ids.astype(np.uint16).tobytes().ljust(row, b"\0") for ids in rows))
    return found


def local_memory(kernel: Kernel, arguments: Sequence[Value]) -> tuple[dict[int, int], int]:
    """Offsets of __local arguments, after the kernel's own local variables; and all bytes together."""
    size, offsets = kernel.launch.local_bytes, {}
    for argument in kernel.arguments:
        value = arguments[argument.index]
        if isinstance(value, Local):
            offsets[argument.index] = -(-size // argument.alignment) * argument.alignment
            size = offsets[argument.index] + value.size
    return offsets, size


def chosen_local_size(whole: tuple[int, int, int]) -> tuple[int, int, int]:
    """A local size: the largest divisors, x first, that stay within MOST_ITEMS."""
    left, sizes = MOST_ITEMS, []
    for size in whole:
        sizes.append(max((part for part in range(1, min(size, left) + 1) if size % part == 0), default=1))
        left //= sizes[-1]
    return sizes[0], sizes[1], sizes[2]
