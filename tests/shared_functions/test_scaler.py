"""sample_8x8: blocks of 16x4 pixels of media surfaces against sums that are written out."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import pytest

from softgen.bits.catalogue import layout
from softgen.bits.generation import generation
from softgen.errors import DecodeError, GpuFault, Unsupported
from softgen.memory.address_space import AddressSpace
from softgen.memory.store import MemfdBuffer
from softgen.shared_functions.dataport import LocalMemory, Surfaces
from softgen.shared_functions.sampler import SamplerPort, Samplers
from tests.shared_functions.sending import BASE, DATA, TABLE, Bench

Array = np.ndarray[Any, Any]
GENS = (7, 7.5, 8, 9, 11)
PITCH, ROWS, CHROMA = 256, 96, 64
STATES, COEFFICIENTS = 0x1000, 0x2000  # of the state's memory
NAMES = {"planar_420_8": 4, "y8_unorm": 12, "r8b8_unorm": 10, "ycrcb_normal": 0, "r8g8b8a8_unorm": 9}
RED, GREEN, BLUE, ALPHA = 1, 2, 4, 8


def coefficients(seed: int) -> Array:
    """By table, axis, phase and tap: they sum to one, phase 0 is the sample itself; table 1 has taps 2 to 5."""
    found = np.random.default_rng(seed).integers(-6, 14, (2, 2, 32, 8))
    found[1, :, :, :2] = found[1, :, :, 6:] = 0
    for phase in range(17, 32):  # as drivers of Gen7 have it
        found[:, :, phase] = found[:, :, 32 - phase, ::-1]
    found[:, :, 16, 4:] = found[:, :, 16, 3::-1]
    found[:, :, :, 3] += (64 - found.sum(3)) // 2
    found[:, :, :, 4] += 64 - found.sum(3)
    for phase in range(17, 32):
        found[:, :, phase] = found[:, :, 32 - phase, ::-1]
    found[:, :, 0] = 0
    found[:, :, 0, 3] = 64
    return found


class Scaler(Bench):
    """A media surface and a scaler state."""

    def __init__(self, gen: float, shape: str = "planar_420_8", size: tuple[int, int] = (40, 30), tables: Array | None = None,
                 sampler: int = 0, surface: dict[str, Any] | None = None, **switches: Any) -> None:  # fmt: skip
        self.gen, self.space, self.slm, self.samplers, self.compiled = gen, AddressSpace("bench", 48), LocalMemory(1), STATES, 0
        self.data, self.state = MemfdBuffer(PITCH * ROWS, "data"), MemfdBuffer(0x4000, "state")
        self.space.map(DATA, self.data)
        self.space.map(BASE, self.state)
        self.data.array[:] = np.random.default_rng(5).integers(0, 256, PITCH * ROWS)
        self.picture, self.tables = size, coefficients(1) if tables is None else tables
        values = {"surface_base_address": DATA, "width": size[0] - 1, "height": size[1] - 1, "surface_format": NAMES[shape],
                  "surface_pitch": PITCH - 1, "interleave_chroma": 1, "y_offset_for_u_cb": CHROMA, "y_offset_for_v_cr": CHROMA}  # fmt: skip
        self.put(self.state, 0, layout("MEDIA_SURFACE_STATE", gen).pack(**{**values, **(surface or {})}))
        self.put(self.state, TABLE, [0])
        self._put_state(sampler, {"default_sharpness_level": 255, "bypass_x_adaptive_filtering": 1, "bypass_y_adaptive_filtering": 1,
                                  **switches})  # fmt: skip
        bases, made = {"surface": BASE, "dynamic": BASE}, generation(gen)
        self.port: Any = SamplerPort(Surfaces(made, self.space, bases, TABLE), Samplers(made, self.space, bases, STATES))

    def _put_state(self, index: int, switches: dict[str, Any]) -> None:
        taps = self.tables / 64
        if self.gen >= 8:
            items = [{"table_0": [{"x_filter_coefficient": taps[0, 0, p, k], "y_filter_coefficient": taps[0, 1, p, k]} for k in range(8)],
                      "table_1x_from_2": [{"filter_coefficient": value} for value in taps[1, 0, p, 2:6]],
                      "table_1y_from_2": [{"filter_coefficient": value} for value in taps[1, 1, p, 2:6]]} for p in range(32)]  # fmt: skip
            sets = {"filter_coefficient": items[:17], "filter_coefficient_from_17": items[17:]}
            self.put(self.state, STATES + index * 2048, layout("SAMPLER_STATE_8X8_AVS", self.gen).pack(**sets, **switches))
            return
        names = (("table_0x", 0, 0), ("table_0y", 0, 1), ("table_1x", 1, 0), ("table_1y", 1, 1))
        first = [{name: [{"filter_coefficient": tap} for tap in taps[table, axis, p]] for name, table, axis in names} for p in range(17)]
        own = {name: switches.pop(name) for name in ("ief_bypass", "disable_8x8_filter") if name in switches}
        record = layout("SAMPLER_STATE_8X8", self.gen).pack(**{"ief_bypass": 1, **own}, sampler_8x8_state_pointer=COEFFICIENTS)
        self.put(self.state, STATES + index * 16, record)
        self.put(self.state, COEFFICIENTS, layout("SAMPLER_8X8_STATE", self.gen).pack(filter_coefficient=first, **switches))

    def sample(self, u: float, v: float, step: tuple[float, float], channels: int = RED | GREEN | BLUE, block: int = 0, sampler: int = 0,
               control: int = 0, bits: int = 1 << 27, second: tuple[float, float] = (0, 0)) -> Array:  # fmt: skip
        """The words of each channel, in 4 rows of 16."""
        head = np.array([0, 0, (~channels & 15) << 12 | control << 18, 0, 0, 0, 0, 0], np.uint32)
        places = struct.pack("<fIfffffI", second[1], block, u, v, *step, second[0], bits)
        count, before = bin(channels).count("1"), self.compiled
        found = self.send("sample_8x8", head, np.frombuffer(places, np.uint8), answer=4 * count, sampler_index=sampler, simd_mode=3,
                          binding_table_index=0, header_present=1)  # fmt: skip
        assert self.compiled == before + 1, "scaler.c gave the same words"
        return found.view(np.uint16).reshape(count, 4, 16)

    def plane(self, letter: str) -> Array:
        rows: Array = self.data.array.reshape(ROWS, PITCH).astype(int)
        width, height = self.picture
        if letter == "g":
            return rows[:height, :width]
        return rows[CHROMA : CHROMA + height // 2, "br".index(letter) : width : 2]

    def expected(self, letter: str, xs: Array, ys: Array, table: int) -> Array:
        """Sums over taps at places in samples of the plane, in 256ths."""
        plane, found = self.plane(letter), np.zeros((len(ys), len(xs)))
        for j, y in enumerate(np.floor(ys * 32 + 1e-6).astype(int)):
            for i, x in enumerate(np.floor(xs * 32 + 1e-6).astype(int)):
                across, down = self.tables[table, 0, x % 32], self.tables[table, 1, y % 32]
                at_x = np.clip(x // 32 - 3 + np.arange(8), 0, plane.shape[1] - 1)
                at_y = np.clip(y // 32 - 3 + np.arange(8), 0, plane.shape[0] - 1)
                found[j, i] = down @ plane[np.ix_(at_y, at_x)] @ across // 16
        return np.clip(found, 0, 0xFFFF)


@pytest.mark.parametrize("gen", GENS)
@pytest.mark.parametrize("block", [0, 2])
def test_each_channel_is_the_sum_over_its_taps(gen: float, block: int) -> None:
    """Eight taps of table 0 for luma, four of table 1 for chroma, 8.8 results; V, Y, U follow one another (public: IGC, AVS)."""
    bench = Scaler(gen)
    first, step = (3 / 40 + 1 / 128, -2 / 30), (0.75 / 40, 0.375 / 30)
    found = bench.sample(*first, step, block=block)
    xs, ys = (first[0] + step[0] * np.arange(16)) * 40, (first[1] + step[1] * (4 * block + np.arange(4))) * 30
    assert np.array_equal(found[1], bench.expected("g", xs, ys, 0))
    for number, letter in ((0, "r"), (2, "b")):
        assert np.array_equal(found[number], bench.expected(letter, xs / 2, ys / 2, 1))


@pytest.mark.parametrize("gen", GENS)
@pytest.mark.parametrize("width", [40, 97])
def test_one_to_one_is_the_identity(gen: float, width: int) -> None:
    bench = Scaler(gen, size=(width, 30))
    found = bench.sample(5 / width, 7 / 30, (1 / width, 1 / 30), GREEN)
    assert np.array_equal(found[0], bench.plane("g")[7:11, 5:21] << 8)


@pytest.mark.parametrize("gen", GENS)
def test_constants_stay_for_every_phase(gen: float) -> None:
    bench = Scaler(gen)
    bench.data.array[:] = 201
    for start in range(0, 32, 16):
        found = bench.sample(start / 32 / 40, 3 / 30, (1 / 32 / 40, 1 / 32 / 30))
        assert (found == 201 << 8).all()


@pytest.mark.parametrize("gen", [9, 11])
def test_shuffled_answers_have_the_left_half_of_all_channels_first(gen: float) -> None:
    """shuffle_output_writeback (KBL 21747)."""
    place = (2 / 40, 2 / 30, (0.5 / 40, 0.5 / 30))
    plain = Scaler(gen).sample(*place)
    mixed = Scaler(gen, shuffle_output_writeback=1).sample(*place)
    expected = np.concatenate([plain[:, :, :8].ravel(), plain[:, :, 8:].ravel()])
    assert np.array_equal(mixed.ravel(), expected)


def test_the_second_derivative_bends_the_row() -> None:
    bench = Scaler(9)
    number = np.arange(16)
    found = bench.sample(0.1, 0.1, (0.5 / 40, 0.5 / 30), GREEN, second=(1 / 16 / 40, 1 / 8 / 30))
    xs = (np.float32(0.1) + np.float64(np.float32(0.5 / 40)) * number + np.float64(np.float32(1 / 640)) * number * (number - 1) / 2) * 40
    rows = number[:4]
    ys = (np.float32(0.1) + np.float64(np.float32(0.5 / 30)) * rows + np.float64(np.float32(1 / 240)) * rows * (rows - 1) / 2) * 30
    expected = bench.expected("g", np.floor(xs * 512 + 0.5) / 512, np.floor(ys * 512 + 0.5) / 512, 0)
    assert np.array_equal(found[0], expected)


@pytest.mark.parametrize("gen", [7, 9])
def test_without_sharpness_the_filter_is_bilinear(gen: float) -> None:
    """Half of it mixes both: our reading of default_sharpness_level (KBL 22075)."""
    place = (2 / 40, 2 / 30, (0.3125 / 40, 0.3125 / 30), GREEN)
    sharp, half, soft = (Scaler(gen, default_sharpness_level=level).sample(*place)[0].astype(int) for level in (255, 128, 0))
    xs, ys = 2 + 0.3125 * np.arange(16), 2 + 0.3125 * np.arange(4)
    plane, (x, y) = Scaler(gen).plane("g"), np.meshgrid(xs, ys)
    left, top = x.astype(int), y.astype(int)
    right, down = x - left, y - top
    mean = (plane[top, left] * (1 - right) + plane[top, left + 1] * right) * (1 - down)
    mean += (plane[top + 1, left] * (1 - right) + plane[top + 1, left + 1] * right) * down
    assert np.abs(soft / 256 - mean).max() <= 1
    inner = (sharp > 0) & (sharp < 0xFFFF)
    assert np.abs(half - (sharp * 128 + soft * 127) / 255)[inner].max() <= 1


@pytest.mark.parametrize("eight", [0, 2])
def test_chroma_takes_eight_taps_where_the_state_says_so(eight: int) -> None:
    """enable_8_tap_filter (KBL 21657-21694)."""
    bench = Scaler(9, enable_8_tap_filter=eight)
    found = bench.sample(0.25, 0.25, (0.75 / 40, 0.75 / 30), BLUE)
    xs, ys = (0.25 + 0.75 / 40 * np.arange(16)) * 20, (0.25 + 0.75 / 30 * np.arange(4)) * 15
    assert np.array_equal(found[0], bench.expected("b", xs, ys, 0 if eight else 1))


def test_adaptive_filtering_softens_where_neighbours_differ_by_more_than_the_limit() -> None:
    """Our reading of the derivatives and their transition (KBL 22081-22131): flat parts are sharp, steps are bilinear."""
    limits = {"max_derivative_4_pixels": 40, "max_derivative_8_pixels": 40}
    switches = {"bypass_x_adaptive_filtering": 0, "bypass_y_adaptive_filtering": 0}
    place = (8 / 40, 8 / 30, (0.25 / 40, 0.25 / 30), GREEN)
    found = []
    states: list[dict[str, Any]] = [{}, {**limits, **switches}, {"default_sharpness_level": 0}]
    for more in states:
        bench = Scaler(9, **more)
        rows = bench.data.array.reshape(ROWS, PITCH)
        rows[:] = np.arange(PITCH) % 7 * 3
        rows[:, 12:] += 160
        found.append(bench.sample(*place)[0].astype(int))
    sharp, adaptive, soft = found
    assert np.array_equal(adaptive[:, 12:], soft[:, 12:]), "around the step"
    assert not np.array_equal(adaptive, sharp)
    calm = Scaler(9, **states[1])
    calm.data.array[:] = np.arange(PITCH * ROWS) % PITCH // 8
    still = Scaler(9)
    still.data.array[:] = calm.data.array
    assert np.array_equal(calm.sample(*place), still.sample(*place))


@pytest.mark.parametrize("name, letters", [("r8b8_unorm", {RED: 0, BLUE: 1}), ("ycrcb_normal", {GREEN: 0, BLUE: 1, RED: 3}),
                                           ("r8g8b8a8_unorm", {RED: 0, GREEN: 1, BLUE: 2, ALPHA: 3})])  # fmt: skip
def test_formats_have_their_channels_where_they_belong(name: str, letters: dict[int, int]) -> None:
    bench = Scaler(9, name)
    rows = bench.data.array.reshape(ROWS, PITCH).astype(int)
    for channel, offset in letters.items():
        packed_luma = name.startswith("ycrcb") and channel == GREEN
        step = 2 if packed_luma else len(letters) + (name == "ycrcb_normal")
        wide = 2 if name.startswith("ycrcb") and channel != GREEN else 1
        found = bench.sample(4 / 40, 3 / 30, (1 / 40, 1 / 30), channel)
        columns = offset + step * (4 + np.arange(0, 16, wide)) // wide if wide == 1 else offset + step * (2 + np.arange(8))
        assert np.array_equal(found[0][:, ::wide], rows[3:7, columns] << 8)


def test_what_a_format_lacks_is_zero_and_alpha_is_one() -> None:
    found = Scaler(9, "y8_unorm").sample(0, 0, (1 / 40, 1 / 30), RED | GREEN | ALPHA)
    assert not found[0].any() and (found[2] == 0xFF00).all()


def test_indices_of_states_count_their_units() -> None:
    """2048 bytes from Gen8 on, 16 before."""
    for gen in (7.5, 9):
        found = Scaler(gen, sampler=1).sample(0.1, 0.1, (0.5 / 40, 0.5 / 30), GREEN, sampler=1)
        assert np.array_equal(found, Scaler(gen).sample(0.1, 0.1, (0.5 / 40, 0.5 / 30), GREEN))


@pytest.mark.parametrize("more, text", [
    ({"bits": 1 << 27 | 1 << 28}, "function convolve"), ({"bits": 1 << 27 | 4 << 28}, "function erode"),
    ({"bits": 1 << 27 | 2 << 25}, "16x8 pixels"), ({"control": 1}, "chroma halved"), ({"control": 2}, "8 bits"),
])  # fmt: skip
def test_other_functions_are_refused_by_name(more: dict[str, Any], text: str) -> None:
    with pytest.raises(Unsupported, match=text):
        Scaler(9).sample(0, 0, (1 / 40, 1 / 30), **more)


def test_edge_enhancement_is_refused_unless_bypassed() -> None:
    for bits in (0, 1 << 27):
        bench = Scaler(7, ief_bypass=0)
        if bits:
            bench.sample(0, 0, (1 / 40, 1 / 30), bits=bits)
            continue
        with pytest.raises(Unsupported, match="edge enhancement"):
            bench.sample(0, 0, (1 / 40, 1 / 30), bits=bits)


def test_bad_input_is_refused() -> None:
    with pytest.raises(DecodeError, match="no numbers"):
        Scaler(9).sample(float("nan"), 0, (1 / 40, 1 / 30))
    with pytest.raises(DecodeError, match="no numbers"):
        Scaler(9).sample(1e30, 0, (1 / 40, 1 / 30))
    with pytest.raises(GpuFault):
        Scaler(9, surface={"surface_base_address": 0x7000000}).sample(0, 0, (1 / 40, 1 / 30))
    with pytest.raises(Unsupported, match="rotation"):
        Scaler(9, surface={"rotation": 1}).sample(0, 0, (1 / 40, 1 / 30))
    with pytest.raises(Unsupported, match="top_field"):
        Scaler(9, surface={"picture_structure": 1}).sample(0, 0, (1 / 40, 1 / 30))
