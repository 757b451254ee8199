"""Indirect state: a command's pointers followed to structures, kernels and data.

Pages say which fields are pointers, from which base they count and what stands there (`address dynamic SAMPLER_STATE`).
What they cannot say is here: how many there are, and which of them are in use.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property

from softgen.bits import describe, registers
from softgen.bits.catalogue import catalogue
from softgen.bits.generation import Generation
from softgen.bits.layout import BitField, Layout
from softgen.bits.record import Record
from softgen.errors import SoftgenError
from softgen.eu.encoding.decode import decode
from softgen.memory.space import Space
from softgen.streamer.latch import LatchedState
from softgen.streamer.parser import Command

MOST_SURFACES = 256  # a binding table's entries
GUESSED_SURFACES = 32  # tried when nothing says how many there are
SHOWN_BYTES = 256  # of data
DESCRIPTOR_BYTES = 32
CONSTANT_UNIT = 32
SIZES = ("buffer_size", "curbe_total_data_length")
BORDER_MODES = ("clamp_border", "half_border")  # address modes that show the border's colour (KBL 22600-22660)
UNIT_NAMES = {"PS": "WM"}
SECOND_FORM = {"RENDER_SURFACE_STATE": "MEDIA_SURFACE_STATE"}
# register offset -> the bits that make it count from where the engine's registers start
RELATIVE = {
    "register_offset": ("add_cs_mmio_start_offset",),
    "register_address": ("add_cs_mmio_start_offset",),
    "source_register_address": ("add_cs_mmio_start_offset_source",),
    "destination_register_address": ("add_cs_mmio_start_offset_destination",),
}
VIEWPORTS = ("CC_VIEWPORT", "SF_CLIP_VIEWPORT", "CLIP_VIEWPORT", "SF_VIEWPORT", "SCISSOR_RECT")


@dataclass(frozen=True, slots=True)
class IndirectState:
    """A structure that a pointer leads to."""

    layout: Layout
    address: int
    by: int  # address of the command
    dwords: list[int]
    index: int = 0
    certain: bool = True  # False: the count was guessed, this may be something else
    problem: str = ""


@dataclass(frozen=True, slots=True)
class IndirectKernel:
    address: int
    by: int
    stage: str
    problem: str = ""


@dataclass(frozen=True, slots=True)
class IndirectData:
    """Bytes with no layout: vertices, indices, constants."""

    what: str
    address: int
    by: int
    size: int
    dwords: list[int]  # the first of them
    problem: str = ""


@dataclass(frozen=True, slots=True)
class CommandRegister:
    """A register that a command names, with the value it loads where the command says it."""

    label: str
    offset: int  # absolute
    by: int
    layout: Layout
    dwords: list[int]  # empty: the value comes from elsewhere

    @property
    def problem(self) -> str:
        return ""


Found = IndirectState | IndirectKernel | IndirectData | CommandRegister


@dataclass(frozen=True)
class Pointer:
    """An address field with a target, and the group it stands in."""

    field: BitField
    group: str = ""


@dataclass(frozen=True, slots=True)
class IndirectPointer:
    """One pointer as it was met."""

    layout: Layout
    field: BitField
    owner: Record  # the record, or the group's element, it stands in
    values: Record  # the whole record
    index: int  # of the element
    by: int


@cache
def pointers(layout: Layout) -> tuple[Pointer, ...]:
    found = [Pointer(f) for f in layout.fields if f.type.name == "address" and f.type.target]
    found += [Pointer(f, g.name) for g in layout.groups for f in g.fields if f.type.name == "address" and f.type.target]
    return tuple(found)


@cache
def offsets(layout: Layout) -> tuple[tuple[BitField, str], ...]:
    """The fields that name a register, each with the group it stands in."""
    return tuple((f, groups[0].name if groups else "") for f, groups in layout.walk() if f.type.name == "offset")


class IndirectStateDecoder:
    """Follows the pointers of one submission's commands."""

    def __init__(self, generation: Generation, engine: str, space: Space) -> None:
        self.generation, self.engine, self.space = generation, engine, space
        self.guessed: dict[str, int] = {}  # bases that were set before the capture began

    def follow(self, command: Command, context: LatchedState) -> Iterator[Found]:
        if command.layout is not None:
            yield from self._registers(command)
            yield from self._follow(command.layout, command.record, command.address, context)

    def _registers(self, command: Command) -> Iterator[Found]:
        """The registers a command names (MI_LOAD_REGISTER_IMM and its relatives)."""
        assert command.layout is not None
        named = offsets(command.layout)
        if not named:
            return
        values = command.record
        for field, group in named:
            relative = any(getattr(values, name) for name in RELATIVE.get(field.name, ()) if name in values._fields)
            for owner in getattr(values, group) if group else (values,):
                place = registers.place(getattr(owner, field.name), self.generation.number, self.engine, relative)
                if place:
                    known = "data_dword" in owner._fields and place.layout.dwords == 1
                    yield CommandRegister(place.label, place.offset, command.address, place.layout, [owner.data_dword] if known else [])

    def _follow(self, layout: Layout, values: Record, by: int, context: LatchedState, certain: bool = True) -> Iterator[Found]:
        """What the pointers of a record lead to; no structure leads to one of its own kind again."""
        for pointer in pointers(layout):
            owners = getattr(values, pointer.group) if pointer.group else (values,)
            for index, owner in enumerate(owners):
                if in_use(layout, pointer.field, owner, values):
                    yield from self._pointer(IndirectPointer(layout, pointer.field, owner, values, index, by), context, certain)

    def _pointer(self, place: IndirectPointer, context: LatchedState, certain: bool) -> Iterator[Found]:
        target = place.field.type.target
        address = self._address(place, context)
        if not address:
            return  # nowhere, or counted from a base nobody told
        if target == "kernel":
            lost = "" if self.space.extent(address, 4) or stage(place.layout.name) == "sip" else unmapped(address)
            if certain or not lost:
                yield IndirectKernel(address, place.by, stage(place.layout.name), lost)
        elif target == "data":
            yield from self._data(place, address)
        elif target != "batch":
            number, sure = count(place, context)
            if place.layout.name == "BINDING_TABLE_STATE" and not place.values.surface_state_pointer:
                sure = 0  # zero is an offset like others, or an entry nobody filled
            yield from self._structures(target, address, number, sure if certain else 0, place.by, context)

    def _address(self, place: IndirectPointer, context: LatchedState) -> int | None:
        """Where a pointer leads; None when it counts from a base that was set before the capture began and cannot be found."""
        value, kind = getattr(place.owner, place.field.name), place.field.type
        pool = context.get("3DSTATE_BINDING_TABLE_POOL_ALLOC")
        if kind.target == "BINDING_TABLE_STATE" and pool and pool.binding_table_pool_enable and "pool_offset" in place.values._fields:
            return int(pool.binding_table_pool_base_address + place.values.pool_offset)
        if kind.target == "data" and place.field.name == "pointer" and place.index == 0 and not self.space.extent(value, 4):
            base = context.base("dynamic")  # constant buffer 0 may count from there (BDW 2686; INSTPM and CS_DEBUG_MODE2 decide)
            return value + base if base is not None else None
        base = context.base(kind.base)
        if base is None:
            base = self._guess_base(kind.base, value, kind.target == "kernel")
        return None if base is None else base + value & (1 << self.space.bits) - 1

    def _guess_base(self, name: str, value: int, kernel: bool) -> int | None:
        """Drivers put each heap at the start of a 4 GiB part; the only part where a pointer leads to memory (or to code) is taken."""
        fitting = [part for part in self._parts if self.space.extent(part + value, 16) == 16]
        if kernel:
            fitting = [part for part in fitting if self._is_code(part + value)]
        if len(fitting) == 1:
            self.guessed[name] = fitting[0]
        known = self.guessed.get(name)
        return known if known in fitting else None

    def _is_code(self, address: int) -> bool:
        first = decode(int.from_bytes(self.space.read(address, 16), "little"), self.generation.number)
        return first.opcode not in ("", "illegal")

    @cached_property
    def _parts(self) -> set[int]:
        """The 4 GiB parts in which something is mapped; a submission's memory does not change."""
        try:
            return {region.start >> 32 << 32 for region in self.space.regions()}
        except SoftgenError:
            return set()  # page tables too large to list

    def _structures(self, target: str, address: int, number: int, sure: int, by: int, context: LatchedState) -> Iterator[Found]:
        """`number` structures at most; of the first `sure` it is known that they are there."""
        layout = catalogue().layout(target, self.generation.number)
        for index in range(number):
            certain = index < sure
            at = address + index * layout.dwords * 4
            dwords = self._read(at, layout.dwords)
            if len(dwords) < layout.dwords:
                if certain:
                    yield IndirectState(layout, at, by, dwords, index, certain, unmapped(at))
                return
            kind = self._kind(layout, dwords)
            values = kind.raw(dwords)
            if not certain and index and target == "BINDING_TABLE_STATE" and not any(dwords):
                continue  # a hole in the table
            if certain and self._hinted(kind, dwords, values):
                yield IndirectState(kind, at, by, dwords[: kind.dwords], index, False)
                continue
            if not certain and not self._plausible(kind, dwords, values, index, context):
                return
            context.note_structure(kind, values)
            yield IndirectState(kind, at, by, dwords[: kind.dwords], index, certain)
            yield from self._follow(kind, values, by, context, certain)

    def _hinted(self, layout: Layout, dwords: list[int], values: Record) -> bool:
        """Counts only say how much to prefetch (KBL 12664): what is no surface and leads nowhere is an entry nobody filled."""
        if layout.name not in SECOND_FORM or not describe.reserved(layout, dwords):
            return False
        return not self.space.extent(values.surface_base_address, 1)

    def _plausible(self, layout: Layout, dwords: list[int], values: Record, index: int, context: LatchedState) -> bool:
        """Whether something whose count was guessed looks like what it is taken for."""
        if index and not any(dwords) or describe.reserved(layout, dwords):
            return False
        if layout.name != "BINDING_TABLE_STATE" or not index:
            return True
        base = context.base("surface")
        return base is not None and self.space.extent(base + values.surface_state_pointer, 32) == 32

    def _kind(self, layout: Layout, dwords: list[int]) -> Layout:
        """Media kernels bind surfaces of a second form that nothing marks: only one of the two leaves all reserved bits zero."""
        other = catalogue().get(SECOND_FORM.get(layout.name, ""), self.generation.number)
        if other is None or not describe.reserved(layout, dwords) or describe.reserved(other, dwords[: other.dwords]):
            return layout
        return other

    def _data(self, place: IndirectPointer, address: int) -> Iterator[Found]:
        size = data_size(place)
        if size < 0:
            yield IndirectData(place.field.name, address, place.by, 0, [], "its end lies before its start")
        elif size and address:
            dwords = self._read(address, min(size, SHOWN_BYTES) + 3 >> 2)
            yield IndirectData(place.field.name, address, place.by, size, dwords, "" if dwords else unmapped(address))

    def _read(self, address: int, dwords: int) -> list[int]:
        mapped = self.space.extent(address, dwords * 4) & ~3
        return array("I", self.space.read(address, mapped)).tolist() if mapped else []


# -- what pages cannot say -------------------------------------------------------------------------------------------


def stage(owner: str) -> str:
    """Whose kernel it is: the unit's short name."""
    if owner == "STATE_SIP":
        return "sip"  # the system routine, which need not be there while nothing faults
    m = re.match(r"(?:3DSTATE_)?(VS|HS|DS|GS|PS|CLIP|SF|WM)(?:_STATE)?$", owner)
    return {"WM": "ps"}.get(m[1], m[1].lower()) if m else "cs"


def unmapped(address: int) -> str:
    return f"points to {address:#x}, which is not mapped"


def in_use(layout: Layout, field: BitField, owner: Record, values: Record) -> bool:
    """Whether the unit reads this pointer at all."""
    if field.when and not describe.holds(field.when, owner):
        return False
    if any(name in values._fields and not getattr(values, name) for name in ("enable", "valid")):
        return False
    m = re.match(r"kernel_start_pointer(?:_(\d))?$", field.name)
    if m and (dispatch := _dispatch(values)):
        return _pixel_kernel(int(m[1] or 0), dispatch)
    if field.gates and not any(getattr(owner, gate) for gate in field.gates):
        return False
    if field.type.target.endswith("BORDER_COLOR_STATE"):
        modes = (name for name in values._fields if name.endswith("address_control_mode"))
        return any(describe.value_name(layout, values, name) in BORDER_MODES for name in modes)
    return True


def _dispatch(values: Record) -> dict[int, int]:
    """Which pixel dispatch widths are on; empty for anything but a pixel shader."""
    names = {width: f"{width}_pixel_dispatch_enable" for width in (8, 16, 32)}
    return {width: getattr(values, name) for width, name in names.items() if name in values._fields}


def _pixel_kernel(index: int, dispatch: dict[int, int]) -> bool:
    """Kernel 0 is the only one, or SIMD8's; with several, 1 is SIMD32's and 2 SIMD16's (BDW 7150-7230)."""
    on = [width for width, enabled in dispatch.items() if enabled]
    if index == 0:
        return bool(on) and (len(on) == 1 or 8 in on)
    return len(on) > 1 and (32 if index == 1 else 16) in on


def count(place: IndirectPointer, context: LatchedState) -> tuple[int, int]:
    """How many structures may stand at a pointer, and how many surely do."""
    target = place.field.type.target
    if target == "SAMPLER_STATE":
        unit = _unit(place, "sampler_count", context)
        return (max(1, min(unit.sampler_count, 4) * 4) if unit else 1), 0
    if target == "BINDING_TABLE_STATE":
        unit = _unit(place, "binding_table_entry_count", context)
        entries = min(unit.binding_table_entry_count, MOST_SURFACES) if unit else 0
        more = unit is place.owner or not entries  # media drivers let only the first few be prefetched
        return (max(entries, GUESSED_SURFACES) if more else entries), entries
    if target in VIEWPORTS:
        clip = context.get("3DSTATE_CLIP")
        viewports = clip.maximum_vp_index + 1 if clip else 1
        return viewports, viewports
    if "interface_descriptor_total_length" in place.values._fields:
        descriptors = place.values.interface_descriptor_total_length // DESCRIPTOR_BYTES
        return max(1, descriptors), min(1, descriptors)  # drivers load the whole heap, filled or not
    return 1, 1


def _unit(place: IndirectPointer, name: str, context: LatchedState) -> Record | None:
    """The record that says how many: the owner itself, or the last state of the stage the pointer is for."""
    if name in place.owner._fields:
        return place.owner
    m = re.search(r"_(VS|HS|DS|GS|PS)$", place.layout.name) or re.search(r"_(vs|gs|clip|sf|ps)_", place.field.name)
    unit = m[1].upper() if m else ""
    for candidate in (f"3DSTATE_{unit}", f"{UNIT_NAMES.get(unit, unit)}_STATE"):
        state = context.get(candidate)
        if state is not None and name in state._fields:
            return state
    return None


def data_size(place: IndirectPointer) -> int:
    """Bytes at a data pointer; 0: nobody says, or it is nothing to show."""
    owner, values = place.owner, place.values
    if "constant_buffer" in values._fields and "read_length" in values._fields:
        return int(values.read_length[place.index].length) * CONSTANT_UNIT
    return next((int(getattr(owner, name)) for name in SIZES if name in owner._fields), 0)
