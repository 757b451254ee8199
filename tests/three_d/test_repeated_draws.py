"""Draws one after another: what is kept from the draw before is used only where nothing has changed.

The state is that of the triangle of kbl-vk-tri. It is drawn twice, then something changes, as drivers rewrite state in place or send
commands; the next draw must leave what a pipeline leaves that has seen nothing before.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import pytest

from softgen.bits import catalogue
from softgen.bits.layout import Layout
from softgen.bits.record import Record
from softgen.device.gpu import COMMANDS, GpuDevice
from softgen.streamer.parser import Command
from softgen.threads.dispatcher import EngineDispatcher
from softgen.three_d.commands import draw_call
from softgen.three_d.draw.draw import Pipeline3D
from softgen.three_d.state.state import DrawState
from softgen.three_d.state.unit_state import binding_table
from softgen.trace.file import open_trace
from softgen.trace.replay import events
from softgen.trace.work import Work
from tests.conftest import ROOT

CAPTURE = ROOT / "tests" / "data" / "kbl-vk-tri"
TRIANGLE = 1  # number of the draw
Streamer = Any
Change = Callable[["Draws"], None]


def merged(layout: Layout, data: int, fields: dict[str, int]) -> int:
    """The bits of a structure or command with other values of some fields."""
    for name, value in fields.items():
        field = layout.field(name)
        data = data & ~((1 << field.width) - 1 << field.low) | value << field.low
    return data


class Draws:
    """The streamer at the triangle, a pipeline that is kept, and memory as it was."""

    def __init__(self, cs: Streamer, cmd: Record, name: str) -> None:
        self.cs, self.call, self.name = cs, draw_call(cs, cmd), name
        self.kept, self.dispatcher = Pipeline3D(), EngineDispatcher(name, threads=1)
        self.memory = {region.start: cs.space.read(region.start, region.size) for region in cs.space.regions()}

    def draw(self, pipeline: Pipeline3D, dispatcher: EngineDispatcher) -> dict[int, bytes]:
        """What a draw changes: the memory afterwards, by region; memory is as it was before."""
        cs, hooks, space = self.cs, self.cs.hooks, self.cs.space
        before = {region.start: space.read(region.start, region.size) for region in space.regions()}
        cs.hooks = dataclasses.replace(hooks, dispatcher=dispatcher)
        try:
            pipeline.draw(cs, self.call)
        finally:
            cs.hooks = hooks
        after = {start: space.read(start, len(data)) for start, data in before.items()}
        for start, data in before.items():
            if after[start] != data:
                space.write(start, data)
        return {start: data for start, data in after.items() if data != before[start]}

    def again(self) -> dict[int, bytes]:
        return self.draw(self.kept, self.dispatcher)

    def fresh(self) -> dict[int, bytes]:
        return self.draw(Pipeline3D(), EngineDispatcher(self.name, threads=1))

    # -- changes ---------------------------------------------------------------------------------------------------------

    def structure(self, page: str, base: str, offset: int, **fields: Any) -> None:
        """Rewrite fields of a structure in memory."""
        layout, address = catalogue.layout(page, self.cs.generation.number), self.cs.bases.get(base, 0) + offset
        data = int.from_bytes(self.cs.space.read(address, 4 * layout.dwords), "little")
        self.cs.space.write(address, merged(layout, data, fields).to_bytes(4 * layout.dwords, "little"))

    def command(self, name: str, **fields: Any) -> None:
        """Latch a command with other fields."""
        layout, dwords = self.cs.latched.dwords(name)
        value = merged(layout, sum(dword << 32 * n for n, dword in enumerate(dwords)), fields)
        self.cs.latched.note(Command(0, 0, 0, layout, [value >> 32 * n & 0xFFFFFFFF for n in range(len(dwords))]))

    def pointer(self, name: str) -> Any:
        return self.cs.latched[name]


def viewport(draws: Draws) -> None:
    offset = draws.pointer("3DSTATE_VIEWPORT_STATE_POINTERS_SF_CLIP").sf_clip_viewport_pointer
    address = draws.cs.bases.get("dynamic", 0) + offset
    draws.cs.space.write(address, b"\0\0\x80\x41")  # m00: 16.0


def surface_state(draws: Draws) -> None:
    """The render target is half as high."""
    table = draws.cs.bases["surface"] + binding_table(DrawState.of(draws.cs), "PS")
    state = draws.cs.space.read32(table)
    draws.structure("RENDER_SURFACE_STATE", "surface", state, height=31)


def moved_table(draws: Draws) -> None:
    """The binding table's entry leads to a copy of the surface state, of a smaller surface."""
    table = draws.cs.bases["surface"] + binding_table(DrawState.of(draws.cs), "PS")
    state, size = draws.cs.space.read32(table), 64
    draws.cs.space.write(draws.cs.bases["surface"] + state + size, draws.cs.space.read(draws.cs.bases["surface"] + state, size))
    draws.cs.space.write32(table, state + size)
    draws.structure("RENDER_SURFACE_STATE", "surface", state + size, height=31)


def blend_state(draws: Draws) -> None:
    """Red is not written."""
    layout = catalogue.layout("BLEND_STATE", draws.cs.generation.number)
    group = next(group for group in layout.groups if group.name == "render_target")
    offset = draws.pointer("3DSTATE_BLEND_STATE_POINTERS").blend_state_pointer + group.start // 8
    draws.structure("BLEND_STATE_ENTRY", "dynamic", offset, write_disable_red=1)


def rectangle(draws: Draws) -> None:
    draws.command("3DSTATE_DRAWING_RECTANGLE", clipped_drawing_rectangle_x_max=20, clipped_drawing_rectangle_y_max=30)


def culling(draws: Draws) -> None:
    draws.command("3DSTATE_RASTER", cull_mode=0)  # both faces


def sample_mask(draws: Draws) -> None:
    draws.command("3DSTATE_SAMPLE_MASK", sample_mask=0)


def no_elements(draws: Draws) -> None:
    """Another shader input: the generated VertexID goes elsewhere."""
    draws.command("3DSTATE_VF_SGVS", vertex_id_enable=0)


def bases(draws: Draws) -> None:
    """Dynamic state moves; there the viewport is smaller."""
    cs, size = draws.cs, 0x4000
    moved = cs.bases["dynamic"] + 0x10000
    cs.space.write(moved, cs.space.read(cs.bases["dynamic"], size))
    cs.latched.bases = {**cs.bases, "dynamic": moved}
    viewport(draws)


CHANGES: dict[str, Change] = {change.__name__: change for change in (viewport, surface_state, moved_table, blend_state, rectangle, culling,
                                                                     sample_mask, no_elements, bases)}  # fmt: skip


def at_the_triangle(name: str, hook: Callable[[Draws], None]) -> None:
    """Execute the capture, with a hook before the triangle."""
    trace, seen = open_trace(CAPTURE), list[int]()
    gpu = GpuDevice(trace.device, dispatcher=EngineDispatcher(name, threads=1))

    def draw(cs: Streamer, cmd: Record) -> None:
        seen.append(1)
        if len(seen) == TRIANGLE + 1:
            hook(Draws(cs, cmd, name))
        elif len(seen) <= TRIANGLE:
            COMMANDS["3DPRIMITIVE"](cs, cmd)

    gpu.interface = dataclasses.replace(gpu.interface, commands={**COMMANDS, "3DPRIMITIVE": draw})
    for event in events(trace):
        if isinstance(event, Work):
            gpu.execute(event)
    assert len(seen) > TRIANGLE


@pytest.mark.covering(1)
@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("name", ["t0", "t1"])
def test_a_draw_sees_what_has_changed_since_the_one_before(name: str, change: str) -> None:
    def check(draws: Draws) -> None:
        first = draws.again()
        assert first and draws.again() == first == draws.fresh()
        CHANGES[change](draws)
        after = draws.again()
        assert after != first
        assert after == draws.fresh() == draws.again()

    at_the_triangle(name, check)


def test_plans_are_kept_while_nothing_changes() -> None:
    """The same command said again changes nothing."""

    def check(draws: Draws) -> None:
        draws.again()
        plans = draws.kept.plans.get(DrawState.of(draws.cs))
        draws.command("3DSTATE_DRAWING_RECTANGLE")
        draws.command("3DSTATE_CONSTANT_VS")
        draws.again()
        assert draws.kept.plans.get(DrawState.of(draws.cs)) is plans
        rectangle(draws)
        assert draws.kept.plans.get(DrawState.of(draws.cs)) is not plans

    at_the_triangle("t1", check)
