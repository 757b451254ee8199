"""Draws from setup records to memory: kernels store the registers that their threads start with. The twin of payloads says which."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from softgen.bits.generation import device
from softgen.errors import GpuFault, SoftgenError
from softgen.eu.native import address
from softgen.threads.dispatcher import EngineDispatcher
from softgen.threads.workers import worker
from softgen.three_d.draw import draw_walk
from softgen.three_d.pixels.pixel_shader import PixelShader
from softgen.three_d.pixels.pixel_targets import PixelTargets
from softgen.three_d.structures import SetupRecord
from tests.conftest import ROOT
from tests.gpgpu.engines import Choice, engines
from tests.gpgpu.job import CODE, END, SURFACES, TABLE, Job
from tests.three_d.pixels.test_pixel_payload import arranged, order, payload
from tests.three_d.pixels.test_rasterizer import blocks
from tests.three_d.shaded import Binned, Records, Stream, triangle, with_planes
from tests.three_d.walk import PixelCounts, shade

SIZE = 512  # bytes that a thread stores: r0 to r15
ACROSS, DOWN = 32, 32  # threads: blocks of 4x2 pixels of two tiles
START, ATTRIBUTES = 9, 2
MASK_REGISTER = 14  # which channels are on
CONSTANTS = bytes(range(100, 132))
MAPPED = 0x100000  # the first buffer, whose first byte is 77

# r0 to r13 as they start, and ones in r14 and r15 where channels are on, go to surface 0 at a place that follows from the first subspan.
STORE = f"""
(W)  mov (16|M0) r{MASK_REGISTER}.0<1>:ud 0:ud
     mov (WIDTH|M0) r{MASK_REGISTER}.0<1>:ud 1:ud
(W)  and (1|M0)  r100.0<1>:ud r1.2<0;1,0>:ud 0xFFFF:ud
(W)  shr (1|M0)  r100.0<1>:ud r100.0<0;1,0>:ud 2:ud
(W)  shr (1|M0)  r101.0<1>:ud r1.2<0;1,0>:ud 17:ud
(W)  shl (1|M0)  r101.0<1>:ud r101.0<0;1,0>:ud 5:ud
(W)  add (1|M0)  r100.0<1>:ud r100.0<0;1,0>:ud r101.0<0;1,0>:ud
(W)  shl (1|M0)  r100.0<1>:ud r100.0<0;1,0>:ud 9:ud
(W)  mov (8|M0)  r102.0<1>:uw 0x76543210:v
(W)  shl (8|M0)  r110.0<1>:ud r102.0<8;8,1>:uw 2:uw
(W)  add (8|M0)  r110.0<1>:ud r110.0<8;8,1>:ud r100.0<0;1,0>:ud
(W)  add (8|M0)  r111.0<1>:ud r110.0<8;8,1>:ud 32:ud
""" + "".join(f"""
(W)  mov (16|M0) r112.0<1>:ud r{2 * pair}.0<8;8,1>:ud
(W)  send (16|M0) null:w r110 0xC 0x08025E00
(W)  add (16|M0) r110.0<1>:ud r110.0<8;8,1>:ud 64:ud
""" for pair in range(SIZE // 64)) + f"""
(W)  mov (8|M0)  r127.0<1>:ud r0.0<8;8,1>:ud
{END}
"""  # fmt: skip
SLOW = """
(W)  mov (1|M0) r50.0<1>:d 0:d
again:
(W)  add (1|M0) r50.0<1>:d r50.0<0;1,0>:d 1:d
(W)  cmp (1|M0) (lt)f0.0 null<1>:d r50.0<0;1,0>:d 500:d
(W&f0.0) jmpi again
""" + STORE  # fmt: skip


def scene(seed: int = 4, count: int = 4, size: float = 20) -> list[SetupRecord]:
    """Triangles that overlap, in two tiles."""
    rng, found = np.random.default_rng(seed), []
    for number in range(count):
        x, y = rng.uniform(40, 70), rng.uniform(0, 30)
        record = triangle([(x, y), (x + size, y + 3), (x - 2, y + size)], (0, 0, 128, 64), layer=number, back_facing=number % 2)
        found.append(with_planes(record, rng))
    return found


class Scene:
    """Memory with a kernel and a buffer, state, records and bins."""

    def __init__(self, records: list[SetupRecord] | None = None, width: int = 16, kernel: str = STORE, size: int = SIZE * ACROSS * DOWN,
                 **values: Any) -> None:  # fmt: skip
        self.width, self.size = width, size
        self.job = Job(kernel.replace("WIDTH", str(width)), [bytes([77]) + bytes(size - 1), CONSTANTS])
        self.job.address = lambda number: MAPPED + number * SIZE * ACROSS * DOWN  # type: ignore[method-assign]
        self.stream = Stream("skl", space=self.job.memory(), bases={"instruction": CODE, "surface": SURFACES})
        self.stream.latch("3DSTATE_WM", statistics_enable=1, barycentric_interpolation_mode=1)
        starts = {f"dispatch_grf_start_register_for_constant_setup_data_{n}": START for n in range(3)}
        self.stream.latch("3DSTATE_PS", **{f"{width}_pixel_dispatch_enable": 1}, push_constant_enable=1, **starts)
        extra = {"pixel_shader_valid": 1, "attribute_enable": 1, "pixel_shader_uses_source_depth": 1}
        self.stream.latch("3DSTATE_PS_EXTRA", **extra | values)
        self.stream.latch("3DSTATE_PS_BLEND", has_writeable_rt=1)
        self.stream.latch("3DSTATE_BINDING_TABLE_POINTERS_PS", pointer_to_binding_table=TABLE)
        self.stream.latch("3DSTATE_CONSTANT_PS", read_length=[{}, {}, {}, {"length": 1}],
                          constant_buffer=[{}, {}, {}, {"pointer": self.job.address(1)}])  # fmt: skip
        self.records = Records(scene() if records is None else records, ATTRIBUTES)
        self.binned = Binned(self.records, 2, 1)
        self.shader: Any = None
        self.counting: dict[str, Any] = {}  # capabilities of another generation

    def draw(self, choice: Choice | EngineDispatcher, targets: PixelTargets | None = None) -> PixelCounts:
        self.stream.dispatcher = choice if isinstance(choice, EngineDispatcher) else choice.groups()
        state = self.stream.state()
        generation = state.generation
        state.generation = replace(generation, capabilities=(*self.counting.items(), *generation.capabilities))
        self.shader = PixelShader(state)
        self.shader.plan.generic = 1  # whose threads the twin knows: each has a block
        return shade(self.stream, self.records.array, self.binned.bins, state, self.shader, targets)

    def stored(self) -> npt.NDArray[np.uint32]:
        """What threads stored, by place; without the slot in r0.5."""
        data = np.frombuffer(self.stream.space.read(MAPPED, self.size), np.uint32).copy()
        data[0] &= 0xFFFFFF00 if data[1:].any() else 0  # 77
        threads = data[: len(data) // 128 * 128].reshape(-1, 128)
        threads[:, 5] = 0
        return threads

    def expected(self, limit: float | None = None) -> npt.NDArray[np.uint32]:
        """The same from the twin: the last record that covers a block is what remains."""
        parts, found = self.shader.state.parts, np.zeros((ACROSS * DOWN, 128), np.uint32)
        for number, record in enumerate(self.records):
            for block in blocks(record) + blocks(record, 64):
                lit = block.mask if limit is None else block.mask & nearer(record, block.x, block.y, limit)
                for first in range(0, 16, self.width):
                    mine = arranged(lit, order(lit)) >> first & (1 << self.width) - 1
                    if not mine:
                        continue
                    made = payload(number, self.records, [(block.x, block.y, block.mask, lit)], range(first, first + self.width), parts, 0)
                    made = made.replace(bytes(range(96)), CONSTANTS)
                    on = [0xF * (mine >> 4 * s & 0xF != 0) for s in range(4)]
                    ones = b"".join((on[c // 4] >> c % 4 & 1).to_bytes(4, "little") for c in range(16))
                    made = made.ljust(32 * MASK_REGISTER, b"\0") + ones
                    place = (block.y + order(lit)[first // 4] // 2 * 2 >> 1) * ACROSS + (block.x >> 2)
                    found[place] = np.frombuffer(made, np.uint32)
        found[:, 5] = 0
        return found

    @property
    def lit(self) -> int:
        return sum(block.mask.bit_count() for record in self.records for block in blocks(record) + blocks(record, 64))


def nearer(record: SetupRecord, x: int, y: int, limit: float) -> int:
    from tests.three_d.pixels.test_pixel_payload import at, pixel

    return sum(bool(at(record.z, *pixel((x, y), bit)) < np.float32(limit)) << bit for bit in range(16))


@pytest.mark.behaviour("G45-WM-44", shows="action")
@pytest.mark.covering(1)
@pytest.mark.parametrize("width", [8, 16])
@pytest.mark.parametrize("choice", engines(), ids=str)
def test_threads_start_with_their_payload(choice: Choice, width: int) -> None:
    """Every register, channels that are on, and the last object where several are (G45-WM-44), on every engine."""
    small = choice.name in ("reference", "leaving", "leaving, two threads")
    made = Scene(scene(count=2, size=9) if small else None, width)
    counts = made.draw(choice)
    assert (made.stored() == made.expected()).all()
    assert counts.threads == made.stream.counters.threads > (10 if small else 60)
    assert counts == PixelCounts(counts.threads, made.lit, made.lit)


@pytest.mark.behaviour("BDW-CONST-05", shows="action")
@pytest.mark.parametrize("name", ["t0", "t1"])
def test_a_second_draw_with_other_constants(name: str) -> None:
    """Plans are kept; constants, kernels and records are those of the draw."""
    made, dispatcher = Scene(), EngineDispatcher(name, 1)
    made.draw(dispatcher)
    made.stream.space.write(made.job.address(1), CONSTANTS[::-1])
    made.draw(dispatcher)
    wanted = made.expected()
    shown = wanted.any(1)
    wanted[shown, START * 8 : START * 8 + 8] = np.frombuffer(CONSTANTS[::-1], np.uint32)
    assert (made.stored() == wanted).all()


def test_other_state_and_other_attributes_make_another_plan() -> None:
    made, dispatcher = Scene(), EngineDispatcher("t1", 1)
    made.draw(dispatcher)
    made.stream.latch("3DSTATE_WM", barycentric_interpolation_mode=8)
    made.draw(dispatcher)
    assert made.shader.state.parts.barycentrics == (*(False,) * 3, True, False, False)
    assert (made.stored() == made.expected()).all()
    made.records = Records(scene(), 4)
    made.draw(dispatcher)
    assert (made.stored() == made.expected()).all()


def test_threads_without_constants_and_attributes_need_no_register_for_them() -> None:
    """Records may have attributes all the same, which the shader does not ask for."""
    made = Scene(attribute_enable=0)
    made.stream.latch("3DSTATE_PS", **{"16_pixel_dispatch_enable": 1})  # constants would start at r0
    counts, payload = made.draw(EngineDispatcher("t1", 1)), made.shader.plan.payload
    assert counts.invocations == made.lit > 0 and made.records.array.attribute_stride
    assert (payload.constant_bytes, payload.attribute_bytes, payload.size) == (0, 0, payload.depth + 64)  # the depth comes last


@pytest.mark.parametrize("name", ["t0", "t1"])
def test_a_fallback_in_the_middle_of_a_tile_changes_nothing(name: str) -> None:
    """The surface ends in the middle of the picture: messages of some threads are for the interpreter."""
    size = SIZE * ACROSS * 9 + 44 * 4
    made, whole = Scene(size=size), Scene()
    made.draw(Choice(name)), whole.draw(Choice(name))
    assert (made.stored() == whole.stored()[: size // SIZE]).all() and made.stored().any()
    assert any("out of bounds" in warning for warning in made.stream.warnings) and not whole.stream.warnings


@pytest.mark.parametrize("threads", [2, 4])
def test_workers_share_tiles(threads: int) -> None:
    """The same memory and counts as with one."""
    records = scene(count=120, size=24)  # 68,000 pixels and more
    alone, shared = Scene(records), Scene(records)
    alone_picture = alone.draw(EngineDispatcher("t1", 1))
    assert shared.draw(EngineDispatcher("t1", threads)) == alone_picture
    assert (shared.stored() == alone.stored()).all() and alone.stored().any()


# -- errors ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["t0", "t1"])
def test_the_time_limit_names_thread_and_kernel(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(draw_walk, "SLICE", 0)
    monkeypatch.setattr(worker, "SLICE", 0)
    monkeypatch.setattr(worker, "TURN", 100)
    made = Scene(kernel=SLOW)
    made.stream.late = True
    with pytest.raises(SoftgenError, match=r"time is up: thread \d+ of group \d+, kernel 0x40000"):
        made.draw(Choice(name))


@pytest.mark.parametrize("name", ["reference", "t1"])
def test_the_time_limit_before_the_first_thread(name: str) -> None:
    """Thousands of objects that cover nothing."""
    made = Scene([triangle([(5.6, 5.6), (5.7, 5.6), (5.6, 5.7)])] * 17_000)
    made.stream.late = True
    with pytest.raises(SoftgenError, match="time is up: pixel shader, tile 0, no thread started"):
        made.draw(Choice(name))


@pytest.mark.parametrize("name", ["t0", "t1"])
def test_a_fault_names_the_instruction_and_leaves_nothing_behind(name: str) -> None:
    dispatcher = EngineDispatcher(name, 1)
    with pytest.raises(GpuFault, match=r"write at 0x.* by .*send"):
        Scene(kernel=STORE.replace("0x08025E00", "0x08025EFF")).draw(dispatcher)  # stateless
    made = Scene()
    made.draw(dispatcher)
    assert (made.stored() == made.expected()).all()


# -- tests before the shader, and without one ----------------------------------------------------------------------------------


class DepthTarget(ctypes.Structure):
    """struct target of depth.c."""

    _fields_ = [("address", ctypes.c_uint64), ("limit", ctypes.c_float)]


@pytest.fixture(scope="module")
def depth_function(tmp_path_factory: pytest.TempPathFactory) -> int:
    if not shutil.which("gcc"):
        pytest.skip("gcc is absent")
    made = tmp_path_factory.mktemp("depth") / "depth.so"
    command = ["gcc", "-O1", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", f"-I{ROOT / 'softgen' / 'three_d'}"]
    subprocess.run([*command, str(Path(__file__).with_name("depth.c")), "-o", str(made)], check=True)
    return address(ctypes.CDLL(str(made)).test_depth)


def with_depth(function: int, where: int = MAPPED, limit: float = 0.5) -> PixelTargets:
    target = DepthTarget(where, limit)
    return PixelTargets((), function, ctypes.addressof(target), owner=target)


@pytest.mark.parametrize("name", ["t0", "t1"])
def test_early_tests_see_graphics_memory(name: str, depth_function: int) -> None:
    made = Scene()
    counts = made.draw(Choice(name), with_depth(depth_function))
    passed = sum((block.mask & nearer(record, block.x, block.y, 0.5)).bit_count() for record in made.records
                 for block in blocks(record) + blocks(record, 64))  # fmt: skip
    assert (made.stored() == made.expected(0.5)).all()
    assert counts == PixelCounts(counts.threads, passed, passed) and 0 < passed < made.lit


def test_late_tests_are_counted_by_the_backend() -> None:
    made = Scene(pixel_shader_kills_pixel=1)
    counts = made.draw(Choice("t0"), PixelTargets(late=True))
    assert (made.stored() == made.expected()).all() and counts.depth == 0  # the kernel writes no target, so no pixel passes


@pytest.mark.behaviour("BDW-PS-02", shows="action")
def test_without_a_shader_pixels_are_only_tested(depth_function: int) -> None:
    """BDW-PS-02: no kernel is looked at, depth is tested and counted."""
    made, early = Scene(pixel_shader_valid=0), Scene()
    counts, with_threads = made.draw(Choice("t1"), with_depth(depth_function)), early.draw(Choice("t1"), with_depth(depth_function))
    assert counts == PixelCounts(0, 0, with_threads.depth) and not made.stored().any()
    assert made.draw(Choice("t1")) == PixelCounts(0, 0, made.lit)


@pytest.mark.parametrize("valid", [0, 1])
def test_a_fault_of_early_tests_is_theirs(valid: int, depth_function: int) -> None:
    made = Scene(pixel_shader_valid=valid)
    with pytest.raises(GpuFault, match="read at 0x5000000 in job by early depth and stencil tests"):
        made.draw(Choice("t1"), with_depth(depth_function, 0x5000000))


@pytest.mark.parametrize("name", ["t0", "t1"])
def test_a_draw_after_one_that_a_fault_ended_begins_with_its_first_tile(name: str, depth_function: int) -> None:
    """The loops are kept from draw to draw; where they were in the last one is not."""
    made, dispatcher = Scene(), EngineDispatcher(name, 1)
    with pytest.raises(GpuFault, match="by early depth and stencil tests"):
        made.draw(dispatcher, with_depth(depth_function, 0x5000000))
    counts = made.draw(dispatcher)
    assert (made.stored() == made.expected()).all() and counts == Scene().draw(dispatcher)


def test_the_time_limit_without_a_shader() -> None:
    tiny = triangle([(5.6, 5.6), (5.7, 5.6), (5.6, 5.7)])
    made = Scene([tiny] * 17_000, pixel_shader_valid=0)
    made.stream.late = True
    with pytest.raises(SoftgenError, match="time is up: early depth and stencil tests, tile 0"):
        made.draw(Choice("t1"))


# -- counts --------------------------------------------------------------------------------------------------------------------


@pytest.mark.behaviour("BDW-WM-12", shows="action")
def test_statistics_can_be_off() -> None:
    """Without statistics_enable pixels are shaded, and neither counter grows."""
    made = Scene()
    made.stream.latch("3DSTATE_WM", barycentric_interpolation_mode=1)
    counts = made.draw(Choice("t1"))
    assert counts.threads and (counts.invocations, counts.depth) == (0, 0)


@pytest.mark.parametrize(("gpu", "factor"), [("ivb", 1), ("hsw", 4), ("bdw", 4), ("skl", 1), ("icl", 1)])
def test_invocations_count_fourfold_on_some(gpu: str, factor: int) -> None:
    """Drivers divide by four there; so the register must have the fourfold number."""
    made, generation = Scene(), device(gpu).generation
    counts = {name: getattr(generation, name) for name in ("ps_invocations_per_pixel", "counts_tested_pixels")}
    made.counting = counts
    assert made.draw(Choice("t0")).invocations == factor * made.lit


@pytest.mark.behaviour("G45-WM-46", shows="action")
def test_the_oldest_counts_pixels_that_early_tests_reject(depth_function: int) -> None:
    """PS_INVOCATION_COUNT grows by all pixels that objects cover, those that early tests reject, too."""
    made = Scene()
    made.counting = {"counts_tested_pixels": True}
    assert made.draw(Choice("t0"), with_depth(depth_function)).invocations == made.lit


@pytest.mark.behaviour("BDW-WM-02", shows="action")
def test_the_sample_mask_leaves_nothing() -> None:
    """A sample mask without the only sample's bit leaves no pixel, and no thread."""
    made = Scene()
    made.stream.latch("3DSTATE_SAMPLE_MASK", sample_mask=2)
    assert made.draw(Choice("t1")) == PixelCounts() and not made.stored().any()


def test_no_records_are_no_work() -> None:
    made = Scene([])
    assert made.draw(Choice("t1")) == PixelCounts()


@pytest.mark.parametrize("threads", [2, 4, 6, 12])
def test_scratch_space_limits_threads_that_run_together(threads: int) -> None:
    """BDW-PS-12: slots of all workers' threads are within the maximum number of threads, of which each worker has two at least."""
    made = Scene(scene(count=120, size=24))
    ps = made.stream.latched["3DSTATE_PS"]
    page = {name: value for name, value in ps._asdict().items() if isinstance(value, int) and not name.startswith("command")}
    made.stream.latched["3DSTATE_PS"] = type(ps)(
        {**page, "scratch_space_base_pointer": 0x40000, "maximum_number_of_threads_per_psd": threads - 1}.get(name, value)
        for name, value in ps._asdict().items()
    )
    made.draw(EngineDispatcher("t1", 4))
    data = np.frombuffer(made.stream.space.read(MAPPED, made.size), np.uint32).reshape(-1, 128)
    offsets = {int(value) for value in data[data[:, 9:].any(1), 5]}
    assert offsets and all(0x40000 + 1024 * (value & 0xFF) == value & ~0xFF for value in offsets)
    assert max(value & 0xFF for value in offsets) < threads


