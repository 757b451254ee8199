"""The front end that media and compute share: VFE state, CURBE and interface descriptors.

Reads   MEDIA_VFE_STATE MEDIA_CURBE_LOAD MEDIA_INTERFACE_DESCRIPTOR_LOAD INTERFACE_DESCRIPTOR_DATA 3DSTATE_BINDING_TABLE_POOL_ALLOC
Writes  FrontEnd, a part of the hardware context; the fields of a ThreadDispatch that descriptor and VFE state determine
"""

from __future__ import annotations

import struct
from array import array
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import Any, NamedTuple

from softgen.bits import catalogue
from softgen.bits.describe import value_name
from softgen.bits.record import Record
from softgen.command import CommandStreamer
from softgen.errors import DecodeError
from softgen.shared_functions.texture_tables import texture_tables
from softgen.threads.dispatch import KIB, DispatchContext, Scratch, control_register, size_code
from softgen.threads.payload import SlotField

# Exceptions that an interface descriptor enables, and their bits of cr0.1 (KBL 12602-12617, IVB 2496-2503).
EXCEPTIONS = {"illegal_opcode_exception_enable": "illegal_opcode_enable", "software_exception_enable": "software_enable"}
# A pool of binding tables: its base among those of a context, and how far pointers in interface descriptors are shifted, like those of
# 3DSTATE_BINDING_TABLE_POINTERS_VS.
POOL, POOL_SHIFT = "binding_table_pool", 3


@dataclass
class ThreadGroup:
    """A thread group that MEDIA_OBJECT_GRPID commands assemble, one thread each."""

    id: int
    descriptor: int
    commands: list[Record] = field(default_factory=list)


@dataclass
class FrontEnd:
    """State that media commands load; a part of the hardware context."""

    state: Record | None = None  # MEDIA_VFE_STATE
    constants: bytes = b""  # the CURBE
    descriptors: bytes = b""
    used: bool = False  # descriptors have been used since MEDIA_STATE_FLUSH
    watermark: bool = False  # the last MEDIA_STATE_FLUSH asked for the watermark
    group: ThreadGroup | None = None  # not yet started

    def restored(self, latched: Mapping[str, Record]) -> None:
        """Takes over the state of a context that was switched in."""
        self.state = latched.get("MEDIA_VFE_STATE")


def dispatch_context(cs: CommandStreamer) -> DispatchContext:
    bases, pool = cs.bases, cs.latched.get("3DSTATE_BINDING_TABLE_POOL_ALLOC") if cs.generation.pooled_compute_tables else None
    if pool is not None and pool.binding_table_pool_enable:
        bases = {**bases, POOL: int(pool.binding_table_pool_base_address)}
    return DispatchContext(cs.generation, cs.space, bases, cs.warn, cs.system_routine, elapsed=cs.elapsed,
                           unit_states=texture_tables(cs.latched), told=cs.told)  # fmt: skip


# -- loading -------------------------------------------------------------------------------------------------------


def load_constants(cs: CommandStreamer, front: FrontEnd, command: Record) -> None:
    """MEDIA_CURBE_LOAD copies at once; later changes of memory do not count (BDW 22582-22611)."""
    front.constants = dynamic(cs, command.curbe_data_start_address, command.curbe_total_data_length)


def load_descriptors(cs: CommandStreamer, front: FrontEnd, command: Record) -> None:
    front.descriptors = dynamic(cs, command.interface_descriptor_data_start_address, command.interface_descriptor_total_length)


def dynamic(cs: CommandStreamer, offset: int, size: int) -> bytes:
    """Memory at an offset from the dynamic state base."""
    return cs.space.read(cs.bases.get("dynamic", 0) + offset & (1 << cs.space.bits) - 1, size)


# -- what a dispatch needs -----------------------------------------------------------------------------------------


def descriptor(gen: float, front: FrontEnd, index: int, by: str) -> Record:
    """One of the interface descriptors that were loaded. `by` names the command in errors."""
    size = 4 * catalogue.layout("INTERFACE_DESCRIPTOR_DATA", gen).dwords
    data = front.descriptors[index * size : (index + 1) * size]
    if len(data) < size:
        loaded = len(front.descriptors) // size
        raise DecodeError(f"{by}: interface descriptor {index} is asked for, {loaded} are loaded")
    return _descriptor(gen, data)


@lru_cache(256)
def _descriptor(gen: float, data: bytes) -> Record:
    return catalogue.layout("INTERFACE_DESCRIPTOR_DATA", gen).raw(array("I", data))


def dispatch_fields(context: DispatchContext, front: FrontEnd, descriptor: Record, shares: bool = True) -> dict[str, Any]:
    """The fields of a ThreadDispatch that an interface descriptor and state determine. `shares`: threads are of a group, which may have a
    barrier and local memory."""
    at = descriptor._fields.index("binding_table_pointer")  # drivers have another one for each dispatch of a kernel
    rest = type(descriptor)((*descriptor[:at], 0, *descriptor[at + 1 :]))
    return {**_dispatch_fields(context.generation.number, rest, front.state, context.system_routine, shares),
            "binding_table": binding_table(context, descriptor), "unit_states": context.unit_states}  # fmt: skip


def binding_table(context: DispatchContext, descriptor: Record) -> int:
    """The binding table that an interface descriptor names, as an offset from the surface state base."""
    table = int(descriptor.binding_table_pointer)
    if POOL in context.bases:
        return context.bases[POOL] - context.bases.get("surface", 0) + (table << POOL_SHIFT)
    return table


@lru_cache(256)
def _dispatch_fields(gen: float, descriptor: Record, front: Record | None, system_routine: int | None, shares: bool) -> dict[str, Any]:
    layout, rounding = catalogue.layout("INTERFACE_DESCRIPTOR_DATA", gen), descriptor.rounding_mode
    if shares and descriptor.barrier_enable and optional(descriptor, "global_barrier_enable"):
        raise DecodeError("INTERFACE_DESCRIPTOR_DATA: global_barrier_enable 1; global barriers cannot be used (KBL 12772)")
    exceptions = {enable: optional(descriptor, name) for name, enable in EXCEPTIONS.items()}
    control = control_register(gen, bool(descriptor.single_program_flow), bool(descriptor.floating_point_mode), rounding, **exceptions)
    return {
        "system_routine": system_routine,
        "kernel": descriptor.kernel_start_pointer, "control": control,
        "local_bytes": kibibytes(value_name(layout, descriptor, "shared_local_memory_size")) if shares else 0,
        "samplers": descriptor.sampler_state_pointer, "scratch": _scratch(gen, front),
    }  # fmt: skip


def _scratch(gen: float, front: Record | None) -> Scratch | None:
    if front is None:
        return None
    size = kibibytes(value_name(catalogue.layout("MEDIA_VFE_STATE", gen), front, "per_thread_scratch_space"))
    return Scratch(front.scratch_space_base_pointer, size, int(front.maximum_number_of_threads) + 1)


class ThreadHeader(NamedTuple):
    """The first register of a payload, and its fields that depend on a thread's slot."""

    data: bytes
    slots: tuple[SlotField, ...]


def thread_header(context: DispatchContext, name: str, fields: dict[str, Any], front: FrontEnd, **values: int) -> ThreadHeader:
    """The header that page `name` describes: bindings and scratch space (`fields` of a ThreadDispatch), and `values` of other fields."""
    gen = context.generation.number
    rest = _thread_header(gen, name, fields["samplers"], fields["scratch"], tuple(values.items()))
    return ThreadHeader(with_table(gen, name, rest.data, fields["binding_table"]), rest.slots)


def with_table(gen: float, name: str, header: bytes, table: int) -> bytes:
    """The header that page `name` describes, with another binding table."""
    place, mask = table_place(gen, name)
    bits = int.from_bytes(header, "little") & ~(mask << place) | (table & mask) << place
    return bits.to_bytes(len(header), "little")


@cache
def table_place(gen: float, name: str) -> tuple[int, int]:
    """The bit of the dword that holds a binding table pointer, and which bits of the dword it has: addresses stand in place."""
    found = catalogue.layout(name, gen).field("binding_table_pointer")
    bit = found.low % 32
    return found.low - bit, ((1 << found.width) - 1) << bit


@lru_cache(1024)
def _thread_header(gen: float, name: str, samplers: int, scratch: Scratch | None, values: tuple[tuple[str, int], ...]) -> ThreadHeader:
    """The same without a binding table."""
    layout = catalogue.layout(name, gen)
    dwords = layout.pack(per_thread_scratch_space=size_code(scratch), binding_table_pointer=0, sampler_state_pointer=samplers,
                         **dict(values))  # fmt: skip
    base, size = (scratch.base, scratch.size) if scratch is not None else (0, 0)
    slots = tuple(slot_field(gen, name, field, *rule) for field, rule in
                  (("fixed_function_thread_id", (0, 1)), ("scratch_space_offset", (base, size))))  # fmt: skip
    return ThreadHeader(struct.pack(f"<{len(dwords)}I", *dwords), slots)


def slot_field(gen: float, name: str, field: str, base: int, step: int) -> SlotField:
    """A rule for a header field. Addresses stand in place, numbers from the field's lowest bit on."""
    found = catalogue.layout(name, gen).field(field)
    low, width = found.low % 32, found.width
    shift = low - found.alignment
    return SlotField(found.low // 32 * 4, ((1 << width) - 1) << low, base << shift, step << shift)


def indirect_data(context: DispatchContext, command: Record) -> bytes:
    return context.space.read(context.address("indirect", command.indirect_data_start_address), command.indirect_data_length)


def kibibytes(name: str) -> int:
    """A size as pages name it: '0', '4k' … '64k'."""
    if not name.removesuffix("k").isdigit():
        raise DecodeError(f"a size of local memory or scratch space has {name}, which means nothing")
    return int(name.removesuffix("k")) * KIB


def optional(values: Record, name: str) -> int:
    """A field that some generations or commands do not have: zero there."""
    return int(getattr(values, name)) if name in values._fields else 0


__all__ = ["FrontEnd", "ThreadGroup", "ThreadHeader", "descriptor", "dispatch_context", "dispatch_fields", "thread_header"]
