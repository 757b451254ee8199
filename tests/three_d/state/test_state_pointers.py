"""Pointers of kept records: what was read through one stands where it leads now."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from softgen.bits import catalogue
from softgen.shared_functions.unit import ResolvedState
from softgen.three_d.draw.draw_structures import Base, PointedBits
from softgen.three_d.state.latched_state import NotKept
from softgen.three_d.state.plan_cache import Notes, noted
from softgen.three_d.state.state_blocks import BLEND, CC, SAMPLERS, StateBlocks
from softgen.three_d.state.state_pointers import COMMAND, ROOT, UNIT, UNITS, FollowedPointer, StatePointers
from tests.three_d.made import made_state

TABLE, MOVED, BLOCK, SIZE = 0x1000, 0x1240, 0x3000, 32


def pointers(command: list[int]) -> StatePointers:
    """A binding table of pixel shaders at dword 0 of the latched commands, and a block of state at dword 1."""
    latches: Any = SimpleNamespace(latched=SimpleNamespace(raw=lambda offset, count: command[offset : offset + count]))
    made = StatePointers(latches, made_state(4.5, {}))
    places = (TABLE, 0), (BLOCK, SIZE)
    made.pointers = [FollowedPointer(ROOT, n, 0xFFFFFFE0, Base.NONE, address, size) for n, (address, size) in enumerate(places)]
    made.names = {"table PS": 0, UNIT: 1}
    return made


def notes() -> Notes:
    found = Notes()
    found.entries = {("PS", TABLE + 8): (TABLE, b"two!"), ("VS", 0x2004): (0x2000, b"one!")}
    found.memory = {(BLOCK, SIZE): bytes(SIZE), (0x5000, 4): b"else"}
    return found


def bound() -> Any:
    return {"PS": SimpleNamespace(resolved=ResolvedState())}


def test_what_has_not_moved_stays() -> None:
    kept = notes()
    assert not pointers([TABLE, BLOCK]).follow(made_state(4.5, {}), kept, bound())
    assert vars(kept) == vars(notes())


def test_entries_move_with_their_table_and_memory_with_its_block() -> None:
    kept = notes()
    assert pointers([MOVED | 5, BLOCK + 0x100]).follow(made_state(4.5, {}), kept, bound())
    assert kept.entries == {("PS", MOVED + 8): (MOVED, b"two!"), ("VS", 0x2004): (0x2000, b"one!")}
    assert kept.memory == {(BLOCK + 0x100, SIZE): bytes(SIZE), (0x5000, 4): b"else"}


def test_a_pointer_leads_to_an_offset_from_its_base() -> None:
    made = pointers([TABLE, BLOCK])
    assert [made.offset(name) for name in ("table PS", UNIT, "samplers PS")] == [TABLE, BLOCK, 0]


def test_memory_that_no_pointer_leads_to_is_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """But for viewports after the first, which are looked at when a vertex names one."""
    made, kept = pointers([TABLE, BLOCK]), notes()
    block = made.pointers[1]
    block.count = 4
    monkeypatch.setattr(made, "_add_unit", lambda stage, pointer, name: made._add(UNIT, block) if UNIT not in made.names else 0)
    monkeypatch.setattr(made, "_add_table", lambda *parts: [])
    kept.memory |= {(BLOCK + SIZE, SIZE): bytes(SIZE), (BLOCK + 4 * SIZE, SIZE): b"4" * SIZE}
    found = made.collect(kept, bound())
    assert [(compared.pointer, compared.offset, compared.size) for compared in found.ranges] == [(0, 0, SIZE)]
    assert found.elsewhere == {(0x5000, 4): b"else", (BLOCK + 4 * SIZE, SIZE): b"4" * SIZE}


@pytest.mark.parametrize(("count", "fits"), [(96, True), (97, False)])
def test_there_is_room_for_96_pointers(count: int, fits: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    made = pointers([TABLE, BLOCK])
    monkeypatch.setattr(made, "_add_unit", lambda stage, pointer, name: None)
    monkeypatch.setattr(made, "_add_table", lambda *parts: [
        made._add(str(n), FollowedPointer(ROOT, n, 0xFFFFFFE0, Base.NONE, BLOCK, SIZE)) for n in range(count)][:0])  # fmt: skip
    if fits:
        assert len(made.collect(notes(), bound()).pointers) == count
    else:
        with pytest.raises(NotKept, match="more pointers than there is room for"):
            made.collect(notes(), bound())


@pytest.mark.parametrize("reader", ["plans", "shaders"])
def test_blocks_of_other_commands_cannot_be_followed(reader: str) -> None:
    made, kept, shaders = pointers([TABLE, BLOCK]), notes(), bound()
    if reader == "plans":
        kept.blocks = {("pointer", 0x7000, 4): b"word"}
    else:
        shaders["PS"].resolved.blend = {(0x7000, 4): b"word"}
    with pytest.raises(NotKept, match="blocks that pointers of other commands lead to"):
        made.collect(kept, shaders)


@pytest.mark.parametrize(("stage", "inner", "compared"), [("CLIP", "viewport CLIP", 1), ("SF", "viewport SF", 1),
                                                          ("CC", "viewport CC", 1), ("VS", "samplers VS", 16)])  # fmt: skip
def test_a_unit_has_16_viewports_or_samplers(stage: str, inner: str, compared: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the viewports only the first is compared; a unit state that nobody has read has no pointer."""
    made: Any = pointers([TABLE, BLOCK])
    made.names.clear()
    made.latches.layout = lambda name: catalogue.layout(name, 4.5)
    name, block = UNITS[stage]
    made.state = made_state(4.5, {BLOCK: b""}, {COMMAND: {name: BLOCK}})
    monkeypatch.setattr(made, "_in_command", lambda command, name, base, size: FollowedPointer(ROOT, 0, 0xFFFFFFE0, base, BLOCK, size))
    made._read = {UNIT: {}}
    made._add_unit(stage, name, block)
    assert not made.names
    size = 4 * catalogue.layout(block, 4.5).dwords
    made._read = {UNIT: {(BLOCK, size): bytes(size)}}
    made._add_unit(stage, name, block)
    found = made.pointers[made.names[inner]]
    assert set(made.names) == {stage, inner} and (found.parent, found.count, found.compared) == (made.names[stage], 16, compared)


# Of a block with pointers at bytes 8, 16 and 40: bytes that are compared as ranges, and dwords whose other bits are.
@pytest.mark.parametrize(("offset", "size", "ranges", "dwords"), [
    (4, 20, [(4, 4), (12, 4), (20, 4)], [8]), (8, 12, [(12, 4)], [8]), (12, 4, [(12, 4)], []), (16, 4, [], []), (20, 8, [(20, 8)], []),
    (0, 24, [(0, 8), (12, 4), (20, 4)], [8]), (16, 24, [(20, 20)], []), (8, 4, [], [8]),
])  # fmt: skip
def test_bytes_around_pointers_are_compared(offset: int, size: int, ranges: list[tuple[int, int]], dwords: list[int]) -> None:
    made, bits, data = pointers([TABLE, BLOCK]), list[PointedBits](), bytes(range(100, 100 + size))
    made.pointers[1].inner = {16: 0xFFFFFFFF, 8: 0xFFFFFFE0, 40: 0xFFFFFFFF}
    found = made._compared(1, offset, data, bits)
    assert [(part.pointer, part.offset, part.size, part.data) for part in found] == [
        (1, start, length, data[start - offset : start - offset + length]) for start, length in ranges]  # fmt: skip
    assert [(part.pointer, part.offset, part.mask, part.value) for part in bits] == [
        (1, at, 0x1F, data[at - offset] & 0x1F) for at in dwords]  # fmt: skip


def test_a_pointer_in_a_block_has_the_bits_of_its_field() -> None:
    """The border colour of the second sampler: bits 31:5 of its third dword."""
    made = pointers([TABLE, BLOCK])
    made.latches.layout = lambda name: catalogue.layout(name, 4.5)  # type: ignore[method-assign]
    made.state = made_state(4.5, {BLOCK: bytes(24) + (0x0123_45FF).to_bytes(4, "little")})
    found = made._in_block(1, "SAMPLER_STATE", "border_color_pointer", Base.NONE, 16, ("PS",), 16)
    assert (found.parent, found.offset, found.mask, found.address, found.size) == (1, 24, 0xFFFFFFE0, 0x0123_45E0, 16)


@pytest.mark.parametrize("latched", [True, False])
def test_a_binding_table_has_a_pointer_where_the_command_was_latched(latched: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    made: Any = pointers([TABLE, BLOCK])
    made.latches.latched.place = lambda name: SimpleNamespace() if latched else None
    made.latches.layout = lambda name: catalogue.layout(name, 4.5)
    monkeypatch.setattr(made, "_in_command", lambda *given: FollowedPointer(ROOT, 0, 0xFFFFFFE0, Base.NONE, TABLE, 0))
    assert made._add_table("VS", bound()["PS"], Notes()) == []
    assert ("table VS" in made.names, len(made.pointers)) == (latched, 2 + latched)


def test_entries_of_a_binding_table_that_lead_to_no_surface_are_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    """The surface of entry 1 was read by the shader, that of entry 3 by a plan; those of entries 2 and 5 by nobody."""
    made, kept, shader = pointers([TABLE, BLOCK]), notes(), bound()["PS"]
    entries = {index: (0x4000 + 0x100 * index).to_bytes(4, "little") for index in range(6)}
    made.state = made_state(4.5, {TABLE: b"".join(entries.values())})
    found: Any = made.latches
    found.latched.place, found.layout = (lambda name: SimpleNamespace()), lambda name: catalogue.layout(name, 4.5)
    monkeypatch.setattr(made, "_in_command", lambda *given: FollowedPointer(ROOT, 0, 0xFFFFFFE0, Base.NONE, TABLE, 0))
    size = 4 * catalogue.layout("RENDER_SURFACE_STATE", 4.5).dwords
    made._read = {UNIT: {(0x4300, size): bytes(size)}, "PS": {(0x4100, size): bytes(size), (0x4200, size - 4): bytes(size - 4)}}
    shader.resolved.entries = {index: entries[index] for index in (1, 2)}
    kept.entries = {("PS", TABLE + 4 * index): (TABLE, entries[index]) for index in (3, 5)} | {("VS", TABLE): (TABLE, entries[0])}
    bits = made._add_table("PS", shader, kept)
    assert [(part.pointer, part.offset, part.mask, part.value) for part in bits] == [
        (2, 8, 0xFFFFFFFF, 0x4200), (2, 20, 0xFFFFFFFF, 0x4500)]  # fmt: skip
    assert {name: made.pointers[number].address for name, number in made.names.items() if name.startswith("surface")} == {
        "surface PS 1": 0x4100, "surface PS 3": 0x4300}  # fmt: skip


def test_surfaces_that_units_have_read_move_with_their_table() -> None:
    """Their entries are read again where the table is now, and say where each surface state is."""
    made, dispatch = pointers([MOVED, BLOCK]), bound()
    made.pointers.append(FollowedPointer(0, 8, 0xFFFFFFE0, Base.NONE, 0x4000, 32, (UNIT, "PS")))
    made.names["surface PS 2"] = 2
    resolved = dispatch["PS"].resolved
    resolved.entries, resolved.surfaces = {2: b"old!", 3: b"same"}, {2: (0x4000, b"state of surface 2"), 3: (0x6000, b"state of surface 3")}
    entry = (0x5AA7).to_bytes(4, "little")
    assert made.follow(made_state(4.5, {MOVED & -4096: bytes(MOVED % 4096 + 8) + entry}), Notes(), dispatch)
    assert resolved.entries == {2: entry, 3: b"same"}
    assert resolved.surfaces == {2: (0x5AA0, b"state of surface 2"), 3: (0x6000, b"state of surface 3")}


@pytest.mark.parametrize(("bases", "address"), [({}, TABLE), ({"surface": 0x40}, TABLE + 0x40), ({"surface": 0xFFFF_F000}, 0),
                                                ({"surface": 0xFFFF_FFE0}, TABLE - 0x20)])  # fmt: skip
def test_pointers_past_the_last_address_lead_to_the_first(bases: dict[str, int], address: int) -> None:
    """Gen4.5 has addresses of 32 bits; a pointer counts from its base, from 0 where none was set."""
    made = pointers([TABLE, BLOCK])
    made.state.bases = bases
    pointer = made._led(FollowedPointer(ROOT, 0, 0xFFFFFFE0, Base.SURFACE, 0, 0))
    assert pointer.address == address


def test_units_read_blending_through_its_own_pointer() -> None:
    resolved = ResolvedState()
    resolved.blend, resolved.samplers, resolved.sampler_base = {(0x100, 4): b"blue"}, {16: b"near"}, 0x1000
    made: Any = object.__new__(StateBlocks)
    made._bound = {"PS": SimpleNamespace(dispatch=SimpleNamespace(resolved=resolved, space=SimpleNamespace(bits=48)))}
    made._dispatches, made._base = {"PS": SimpleNamespace(samplers=0x200)}, 0x40
    assert made._read_by_units(BLEND) == {(0xC0, 4): b"blue"} and made._read_by_units(SAMPLERS + "PS") == {(0x210, 4): b"near"}
    assert made._read_by_units(SAMPLERS + "VS") == made._read_by_units(CC) == {}


def test_tables_beyond_the_last_address_begin_at_the_first() -> None:
    kept = Notes()
    state = made_state(9, {0: b"1234"}, {"3DSTATE_BINDING_TABLE_POINTERS_PS": {"pointer_to_binding_table": 0x40}})
    state.bases = {"surface": (1 << 48) - 0x40}
    assert noted(state, kept).table_space("PS").read(0, 4) == b"1234"
    assert kept.entries == {("PS", 0): (0, b"1234")}
