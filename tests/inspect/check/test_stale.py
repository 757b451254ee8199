"""`softgen check --worlds stale`: draws that read what the render cache still holds."""

from __future__ import annotations

import struct
from collections.abc import Iterator

import pytest

from softgen.bits.generation import device
from softgen.inspect.check.finding import ERROR, WARNING
from softgen.inspect.check.stale import FLUSH, TEXTURE, VERTEX, WAIT, check_stale
from softgen.inspect.cli.main import main
from softgen.position import Position, parse
from softgen.trace.file import open_trace
from softgen.trace.work import Events, Expectation, Work, WorkTrace
from tests.conftest import ROOT, SHARED, every, in_ci, needs_shared
from tests.three_d.own_draw import BATCH, DATA, SURFACES, TABLE, OwnDraw, move, pixel_shader, rectangle

BETWEEN = ["1:145", "1:198", "1:249", "1:300", "1:351"]  # flushes of the capture on kbl, each between two levels of a mipmap


def mipmaps(gpu: str) -> WorkTrace:
    """Each level is made by sampling the one before, which has been rendered."""
    return open_trace(SHARED / "traces" / f"{gpu}-piglit-fbo-generatemipmap")


@needs_shared("traces")
@pytest.mark.parametrize("gpu", in_ci(["kbl", "icl"], "icl"))
@pytest.mark.behaviour("ICL-SYNC-06", "ICL-PC-07", shows="action")
def test_a_level_that_is_sampled_before_it_is_flushed_is_found(gpu: str) -> None:
    """The driver's own flushes suffice; without any, a level lacks the one before."""
    assert check_stale(lambda: mipmaps(gpu), "auto") == []
    found = check_stale(lambda: mipmaps(gpu), "auto", deleted=lambda position, field: field == FLUSH)
    assert len(found) >= len(BETWEEN) and all(finding.witness == ("plain", "stale") for finding in found)
    assert "render_target_cache_flush_enable" in found[0].details[0]


@needs_shared("traces")
def test_the_draw_that_has_rendered_is_named() -> None:
    found = check_stale(lambda: mipmaps("kbl"), "auto", deleted=lambda position, field: field == FLUSH)
    assert "draw 7 (3 vertices, 1 instances) reads what draw 6 (3 vertices, 1 instances) has rendered (1:195)" in found[1].message
    assert found[1].position == Position(1, 248) and found[1].kind == "stale"


@needs_shared("traces")
@pytest.mark.parametrize("deleted, needed", every(2, [*[(position, True) for position in BETWEEN[:2]], ("1:76", False), ("1:740", False)]))
def test_flushes_that_are_deleted_one_at_a_time(deleted: str, needed: bool) -> None:
    """Of several flushes with no draw between them one is enough."""
    planted = parse(deleted), FLUSH
    assert bool(check_stale(lambda: mipmaps("kbl"), "auto", deleted=lambda position, field: (position, field) == planted)) == needed


def test_captures_without_a_missing_flush_are_silent(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(ROOT / "tests" / "data" / "kbl-vk-tri"), "--worlds", "stale"]) == 0
    assert "  1 world, no difference" in capsys.readouterr().out.splitlines()


# -- a batch of our own ------------------------------------------------------------------------------------------------

LOAD = 7 << 12 | 1 << 17 | 4 << 20 | 2 << 25  # texel 0, SIMD8: two registers to the sampler and four back
OTHER = DATA + 0x8000


def loads() -> str:
    """The texel of the surface whose number is the first component of the attribute."""
    lines = [move("g20", "0x00000000", "UD"), move("g21", "0x00000000", "UD"), "mov(1) g30<1>UD g4.3<0,1,0>F { align1 WE_all 1N };",
             f"or(1) a0<1>UD g30<0,1,0>UD {LOAD:#010x}UD {{ align1 WE_all 1N }};",
             "send(8) g22<1>UD g20<0,1,0>UD a0<0,1,0>UD 0x00000200 2 MsgDesc: indirect { align1 1Q };"]  # fmt: skip
    return pixel_shader(["g22<8,8,1>"] * 4, before="\n".join(lines))


class OneBatch(Events):
    """A trace of one batch."""

    def __init__(self, made: OwnDraw) -> None:
        super().__init__("one batch", device(made.gpu))
        self.made = made

    def events(self) -> Iterator[Work | Expectation]:
        yield Work("render", self.made.memory(), BATCH)


def reused(gpu: str, *flushes: dict[str, int], read: bool = True) -> list[tuple[str, str]]:
    """Level and first words of findings where a texel is read that a draw has rendered, with flushes in between; `read`: it was read before
    that as well."""
    corners = [corner for left, number in ((8, 1), (0, 2), (4, 1))
               for corner in rectangle(left, 0, left + 4, 4, attribute=(number, 0, 0, 0))]  # fmt: skip
    draws = [{"vertex_count_per_instance": 3, "start_vertex_location": 3 * at, "instance_count": 1} for at in range(3)]
    surfaces = [{"surface_base_address": at} for at in (DATA, OTHER)]
    tables = {SURFACES + TABLE + 0x100: struct.pack("<3I", 0x40, 0x40, 0x80)}
    made = OwnDraw(gpu, corners, ps=loads(), surfaces=surfaces, patch={OTHER: struct.pack("<4f", 5, 5, 5, 5), **tables})
    rendered = [made.pack("3DSTATE_BINDING_TABLE_POINTERS_PS", pointer_to_binding_table=table) for table in (TABLE + 0x100, TABLE)]
    made.primitives = draws[:1] if read else [draws[1]]
    made.before = [] if read else [rendered[0]]
    controls = [made.pack("PIPE_CONTROL", **fields) for fields in flushes]
    made.after = [*([rendered[0], made.pack("3DPRIMITIVE", **draws[1])] if read else []), rendered[1], *controls,
                  made.pack("3DPRIMITIVE", **draws[2])]  # fmt: skip
    return [(finding.level, finding.message.partition(":")[0]) for finding in check_stale(lambda: OneBatch(made), "auto")]


FLUSHED = {FLUSH: 1, WAIT: 1}


@pytest.mark.behaviour("ICL-SYNC-07", "ICL-SYNC-14", "ICL-PC-06", shows="action")
def test_what_a_reader_of_rendered_memory_needs() -> None:
    """A flush, a stall that waits for it (ICL 935-937), and then the invalidation of the cache that reads (ICL 1008-1017, 1059-1062), which
    acts at the top of the pipe; it is not needed where nothing has been read before."""
    gpu, invalid, none = "icl", [(WARNING, "missing invalidation")], list[tuple[str, str]]()
    assert reused(gpu, FLUSHED, {TEXTURE: 1}) == none == reused(gpu, {FLUSH: 1}, {WAIT: 1}, {TEXTURE: 1})
    assert reused(gpu, FLUSHED) == invalid == reused(gpu, FLUSHED, {VERTEX: 1}) == reused(gpu, {**FLUSHED, TEXTURE: 1})
    assert reused(gpu, FLUSHED, read=False) == none
    assert reused(gpu, {FLUSH: 1}, {TEXTURE: 1}) == [(ERROR, "missing stall after a flush")]
    assert reused(gpu, {WAIT: 1, TEXTURE: 1}) == [(ERROR, "missing flush")] == reused(gpu, {**FLUSHED, "depth_stall_enable": 1})
