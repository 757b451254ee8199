"""3DPRIMITIVE: where the parameters of a draw come from, and when it is skipped."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest

from softgen.bits.record import Record
from softgen.command import ConstantUrbEntry, Counters
from softgen.errors import DecodeError
from softgen.three_d import commands
from softgen.three_d.state.state import DrawCall
from tests.three_d.made import BUFFERS, MadeCommands, memory, record

TRIANGLES, POINTS = 4, 1
REGISTERS = {"3DPRIM_VERTEX_COUNT": 30, "3DPRIM_START_VERTEX": 31, "3DPRIM_INSTANCE_COUNT": 32, "3DPRIM_START_INSTANCE": 33,
             "3DPRIM_BASE_VERTEX": 0xFFFFFFFE, "3DPRIM_XP0": 34, "3DPRIM_XP1": 35, "3DPRIM_XP2": 36, "3DPRIM_END_OFFSET": 100}  # fmt: skip
GENERATIONS = (7, 7.5, 8, 9, 11)


def streamer(gen: float, predicate: bool = True, pitch: int = 24) -> Any:
    """A command streamer as far as 3DPRIMITIVE looks at it; draws are listed."""
    latched, drawn = MadeCommands(), list[DrawCall]()
    if gen >= 8:
        latched["3DSTATE_VF_TOPOLOGY"] = record("3DSTATE_VF_TOPOLOGY", gen, {"primitive_topology_type": TRIANGLES})
    latched.indexed[BUFFERS] = {0: record("VERTEX_BUFFER_STATE", gen, {"buffer_pitch": pitch})}
    remarks: list[str] = []
    pipeline = SimpleNamespace(draw=lambda cs, call: drawn.append(call))
    context = SimpleNamespace(pipeline=pipeline, gathered={}, streamer=SimpleNamespace(tables={}))
    return SimpleNamespace(latched=latched, get=REGISTERS.__getitem__, counters=Counters(), traced=False, warn=remarks.append,
                           predicate=lambda: predicate, state=lambda kind: context, drawn=drawn,
                           remarks=remarks)  # fmt: skip


def primitive(gen: float, **fields: Any) -> Record:
    common: Mapping[str, Any] = {"vertex_count_per_instance": 3, "start_vertex_location": 4, "instance_count": 5,
                                 "start_instance_location": 6, "base_vertex_location": 7}  # fmt: skip
    topology = {"primitive_topology_type": POINTS if gen >= 8 else TRIANGLES}
    return record("3DPRIMITIVE", gen, {**common, **topology, **fields})


@pytest.mark.behaviour("BDW-VF-14", shows="action")
@pytest.mark.parametrize("gen", GENERATIONS)
def test_parameters_are_in_the_command_and_topology_is_state_since_gen8(gen: float) -> None:
    """The field of the command is ignored there (BDW 179-190)."""
    assert commands.draw_call(streamer(gen), primitive(gen)) == DrawCall(TRIANGLES, False, 3, 4, 5, 6, 7)


@pytest.mark.behaviour("BDW-VF-06", shows="action")
@pytest.mark.parametrize("gen", GENERATIONS)
def test_parameters_may_be_in_registers(gen: float) -> None:
    """The base vertex is signed; Gen11's extended parameters count only where the command has them."""
    found = commands.draw_call(streamer(gen), primitive(gen, indirect_parameter_enable=1, vertex_access_type=1))
    assert found == DrawCall(TRIANGLES, True, 30, 31, 32, 33, -2)
    if gen >= 11:
        extended = primitive(gen, indirect_parameter_enable=1, extended_parameters_present=1)
        assert commands.draw_call(streamer(gen), extended).parameters == (34, 35, 36)


def test_draws_are_traced_where_somebody_listens() -> None:
    cs, lines = streamer(9), list[tuple[str, str]]()
    cs.trace = lambda topic, text: lines.append((topic, text))
    for cs.traced in (False, True):
        commands.primitive(cs, primitive(9))
    assert lines == [("draws", "topology 4, 3 vertices, 5 instances")] and len(cs.drawn) == 2


def test_gen11_has_three_more_parameters() -> None:
    held = {"extended_parameter": [{"value": 21}, {"value": 22}, {"value": 23}]}
    assert commands.draw_call(streamer(11), primitive(11, extended_parameters_present=1, **held)).parameters == (21, 22, 23)
    assert commands.draw_call(streamer(11), primitive(11, **held)).parameters == (0, 0, 0)


@pytest.mark.behaviour("BDW-VF-07", shows="action")
@pytest.mark.parametrize("gen", GENERATIONS)
def test_vertices_up_to_an_offset_into_the_first_buffer(gen: float) -> None:
    """100 bytes have four vertices of 24; the one that they cut is not drawn. Other starts than 0 are remarked (BDW 143-150)."""
    cs = streamer(gen)
    start = {"start_vertex_location": 0, "start_instance_location": 0, "base_vertex_location": 0}
    assert commands.draw_call(cs, primitive(gen, end_offset_enable=1, **start)) == DrawCall(TRIANGLES, False, 4, 0, 5, 0, 0, (0, 0, 0))
    assert not cs.remarks
    assert commands.draw_call(cs, primitive(gen, end_offset_enable=1)).start_vertex == 0
    assert [remark.split(":")[0] for remark in cs.remarks] == [
        f"end_offset_enable and {name}" for name in ("start_vertex_location 4", "start_instance_location 6", "base_vertex_location 7")
    ]
    with pytest.raises(DecodeError, match="vertex buffer 0"):
        commands.draw_call(streamer(gen, pitch=0), primitive(gen, end_offset_enable=1))


@pytest.mark.behaviour("BDW-VF-08", shows="action")
def test_an_end_offset_and_registers_together_are_an_error() -> None:
    with pytest.raises(DecodeError, match="end_offset_enable and indirect_parameter_enable are set"):
        commands.draw_call(streamer(8), primitive(8, end_offset_enable=1, indirect_parameter_enable=1))


@pytest.mark.behaviour("BDW-CS-07", shows="action")
@pytest.mark.parametrize(("enable", "state", "draws"), [(0, False, 1), (0, True, 1), (1, False, 0), (1, True, 1)])
def test_a_draw_is_skipped_only_if_it_asks_and_the_predicate_is_0(enable: int, state: bool, draws: int) -> None:
    cs = streamer(9, predicate=state)
    commands.primitive(cs, primitive(9, predicate_enable=enable))
    assert len(cs.drawn) == cs.counters.draws == draws


@pytest.mark.parametrize("field", ["vertex_count_per_instance", "instance_count"])
def test_a_draw_of_nothing_does_not_reach_the_pipeline(field: str) -> None:
    cs = streamer(9)
    commands.primitive(cs, primitive(9, **{field: 0}))
    assert not cs.drawn and cs.counters.draws == 1


@pytest.mark.parametrize("base, start, at", [(0x10000, 0x40, 0x10040), (0xFFFFF000, 0x11000, 0x10000), (0, 0x10080, 0x10080)])
def test_a_constant_buffer_is_where_it_is_in_32_bits(base: int, start: int, at: int) -> None:
    """The sum of the general state base and the address wraps. Without a valid one there are no constants."""
    held, context = bytes(range(256)), ConstantUrbEntry()
    cs: Any = SimpleNamespace(bases={"general": base}, space=memory(4.5, {0x10000: held}), state=lambda kind: context)
    commands.constant_buffer(cs, record("CONSTANT_BUFFER", 4.5, {"valid": 1, "buffer_starting_address": start, "buffer_length": 1}))
    assert context.data == held[at - 0x10000 :][:128]
    commands.constant_buffer(cs, record("CONSTANT_BUFFER", 4.5, {"valid": 0, "buffer_starting_address": start}))
    assert context.data is None
    del cs.bases["general"]
    if not base:
        commands.constant_buffer(cs, record("CONSTANT_BUFFER", 4.5, {"valid": 1, "buffer_starting_address": start}))
        assert context.data == held[at - 0x10000 :][:64], "no base was set: it is 0"
