"""Flushes of Ice Lake: what PIPE_CONTROL flushes and invalidates, what stalls, what rules software has to keep."""

from __future__ import annotations

import itertools
import struct
from collections.abc import Sequence

import pytest

from softgen.bits.catalogue import layout
from softgen.device.gpu import GpuDevice
from softgen.streamer.flush_effects import FlushEffects, flush_effects
from softgen.trace.work import Work
from tests.gpgpu.job import BATCH as JOB_BATCH
from tests.gpgpu.job import SURFACES, Job, dwords
from tests.streamer.bench import DATA, Bench
from tests.three_d import own_draw
from tests.three_d.own_draw import NUMBER, TARGET, OwnDraw, box, pixel_shader, rectangle, send
from tests.three_d.stage_threads.probes import code
from tests.three_d.test_own_draw import PASS_VERTICES, VERTEX_SHADER

WRITE = {"render_target_cache_flush_enable": "render target", "depth_cache_flush_enable": "depth", "dc_flush_enable": "data",
         "tile_cache_flush_enable": "tile", "hdc_pipeline_flush_enable": "hdc pipeline"}  # fmt: skip
READ = {"instruction_cache_invalidate_enable": "instruction", "texture_cache_invalidation_enable": "texture",
        "constant_cache_invalidation_enable": "constant", "state_cache_invalidation_enable": "state"}  # fmt: skip
VERTEX = {"vf_cache_invalidation_enable": "vertex"}
STALL = {"command_streamer_stall_enable": 1}


def effects(**fields: int) -> FlushEffects:
    page = layout("PIPE_CONTROL", 11)
    return flush_effects(page.raw(page.pack(**fields)), "icl")


def traced(*commands: dict[str, int]) -> list[str]:
    """What a batch's flushes are traced as."""
    found: list[str] = []
    bench = Bench("icl")
    bench.gpu = GpuDevice(bench.device, trace=lambda topic, text: found.append(text) if topic == "flushes" else None)
    bench.run(*(bench.pack("PIPE_CONTROL", **fields) for fields in commands))
    return found


def remarks(*commands: dict[str, int], draws: Sequence[int] = ()) -> list[str]:
    """The remarks on flushes, with a draw before those that `draws` counts."""
    flushes = [OwnDraw("icl", []).pack("PIPE_CONTROL", **fields) for fields in commands]
    made = OwnDraw("icl", rectangle(0, 0, 4, 4))
    again = made.pack("3DPRIMITIVE", vertex_count_per_instance=3, instance_count=1)
    made.after = [command for number, flush in enumerate(flushes) for command in ([again, flush] if number in draws else [flush])]
    return [text.partition("): ")[2] for text in made._executed("t0", 1).remarks]


# -- what is flushed and invalidated -----------------------------------------------------------------------------------


@pytest.mark.behaviour("ICL-PC-09", shows="action")
@pytest.mark.parametrize(("write", "notify", "other", "vertices", "expected"), [
    (0, 0, 0, 0, (None, None, None, None)), (0, 0, 0, 1, (True, False, None, False)), (0, 0, 1, 0, (False, None, None, True)),
    (0, 0, 1, 1, (True, False, False, True)), (0, 1, 0, 0, (True, True, True, False)), (0, 1, 0, 1, (True, True, True, False)),
    (0, 1, 1, 0, (True, True, True, True)), (0, 1, 1, 1, (True, True, True, True)), (1, 0, 0, 0, (True, True, True, False)),
    (1, 0, 0, 1, (True, True, True, False)), (1, 0, 1, 0, (True, True, True, True)), (1, 0, 1, 1, (True, True, True, True)),
    (1, 1, 0, 0, (True, True, True, False)), (1, 1, 0, 1, (True, True, True, False)), (1, 1, 1, 0, (True, True, True, True)),
    (1, 1, 1, 1, (True, True, True, True)),
])  # fmt: skip
def test_the_truth_table_of_flushes(write: int, notify: int, other: int, vertices: int, expected: tuple[bool | None, ...]) -> None:
    """Marker, its enable, completion, and the pulse at the top (ICL 1084-1095), for any bit of each sort; the trace says so."""
    for writes, reads in itertools.product(WRITE if write else (None,), READ if other else (None,)):
        for notifies in ("notify_enable", "post_sync_operation") if notify else (None,):
            names = [name for name in (writes, reads, notifies, "vf_cache_invalidation_enable" if vertices else None) if name]
            fields = dict.fromkeys(names, 1)
            found = effects(**fields)
            assert found[2:] == expected
            where = {"address": DATA} if notifies == "post_sync_operation" else {}
            assert traced({**fields, **where}) == [str(found)]


@pytest.mark.behaviour("ICL-SYNC-01", "ICL-SYNC-02", "ICL-SYNC-04", "ICL-PC-08", shows="action")
@pytest.mark.parametrize("name", [*READ, *VERTEX])
def test_read_only_caches_are_invalidated_one_by_one(name: str) -> None:
    """Each kind of stream by its own bit, when the command is parsed, and none beyond the GPU's own caches; vertices by their bit alone
    (ICL 899-915, 1071-1074)."""
    (text,) = traced({name: 1})
    assert text.startswith(f"invalidates {({**READ, **VERTEX})[name]};") and "flushes" not in text
    assert effects(**{name: 1}).pulse is (name in READ) and effects(**{name: 1}).flushed == ()
    everything = effects(**dict.fromkeys(READ, 1))
    assert everything.invalidated == tuple(READ.values()) and effects(flush_llc=1) == effects()


@pytest.mark.behaviour("ICL-PC-08", shows="action")
def test_vertices_are_kept_by_index_for_one_primitive_command() -> None:
    """A draw shades a vertex once however often its index comes; the next draw shades it again (ICL 1071-1074)."""
    indices = struct.pack("<6I", 0, 1, 2, 0, 1, 2)
    state = {"3DSTATE_INDEX_BUFFER": {"index_format": 2, "buffer_starting_address": own_draw.DATA, "buffer_size": len(indices)},
             "3DSTATE_VS": VERTEX_SHADER}  # fmt: skip
    draws = [{"vertex_access_type": 1, "vertex_count_per_instance": 6}] * 2
    for number in (1, 2):
        drawn = OwnDraw("icl", rectangle(0, 0, 4, 4), state, vs=PASS_VERTICES, primitives=draws[:number],
                        patch={own_draw.DATA: indices}).run()  # fmt: skip
        assert drawn.register("VS_INVOCATION_COUNT") == 3 * number and drawn.register("IA_VERTICES_COUNT") == 6 * number


@pytest.mark.behaviour("ICL-PC-07", "ICL-SYNC-06", shows="action")
@pytest.mark.parametrize("name", [*WRITE, *READ, *VERTEX])
def test_what_a_depth_stall_leaves_of_flushes(name: str) -> None:
    """Render targets are not flushed, nor read caches invalidated but those of instructions and state; software is told (ICL 1063-1069)."""
    caches = {**WRITE, **READ, **VERTEX}
    alone, stalled = effects(**{name: 1}), effects(**{name: 1}, depth_stall_enable=1)
    assert alone.flushed + alone.invalidated == (caches[name],)
    kept = name in ("depth_cache_flush_enable", "instruction_cache_invalidate_enable", "state_cache_invalidation_enable")
    assert stalled.flushed + stalled.invalidated == ((caches[name],) if kept else ())
    told = any("with depth_stall_enable, render targets are not flushed" in text for text in remarks({name: 1, "depth_stall_enable": 1}))
    ruled = ("render_target_cache_flush_enable", "texture_cache_invalidation_enable", "constant_cache_invalidation_enable", *VERTEX)
    assert told == (name in ruled)
    assert not any("with depth_stall_enable" in text for text in remarks({name: 1}))


@pytest.mark.behaviour("ICL-PC-28", shows="action")
@pytest.mark.parametrize("stall", [0, 1])
@pytest.mark.parametrize("post", [0, 1])
def test_flush_types_depend_on_each_other_alone(stall: int, post: int) -> None:
    """Neither a stall nor an operation after it changes what is flushed; what is written after it is the same whatever is flushed, and a
    stall too (ICL 1098-1105, 1166-1170)."""
    sync = {"command_streamer_stall_enable": stall, "post_sync_operation": post, "address": DATA, "immediate_data": 0x1234}
    for kinds in itertools.chain.from_iterable(itertools.combinations((*WRITE, *READ), number) for number in (0, 1, 2)):
        found, alone = effects(**dict.fromkeys(kinds, 1), **sync), effects(**dict.fromkeys(kinds, 1))
        assert found[:2] == alone[:2] and found.pulse in (alone.pulse, bool(alone.pulse))
        bench = Bench("icl").run(Bench("icl").pack("PIPE_CONTROL", **dict.fromkeys(kinds, 1), **sync))
        assert bench.data(2) == [0x1234 * post, 0]


# -- order -------------------------------------------------------------------------------------------------------------


@pytest.mark.behaviour("ICL-SYNC-05", "ICL-SYNC-11", shows="action")
@pytest.mark.parametrize("engine", ["reference", "t0", "t1"])
def test_counts_behind_a_flush_are_those_of_the_draws_before(engine: str) -> None:
    """All depth tests are done, and all pixels written; counters run on, and two values differ by what was drawn in between
    (ICL 917-929, 979-983)."""
    made = OwnDraw("icl", rectangle(0, 0, 6, 7))
    count = [made.pack("PIPE_CONTROL", post_sync_operation=2, depth_stall_enable=1, address=own_draw.DATA + 8 * n) for n in range(4)]
    time = [made.pack("PIPE_CONTROL", post_sync_operation=3, address=own_draw.DATA + 32 + 8 * n) for n in range(2)]
    copy = made.pack("MI_COPY_MEM_MEM", source_memory_address=TARGET + 5 * 16, destination_memory_address=own_draw.DATA + 64)
    again = made.pack("3DPRIMITIVE", vertex_count_per_instance=3, instance_count=1)
    made.before, made.after = [count[0], time[0]], [count[1], copy, again, again, count[2], count[3], time[1]]
    drawn = made.run(engine)
    found = struct.unpack("<6Q", drawn.space.read(own_draw.DATA, 48))
    assert found[:4] == (0, 42, 126, 126) and found[4] <= found[5]
    assert struct.unpack("<f", drawn.space.read(own_draw.DATA + 64, 4)) == (1.0,)


@pytest.mark.behaviour("ICL-SYNC-09", "ICL-SYNC-06", shows="action")
@pytest.mark.parametrize("engine", ["reference", "t0", "t1"])
def test_a_later_draw_reads_what_an_earlier_one_rendered(engine: str) -> None:
    """With a flush between them that stalls and writes: the immediate value is in memory, and the texture is the render target
    (ICL 950-962)."""
    linear = {"surface_type": 1, "surface_format": NUMBER["R32G32B32A32_FLOAT"], "surface_base_address": TARGET, "width": 15,
              "height": 15, "surface_pitch": 16 * 16 - 1, **{f"shader_channel_select_{c}": 4 + n
              for n, c in enumerate(("red", "green", "blue", "alpha"))}}  # fmt: skip
    lines = ["mov(8) g20<1>UD 0x3e000000UD { align1 WE_all 1Q };", "mov(8) g21<1>UD 0x3e000000UD { align1 WE_all 1Q };",
             send(1 | 1 << 17, 2, 4, source=20, to="g22<1>UD", eot=False, target=2, opcode="send")]  # fmt: skip
    read = pixel_shader([f"g{22 + n}<8,8,1>" for n in range(4)], before="\n".join(lines))
    made = OwnDraw("icl", [*rectangle(0, 0, 8, 8, attribute=(3, 5, 7, 9)), *rectangle(8, 8, 12, 12)], surfaces=[linear],
                   primitives=[{"vertex_count_per_instance": 3}, {"vertex_count_per_instance": 3, "start_vertex_location": 3}],
                   patch=code(read, 11, 0x5000))  # fmt: skip
    flush = {"command_streamer_stall_enable": 1, "post_sync_operation": 1, "render_target_cache_flush_enable": 1, "immediate_data": 0xABCD,
             "address": own_draw.DATA + 0xF000}  # fmt: skip
    second = {**made.fields("3DSTATE_PS"), "kernel_start_pointer_0": 0x5000}
    made.between = [made.pack("PIPE_CONTROL", **flush), made.pack("PIPE_CONTROL", texture_cache_invalidation_enable=1),
                    made.pack("3DSTATE_PS", **second)]  # fmt: skip
    drawn = made.run(engine)
    assert drawn.pixels[10, 10].tolist() == [3, 5, 7, 9] == drawn.pixels[4, 4].tolist() and drawn.lit == box(0, 0, 8, 8) | box(8, 8, 12, 12)
    assert struct.unpack("<Q", drawn.space.read(own_draw.DATA + 0xF000, 8)) == (0xABCD,) and not drawn.remarks


STORE = """
(W)  mov (8|M0) r127.0<1>:ud r0.0<8;8,1>:ud
(W)  mov (8|M0) r10.0<1>:ud 0x0:ud
(W)  mov (8|M0) r11.0<1>:ud 0x5:ud
(W)  send (1|M0) null r10 0xC 0x04026E00
(W) send (8|M0) null r127 0x27 0x02000010 {EOT}
"""


@pytest.mark.behaviour("ICL-PC-33", "ICL-PC-01", "ICL-PC-03", shows="action")
@pytest.mark.parametrize("fields", [{}, {"dc_flush_enable": 1}, STALL])
def test_a_stall_waits_for_threads_that_write_commands(fields: dict[str, int]) -> None:
    """A thread of the media pipe writes the operand of a store that the streamer has fetched already: behind a stall it stores what the
    thread wrote; without one commands go on, and store one or the other (ICL 1021-1028, 1036-1040, 1203-1217)."""
    job = Job(STORE, [bytes(16)], "icl", simd=8)
    store = job.pack("MI_STORE_DATA_IMM", address=job.address(0) + 8, immediate_data=3 | 1 << 32)
    store = [store[0] - 1, *store[1:-1]]
    flush = job.pack("PIPE_CONTROL", post_sync_operation=1, address=job.address(0) + 0x108, immediate_data=7, **fields)
    job.after = [flush, store]
    where = job.batch().rindex(dwords(*store)) + 12
    job.buffers, space = [bytes(0x200)], job.memory()
    pointer = layout("RENDER_SURFACE_STATE", 11).field("surface_base_address").low // 8
    space.write(SURFACES + pointer, struct.pack("<Q", JOB_BATCH + where))
    gpu = GpuDevice(job.device)
    gpu.execute(Work("render", space, JOB_BATCH))
    found = struct.unpack("<I", space.read(job.address(0) + 8, 4))[0]
    assert found == 5 if fields == STALL else found in (3, 5)
    assert struct.unpack("<Q", space.read(job.address(0) + 0x108, 8)) == (7,)


# -- rules -------------------------------------------------------------------------------------------------------------

LEVEL1 = {"render_target_cache_flush_enable": 1, "dc_flush_enable": 1, "depth_cache_flush_enable": 1}
TILE = {"tile_cache_flush_enable": 1, **STALL}


@pytest.mark.behaviour("ICL-PC-30", shows="action")
@pytest.mark.parametrize(("commands", "draws", "told"), [
    (({**TILE, **LEVEL1},), (), False), ((LEVEL1, TILE), (), False), ((LEVEL1, TILE), (1,), True), ((LEVEL1, TILE), (0,), False),
    ((TILE,), (), True), (({**LEVEL1, "dc_flush_enable": 0}, TILE), (), True),
    (({**LEVEL1, "depth_cache_flush_enable": 0}, TILE), (), True),
    (({**LEVEL1, "render_target_cache_flush_enable": 0}, TILE), (), True), (({**TILE, **LEVEL1, "dc_flush_enable": 0},), (), True),
])  # fmt: skip
def test_level_1_caches_are_flushed_before_tiles(commands: tuple[dict[str, int], ...], draws: tuple[int, ...], told: bool) -> None:
    """By the same command, or an earlier one with no rendering in between; with a stall, and not in POCS (ICL 1172-1186)."""
    assert any("needs the caches before it flushed" in text for text in remarks(*commands, draws=draws)) == told
    without = [{name: value for name, value in fields.items() if name not in STALL} for fields in commands]
    assert any("tile_cache_flush_enable needs command_streamer_stall_enable" in text for text in remarks(*without, draws=draws))
    bench = Bench("icl").run(Bench("icl").pack("PIPE_CONTROL", **TILE, **LEVEL1), engine="position_only")
    assert any("tile_cache_flush_enable is not for the position-only engine" in text for text in bench.gpu.remarks)


@pytest.mark.behaviour("ICL-SYNC-03", shows="action")
@pytest.mark.parametrize("name", [*READ, *VERTEX])
def test_caches_are_invalidated_when_nothing_reads(name: str) -> None:
    """Nothing waits for reads that are on their way: software stalls for them, before or with it (ICL 911-913)."""
    def told(*commands: dict[str, int], draws: tuple[int, ...]) -> int:
        return sum("read-only caches are invalidated while" in text for text in remarks(*commands, draws=draws))

    assert told({name: 1}, draws=(0,)) == 1 and told({name: 1, **STALL}, draws=(0,)) == 0
    assert told(STALL, {name: 1}, draws=(0,)) == 0 and told(STALL, {name: 1}, draws=(0, 1)) == 1
