"""Render target writes of real threads, which a C loop starts (pixels.c), on every engine."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from softgen.errors import GpuFault
from softgen.eu.native import address
from softgen.eu.text import dialect
from softgen.eu.thread.block import BLOCK_OFFSETS
from softgen.memory.store import MemfdBuffer
from softgen.shared_functions import descriptors
from softgen.shared_functions.pixel_backend import NAME, BackendState, BlendEquation, DepthState, DepthTarget, SurfacePlacement, TargetState
from softgen.threads.dispatch import UNITS, DispatchContext, ThreadDispatch, control_register
from softgen.threads.payload import LoopPayload
from tests.conftest import ROOT, every
from tests.gpgpu.engines import Choice, engines
from tests.shared_functions.rendering import BASE, DEPTH, TABLE, Target
from tests.threads.native_loops import NativeLoop, run_loops

pytestmark = pytest.mark.skipif(not shutil.which("gcc"), reason="gcc is absent")
CODE = 0x600000
GEN = 9
ACROSS, BLOCKS = 10, 90  # of a picture of 40 x 36
DESCRIPTOR = descriptors.encode("render_target_write", GEN, message_length=8, last_render_target=1)
KERNEL = f"""
     mov (16|M0) r112.0<1>:f r2.0<0;1,0>:f
     mov (16|M0) r114.0<1>:f r2.1<0;1,0>:f
     mov (16|M0) r116.0<1>:f r2.2<0;1,0>:f
     mov (16|M0) r118.0<1>:f r2.3<0;1,0>:f
     sendc (16|M0) null:w r112 0x25 {DESCRIPTOR:#x} {{EOT}}
"""


class Loop(ctypes.Structure):
    """struct loop of pixels.c."""

    _fields_ = [("worker", ctypes.c_uint64), ("next", ctypes.c_uint64), ("end", ctypes.c_uint64), ("batch", ctypes.c_uint64),
                ("pixel", ctypes.c_uint64), ("across", ctypes.c_uint64), ("lit", ctypes.c_uint32), ("depth", ctypes.c_float),
                ("returns", ctypes.c_uint64), ("passed", ctypes.c_uint64), ("last", ctypes.c_uint64)]  # fmt: skip

    def bind(self, worker: int) -> int:
        self.worker = worker
        return ctypes.addressof(self)


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    made = tmp_path_factory.mktemp("pixels") / "pixels.so"
    folders = [f"-I{ROOT / 'softgen' / name}" for name in ("threads/native", "three_d")]
    command = ["gcc", "-O1", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", *folders]
    subprocess.run([*command, str(Path(__file__).with_name("pixels.c")), "-o", str(made)], check=True)
    return ctypes.CDLL(str(made))


def draw(library: ctypes.CDLL, choice: Choice, state: BackendState, lit: int = 0xFFFF, depth: float = 0.5,
         **more: Any) -> tuple[Target, Loop]:  # fmt: skip
    bench = Target(gen=GEN, state_of_backend=state, **more)
    code = MemfdBuffer(0x1000, "code")
    raw = dialect.read(KERNEL, GEN)
    code.array[: len(raw)] = np.frombuffer(raw, np.uint8)
    bench.space.map(CODE, code)
    context = DispatchContext(bench.dispatch.generation, bench.space, {"instruction": CODE, "surface": BASE})
    record = ThreadDispatch(0, control_register(GEN), 16, 16, 0, LoopPayload(3), binding_table=TABLE, units=(*UNITS, NAME),
                            unit_states=((NAME, state),))  # fmt: skip
    loop = Loop(end=BLOCKS, batch=16, pixel=BLOCK_OFFSETS["pixel"], across=ACROSS, lit=lit, depth=depth)
    dispatcher = choice.groups()
    run_loops(dispatcher, context, record, [NativeLoop(address(library.run_pixels), loop.bind)])
    return bench, loop


def expected(block: int) -> list[int]:
    red, green = block % 16 * 17, block // 16 * 17
    return [64, green, red, 255]


@pytest.mark.parametrize("choice", engines(), ids=str)
def test_threads_fill_a_picture(choice: Choice, library: ctypes.CDLL) -> None:
    bench, loop = draw(library, choice, BackendState())
    picture = bench.picture()
    for block in range(BLOCKS):
        x, y = block % ACROSS * 4, block // ACROSS * 4
        assert (picture[y : y + 4, x : x + 4] == expected(block)).all()
    if choice.name in ("t0", "t1"):
        assert loop.returns == 0, "messages were left to the interpreter"


@pytest.mark.parametrize("choice", every(2, engines()), ids=str)
def test_threads_blend_and_test_depth(choice: Choice, library: ctypes.CDLL) -> None:
    """The left half of the depth buffer is near; what is behind it does not show."""
    near = np.full((64, 64), 0.25, np.float32)
    near[:, 20:] = 0.75
    held = np.zeros(0x4000, np.uint8)
    for y in range(64):
        for x in range(64):
            at = (y // 32 * 2 + x // 32) * 4096 + x % 32 // 4 * 512 + y % 32 * 16 + x % 4 * 4
            held[at : at + 4] = near[y, x : x + 1].view(np.uint8)
    target = DepthTarget(DepthState("d32_float", test="less", write=True), SurfacePlacement(DEPTH, 64, 64, pitch=256))
    state = BackendState((TargetState(color=BlendEquation("add", "one", "one")),), late=target)
    bench, loop = draw(library, choice, state, buffers={DEPTH: held}, lit=0xFF0F)
    plain = Target(gen=GEN)
    before, after = plain.picture().astype(int), bench.picture()
    for block in range(BLOCKS):
        x, y = block % ACROSS * 4, block // ACROSS * 4
        wanted = before[y : y + 4, x : x + 4].copy()
        if x >= 20:
            shown = np.minimum(wanted + expected(block), 255)
            wanted[:2, :2], wanted[2:] = shown[:2, :2], shown[2:]
        assert (after[y : y + 4, x : x + 4] == wanted).all()
    assert loop.passed == 12 * BLOCKS // 2
    assert (bench.extra[0].array[: len(held)] != held).sum() > 0


@pytest.mark.parametrize("choice", [choice for choice in engines() if choice.name != "leaving, two threads"], ids=str)
def test_a_fault_names_thread_and_message(choice: Choice, library: ctypes.CDLL) -> None:
    with pytest.raises(GpuFault, match=r"write at 0x7000000 .*sendc"):
        draw(library, choice, BackendState(), surface={"surface_base_address": 0x7000000})


def test_state_that_changed_is_read_again(library: ctypes.CDLL) -> None:
    """Another blend state is another binding."""
    choice = Choice("t1")
    first, _ = draw(library, choice, BackendState())
    second, _ = draw(library, choice, replace(BackendState(), targets=(TargetState(write_disable="rgba"),)))
    assert (first.picture() != second.picture()).any() and (second.picture() == Target(gen=GEN).picture()).all()
