"""Units: declarations become message tables and context fields; a new one needs nothing else.

The check and refinement engine of these tests is no model of the hardware's: a few words of memory that a context field points at, to
show what a unit costs.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np
import pytest

from softgen.bits.generation import generation
from softgen.errors import SoftgenError
from softgen.eu.semantics import send
from softgen.eu.thread.block import Context
from softgen.lanes.record import RecordLayout
from softgen.lanes.types import i64, u32
from softgen.lanes.value import Memory
from softgen.memory.address_space import AddressSpace
from softgen.shared_functions import descriptors, message, units
from softgen.shared_functions.compiled import MessageCode
from softgen.shared_functions.context import HEAD, ContextField, ContextHead, Scope, compose
from softgen.shared_functions.message import Message, answers
from softgen.shared_functions.unit import DispatchBindings, GroupBindings, MessageHandler, Unit, handlers
from tests.shared_functions import compiled
from tests.shared_functions.test_gateway import Sent

GEN = 9.0


def group(**more: Any) -> GroupBindings:
    return GroupBindings(DispatchBindings(generation(GEN), AddressSpace("bench", 48), {}), **more)


# -- contexts ----------------------------------------------------------------------------------------------------------


def test_a_context_is_its_head_and_what_units_declare() -> None:
    made = compose([ContextField("urb", Scope.WORKER), ContextField("table", Scope.DISPATCH), ContextField("count", Scope.GROUP, u32),
                    ContextField("urb", Scope.WORKER), ContextField("left", Scope.DISPATCH, i64)])  # fmt: skip
    layout = RecordLayout.of(made)
    assert issubclass(made, ContextHead) and ctypes.sizeof(ContextHead) == HEAD.size
    assert list(layout.fields)[len(HEAD.fields) :] == ["urb", "count", "left"]
    assert layout.offset("table") == HEAD.offset("table") and layout.offset("urb") == HEAD.size and layout.field("count").type is u32
    assert layout.field("left").type is i64
    with pytest.raises(TypeError, match="context field urb"):
        compose([ContextField("urb", Scope.WORKER), ContextField("urb", Scope.GROUP)])


def test_the_context_of_engines_has_the_fields_of_all_units() -> None:
    layout = RecordLayout.of(Context)
    assert {field.name for unit in units.UNITS for field in unit.fields} <= set(layout.fields)
    assert list(layout.fields)[: len(HEAD.fields)] == list(HEAD.fields)


def test_bindings_fill_the_fields_of_their_scope() -> None:
    """What is of the dispatch is in the binding; the scheduler sets local memory."""
    space = AddressSpace("bench", 48)
    for unit in units.UNITS:
        if unit.bind is not None:
            dispatch = DispatchBindings(generation(GEN), space, {"general": 0x5000})
            found = dispatch.state(unit.bind).fields()
            assert {field.name for field in unit.fields if field.scope is Scope.DISPATCH} - {"local_size"} <= set(found)
            assert found.get("general", 0x5000) == 0x5000


def test_tables_of_a_dispatch_begin_at_their_bases_by_default() -> None:
    dispatch = DispatchBindings(generation(GEN), AddressSpace("bench", 48), {"surface": 0x7000})
    assert [dispatch.table_address(index) for index in (0, 3)] == [0x7000, 0x700C] and dispatch.sampler_address(0x20) == 0x20
    moved = DispatchBindings(generation(GEN), AddressSpace("bench", 48), {"surface": (1 << 48) - 8}, 0x40, 0x80)
    assert [moved.table_address(index) for index in (0, 3)] == [0x38, 0x44] and moved.sampler_address(0x20) == 0xA0


def test_units_by_name_and_by_function() -> None:
    assert [units.named(unit.name) for unit in units.UNITS] == list(units.UNITS)
    assert units.answering("sampler") is units.named("sampler") and units.answering("cre") is None
    with pytest.raises(SoftgenError, match="no unit 'vme'; units are data port, sampler, gateway, spawner, urb, extended math"):
        units.named("vme")
    functions = [function for unit in units.UNITS for function in unit.functions]
    assert len(functions) == len(set(functions))


def test_data_port_and_sampler_take_the_index_of_a_surface_from_elsewhere() -> None:
    """Where it is one of the binding table. Code for a render target is compiled for one index."""
    assert {unit.name for unit in units.UNITS if unit.indexed} == {"data port", "sampler"}
    assert not Unit("another", (), group, group).indexed  # type: ignore[arg-type]
    found = {}
    for name, fields in (("untyped_surface_read", {"simd_mode": "simd8", "channel_mask": "r"}), ("sample_lz", {"simd_mode": "simd8"}),
                         ("render_target_write", {"message_subtype": "simd8"}), ("barrier", {})):  # fmt: skip
        function = next(row.function for row in descriptors.rows(GEN) if row.name == name)
        sfid = next(number for number, known in descriptors.shared_functions(GEN).items() if known == function)
        found[name] = send.surface_bits(sfid, descriptors.encode(name, GEN, message_length=4, response_length=4, **fields), GEN)
    assert found == {"untyped_surface_read": 0xFF, "sample_lz": 0xFF, "render_target_write": 0, "barrier": 0}
    local = descriptors.encode("untyped_surface_read", GEN, simd_mode="simd8", channel_mask="r", binding_table_index=254)
    assert send.surface_bits(12, local, GEN) == 0


@pytest.mark.parametrize("gen", [4.5, 7.0, 9.0, 11.0])
def test_handlers_are_by_function_number(gen: float) -> None:
    own = GroupBindings(DispatchBindings(generation(gen), AddressSpace("bench", 48), {}))
    known = descriptors.shared_functions(gen)
    answered = {name for unit in units.UNITS for name in unit.functions}
    assert {known[sfid] for sfid in handlers(units.UNITS, own)} == set(known.values()) & answered


class Begun(Exception):
    """A message reached an environment."""


class Marked:
    def __init__(self, name: str) -> None:
        self.name = name

    def begin(self, sender: object) -> None:
        raise Begun(self.name)


@pytest.mark.parametrize(("name", "fields", "answers"), [
    ("render_target_write", {"message_subtype": "simd8"}, "pixel backend"), ("typed_surface_read", {"slot_group": "low_8"}, "data port"),
    ("", {}, "data port")])  # fmt: skip
def test_messages_of_one_function_may_be_answered_by_several_units(name: str, fields: dict[str, str], answers: str) -> None:
    """By their names; one that has none is the function's own unit's."""
    handler = MessageHandler(GEN, Marked("data port"), {"render_target_write": Marked("pixel backend")})
    word = descriptors.encode(name, GEN, message_length=4, response_length=0, **fields) if name else 0x1F << 14
    with pytest.raises(Begun, match=answers):
        handler(None, Sent(12 if name.startswith("typed") else 5, word, np.zeros(128, np.uint8)))


# -- a unit of its own ---------------------------------------------------------------------------------------------------


class RefinementEnvironment(Protocol):
    def entry(self) -> Memory: ...


class Refinement:
    """On the interpreter."""

    def __init__(self, own: GroupBindings) -> None:
        self.held = own.dispatch.state(lambda dispatch: ENTRIES)

    def begin(self, sender: object) -> None: ...

    def entry(self) -> Memory:
        return message._MACHINE.memory(self.held, "held")


class CompiledRefinement:
    """In compiled code."""

    def __init__(self, code: MessageCode) -> None:
        self.code = code

    def entry(self) -> Memory:
        return self.code.pointer("held").memory("held")


ENTRIES = np.arange(64, dtype=np.uint32)
REFINEMENT = Unit("refinement", ("cre",), Refinement, CompiledRefinement, (ContextField("held", Scope.WORKER),))


@pytest.fixture
def refinement(monkeypatch: pytest.MonkeyPatch) -> Iterator[Unit]:
    """What a line in units.py does, for one test."""
    monkeypatch.setattr(units, "UNITS", (*units.UNITS, REFINEMENT))
    monkeypatch.setattr(message, "PROGRAMS", dict(message.PROGRAMS))
    answers("skip_and_intra_check")(_read)
    for cached in (units.named, units.answering, message.plan, compiled.code):
        cached.cache_clear()  # type: ignore[attr-defined]
    yield REFINEMENT
    for cached in (units.named, units.answering, message.plan, compiled.code):
        cached.cache_clear()  # type: ignore[attr-defined]


def _read(x: Message[RefinementEnvironment]) -> None:
    """The handle is dword 0 of the header."""
    handle = x._read(u32, 0, 1) & 0xFFFF
    x.give(x.m.load_block(u32, 8, x.environment.entry(), handle * 32), 0, x.lanes(8))


def test_a_new_unit_answers_on_both_machines(refinement: Unit, monkeypatch: pytest.MonkeyPatch) -> None:
    sfid = next(number for number, name in descriptors.shared_functions(GEN).items() if name == "cre")
    descriptor = descriptors.encode("skip_and_intra_check", GEN, message_length=1, response_length=1, header_present=1)
    payload = np.array([3] + [0] * 7, np.uint32).view(np.uint8)
    sent = Sent(sfid, descriptor, payload, response=np.zeros(32, np.uint8))
    handler = handlers([refinement], group())[sfid]
    assert isinstance(handler, MessageHandler)
    handler(None, sent)
    assert sent.response.view(np.uint32).tolist() == list(range(24, 32))

    made = compose([field for unit in units.UNITS for field in unit.fields])
    monkeypatch.setattr(compiled, "Context", made)
    assert send.has_lane_program(compiled.instruction(GEN, sfid, descriptor, 8, 1, 0))
    twin = compiled.Compiled(GEN, AddressSpace("bench", 48), np.zeros(64, np.uint8), 0)
    twin.context.held = ENTRIES.ctypes.data
    response = np.zeros(32, np.uint8)
    assert twin.run(sfid, descriptor, payload, np.zeros(0, np.uint8), response, 0x3F, 8) == 0
    assert response.view(np.uint32).tolist() == [*range(24, 30), 0, 0]
