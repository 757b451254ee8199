"""The compute walker: a grid of thread groups, and the registers that each thread starts with.

Reads   MEDIA_VFE_STATE MEDIA_CURBE_LOAD MEDIA_INTERFACE_DESCRIPTOR_LOAD INTERFACE_DESCRIPTOR_DATA GPGPU_WALKER GPGPU_THREAD_HEADER
Writes  a Plan, and for each thread its dispatch mask and payload

Groups run X fastest, then Y, then Z (BDW 21416-21434). In memory, constants that all threads share come first and each thread's own
follow. Registers keep that order when constants were loaded into the CURBE; data that the walker fetches itself stands the other way
round, own data first (observed: Intel's OpenCL runtime uses the one, Mesa the other; KBL 12678-12690 allows both).
"""

from __future__ import annotations

import struct
from array import array
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Protocol

from softgen.bits import catalogue
from softgen.bits.describe import value_name, values_of
from softgen.bits.generation import Generation
from softgen.bits.layout import Layout
from softgen.bits.record import Record
from softgen.errors import DecodeError
from softgen.memory.space import Space

REGISTER = 32
MOST_REGISTERS = 128
KIB = 1024
SIMD = {"simd8": 8, "simd16": 16, "simd32": 32}
ALL = (1 << 32) - 1


@dataclass
class FrontEnd:
    """What media commands have loaded; it outlives the commands and belongs to a hardware context."""

    state: Record | None = None  # MEDIA_VFE_STATE
    constants: bytes = b""  # the CURBE
    descriptors: bytes = b""
    used: bool = False  # have descriptors been used since MEDIA_STATE_FLUSH?
    group: object = None  # a thread group that is being put together (media.Pending)


@dataclass(frozen=True)
class Surroundings:
    """What a dispatch finds around it."""

    generation: Generation
    space: Space
    bases: Mapping[str, int]
    front: FrontEnd
    tell: Callable[[str], None] = lambda text: None  # of what is no error, but may be a mistake

    def layout(self, name: str) -> Layout:
        return catalogue.layout(name, self.generation.number)

    def address(self, base: str, offset: int) -> int:
        """Addresses may be written in canonical form; inside they have only the space's bits."""
        return self.bases.get(base, 0) + offset & (1 << self.space.bits) - 1


Grid = tuple[range, range, range]  # of group ids: x, y, z


class Payloads(Protocol):
    """Registers of threads that differ in more than their number."""

    @property
    def registers(self) -> int:
        """Of the thread that has most."""
        ...

    def of(self, plan: Plan, number: int, slot: int) -> bytes:
        """One thread's, from r0 on; `slot` tells its scratch space from others'."""
        ...


@dataclass(frozen=True)
class Plan:
    """A dispatch in numbers."""

    kernel: int  # counted from the instruction base
    simd: int
    shape: tuple[int, int, int]  # threads of a group: width, height, depth
    grid: Grid
    right_mask: int
    bottom_mask: int
    own: int  # registers of constants for each thread
    shared: int  # registers of constants for all threads
    own_first: bool
    data: bytes = field(repr=False)  # shared constants, then those of each thread
    local_bytes: int
    barrier: bool
    binding_table: int
    sampler: int
    scratch_base: int
    scratch_code: int
    scratch_bytes: int
    single_flow: bool
    alternate: bool
    rounding: int
    payloads: Payloads | None = None  # in place of a GPGPU thread's

    @property
    def registers(self) -> int:
        """What threads start with, header included."""
        return self.payloads.registers if self.payloads else 1 + self.own + self.shared

    @property
    def threads(self) -> int:
        width, height, depth = self.shape
        return width * height * depth

    @property
    def count(self) -> int:
        """Groups."""
        xs, ys, zs = self.grid
        return len(xs) * len(ys) * len(zs)

    def group(self, number: int) -> tuple[int, int, int]:
        """The group that comes after so many."""
        xs, ys, zs = self.grid
        return xs[number % len(xs)], ys[number // len(xs) % len(ys)], zs[number // len(xs) // len(ys)]

    def groups(self) -> Iterator[tuple[int, int, int]]:
        xs, ys, zs = self.grid
        return ((x, y, z) for z in zs for y in ys for x in xs)


@dataclass(frozen=True)
class Done:
    """What some groups came to."""

    threads: int
    instructions: int
    groups: int = 1


Spent = Callable[[], bool]  # is time up?
Run = Callable[["Surroundings", "Plan", Spent], Iterator[Done]]  # every group of a dispatch


@dataclass(frozen=True)
class Start:
    """One thread as it is dispatched."""

    number: int
    mask: int
    registers: bytes


# -- loading -------------------------------------------------------------------------------------------------------


def load_constants(around: Surroundings, command: Record) -> None:
    """MEDIA_CURBE_LOAD copies now; what stands in memory later does not count (BDW 22582-22611)."""
    length = command.curbe_total_data_length
    around.front.constants = around.space.read(around.address("dynamic", command.curbe_data_start_address), length)


def load_descriptors(around: Surroundings, command: Record) -> None:
    length = command.interface_descriptor_total_length
    around.front.descriptors = around.space.read(around.address("dynamic", command.interface_descriptor_data_start_address), length)


# -- planning ------------------------------------------------------------------------------------------------------


def plan(around: Surroundings, walker: Record, dimensions: tuple[int, int, int] | None = None) -> Plan:
    """`dimensions` stand in for the command's own where it takes them from registers."""
    one = descriptor(around, walker.interface_descriptor_offset)
    shape = (walker.thread_width_counter_maximum + 1, walker.thread_height_counter_maximum + 1, walker.thread_depth_counter_maximum + 1)
    count = shape[0] * shape[1] * shape[2]
    if count != one.number_of_threads_in_gpgpu_thread_group:
        said = one.number_of_threads_in_gpgpu_thread_group
        raise DecodeError(f"GPGPU_WALKER: {' x '.join(map(str, shape))} threads in a group, its interface descriptor says {said}")
    mode = _mode(around.generation.number, walker.simd_size)
    if mode not in SIMD:
        raise DecodeError(f"GPGPU_WALKER: simd_size must be simd8, simd16 or simd32, not {mode}")
    own, shared = one.constant_urb_entry_read_length, _optional(one, "cross_thread_constant_data_read_length")
    fetched = bool(_optional(walker, "indirect_data_length"))
    skip = _optional(one, "constant_urb_entry_read_offset") * REGISTER
    data = indirect_data(around, walker) if fetched else around.front.constants[skip:]
    data = _constants(around, own, shared, count, data, fetched)
    return Plan(
        simd=SIMD[mode], shape=shape, grid=_grid(walker, dimensions),
        right_mask=walker.right_execution_mask, bottom_mask=walker.bottom_execution_mask,
        own=own, shared=shared, own_first=fetched, data=data, **described(around, one),
    )  # fmt: skip


@lru_cache(64)
def _mode(gen: float, code: int) -> str:
    return values_of(catalogue.layout("GPGPU_WALKER", gen).field("simd_size").type, gen).get(code, f"value {code}")


def described(around: Surroundings, one: Record) -> dict[str, Any]:
    """The parts of a Plan that interface descriptor and front end say."""
    return _described(around.generation.number, one, around.front.state)


@lru_cache(256)
def _described(gen: float, one: Record, front: Record | None) -> dict[str, Any]:
    state = catalogue.layout("INTERFACE_DESCRIPTOR_DATA", gen)
    return {
        "kernel": one.kernel_start_pointer,
        "local_bytes": kibibytes(value_name(state, one, "shared_local_memory_size")), "barrier": bool(one.barrier_enable),
        "binding_table": one.binding_table_pointer, "sampler": one.sampler_state_pointer,
        "scratch_base": front.scratch_space_base_pointer if front else 0, "scratch_code": front.per_thread_scratch_space if front else 0,
        "scratch_bytes": kibibytes(value_name(catalogue.layout("MEDIA_VFE_STATE", gen), front, "per_thread_scratch_space")) if front else 0,
        "single_flow": bool(one.single_program_flow), "alternate": bool(one.floating_point_mode), "rounding": one.rounding_mode,
    }  # fmt: skip


def descriptor(around: Surroundings, index: int, by: str = "GPGPU_WALKER") -> Record:
    """An interface descriptor, of those that were loaded."""
    layout = around.layout("INTERFACE_DESCRIPTOR_DATA")
    size = 4 * layout.dwords
    held = around.front.descriptors[index * size : (index + 1) * size]
    if len(held) < size:
        loaded = len(around.front.descriptors) // size
        raise DecodeError(f"{by}: interface descriptor {index} is asked for, {loaded} are loaded")
    return _descriptor(around.generation.number, held)


@lru_cache(256)
def _descriptor(gen: float, data: bytes) -> Record:
    return catalogue.layout("INTERFACE_DESCRIPTOR_DATA", gen).raw(array("I", data))


def indirect_data(around: Surroundings, walker: Record) -> bytes:
    return around.space.read(around.address("indirect", walker.indirect_data_start_address), walker.indirect_data_length)


def kibibytes(name: str) -> int:
    """A size as pages name it: '0', '4k' … '64k'."""
    if not name.removesuffix("k").isdigit():
        raise DecodeError(f"a size of local memory or scratch space has {name}, which means nothing")
    return int(name.removesuffix("k")) * KIB


def _optional(values: Record, name: str) -> int:
    """A field that some generations do not have: zero there."""
    return int(getattr(values, name)) if name in values._fields else 0


def _constants(around: Surroundings, own: int, shared: int, threads: int, data: bytes, fetched: bool) -> bytes:
    """What threads start with. Where less is fetched than they take, the rest is what happened to be there: zeros here. Intel's runtime has
    kernels without local ids take a register of them all the same (observed: version 23.43)."""
    if 1 + own + shared > MOST_REGISTERS:
        raise DecodeError(f"GPGPU_WALKER: {1 + own + shared} registers of payload; a thread has {MOST_REGISTERS}")
    need = (shared + own * threads) * REGISTER
    if need <= len(data):
        return data
    said = f"GPGPU_WALKER: {threads} threads need {need} bytes of constants"
    if not fetched:
        raise DecodeError(f"{said}, the CURBE holds {len(data)}")
    around.tell(f"{said}, {len(data)} are fetched: the rest is taken as zeros")
    return data.ljust(need, b"\0")


def _grid(walker: Record, dimensions: tuple[int, int, int] | None) -> Grid:
    x, y, z = dimensions or (walker.thread_group_id_x_dimension, walker.thread_group_id_y_dimension, walker.thread_group_id_z_dimension)
    return (range(walker.thread_group_id_starting_x, x), range(walker.thread_group_id_starting_y, y),
            range(walker.thread_group_id_starting_resume_z, z))  # fmt: skip


# -- threads -------------------------------------------------------------------------------------------------------


def starts(plan: Plan, group: tuple[int, int, int], header: Layout) -> Iterator[Start]:
    """The threads of a group, width fastest."""
    width, height, _ = plan.shape
    for number in range(plan.threads):
        yield Start(number, mask(plan, number % width, number // width % height), registers(plan, group, number, header))


def uses(plan: Plan, slot: int) -> dict[str, int]:
    """What headers of all kinds say: where a thread finds its surfaces, samplers and scratch space."""
    return {
        "fixed_function_thread_id": slot & 0x3FF, "scratch_space_offset": plan.scratch_base + slot * plan.scratch_bytes & ALL,
        "per_thread_scratch_space": plan.scratch_code, "binding_table_pointer": plan.binding_table, "sampler_state_pointer": plan.sampler,
    }  # fmt: skip


def mask(plan: Plan, x: int, y: int) -> int:
    """Channels that are on: fewer in the last column and row (BDW 21435-21438)."""
    width, height, _ = plan.shape
    right = plan.right_mask if x == width - 1 else ALL
    bottom = plan.bottom_mask if y == height - 1 else ALL
    return right & bottom & (1 << plan.simd) - 1


def registers(plan: Plan, group: tuple[int, int, int], number: int, header: Layout, before: int = 0) -> bytes:
    """Registers from r0 on. A thread's number in its group is what tells its scratch space from others': groups run one after another,
    unless there are `before` threads that run at the same time."""
    if plan.payloads is not None:
        return plan.payloads.of(plan, number, before + number)
    x, y, z = group
    first = header.pack(thread_group_id_x=x, thread_group_id_y=y, thread_group_id_z=z, **uses(plan, before + number))
    shared = plan.data[: plan.shared * REGISTER]
    begin = (plan.shared + number * plan.own) * REGISTER
    own = plan.data[begin : begin + plan.own * REGISTER]
    return struct.pack("<8I", *first) + (own + shared if plan.own_first else shared + own)
