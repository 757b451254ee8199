"""Rules made from pages: what compiled code latches, where it stops, and pages that have no place in a table."""

from __future__ import annotations

from array import array
from types import SimpleNamespace
from typing import Any, cast

import pytest

from softgen.bits.catalogue import layout
from softgen.bits.field import BitField, Effect
from softgen.errors import SpecError
from softgen.streamer import latch_rules
from softgen.streamer.latch import LatchedState
from softgen.streamer.latch_rules import LatchTable
from softgen.streamer.latch_rules_h import Gate, LatchRule

HZ_OP, MASK = "3DSTATE_WM_HZ_OP", "3DSTATE_SAMPLE_MASK"
ACTS = ("depth_buffer_clear_enable", "stencil_buffer_clear_enable", "depth_buffer_resolve_enable",
        "hierarchical_depth_buffer_resolve_enable")  # fmt: skip


def latched_at_once(commands: list[list[int]], stops: frozenset[str] = frozenset(), limit: int = 100) -> int:
    """How many of these commands compiled code latches before it stops."""
    state = LatchedState(LatchTable(9.0, "render", stops))
    for command in commands:
        state.may_latch(command[0])
    dwords = array("I", [dword for command in commands for dword in command])
    return state.run(dwords.buffer_info()[0], len(dwords), limit)


@pytest.mark.parametrize("field", ACTS)
def test_a_command_that_acts_is_left_to_its_handler(field: str) -> None:
    mask = layout(MASK, 9.0).pack()
    assert latched_at_once([mask, layout(HZ_OP, 9.0).pack(**{field: 1}), mask]) == 1


def test_the_same_command_without_a_bit_that_acts_is_latched() -> None:
    page, mask = layout(HZ_OP, 9.0), layout(MASK, 9.0).pack()
    every = {field.name: (1 << field.width) - 1 for field in page.fields if field.name not in ACTS}
    assert latched_at_once([mask, page.pack(**every), mask]) == 3
    assert latched_at_once([mask, page.pack(), mask], frozenset({HZ_OP})) == 1
    assert latched_at_once([mask] * 5, limit=3) == 3


@pytest.mark.parametrize("low, mask", [(0, 1), (31, 1 << 31), (32, 1), (63, 1 << 31), (64, 1), (95, 1 << 31)])
def test_the_dword_that_says_whether_a_command_acts(low: int, mask: int) -> None:
    """Bits of any of its dwords, several of one."""
    rule, middle = LatchRule(), low // 32 * 32 + 8
    page = cast(Any, SimpleNamespace(fields=[field("one", low, low), field("other", 0, 127), field("two", middle, middle + 1)]))
    cast(Any, LatchTable)._acts(None, rule, page, Effect("latches", acts_when=("one", "two")))
    assert (rule.acts_dword, rule.acts_mask) == (low // 32, mask | 0x300)


def test_a_command_that_never_acts_has_no_bits_that_say_so() -> None:
    rule = LatchRule()
    cast(Any, LatchTable)._acts(None, rule, layout(MASK, 9.0), Effect("latches"))
    assert (rule.acts_dword, rule.acts_mask) == (0, 0)


def test_keys_without_a_command_or_with_none_that_is_state_latch_nothing() -> None:
    table = LatchTable(9.0, "render")
    state = LatchedState(table)
    headers = {0xFFFF0000: False, layout("MI_STORE_DATA_IMM", 9.0).pack()[0]: False, layout(MASK, 9.0).pack()[0]: True}
    assert {header: state.may_latch(header) for header in headers} == headers
    assert table.known == {header >> 16 for header in headers} and len(table.keys) == 1 << 16
    numbers = dict(table.numbers)
    for header in headers:
        table.add(header)  # once more
    assert table.numbers == numbers and table.slots == 1 and table.slot_names == [MASK]


@pytest.mark.parametrize("names", [(), (MASK,), (MASK, HZ_OP), ("MI_STORE_DATA_IMM", HZ_OP, "3DSTATE_VS", MASK)])
def test_commands_that_share_a_key_are_told_apart(names: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    """The rules of all of them are a chain that ends with 0xffff, as latch.c knows it; so do keys that were not met."""
    table, found = LatchTable(9.0, "render"), [layout(name, 9.0) for name in names]
    assert set(table.keys) == {0xFFFF}
    monkeypatch.setattr(latch_rules, "catalogue", lambda: SimpleNamespace(commands_like=lambda header, gen, engine: found))
    table.add(layout(MASK, 9.0).pack()[0])
    chain, number = [], int(table.keys[layout(MASK, 9.0).pack()[0] >> 16])
    while number != 0xFFFF:
        chain.append(table.layouts[number].name)
        number = table.rules[number].next
    assert chain == list(names) and table.latching == ({layout(MASK, 9.0).pack()[0] >> 16} if names else set())


@pytest.mark.parametrize("name, dwords", [
    (MASK, 2), ("MI_NOOP", 1), ("MI_STORE_DATA_IMM", 1025), ("3DSTATE_BINDING_TABLE_EDIT_DS", 513), ("3DSTATE_VERTEX_ELEMENTS", 257),
    ("MEDIA_OBJECT", 65537), ("HCP_PIC_STATE", 38), ("INTERFACE_DESCRIPTOR_DATA", 8)])  # fmt: skip
def test_the_longest_command_is_as_its_page_or_its_length_field_says(name: str, dwords: int) -> None:
    """A length of 8 bits, all set, and the bias of 2 make 257 dwords."""
    assert latch_rules.longest(layout(name, 9.0)) == dwords


def gates(*fields: BitField, size: int = 8) -> list[tuple[int, int, int, int]]:
    """The gates made for fields of a command: dword and bits that open it, dword and mask behind it."""
    table, rule = LatchTable(9.0, "render"), LatchRule()
    table._gates, rule.size = 2, size  # others come before them
    table._add_gates(rule, fields)
    assert rule.gates == 2 and table._gates == 2 + rule.gate_count
    made = cast(list[Gate], [table.gates[number] for number in range(2, table._gates)])
    return [(gate.bit_dword, gate.bits, gate.dword, gate.mask) for gate in made]


def field(name: str, low: int, high: int, *by: str) -> BitField:
    return cast(Any, SimpleNamespace(name=name, low=low, high=high, gates=by, mask=(1 << high + 1) - (1 << low)))


def test_a_field_is_written_where_one_of_its_gates_is_open() -> None:
    enable, other = field("enable", 32, 32), field("other", 35, 35)
    assert gates(enable, other, field("free", 0, 7)) == []
    assert gates(enable, field("address", 36, 95, "enable")) == [(1, 1, 1, 0xFFFFFFF0), (1, 1, 2, 0xFFFFFFFF)]
    assert gates(enable, other, field("address", 64, 71, "enable", "other")) == [(1, 9, 2, 0xFF)]
    assert gates(enable, other, field("low", 0, 31, "other"), field("high", 127, 128, "enable")) == [
        (1, 8, 0, 0xFFFFFFFF), (1, 1, 3, 0x80000000), (1, 1, 4, 1)]  # fmt: skip


def test_gates_have_limits() -> None:
    enable, far = field("enable", 0, 0), field("far", 32, 32)
    assert gates(enable, field("value", 64, 64, "enable"), size=latch_rules.GATED) and not gates(enable, size=latch_rules.GATED + 1)
    with pytest.raises(SpecError, match="a command or element of 65 dwords has gates; at most 64 are possible"):
        gates(enable, field("value", 64, 64, "enable"), size=latch_rules.GATED + 1)
    with pytest.raises(SpecError, match="the gates of value stand in different dwords"):
        gates(enable, far, field("value", 64, 64, "enable", "far"))


@pytest.mark.parametrize("limit, names, message", [
    ("MOST_RULES", (MASK, "3DSTATE_VS", "3DSTATE_CLIP"), "3DSTATE_CLIP has no place in the table of commands that are latched"),
    ("MOST_PARTS", ("3DSTATE_SO_BUFFER", "HCP_QM_STATE"), r"HCP_QM_STATE merges by 5 bits; at most 6 in 2 fields are possible"),
])  # fmt: skip
def test_what_does_not_fit_a_table_is_refused(limit: str, names: tuple[str, ...], message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    table = LatchTable(9.0, "render")
    monkeypatch.setattr(latch_rules, limit, 2)
    for name in names[:-1]:
        table.rule_of(layout(name, 9.0))
    with pytest.raises(SpecError, match=message):
        table.rule_of(layout(names[-1], 9.0))
