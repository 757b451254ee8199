"""Gpu: memory that NumPy shares with a software GPU, and kernels run on it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any

import numpy as np
import numpy.typing as npt

from softgen.api.checks import OnFault, check_numbers, check_on_fault, check_owner, check_tables, check_time_limit, triple
from softgen.api.kernels import Grid, Kernel, Value, check_arguments, chosen_local_size, cross_thread, local_ids, local_memory
from softgen.api.machine import BatchMachine
from softgen.api.memory import Allocation, Buffer, Heap, Image, Sampler, find_format, image_bytes, is_integer, little_endian, plain_dtype
from softgen.api.run import Run
from softgen.api.state import ENTRIES, Dispatch, Packer, Parts
from softgen.bits.generation import device
from softgen.bits.units import GRF_BYTES, GRF_COUNT, PAGE_SIZE
from softgen.errors import UsageError

SLOTS = 1024  # threads that have scratch space of their own: a thread's number in r0 has 10 bits
MOST_CURBE = 1 << 16  # bytes
MOST_WIDTH = 64  # threads that a walker counts in one direction


@dataclass(frozen=True)
class Prepared:
    """A launch whose state is in memory: `run()` executes it, as often as wanted."""

    gpu: Gpu
    batch: int
    groups: int
    memory: tuple[Allocation, ...]
    arguments: tuple[Allocation, ...] = ()  # memory that it uses and does not own

    def run(self, on_fault: OnFault | None = None, trace: bool = False, time_limit: float | None = None) -> Run:
        if not all(allocation.heap.maps(allocation) for allocation in self.memory):
            raise UsageError("this launch was freed, or its Gpu is closed; prepare it again")
        if not all(allocation.heap.maps(allocation) for allocation in self.arguments):
            raise UsageError("an argument of this launch was freed: its address may be that of other memory by now")
        return self.gpu._execute(self.batch, on_fault, trace, time_limit)

    def free(self) -> None:
        """Release the state; the arguments stay."""
        for allocation in self.memory:
            allocation.heap.free(allocation)


class Gpu:
    """A software GPU. `engine` is auto, reference, t0 or t1; `threads` host threads run its thread groups (default: one per processor).
    Python threads may share a GPU: it runs one launch after another.

    >>> import numpy as np, softgen
    >>> code = softgen.assemble('''
    ...     (W) mov (8|M0)  r127.0<1>:ud r0.0<8;8,1>:ud
    ...         shl (16|M0) r10.0<1>:d r1.0<8;8,1>:d 2:w
    ...         mul (16|M0) r12.0<1>:d r1.0<8;8,1>:d 3:w
    ...         send (16|M0) null:w r10 0xC 0x08025E00
    ...     (W) send (8|M0) null r127 0x27 0x02000010 {EOT}
    ... ''', "kbl")
    >>> with softgen.Gpu("kbl") as gpu:
    ...     x = gpu.empty(16, np.int32)
    ...     run = gpu.execute(code, simd=16, payload=np.arange(16, dtype=np.int32), surfaces=[x])
    ...     x.array[:5].tolist(), run.threads, run.instructions
    ([0, 3, 6, 9, 12], 1, 5)
    """

    def __init__(self, gpu: str = "kbl", engine: str = "auto", threads: int | None = None, on_fault: OnFault = "raise") -> None:
        self.device = device(gpu)
        self._packer = Packer(self.device)
        self._machine = BatchMachine(self.device, engine, threads)
        self._heap = Heap(f"memory of {self.device.name}", self.device.generation.address_bits)
        self._code: dict[bytes, Allocation] = {}
        self._data: dict[tuple[Kernel, str], Allocation] = {}
        self._scratch: Allocation | None = None
        self.on_fault = check_on_fault(on_fault)

    # -- memory --------------------------------------------------------------------------------------------------------

    def buffer(self, data: npt.ArrayLike) -> Buffer:
        """A copy of an array in GPU memory, which is little-endian."""
        array = np.ascontiguousarray(little_endian(data, "a buffer is a copy of an array"))
        made = self.empty(array.shape, array.dtype)
        made.array[...] = array
        return made

    def empty(self, shape: int | Sequence[int], dtype: npt.DTypeLike = np.float32) -> Buffer:
        """An array of zeros in GPU memory."""
        whole = tuple(shape) if isinstance(shape, Sequence) else (shape,)
        if not all(is_integer(length) and length >= 0 for length in whole):
            raise UsageError(f"a shape is a number of elements, or one for each axis, and none is negative; not {shape!r}")
        kind = plain_dtype(dtype)
        whole, kind = whole + kind.shape, kind.base  # as NumPy does for elements that are arrays
        size = math.prod(map(int, whole)) * kind.itemsize
        memory = self._heap.allocate(size, f"buffer of {size:,} bytes")
        try:
            return Buffer(memory, whole, kind)
        except ValueError as error:
            self._heap.free(memory)
            raise UsageError(f"shape: {error}") from None

    def image(self, data: npt.ArrayLike, *, format: str | None = None, normalized: bool = False, channels: int | None = None,
              layered: bool = False) -> Image:  # fmt: skip
        """A copy of an array as an image: (height, width), (height, width, channels) or with slices in front.

        The format follows from the array (`normalized`: integers stand for 0…1 or -1…1) unless it is named. A last axis of 2 or 4 in an
        array of three or more axes is channels; `channels=1` makes it the width. Slices are those of a 3D image, or of a 2D image array
        (`layered`)."""
        array = little_endian(data, "an image is a copy of an array")
        if channels is not None:
            check_numbers(channels=channels)
        else:
            channels = array.shape[-1] if array.ndim >= 3 and array.shape[-1] in (2, 4) else 1
        if channels > 1 and (array.ndim < 3 or array.shape[-1] != channels):
            raise UsageError(f"the last axis of an image with {channels} channels has {channels} elements; the shape is {array.shape}")
        size = array.shape[: array.ndim - (channels > 1)][::-1]
        if len(size) not in (2, 3) or not all(size):
            raise UsageError(f"an image has two or three dimensions, and no empty one; the shape is {array.shape}")
        self._packer.check_size(size)
        found = find_format(array.dtype, channels, normalized, format)
        memory = self._heap.allocate(image_bytes(size, found), f"image {found}")
        made = Image(memory, found, size, array.dtype, channels, layered)
        made.array[...] = array
        return made

    def close(self) -> None:
        """Release all memory of the GPU. Arrays of buffers stay valid."""
        self._heap.close()

    def __enter__(self) -> Gpu:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Gpu({self.device.name!r}: {self.device.title})"

    # -- kernels with metadata -----------------------------------------------------------------------------------------

    def launch(self, kernel: Kernel, *arguments: Value, global_size: int | Sequence[int], local_size: int | Sequence[int] | None = None,
               offset: int | Sequence[int] = 0, on_fault: OnFault | None = None, trace: bool = False,
               time_limit: float | None = None) -> Run:  # fmt: skip
        """Run an OpenCL kernel over a range of work items, and wait until it has ended.

        Buffers, images, samplers and `Local` are given as such; Python numbers take the size of their argument. `trace` records every
        instruction (on the reference engine). A fault raises, or is collected in `run.faults` with on_fault="collect".

        >>> import numpy as np, softgen
        >>> collatz = softgen.load_kernels("tests/data/kernels/cf_collatz.kbl.bin", "kbl")["cf_collatz"]
        >>> with softgen.Gpu("kbl") as gpu:
        ...     numbers = gpu.buffer(np.arange(1, 65, dtype=np.uint32))
        ...     steps = gpu.empty(64, np.uint32)
        ...     run = gpu.launch(collatz, numbers, steps, global_size=64, local_size=32)
        ...     steps.array[:8].tolist()
        [1, 7, 2, 5, 8, 16, 3, 19]
        """
        prepared = self.prepare(kernel, *arguments, global_size=global_size, local_size=local_size, offset=offset)
        try:
            return prepared.run(on_fault, trace, time_limit)
        finally:
            prepared.free()

    def prepare(self, kernel: Kernel, *arguments: Value, global_size: int | Sequence[int], local_size: int | Sequence[int] | None = None,
                offset: int | Sequence[int] = 0) -> Prepared:  # fmt: skip
        """Write the state of a launch into memory, to be run several times."""
        if not isinstance(kernel, Kernel):
            raise UsageError(f"a launch takes a kernel of softgen.load_kernels(…), not {type(kernel).__name__}")
        if self.device.name not in kernel.gpus:
            raise UsageError(f"{kernel.name} was compiled for {' '.join(kernel.gpus) or 'a GPU softgen does not know'}, "
                             f"not for {self.device.name}")  # fmt: skip
        check_arguments(kernel, arguments)
        for argument in kernel.arguments:
            check_owner(self._heap, arguments[argument.index], f"argument {argument.index} ({argument.name}) of {kernel.name}")
        launch = kernel.launch
        grid = self._grid(kernel, global_size, local_size, offset)
        local, local_bytes = local_memory(kernel, arguments)
        self._check_group(threads := -(-grid.items // kernel.simd), kernel.name)
        per_thread = local_ids(grid, kernel.simd) if launch.local_ids else [bytes(GRF_BYTES)] * threads
        shared = cross_thread(kernel, arguments, grid, local, self._program_data(kernel))
        rest = grid.items - kernel.simd * (len(per_thread) - 1)
        dispatch = Dispatch(
            simd=kernel.simd, group_threads=len(per_thread), groups=grid.groups, right_mask=(1 << rest) - 1,
            per_thread=len(per_thread[0]) // GRF_BYTES, cross_thread=len(shared) // GRF_BYTES, local_bytes=local_bytes,
            barrier=launch.barrier, scratch_bytes=launch.scratch_bytes)  # fmt: skip
        samplers = self._samplers(kernel, arguments)
        table = self._surfaces(kernel, arguments)
        used = tuple(value.allocation for value in arguments if isinstance(value, Buffer | Image))
        return self._prepare(self._relocated(kernel), dispatch, table, samplers, shared + b"".join(per_thread), arguments=used)

    def _grid(self, kernel: Kernel, global_size: int | Sequence[int], local_size: int | Sequence[int] | None,
              offset: int | Sequence[int]) -> Grid:  # fmt: skip
        whole, dimensions = triple(global_size, 1, "global_size")
        start, _ = triple(offset, 0, "offset")
        required = kernel.launch.required_local_size
        if local_size is None:
            part = required if any(required) else chosen_local_size(whole)
        else:
            part, _ = triple(local_size, 1, "local_size")
        if any(required) and part != required:
            raise UsageError(f"{kernel.name} requires local_size {required}, not {part}")
        if not all(whole) or not all(part) or any(a % b for a, b in zip(whole, part, strict=True)):
            raise UsageError(f"global_size {whole} must be a multiple of local_size {part} in every dimension, and not zero")
        return Grid(whole, part, start, dimensions)

    def _check_group(self, threads: int, name: str) -> None:
        most = min(MOST_WIDTH, self.device.limit("compute_threads"))
        if threads > most:
            raise UsageError(f"a group of {name} has {threads} hardware threads; {self.device.title} runs at most {most}")

    def _program_data(self, kernel: Kernel) -> dict[str, int]:
        """Addresses of program-scope data and private memory, allocated once for each kernel."""
        launch = kernel.launch
        sizes = {"const_base": (launch.constant_data, 0), "global_base": (launch.global_data, 0),
                 "private_base_stateless": (b"", launch.private_bytes * SLOTS)}  # fmt: skip
        found = {}
        for name, (data, size) in sizes.items():
            key = kernel, name
            with self._heap.lock:
                if key not in self._data and (data or size):
                    memory = self._heap.allocate(max(len(data), size), f"{name} of {kernel.name}")
                    memory.write(data)
                    self._data[key] = memory
            found[name] = self._data[key].address if key in self._data else 0
        return found

    def _relocated(self, kernel: Kernel) -> bytes:
        code = bytearray(kernel.code)
        bases = self._program_data(kernel)
        for relocation in kernel.launch.relocations:
            offset, size = relocation.offset, relocation.size
            if relocation.section == "code" or offset + size > len(code):
                raise UsageError(f"{kernel.name}: a relocation at {offset:#x} of {size} bytes is not for program data in its code")
            value = bases["const_base" if relocation.section == "constant" else "global_base"] + relocation.value
            code[offset : offset + size] = (value >> relocation.shift & (1 << 8 * size) - 1).to_bytes(size, "little")
        return bytes(code)

    def _surfaces(self, kernel: Kernel, arguments: Sequence[Value]) -> dict[int, bytes]:
        """Surface states by binding table index."""
        table = {}
        for argument in kernel.arguments:
            value = arguments[argument.index]
            if argument.surface is not None and isinstance(value, Buffer | Image):
                table[argument.surface] = self._packer.surface(value)
        launch = kernel.launch
        for index, name in ((launch.constant_surface, "const_base"), (launch.global_surface, "global_base"),
                            (launch.private_surface, "private_base_stateless")):  # fmt: skip
            data = self._data.get((kernel, name))
            if index is not None and data is not None:
                table[index] = self._packer.raw(data.address, data.store.size)
        return table

    def _samplers(self, kernel: Kernel, arguments: Sequence[Value]) -> list[bytes]:
        states: dict[int, bytes] = {}
        for sampler in kernel.launch.samplers:
            states[sampler.index] = sampler.state or self._packer.sampler(_sampler(sampler.filter, sampler.addressing, sampler.normalized))
        for argument in kernel.arguments:
            value = arguments[argument.index]
            if argument.sampler is not None and isinstance(value, Sampler):
                states[argument.sampler] = self._packer.sampler(value)
        return [states.get(index, bytes(16)) for index in range(max(states, default=-1) + 1)]

    # -- plain code ----------------------------------------------------------------------------------------------------

    def execute(self, code: bytes, *, simd: int = 16, threads: int = 1, group: int = 1, payload: npt.ArrayLike | None = None,
                surfaces: Sequence[Buffer | Image | None] = (), samplers: Sequence[Sampler] = (), local_bytes: int = 0,
                scratch_bytes: int = 0, on_fault: OnFault | None = None, trace: bool = False,
                time_limit: float | None = None) -> Run:  # fmt: skip
        """Run machine code on `threads` hardware threads, `group` of them to a thread group, and wait until they have ended.

        A thread starts with the GPGPU header in r0 (its group's number in r0.1) and the payload from r1 on: the same bytes for all
        threads, or a row for each where the payload is an array whose first axis is as long as there are threads. `surfaces` are the
        binding table. Code ends with an EOT message to the thread spawner."""
        if not isinstance(code, bytes | bytearray | memoryview | np.ndarray):
            raise UsageError(f"code is bytes, as softgen.assemble(…) returns them, not {type(code).__name__}")
        if getattr(getattr(code, "dtype", None), "hasobject", False):
            raise UsageError("code is bytes, and not in Python objects")
        check_numbers(simd=simd, threads=threads, group=group, local_bytes=local_bytes, scratch_bytes=scratch_bytes)
        if simd not in (8, 16, 32) or threads < 1 or group < 1 or threads % group:
            raise UsageError(f"simd is 8, 16 or 32, threads a multiple of group; not {simd}, {threads} and {group}")
        check_tables(self._heap, surfaces, samplers)
        self._check_group(group, "this code")
        rows = self._payloads(payload, threads)
        size = len(rows[0])
        if group * size > MOST_CURBE:
            raise UsageError(f"{group} threads with {size:,} bytes of payload each are too many; a group takes {MOST_CURBE:,} bytes")
        shared = len(rows) == 1
        dispatches = [Dispatch(simd, group, ((threads // group) if shared else 1, 1, 1), (number, 0, 0), per_thread=size // GRF_BYTES,
                               local_bytes=local_bytes, barrier=group > 1, scratch_bytes=scratch_bytes)
                      for number in range(1 if shared else threads // group)]  # fmt: skip
        loaded = [rows[0] * group] if shared else [b"".join(rows[first : first + group]) for first in range(0, threads, group)]
        table = {index: self._packer.surface(surface) for index, surface in enumerate(surfaces)}
        states = [self._packer.sampler(sampler) for sampler in samplers]
        prepared = self._prepare(bytes(code), dispatches[0], table, states, loaded=loaded, more=dispatches[1:])
        try:
            return prepared.run(on_fault, trace, time_limit)
        finally:
            prepared.free()

    def _payloads(self, payload: npt.ArrayLike | None, threads: int) -> list[bytes]:
        """A payload for every thread, or one for all; whole registers."""
        array = np.zeros(0, np.uint8) if payload is None else np.ascontiguousarray(little_endian(payload, "a payload is an array"))
        if array.dtype.kind not in "biufV" or array.dtype.hasobject:
            raise UsageError(f"a payload is an array of numbers, not of {array.dtype}")
        rows = [array[number].tobytes() for number in range(threads)] if array.ndim > 1 and len(array) == threads else [array.tobytes()]
        size = -(-len(rows[0]) // GRF_BYTES) * GRF_BYTES
        if size > (GRF_COUNT - 1) * GRF_BYTES:
            raise UsageError(f"a payload of {size:,} bytes is larger than the registers after r0; for a row per thread the first axis has "
                             f"{threads} elements, not {len(array)}")  # fmt: skip
        return [row.ljust(size, b"\0") for row in rows]

    # -- both ----------------------------------------------------------------------------------------------------------

    def _prepare(self, code: bytes, dispatch: Dispatch, table: dict[int, bytes], samplers: list[bytes], fetched: bytes = b"",
                 loaded: Sequence[bytes] = (), more: Sequence[Dispatch] = (),
                 arguments: tuple[Allocation, ...] = ()) -> Prepared:  # fmt: skip
        """Put code, state and batch into memory. `fetched` is payload that the walker reads, `loaded` what the CURBE gets per dispatch."""
        all_dispatches = [dispatch, *more]
        parts = Parts()
        sampler_table = parts.add(b"".join(samplers)) if samplers else 0
        for number, current in enumerate(all_dispatches):
            current.samplers, current.sampler_count = sampler_table, len(samplers)
            data = loaded[number] if loaded else b""
            current.curbe = (parts.add(data), len(data)) if data else None
        surfaces = Parts()
        offsets = {index: surfaces.add(state) for index, state in table.items()}
        if any(index >= ENTRIES for index in table):
            raise UsageError(f"a binding table has at most {ENTRIES} entries")
        null = self._packer.pack("BINDING_TABLE_STATE", surface_state_pointer=surfaces.add(self._packer.surface(None)))
        entries = [null] * ENTRIES  # all of them: entries that are zero would be the first surface
        for index, offset in offsets.items():
            entries[index] = self._packer.pack("BINDING_TABLE_STATE", surface_state_pointer=offset)
        binding_table = surfaces.add(b"".join(entries))
        for current in all_dispatches:
            current.binding_table = binding_table
            if fetched:
                current.indirect = 0, len(fetched)
        description = self._packer.descriptor(dispatch)
        for current in all_dispatches:
            current.descriptor = parts.add(description) if current is dispatch else dispatch.descriptor
        return self._placed(code, parts.data, surfaces.data, fetched, all_dispatches, arguments)

    def _placed(self, code: bytes, dynamic: bytes, surfaces: bytes, fetched: bytes, dispatches: list[Dispatch],
                arguments: tuple[Allocation, ...]) -> Prepared:  # fmt: skip
        states = [_whole_pages(part) for part in (dynamic, surfaces, fetched)]
        first = dispatches[0]
        curbe = first.curbe[1] if first.curbe else 0  # every dispatch has as many bytes
        walks = self._packer.front_end(first.scratch_bytes, curbe) + b"".join(map(self._packer.dispatch, dispatches)) + self._packer.end()
        with self._heap.lock:
            general, instruction = self._scratch_space(first), self._upload(code)
        begin = len(b"".join(states))
        memory = self._heap.allocate(begin + len(walks) + PAGE_SIZE, "state")
        try:
            at = [memory.address, memory.address + len(states[0]), memory.address + len(states[0]) + len(states[1])]
            memory.write(b"".join(states) + self._packer.bases(general, at[1], at[0], at[2], instruction) + walks)
            x, y, z = first.groups
            return Prepared(self, memory.address + begin, x * y * z * len(dispatches), (memory,), arguments)
        except BaseException:  # an interrupt
            self._heap.free(memory)
            raise

    def _scratch_space(self, dispatch: Dispatch) -> int:
        """The general state base: scratch space for every thread that can be in flight."""
        slots = max(SLOTS, dispatch.group_threads * self._machine.host_threads)
        field = "MEDIA_VFE_STATE", "per_thread_scratch_space"
        code = self._packer.smallest(*field, dispatch.scratch_bytes)
        size = slots * self._packer.sizes(*field)[code] if dispatch.scratch_bytes else 0
        if self._scratch is None or self._scratch.store.size < size:  # launches prepared before keep the one they have
            self._scratch = self._heap.allocate(max(size, PAGE_SIZE), "scratch space")
        return self._scratch.address

    def _upload(self, code: bytes) -> int:
        """The address of code; the same bytes stay at the same place, so that engines translate them once."""
        if not code:
            raise UsageError("there is no code")
        if code not in self._code:
            memory = self._heap.allocate(len(code), "code")
            memory.write(code)
            self._code[code] = memory  # complete: an interrupt may come anywhere
        return self._code[code].address

    def _execute(self, batch: int, on_fault: OnFault | None, trace: bool, time_limit: float | None) -> Run:
        self._heap.check_open()
        check_time_limit(time_limit)
        how = self.on_fault if on_fault is None else check_on_fault(on_fault)
        return self._machine.execute(self._heap.space, batch, how == "collect", trace, time_limit)


def _whole_pages(data: bytes) -> bytes:
    return data.ljust(-(-len(data) // PAGE_SIZE) * PAGE_SIZE, b"\0")


def _sampler(filter: str, addressing: str, normalized: bool) -> Sampler:
    values: dict[str, Any] = {"filter": filter or "nearest", "addressing": addressing or "none", "normalized": normalized}
    return Sampler(**values)
