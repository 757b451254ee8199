"""Draws to targets of several samples, from commands to memory: coverage, colours, depth, threads, control surfaces."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from softgen.lanes.numpy.machine import NumpyMachine
from softgen.lanes.types import f32, u32
from softgen.shared_functions.pixel_backend.sample_write import covered_by_alpha
from softgen.surface import samples
from tests.conftest import every
from tests.three_d.own_draw import ATTRIBUTE, DATA, DEPTH, TARGET, TRIANGLES, Drawn, OwnDraw, pixel_shader, send, vertex
from tests.three_d.pixels.test_clears import detiled
from tests.three_d.test_forced_samples import GROUPS, covered, sixteenths

GPUS = ["bdw", "kbl", "icl"]
CODE = {1: 0, 2: 1, 4: 2, 8: 3, 16: 4}
TRIANGLE = [(1.25, 2.5), (14.0, 3.0), (4.75, 13.125)]  # clockwise
SIDE, Y_MAJOR = 16, 3
M = NumpyMachine()
READ = 0xD << 14 | 1 << 8  # a render target read of eight channels
UINTS = ("g100<8,8,1>", *ATTRIBUTE[1:])


def state_of(count: int, places: list[tuple[int, int]], **more: Any) -> dict[str, Any]:
    """State of a draw to so many samples; `more` adds fields to commands."""
    held = [{"x_offset": x / 16, "y_offset": y / 16} for x, y in places]
    size = count // len(GROUPS[count])
    state = {"3DSTATE_RASTER": {"cull_mode": 1, "dx_multisample_rasterization_enable": 1},
             "3DSTATE_MULTISAMPLE": {"number_of_multisamples": CODE[count]},
             "3DSTATE_SAMPLE_PATTERN": {name: held[size * n : size * (n + 1)] for n, name in enumerate(GROUPS[count])},
             "3DSTATE_VF_TOPOLOGY": {"primitive_topology_type": TRIANGLES}, "3DSTATE_SAMPLE_MASK": {"sample_mask": 0xFFFF},
             "RENDER_SURFACE_STATE": {"tile_mode": Y_MAJOR, "number_of_multisamples": CODE[count], "surface_qpitch": 8}}  # fmt: skip
    return {**state, **{name: {**state.get(name, {}), **fields} for name, fields in more.items()}}


def drawn(gpu: str, count: int, engine: str = "t0", ps: str = "", corners: Any = None, format: str = "R8G8B8A8_UNORM", patch: Any = None,
          **more: Any) -> Drawn:  # fmt: skip
    state = state_of(count, sixteenths(count), **more)
    given = corners or [vertex(x, y) for x, y in TRIANGLE]
    return OwnDraw(gpu, given, state, ps=ps or pixel_shader(), format=format, pitch=128, patch=patch or {}).run(engine)


def slices(found: Drawn, count: int, size: int = 4) -> Any:
    """The texels of each sample's slice: slices are 32 rows of tiles apart."""
    data = found.space.read(TARGET, 128 * 32 * count)
    return detiled(data, "y_major", 128, SIDE, 32 * count, size).reshape(count, 32, SIDE)[:, :SIDE]


def masks(count: int, counted: int = 0xFFFF) -> Any:
    """The samples of each pixel that the triangle covers."""
    found = np.zeros((SIDE, SIDE), np.uint32)
    for y in range(SIDE):
        for x in range(SIDE):
            found[y, x] = sum(covered(TRIANGLE, x + px / 16, y + py / 16) << n
                              for n, (px, py) in enumerate(sixteenths(count)) if counted >> n & 1)  # fmt: skip
    return found


def at_samples(values: Any, count: int) -> Any:
    """Bits of masks by sample."""
    return np.array([values >> n & 1 for n in range(count)]).astype(bool)


@pytest.mark.behaviour("BDW-WM-01", "BDW-WM-02", "KBL-SAMP-27", shows="action")
@pytest.mark.parametrize(("gpu", "count", "engine"), every(3, [
    *((gpu, count, "t0") for gpu in GPUS for count in (2, 4, 8, 16) if (gpu, count) != ("bdw", 16)), ("kbl", 4, "t1"), ("bdw", 2, "t1"),
    ("kbl", 2, "reference")]))  # fmt: skip
def test_each_sample_that_is_covered_gets_the_colour(gpu: str, count: int, engine: str) -> None:
    """A thread runs for a pixel; the mask leaves samples out."""
    for mask in (0xFFFF, 0b0110) if engine == "t0" else (0xFFFF,):
        found = drawn(gpu, count, engine, **{"3DSTATE_SAMPLE_MASK": {"sample_mask": mask}})
        wanted = masks(count, mask)
        np.testing.assert_array_equal(slices(found, count), np.where(at_samples(wanted, count), 0xFFFFFFFF, 0))
        assert found.register("PS_INVOCATION_COUNT") == (4 if gpu == "bdw" else 1) * (wanted != 0).sum()
        assert found.register("PS_DEPTH_COUNT") == sum(int(value).bit_count() for value in wanted.flat)


@pytest.mark.behaviour("BDW-WM-04", shows="action")
@pytest.mark.parametrize("gpu", GPUS)
def test_without_multisample_rasterization_all_samples_are_where_the_pixel_is(gpu: str) -> None:
    found = slices(drawn(gpu, 4, **{"3DSTATE_RASTER": {"dx_multisample_rasterization_enable": 0}}), 4)
    pixel = np.array([[covered(TRIANGLE, x + 0.5, y + 0.5) for x in range(SIDE)] for y in range(SIDE)])
    np.testing.assert_array_equal(found, np.broadcast_to(np.where(pixel, 0xFFFFFFFF, 0), found.shape))


@pytest.mark.parametrize(("gpu", "count", "engine"), every(3, [
    ("bdw", 4, "t0"), ("kbl", 2, "reference"), ("kbl", 2, "t1"), ("kbl", 4, "t0"),
    ("kbl", 8, "t0"), ("kbl", 16, "t0"), ("icl", 4, "reference"), ("icl", 4, "t1")]))  # fmt: skip
def test_a_write_to_a_clear_pixel_gives_its_other_samples_the_clear_colour(gpu: str, count: int, engine: str) -> None:
    """Where the control surface has ones; it then says of each sample that its own slice has it. Other pixels stay as they are."""
    size = {2: 1, 4: 1, 8: 4, 16: 8}[count]
    clear = {"red_clear_color": 1} if gpu == "bdw" else {"red_clear_color": 0x3F800000}
    patch = {DATA: b"\xff" * 0x4000}
    if gpu == "icl":
        clear = {"clear_value_address_enable": 1, "clear_value_address": DATA + 0x8000}
        patch[DATA + 0x8000] = np.array([1, 0, 0, 0], np.float32).tobytes()
    aux = {"auxiliary_surface_mode": 1, "auxiliary_surface_base_address": DATA | 0xFFFF << 48, "auxiliary_surface_qpitch": 8}
    found = drawn(gpu, count, engine, patch=patch, RENDER_SURFACE_STATE={**aux, **clear})
    assert found.targets[-1].control is not None and found.targets[-1].control.base == DATA  # bits that no address has mean nothing
    lit = masks(count)
    wanted = np.where(at_samples(lit, count), 0xFFFFFFFF, np.where(lit != 0, 0x000000FF, 0))
    np.testing.assert_array_equal(slices(found, count), wanted)
    own = sum(value << 32 * n for n, value in enumerate(samples.identity(count)))
    control = detiled(found.space.read(DATA, 0x1000), "y_major", 128, SIDE, SIDE, size)
    wanted = np.where(lit != 0, np.uint64(own), np.uint64((1 << 8 * size) - 1))
    np.testing.assert_array_equal(control.astype(np.uint64), wanted)


@pytest.mark.parametrize("engine", ["reference", "t0"])
def test_other_control_values_are_expanded(engine: str) -> None:
    """All samples in slice 2: its value goes to the samples that are not covered."""
    aux = {"auxiliary_surface_mode": 1, "auxiliary_surface_base_address": DATA, "auxiliary_surface_qpitch": 8}
    patch = {DATA: b"\xaa" * 0x1000, TARGET + 2 * 0x1000: b"\x11\x22\x33\x44" * 0x400}
    found = slices(drawn("kbl", 4, engine, patch=patch, RENDER_SURFACE_STATE=aux), 4)
    lit = masks(4)
    wanted = np.where(at_samples(lit, 4), 0xFFFFFFFF, np.where(lit != 0, 0x44332211, 0))
    wanted[2] = np.where(at_samples(lit, 4)[2], 0xFFFFFFFF, 0x44332211)
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("gpu", GPUS)
def test_blending_is_of_each_sample(gpu: str) -> None:
    """Half of what the slice held is added."""
    held = {TARGET + 0x1000 * n: bytes([40 * n + 20] * 0x1000) for n in range(4)}
    half = {"color_buffer_blend_enable": 1, "source_blend_factor": 1, "destination_blend_factor": 0x8, "color_blend_function": 0,
            "source_alpha_blend_factor": 1, "destination_alpha_blend_factor": 0x8}  # fmt: skip
    found = slices(drawn(gpu, 4, patch=held, corners=[vertex(x, y, attribute=(0.125, 0.25, 0, 0.5)) for x, y in TRIANGLE],
                         BLEND_STATE={"render_target": [half]}, COLOR_CALC_STATE={f"blend_constant_color_{name}": 0x3F000000 for name
                                            in ("red", "green", "blue", "alpha")}), 4)  # fmt: skip
    lit = at_samples(masks(4), 4)
    for n in range(4):
        was = 40 * n + 20
        assert (found[n][~lit[n]] == was * 0x01010101).all()
        red = np.unique(found[n][lit[n]] & 0xFF)
        assert len(red) == 1 and abs(int(red[0]) - (0.125 * 255 + was / 2)) <= 1


# -- threads ---------------------------------------------------------------------------------------------------------------


EACH = {"pixel_shader_valid": 1, "attribute_enable": 1, "pixel_shader_is_per_sample": 1}


def shown(register: str) -> str:
    """A shader whose red is words of a register, as integers."""
    return pixel_shader(UINTS, before=f"mov(8) g100<1>UD {register}UW {{ align1 1Q }};").replace(">F", ">UD")


@pytest.mark.behaviour("BDW-PS-03", "BDW-PS-04", shows="action")
@pytest.mark.parametrize(("gpu", "count", "engine"), [("bdw", 4, "t0"), ("bdw", 8, "t1"), ("kbl", 2, "reference"), ("kbl", 4, "t0"),
                                                      ("kbl", 16, "t0"), ("icl", 8, "t0")])  # fmt: skip
def test_threads_of_samples(gpu: str, count: int, engine: str) -> None:
    """Each sample is shaded by itself: the payload has its place in the pixel, and which it is (four bits for four channels)."""
    lit, places = at_samples(masks(count), count), sixteenths(count)
    found = drawn(gpu, count, engine, shown("g2<8,8,1>"), format="R32_UINT",
                  **{"3DSTATE_PS_EXTRA": EACH, "3DSTATE_PS": {"position_xy_offset_select": 3}})  # fmt: skip
    place = np.array([x | y << 8 for x, y in places])[:, None, None]
    np.testing.assert_array_equal(slices(found, count), np.where(lit, place, 0))
    assert found.register("PS_INVOCATION_COUNT") == (4 if gpu == "bdw" else 1) * lit.sum()
    ids = slices(drawn(gpu, count, engine, shown("g1<0,1,0>"), format="R32_UINT", **{"3DSTATE_PS_EXTRA": EACH}), count)
    for n in range(count):
        assert (ids[n][lit[n]] == (n & ~1 | (n | 1) << 4)).all() and not ids[n][~lit[n]].any()


@pytest.mark.behaviour("BDW-PS-03", shows="action")
@pytest.mark.parametrize("gpu", GPUS)
def test_threads_of_pixels_know_their_coverage_and_centroids(gpu: str) -> None:
    """A centroid is in the pixel's middle if all samples are covered, else at the first that is (BDW 8834-8838)."""
    lit, places = masks(4), sixteenths(4)
    extra = {"pixel_shader_valid": 1, "attribute_enable": 1, "input_coverage_mask_state": 1}
    coverage = pixel_shader(("g2<8,8,1>", *ATTRIBUTE[1:])).replace(">F", ">UD")
    found = slices(drawn(gpu, 4, "t0", coverage, format="R32_UINT", **{"3DSTATE_PS_EXTRA": extra}), 4)
    np.testing.assert_array_equal(found, np.where(at_samples(lit, 4), lit, 0))
    found = slices(drawn(gpu, 4, "t0", shown("g2<8,8,1>"), format="R32_UINT", **{"3DSTATE_PS": {"position_xy_offset_select": 2}}), 4)
    for y, x in zip(*np.nonzero(lit), strict=True):
        first = (int(lit[y, x]) & -int(lit[y, x])).bit_length() - 1
        wanted = (8, 8) if lit[y, x] == 15 else places[first]
        assert {int(found[n, y, x]) for n in range(4) if lit[y, x] >> n & 1} == {wanted[0] | wanted[1] << 8}


@pytest.mark.behaviour("BDW-WM-07", "BDW-PS-03", shows="action")
@pytest.mark.parametrize(("mode", "number"), [("pixel", 0), ("centroid", 2), ("sample", 3)])
@pytest.mark.parametrize("value", ["z", "w"])
def test_depth_and_w_are_those_of_a_place(mode: str, number: int, value: str) -> None:
    """The pixel's middle, its centroid, or each sample's own place (BDW 13499-13528); both have another slope in x than in y."""
    lit, places = at_samples(masks(4), 4), sixteenths(4)
    corners = [vertex(x, y, z=x / 32 + y / 64, w=1 + x / 16 + y / 32) for x, y in TRIANGLE]  # w: 1/W
    extra = {"pixel_shader_valid": 1, "attribute_enable": 1, f"pixel_shader_uses_source_{'depth' if value == 'z' else 'w'}": 1}
    more = EACH if mode == "sample" else {}
    ps = pixel_shader(["g2<8,8,1>", *ATTRIBUTE[1:]])
    state = {"3DSTATE_PS_EXTRA": {**extra, **more}, "3DSTATE_WM": {"position_zw_interpolation_mode": number}}
    found = slices(drawn("bdw", 4, "t0", ps, corners, format="R32_FLOAT", **state), 4).astype(np.uint32).view(np.float32)
    for n, y, x in zip(*np.nonzero(lit), strict=True):
        covered_here = [at for at in range(4) if lit[at, y, x]]
        middle = mode == "pixel" or mode == "centroid" and len(covered_here) == 4
        right, down = (8, 8) if middle else places[n if mode == "sample" else covered_here[0]]
        at = x + right / 16, y + down / 16
        wanted = at[0] / 32 + at[1] / 64 if value == "z" else 1 / (1 + at[0] / 16 + at[1] / 32)
        assert found[n, y, x] == pytest.approx(wanted, rel=1e-5)


# -- masks of shaders --------------------------------------------------------------------------------------------------------


@pytest.mark.behaviour("BDW-PS-07", shows="action")
@pytest.mark.parametrize(("gpu", "engine"), [("bdw", "t0"), ("kbl", "reference"), ("kbl", "t0"), ("icl", "t1")])
def test_an_output_mask_leaves_samples_out(gpu: str, engine: str) -> None:
    """A word for each channel, a bit for each sample."""
    shader = pixel_shader(("g100<8,8,1>", *ATTRIBUTE), before="mov(8) g100<1>UW 0xfff5UW { align1 1Q };")
    extra = {"pixel_shader_valid": 1, "attribute_enable": 1, "omask_present_to_render_target": 1}
    found = slices(drawn(gpu, 4, engine, shader, **{"3DSTATE_PS_EXTRA": extra}), 4)
    np.testing.assert_array_equal(found, np.where(at_samples(masks(4) & 0b0101, 4), 0xFFFFFFFF, 0))


@pytest.mark.behaviour("KBL-BLEND-07", shows="action")
@pytest.mark.parametrize("engine", ["reference", "t0"])
def test_with_an_output_mask_alpha_decides_nothing(engine: str) -> None:
    """Shaders make the mask of alpha too, as writes to other targets lack source 0's."""
    shader = pixel_shader(("g100<8,8,1>", *ATTRIBUTE), before="mov(8) g100<1>UW 0x0005UW { align1 1Q };")
    extra = {"pixel_shader_valid": 1, "attribute_enable": 1, "omask_present_to_render_target": 1}
    corners = [vertex(x, y, attribute=(1, 1, 1, 0)) for x, y in TRIANGLE]
    found = drawn("kbl", 4, engine, shader, corners, **{"3DSTATE_PS_EXTRA": extra, "BLEND_STATE": {"alpha_to_coverage_enable": 1,
                                                                                                  "render_target": [{}]}})  # fmt: skip
    np.testing.assert_array_equal(slices(found, 4), np.where(at_samples(masks(4) & 0b0101, 4), 0x00FFFFFF, 0))


@pytest.mark.behaviour("KBL-RT-01", "KBL-RT-09", shows="action")
@pytest.mark.parametrize("engine", ["reference", "t0"])
@pytest.mark.parametrize("gpu", ["kbl", "icl"])
def test_threads_of_samples_read_their_own_samples(gpu: str, engine: str) -> None:
    """What a read returns is written back, one more: of each channel its own sample, and the clear colour where nothing was written."""
    read = send(READ | 1 << 13, 1, 4, source=100, to="g104<1>UD", eot=False, opcode="sendc")
    before = "\n".join(["mov(8) g100<1>UD 0x0UD { align1 1Q };", read, "add(8) g104<1>UD g104<8,8,1>UD 0x1UD { align1 1Q };"])
    shader = pixel_shader([f"g{104 + n}<8,8,1>" for n in range(4)], before).replace(">F", ">UD")
    patch = {TARGET + 0x1000 * n: int(100 + n).to_bytes(4, "little") * 0x400 for n in range(4)}
    patch[DATA] = b"\xff" * 0x10 + b"\xe4" * 0xFF0  # columns 0 to 15 of the first row of pixels are clear, in tiles of 16 bytes across
    aux = {"auxiliary_surface_mode": 1, "auxiliary_surface_base_address": DATA, "auxiliary_surface_qpitch": 8, "red_clear_color": 7}
    corners = [vertex(x, y - 2) for x, y in TRIANGLE]
    found = slices(drawn(gpu, 4, engine, shader, corners, "R32_UINT", patch, **{"3DSTATE_PS_EXTRA": EACH, "RENDER_SURFACE_STATE": aux}), 4)
    lit = at_samples(np.vstack([masks(4)[2:], np.zeros((2, SIDE), np.uint32)]), 4)
    for n in range(4):
        held = np.full((SIDE, SIDE), 100 + n)
        held[0, lit[:, 0].any(0)] = 7
        np.testing.assert_array_equal(found[n], held + lit[n])


@pytest.mark.behaviour("KBL-BLEND-07", shows="action")
def test_patterns_of_alpha_grow_from_none_to_all() -> None:
    alphas = np.linspace(-0.25, 1.25, 1201, dtype=np.float32)
    for part in np.array_split(alphas, 48):
        found = covered_by_alpha(M, M.value(f32, part)).payload & 0xFFFF
        for count in (2, 4, 8, 16):
            low = np.array([int(value) & (1 << count) - 1 for value in found])
            assert all((a & ~b) == 0 or int(a).bit_count() <= int(b).bit_count() for a, b in pairwise(low))
            shares = np.array([int(value).bit_count() / count for value in low])
            assert (np.abs(shares - np.clip(part, 0, 1)) <= 1 / min(count, 16) + 1 / 16).all()
            assert (low[part <= 0] == 0).all() and (low[part >= 1] == (1 << count) - 1).all()


@pytest.mark.behaviour("KBL-BLEND-07", "KBL-BLEND-08", "BDW-PS-07", shows="action")
@pytest.mark.covering(1)
@pytest.mark.parametrize(("gpu", "engine"), [("bdw", "t0"), ("kbl", "t0"), ("icl", "t1")])
@pytest.mark.parametrize("alpha", [0.0, 0.3, 0.8, 1.0])
def test_alpha_to_coverage_and_to_one(gpu: str, engine: str, alpha: float) -> None:
    """Alpha leaves samples out, then becomes one; a shader may disable the first."""
    blend = {"alpha_to_coverage_enable": 1, "alpha_to_one_enable": 1, "render_target": [{}]}
    pattern = int(covered_by_alpha(M, M.constant(f32, alpha, 1)).payload[0]) & 15
    corners = [vertex(x, y, attribute=(0, 0, 0, alpha)) for x, y in TRIANGLE]
    for disabled in (0, 1):
        extra = {"pixel_shader_valid": 1, "attribute_enable": 1, "pixel_shader_disables_alpha_to_coverage": disabled}
        found = slices(drawn(gpu, 4, engine, corners=corners, **{"BLEND_STATE": blend, "3DSTATE_PS_EXTRA": extra}), 4)
        np.testing.assert_array_equal(found, np.where(at_samples(masks(4) & (15 if disabled else pattern), 4), 0xFF000000, 0))


# -- depth -------------------------------------------------------------------------------------------------------------------


def depths(found: Drawn, count: int) -> Any:
    """The depth of each sample of each pixel, out of an interleaved buffer of rows of 512 bytes."""
    width, height = samples.spread(count, SIDE, SIDE)
    held = detiled(found.space.read(DEPTH, 512 * (-(-height // 32) * 32)), "y_major", 512, width, height).astype(np.uint32).view(np.float32)
    result = np.zeros((count, SIDE, SIDE), np.float32)
    for n in range(count):
        for y in range(SIDE):
            x, row = samples.interleave(M, count, M.lane_index(SIDE), M.constant(u32, y, SIDE), M.constant(u32, n, SIDE))
            result[n, y] = held[row.payload.astype(int), x.payload.astype(int)]
    return result


@pytest.mark.parametrize(("gpu", "count", "engine"), every(2, [
    ("bdw", 4, "t0"), ("kbl", 2, "reference"), ("kbl", 8, "t1"), ("icl", 4, "t0")]))  # fmt: skip
def test_depth_is_tested_and_written_at_samples(gpu: str, count: int, engine: str) -> None:
    """Early and, where the shader may remove pixels, late: the same depths, which are those of the plane at each sample."""
    buffer = {"surface_type": 1, "surface_format": 1, "surface_base_address": DEPTH, "surface_pitch": 511, "width": 15, "height": 15,
              "depth_write_enable": 1}  # fmt: skip
    tests = {"depth_test_enable": 1, "depth_buffer_write_enable": 1, "depth_test_function": 1 + 5}  # greater or equal
    corners = [vertex(x, y, z=0.25 + x / 32 - y / 64) for x, y in TRIANGLE]
    seen, lit = [], at_samples(masks(count), count)
    for kills in (0, 1):
        extra = {"pixel_shader_valid": 1, "attribute_enable": 1, "pixel_shader_kills_pixel": kills}
        found = drawn(gpu, count, engine, corners=corners, **{"3DSTATE_DEPTH_BUFFER": buffer, "3DSTATE_WM_DEPTH_STENCIL": tests,
                                                             "3DSTATE_PS_EXTRA": extra})  # fmt: skip
        assert found.register("PS_DEPTH_COUNT") == lit.sum()
        np.testing.assert_array_equal(slices(found, count), np.where(lit, 0xFFFFFFFF, 0))
        seen.append(depths(found, count))
    np.testing.assert_array_equal(seen[0], seen[1])
    y, x = np.mgrid[:SIDE, :SIDE]
    for n, (px, py) in enumerate(sixteenths(count)):
        wanted = 0.25 + (x + px / 16) / 32 - (y + py / 16) / 64
        np.testing.assert_allclose(seen[0][n][lit[n]], wanted[lit[n]], rtol=1e-5)
        assert not seen[0][n][~lit[n]].any()
