"""Blocks of state that a driver writes elsewhere for each batch: records are used again while the same bytes are there.

The state is that of the last draw of kbl-es2gears, or of kbl-gles-tri, a copy which has samplers. A block moves to a page of its own behind
the dynamic state base; then what was at the old place does not count, and what is at the new one does.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from softgen.bits import catalogue
from softgen.eu.promotion import PromotingEngine
from softgen.memory.store import MemfdBuffer
from softgen.threads.dispatcher import EngineDispatcher
from softgen.three_d.commands import primitive
from softgen.three_d.state.state_blocks import BLEND, CC, HEADER_CC, HEADER_SAMPLERS, POINTERS, SAMPLERS
from tests.conftest import SHARED, needs_shared
from tests.three_d.draw.test_draw_cache import CAPTURE, PAGE, GearDraws, at_the_last_draw

pytestmark = needs_shared("traces")
FREE = 0x1000_0000  # an offset from the dynamic state base where nothing is
VIEWPORT = "3DSTATE_VIEWPORT_STATE_POINTERS_SF_CLIP"
TEXTURED = SHARED / "traces" / "kbl-gles-tri"
BLOCK = 256  # bytes that are moved: more than any of the blocks that one target and one viewport have
MOVED = [CC, BLEND, VIEWPORT, "3DSTATE_VIEWPORT_STATE_POINTERS_CC", SAMPLERS + "PS"]


class MovingDraws:
    """A draw whose blocks of state move."""

    def __init__(self, draws: GearDraws) -> None:
        self.draws, self.space = draws, draws.cs.space
        self.base = draws.cs.bases["dynamic"]
        self.space.map(self.base + FREE, MemfdBuffer(16 * PAGE, "blocks"))

    def offset(self, name: str) -> int:
        return int(getattr(self.draws.pointer(name), POINTERS[name]))

    def move(self, name: str) -> int:
        """Copy a block to the free page, and point there; the old place gets other bytes."""
        old = self.base + self.offset(name)
        self.draws.copied(old, BLOCK, self.base + FREE)
        field = catalogue.layout(name, self.draws.cs.generation.number).field(POINTERS[name])
        self.draws.command(name, **{POINTERS[name]: FREE >> field.low % 32})
        return old

    def used_again(self, change: Callable[[], None]) -> bool:
        """Whether a draw after the change uses the plans of the one before; its picture is that of a fresh pipeline."""
        first = self.draws.again()
        assert first and self.draws.again() == first
        (record,) = self.draws.records
        change()
        after = self.draws.again()
        assert after == self.draws.fresh() == self.draws.again()
        return self.draws.records == [record] and after == first


def moving(check: Callable[[MovingDraws], None], name: str = "t1", capture: Path = CAPTURE) -> None:
    at_the_last_draw(name, lambda draws: check(MovingDraws(draws)), capture=capture, before=primitive)


@pytest.mark.covering(1)
@pytest.mark.parametrize("engine", ["t1", "auto"])
@pytest.mark.parametrize("name", MOVED)
def test_a_record_follows_a_block(name: str, engine: str) -> None:
    def check(draws: MovingDraws) -> None:
        assert draws.used_again(lambda: draws.space.write(draws.move(name), b"\xa5" * 4))
        header = draws.draws.records[0].stages[-1]._plan.payload.header
        assert header[HEADER_CC] == draws.offset(CC) and header[HEADER_SAMPLERS] & ~31 == draws.offset(SAMPLERS + "PS")

    moving(check, engine, TEXTURED)


def test_other_bytes_at_the_new_place_count() -> None:
    """A viewport moves, and has another scale."""
    def check(draws: MovingDraws) -> None:
        def change() -> None:
            draws.move(VIEWPORT)
            draws.space.write(draws.base + FREE, b"\0\0\x80\x41")  # m00: 16.0

        assert not draws.used_again(change)

    moving(check)


def test_blending_that_differs_at_the_new_place_counts() -> None:
    """The blend state moves, and red is not written."""
    def check(draws: MovingDraws) -> None:
        def change() -> None:
            draws.move(BLEND)
            group = next(group for group in catalogue.layout("BLEND_STATE", 9).groups if group.name == "render_target")
            draws.draws.structure("BLEND_STATE_ENTRY", "dynamic", FREE + group.start // 8, write_disable_red=1)

        assert not draws.used_again(change)

    moving(check)


@pytest.mark.parametrize("height", [None, 31])
def test_a_surface_state_elsewhere(height: int | None) -> None:
    """The binding table's entry leads to a copy of the surface state: the same surface, or a smaller one."""
    def check(draws: MovingDraws) -> None:
        def change() -> None:
            surface, table = draws.draws.cs.bases["surface"], draws.draws.table()
            state = draws.space.read32(table)
            moved = (state & ~63) + 0x2000
            draws.draws.copied(surface + state, 64, surface + moved)
            draws.space.write32(table, moved)
            if height is not None:
                draws.draws.structure("RENDER_SURFACE_STATE", "surface", moved, height=height)

        assert draws.used_again(change) == (height is None)

    moving(check)


def test_a_vertex_buffer_that_no_element_reads_does_not_count() -> None:
    """Clears leave one behind, at another address each."""
    def check(draws: MovingDraws) -> None:
        unused = max(draws.draws.cs.latched.by_index("3DSTATE_VERTEX_BUFFERS")) + 1

        def latch(address: int) -> None:
            def change(dwords: list[int]) -> None:
                dwords[0] = dwords[0] & ~0xFF | 3
                dwords[1:] = [dwords[1] & 0x03FF_FFFF | unused << 26, address, *dwords[3:5]]

            draws.draws.dwords("3DSTATE_VERTEX_BUFFERS", change)

        latch(0x1000)
        assert draws.used_again(lambda: latch(0x2000))

    moving(check)


def test_draws_report_what_their_threads_executed() -> None:
    """To the engine that translates hot kernels: after each draw, as the next one may be of other state."""
    def check(draws: MovingDraws) -> None:
        engine = PromotingEngine()
        draws.draws.dispatcher = dispatcher = EngineDispatcher("auto", threads=1, make=lambda name: engine)
        engine.fast.lookup_cached = lambda *key: None  # type: ignore[method-assign]  # nothing is on disk
        draws.draws.again()
        first = {program: program.executed for program, _ in dispatcher.ran}
        draws.draws.again()
        assert first and all(program.executed == 2 * count > 0 for program, count in first.items())

    moving(check, "auto")
