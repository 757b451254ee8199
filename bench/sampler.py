"""Texture functions: nanoseconds of a message of 16 lanes, from a pixel shader that walks over a texture."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable
from typing import Any

import numpy as np

from bench import Measurement, best_time
from softgen.bits.formats import surface_formats
from softgen.lanes.compile import jit
from softgen.lanes.llvm.machine import LlvmMachine
from softgen.lanes.llvm.scalar import Parameter
from softgen.lanes.types import u32, u64
from softgen.memory.address_space import AddressSpace
from softgen.memory.store import MemfdBuffer
from softgen.shared_functions.bindings import Bindings
from softgen.shared_functions.context import ContextHead
from softgen.shared_functions.sampler.state import Sampling
from softgen.shared_functions.texture.functions import Pictures
from softgen.shared_functions.texture.operations import PARAMETERS
from softgen.shared_functions.units import UNITS
from softgen.surface.image import SurfaceImage

BASE, SIZE, LANES, SETS, CALLS = 0x100000, 256, 16, 64, 200_000
WAYS = {"nearest": ("nearest", "nearest", "none"), "bilinear": ("linear", "linear", "none"), "trilinear": ("linear", "linear", "linear")}
ARGUMENTS = ("context", "picture", "sampler", "sets", "room", "function")  # of the loop
FORMATS = ("R8G8B8A8_UNORM", "R8G8B8A8_UNORM_SRGB", "R32G32B32A32_FLOAT", "R8_UNORM")


def sampling(way: str) -> Sampling:
    mag, least, mip = WAYS[way]
    rounds = (mag == "linear",) * 3
    return Sampling(False, mag, least, mip, ("wrap",) * 3, True, rounds, rounds, (0, 14 << 8), True, 0, bias=0, shadow="always",
                    mag_mips=False, anisotropy=2, seamless=False, small_border=False, reduction="", skips_srgb=False, quality="full",
                    key_kills=False)  # fmt: skip


def surface(format: str, tiling: str) -> SurfaceImage:
    look = next(surface_format for surface_format in surface_formats().values() if surface_format.name == format)
    return SurfaceImage("2d", look, BASE, SIZE, SIZE, 1, False, SIZE * look.bits // 8, tiling, SIZE + SIZE // 2, 9, 0, 0, (4, 4), (0, 0),
                        near=True)  # fmt: skip


def loop(count: int) -> Any:
    """A function that calls another again and again, with the next set of parameters each time."""
    m = LlvmMachine()
    context, picture, sampler, sets, room, function = (m.pointer(name) for name in ARGUMENTS)
    turn = m.variable(m.constant(u64, 0, 1))
    for _ in m.While(lambda: m.any(turn.value < CALLS)):
        start = m.scalar((turn.value & SETS - 1) * (4 * LANES * count))
        for number in range(count):
            room.at(4 * LANES * number).store(sets.at(start).at(4 * LANES * number).load_lanes(u32, LANES, align=4), align=4)
        m.call_native(function, context, picture, sampler, room, m.number(u32, (1 << LANES) - 1))
        turn.value = turn.value + 1
    m.give()
    m.code.frame("loop", None, [Parameter(name) for name in ARGUMENTS])
    return jit.load(m.ir.module.text(), ("loop",))


def parameters(count: int, step: float) -> Any:
    """Subspans side by side, `step` texels from pixel to pixel."""
    pixel = np.array([[x + (lane & 1), y + (lane >> 1)] for y in (0, 2) for x in (0, 2) for lane in range(4)], np.float32)
    found = np.zeros((SETS, count, LANES), np.float32)
    for number in range(SETS):
        corner = np.array([number % 8 * 4, number // 8 * 4], np.float32)
        found[number, :2] = ((pixel + corner) * step / SIZE).T
    return found


def measure() -> Iterable[Measurement]:
    assert UNITS
    space, data = AddressSpace("bench", 48), MemfdBuffer(8 << 20, "texture")
    space.map(BASE, data)
    table, room = space.table, np.zeros(32 * LANES, np.uint32)
    context = ContextHead(table=ctypes.addressof(table))
    for format in FORMATS:
        for way in WAYS:
            for tiling in ("y_major", "linear") if format == FORMATS[0] else ("y_major",):
                pictures = Pictures(Bindings(), 48)
                assert pictures.fill(0, "sample", LANES, 0, surface(format, tiling), sampling(way), hurry=True)
                address, entry = pictures.address(0, "sample", LANES, 0), pictures.bindings.pictures[0]
                sets = parameters(PARAMETERS["sample"], 1.37 if way == "trilinear" else 0.7)
                code = loop(PARAMETERS["sample"])
                call = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * len(ARGUMENTS))(code.address("loop"))
                given = (ctypes.addressof(context), ctypes.addressof(entry), entry.samplers[0], sets.ctypes.data, room.ctypes.data,
                         address)  # fmt: skip
                seconds = best_time(lambda call=call, given=given: call(*given), 0.1)  # type: ignore[misc]
                note = f"{seconds / CALLS * 1e9:.0f} ns a message"
                yield Measurement(f"{way} {format} {tiling}", CALLS, "message", seconds, note=note)
