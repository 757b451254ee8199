"""HS, TE and DS in whole draws: payloads, barriers, caches, counters, and what is refused."""

from __future__ import annotations

import struct
from itertools import product
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

from softgen.errors import DecodeError, GpuFault, Unsupported
from tests.three_d.own_draw import CONSTANTS, DATA, TRIANGLES
from tests.three_d.tessellation.patches import (
    LATER,
    Patch,
    Patches,
    all_of,
    domain4x2,
    domain8,
    hull,
    hull8,
    marks_of,
    scalar,
)

THREE = (Patch((3, 2, 4, 1), (2, 3), (7, 8)), Patch((1, 1, 1, 1), (1, 1), (9, 10)), Patch((2.5, 3.5, 1.25, 5), (4.5, 1), (11, 12)))
ENGINES = (("reference", 1), ("t0", 1), ("t0", 3), ("t1", 1), ("t1", 2))
COUNTERS = ("HS_INVOCATION_COUNT", "DS_INVOCATION_COUNT")


def constants(registers: int) -> dict[str, Any]:
    """A stage's push constants."""
    lengths, pointers = (registers, 0, 0, 0), (CONSTANTS, 0, 0, 0)
    return {"read_length": [{"length": n} for n in lengths], "constant_buffer": [{"pointer": at} for at in pointers]}


# -- points and objects ------------------------------------------------------------------------------------------------


@pytest.mark.behaviour("BDW-TE-02", "BDW-TE-05", "BDW-DS-02", "ICL-3D-04", shows="action")
@pytest.mark.covering(1)
@pytest.mark.parametrize(("gpu", "domain", "output", "partitioning"), [
    ("ivb", "quad", "tri_cw", "odd_fractional"), ("ivb", "isoline", "line", "integer"), ("hsw", "tri", "tri_ccw", "even_fractional"),
    ("hsw", "quad", "point", "integer"), ("bdw", "quad", "tri_ccw", "integer"), ("bdw", "isoline", "point", "even_fractional"),
    ("bdw", "tri", "tri_cw", "odd_fractional"), ("kbl", "tri", "point", "integer"), ("kbl", "isoline", "line", "odd_fractional"),
    ("kbl", "quad", "tri_cw", "even_fractional"), ("icl", "tri", "tri_cw", "integer"), ("icl", "quad", "point", "odd_fractional"),
])  # fmt: skip
def test_vertices_are_those_of_the_tessellator(gpu: str, domain: str, output: str, partitioning: str) -> None:
    """In order; each has its patch's data, and PrimitiveIDs count patches."""
    patches = Patches(gpu, THREE, domain, partitioning, output, simd4x2=domain == "tri" and gpu != "icl")
    drawn = patches.run()
    assert drawn.vertices == patches.expected() and len(drawn.words) > 20 and not drawn.remarks
    corners = {"point": 1, "line": 2}.get(output, 3)
    assert drawn.streamed.counts(0) == (len(drawn.words) // corners,) * 2


@pytest.mark.covering(1)
@pytest.mark.parametrize(("gpu", "engine", "threads"), [("hsw", "t0", 3), ("hsw", "reference", 1), *(("kbl", *held) for held in ENGINES)])
def test_the_order_is_that_of_the_patches(gpu: str, engine: str, threads: int) -> None:
    """In every chunk, and whichever threads shade them; chunks begin where patches do."""
    marks = [Patch((1 + n % 4, 2, 3, 2), (2, 1 + n % 3), (n, n / 2)) for n in range(12 if engine == "reference" else 40)]
    patches = Patches(gpu, marks, corners=4, instances=2, barrier=True, hs={"maximum_number_of_threads": 3})
    with patch("softgen.three_d.draw.draw_walk.VERTICES", 50), patch("softgen.three_d.draw.draw_walk.PER_LOOP", 2):
        drawn = patches.run(engine, threads)
    assert drawn.vertices == patches.expected()


@pytest.mark.parametrize("gpu", ["hsw", "icl"])
def test_the_largest_patches(gpu: str) -> None:
    """More vertices than a chunk's; streamed only as far as the buffer goes."""
    patches = Patches(gpu, [Patch((64,) * 4, (64, 64), (n, 0)) for n in range(6)], size=0xF000)
    drawn = patches.run("t1")
    whole = 0xF000 // (3 * 48)
    assert drawn.vertices == patches.expected()[: 3 * whole] and drawn.streamed.counts(0) == (whole, 6 * 64 * 64 * 2)
    assert [drawn.count(name) for name in COUNTERS] == [6, 6 * 65 * 65]


@pytest.mark.behaviour("BDW-TE-03", shows="action")
@pytest.mark.parametrize("gpu", ["hsw", "bdw"])
def test_factors_end_at_the_maxima_of_the_state(gpu: str) -> None:
    most = {"maximum_tessellation_factor_odd": 3.0, "maximum_tessellation_factor_not_odd": 4.0}
    for partitioning, end in (("integer", 4), ("odd_fractional", 3), ("even_fractional", 4)):
        above, there = (Patches(gpu, [Patch((factor,) * 4, (factor, factor))], "quad", partitioning, "point", te=most).run()
                        for factor in (30, end))  # fmt: skip
        assert above.vertices == there.vertices and len(there.vertices) == (end + 1) ** 2


@pytest.mark.behaviour("BDW-TE-02", shows="action")
@pytest.mark.parametrize(("gpu", "wrong"), [("ivb", 0.0), ("kbl", -1.0), ("icl", float("nan"))])
def test_patches_with_a_factor_that_is_not_positive_are_culled(gpu: str, wrong: float) -> None:
    """HS threads run for them, and DS threads do not."""
    patches = Patches(gpu, [THREE[0], Patch((2, wrong, 2, 2), (2, 2)), THREE[2]])
    drawn = patches.run()
    assert drawn.vertices == patches.expected() and {row[3] for row in drawn.vertices} == {0, 2}
    assert drawn.count("HS_INVOCATION_COUNT") == 3


# -- HS ----------------------------------------------------------------------------------------------------------------


@pytest.mark.behaviour("BDW-HS-01", shows="action")
@pytest.mark.parametrize("gpu", ["ivb", "bdw"])
def test_the_three_stages_are_enabled_together(gpu: str) -> None:
    for on in product((0, 1), repeat=3):
        made = Patches(gpu, THREE[:1], state={f"3DSTATE_{stage}": {"enable": n} for stage, n in zip(("HS", "TE", "DS"), on, strict=True)},
                       topology=0 if all(on) else TRIANGLES)  # fmt: skip
        if 0 < sum(on) < 3:
            with pytest.raises(DecodeError, match="must be enabled together"):
                made.run()
        else:
            assert made.run().count("HS_INVOCATION_COUNT") == on[0]


@pytest.mark.behaviour("BDW-HS-02", shows="action")
@pytest.mark.parametrize(("gpu", "engine", "instances"), [("ivb", "t0", 5), ("hsw", "reference", 2), ("bdw", "t1", 16), ("kbl", "t0", 1),
                                                         ("kbl", "reference", 3), ("icl", "t0", 16)])  # fmt: skip
def test_threads_of_a_patch_meet_at_their_barrier(gpu: str, engine: str, instances: int) -> None:
    """Each copies, behind the barrier, what the next one has written before it."""
    rows = -(-(2 + 2 * instances) // 4)
    for pair in {0, instances - 1}:
        patches = Patches(gpu, THREE, output="point", instances=instances, barrier=True, ds={"patch_urb_entry_read_offset": 1 + pair},
                          state={"3DSTATE_URB_HS": {"urb_entry_allocation_size": rows - 1}})  # fmt: skip
        words = patches.run(engine, 2).words.reshape(-1, 3, 4)
        records = [*range(instances), *((n + 1) % instances for n in range(instances))] if instances > 1 else [0]
        for number, held in enumerate(records[2 * pair : 2 * pair + 2]):
            assert {(row[1 + number][0], row[1 + number][1] == row[0][3]) for row in words} == {(held, True)}


@pytest.mark.behaviour("BDW-HS-03", shows="action")
@pytest.mark.parametrize(("gpu", "start"), [("ivb", 4), ("hsw", 31), ("bdw", 9), ("icl", 4)])
def test_constants_and_vertices_are_pushed(gpu: str, start: int) -> None:
    """Constants begin at the register that the state names, and vertices after them: two slots of each, from an offset in pairs of slots.
    Here the first has no attribute, and the last has the marks."""
    gen = Patches(gpu, THREE).gen
    kernel = hull(gen, 3, marks=marks_of(gen, scalar(f"g{start + 3}.0"), scalar(f"g{start}.5")))
    patches = Patches(gpu, THREE, hull=kernel, state={"3DSTATE_CONSTANT_HS": constants(1)},
                      patch={CONSTANTS: struct.pack("<8f", *range(60, 68))},
                      hs={"dispatch_grf_start_register_for_urb_data": start, "vertex_urb_entry_read_length": 1,
                          "vertex_urb_entry_read_offset": 1})  # fmt: skip
    drawn = patches.run()
    assert [row[:7] for row in drawn.vertices] == [row[:7] for row in patches.expected()] and {row[7] for row in drawn.vertices} == {65}


@pytest.mark.behaviour("BDW-HS-03", shows="action")
@pytest.mark.parametrize("gpu", ["hsw", "kbl"])
def test_threads_get_handles_or_data(gpu: str) -> None:
    with pytest.raises(DecodeError, match="threads get nothing of their patch"):
        Patches(gpu, THREE, hs={"include_vertex_handles": 0}).run()


@pytest.mark.behaviour("BDW-HS-03", shows="action")
@pytest.mark.parametrize("gpu", ["ivb", "kbl"])
def test_patches_have_up_to_32_vertices(gpu: str) -> None:
    """Eight handles in a register; the last vertex has the marks."""
    for corners in (2, 9, 32):
        patches = Patches(gpu, THREE, corners=corners)
        assert patches.run().vertices == patches.expected()


@pytest.mark.behaviour("BDW-HS-04", shows="action")
@pytest.mark.parametrize("gpu", ["ivb", "icl"])
def test_objects_that_are_no_patches_go_nowhere(gpu: str) -> None:
    drawn = Patches(gpu, THREE, topology=TRIANGLES).run()
    assert not len(drawn.words) and [drawn.count(name) for name in COUNTERS] == [0, 0]
    assert any("primitive_topology_type 4 has no patches" in remark for remark in drawn.remarks)


@pytest.mark.behaviour("BDW-HS-05", "BDW-DS-08", shows="action")
@pytest.mark.parametrize(("gpu", "hs", "ds"), [("ivb", 1, 0), ("hsw", 0, 1), ("bdw", 0, 0), ("kbl", 1, 0), ("icl", 1, 1)])
def test_stages_count_if_their_state_says_so(gpu: str, hs: int, ds: int) -> None:
    """Patches, whatever their instances are; points that are shaded."""
    patches = Patches(gpu, THREE, hs={"statistics_enable": hs}, ds={"statistics_enable": ds}, instances=3)
    points = sum(len(patches.shape(held).points) for held in THREE)
    assert [patches.run().count(name) for name in COUNTERS] == [3 * hs, points * ds]


SCRATCH = {"scratch_space_base_pointer": DATA + 0x10000, "per_thread_scratch_space": 1}


@pytest.mark.behaviour("BDW-HS-06", shows="action")
@pytest.mark.parametrize("gpu", ["hsw", "bdw", "icl"])
def test_hull_shader_threads_have_scratch_space_of_their_own(gpu: str) -> None:
    """r0.3 has the size, and r0.5 where it is, a thread apart from that of another."""
    patches = Patches(gpu, THREE, hs={**SCRATCH, "maximum_number_of_threads": 7}, output="point")
    patches.hull = hull(patches.gen, 3, marks=marks_of(patches.gen, scalar("g0.3"), scalar("g0.5")))
    words = patches.run().words
    found = {(int(row[3]), int(row[6]), int(row[7]) & ~0x3FF) for row in words}
    assert {size for _, size, _ in found} == {1} and len({place for _, _, place in found}) == 3
    assert all((place - SCRATCH["scratch_space_base_pointer"]) % 2048 == 0 for _, _, place in found)


@pytest.mark.behaviour("BDW-HS-06", shows="action")
@pytest.mark.parametrize(("gpu", "mode"), [("ivb", 1), ("bdw", 0), ("kbl", 1)])
def test_hull_shader_threads_have_the_float_mode_of_their_state(gpu: str, mode: int) -> None:
    """0 times infinity is 0 in the alternate mode."""
    made = Patches(gpu, THREE, hs={"floating_point_mode": mode})
    products = [all_of("g61", "0x7f800000"), "mul(8) g61<1>F g61<8,8,1>F 0F { align1 WE_all 1Q };"]
    made.hull = hull(made.gen, 3, marks=[*products, *marks_of(made.gen, scalar("g61.0"))])
    assert {np.isnan(row[6]) for row in made.run().vertices} == {mode == 0}


@pytest.mark.parametrize(("gpu", "count"), [("kbl", 1), ("kbl", 11), ("icl", 16)])
def test_a_thread_of_eight_patches(gpu: str, count: int) -> None:
    """Patch handles are in r1, PrimitiveIDs in r2 and a register of handles for each vertex after them; a lane for each patch."""
    held = [Patch((1 + n % 3, 2, 1, 2), (1, 1 + n % 4), (n + 0.5, n + 0.25)) for n in range(count)]
    patches = Patches(gpu, held, hs={"dispatch_mode": 2, "include_primitive_id": 1, "dispatch_grf_start_register_for_urb_data": 6})
    patches.hull = hull8(patches.gen, 3, eight=True)
    drawn = patches.run()
    assert drawn.vertices == patches.expected() and drawn.count("HS_INVOCATION_COUNT") == count


def test_threads_of_two_patches_are_refused() -> None:
    with pytest.raises(Unsupported, match="dual_patch"):
        Patches("kbl", THREE, hs={"dispatch_mode": 1}).run()


# -- TE in software ----------------------------------------------------------------------------------------------------

POINTS = [(0.0, 0.0), (0.25, 0.5), (1.0, 0.125), (0.75, 0.75), (0.5, 0.0), (0.0, 1.0), (0.375, 0.625)]


@pytest.mark.behaviour("BDW-TE-06", shows="action")
@pytest.mark.parametrize(("gpu", "domain", "output", "corners"), [("ivb", "quad", "point", 1), ("hsw", "isoline", "line", 2),
                                                                  ("bdw", "tri", "tri_cw", 3), ("bdw", "quad", "point", 1)])  # fmt: skip
def test_points_of_a_software_tessellator_are_in_memory(gpu: str, domain: str, output: str, corners: int) -> None:
    """A patch header has their number and address; without any, the patch is culled. Objects are as many as are whole."""
    class Listed(Patch):
        def header(self, domain: str) -> bytes:
            return struct.pack("<IQ20x", int(self.outer[0]), CONSTANTS + 8 * int(self.outer[1]))

    held = [Listed((7, 0), (), (1, 2)), Listed((0, 0)), Listed((4, 3), (), (3, 4))]
    patches = Patches(gpu, held, domain, output=output, te={"mode": 1}, patch={
        CONSTANTS: b"".join(struct.pack("<2f", *point) for point in POINTS)})  # fmt: skip
    whole = [(0, point, (1, 2)) for point in POINTS[: 7 // corners * corners]]
    whole += [(2, point, (3, 4)) for point in POINTS[3 : 3 + 4 // corners * corners]]
    drawn = patches.run()
    assert drawn.vertices == [[u, v, 1 - (u + v), number, 0, number, *mark] for number, (u, v), mark in whole]
    assert drawn.count("DS_INVOCATION_COUNT") == len(whole)


@pytest.mark.parametrize("address", [0, 0x7FFFF000])
def test_points_that_are_nowhere(address: int) -> None:
    class Listed(Patch):
        def header(self, domain: str) -> bytes:
            return struct.pack("<IQ20x", 3, address)

    with pytest.raises(GpuFault):
        Patches("bdw", [Listed()], te={"mode": 1}).run()


def test_later_generations_have_no_software_tessellator() -> None:
    with pytest.raises(Unsupported, match="sw_tess"):
        Patches("kbl", THREE, te={"mode": 1}).run()


@pytest.mark.parametrize(("domain", "output"), [("quad", "line"), ("tri", "line"), ("isoline", "tri_cw")])
def test_lines_are_of_isolines(domain: str, output: str) -> None:
    with pytest.raises(DecodeError, match="output_topology"):
        Patches("kbl", THREE, domain, output=output).run()


# -- DS ----------------------------------------------------------------------------------------------------------------


@pytest.mark.behaviour("BDW-DS-01", "BDW-DS-03", shows="action")
@pytest.mark.parametrize(("gpu", "output"), [("ivb", "tri_cw"), ("bdw", "point"), ("kbl", "tri_cw"), ("icl", "tri_cw")])
def test_points_that_the_cache_holds_are_shaded_once(gpu: str, output: str) -> None:
    """Points of other patches are others; without a cache, each vertex of an object is shaded by itself."""
    cached, alone = (Patches(gpu, [*THREE, THREE[0]], output=output, ds={"cache_disable": off}) for off in (0, 1))
    points, vertices = sum(len(cached.shape(held).points) for held in cached.patches), len(cached.expected())
    drawn = [made.run() for made in (cached, alone)]
    assert drawn[0].vertices == drawn[1].vertices == cached.expected()
    assert [held.count("DS_INVOCATION_COUNT") for held in drawn] == [points, vertices] and (points < vertices) == (output != "point")


@pytest.mark.behaviour("BDW-DS-02", shows="action")
@pytest.mark.parametrize(("gpu", "mode"), [("bdw", 0), ("bdw", 1), ("kbl", 0), ("kbl", 1), ("kbl", 2), ("icl", 1), ("icl", 2)])
def test_threads_have_two_or_eight_points(gpu: str, mode: int) -> None:
    """Of one patch; where a thread may have points of two, it need not."""
    patches = Patches(gpu, THREE, simd4x2=not mode, ds={"dispatch_mode": mode})
    drawn, lanes = patches.run(), 8 if mode else 2
    assert drawn.vertices == patches.expected()
    points = [len(patches.shape(held).points) for held in THREE]
    assert drawn.streamed.drawn.gpu.counters.threads == 3 + sum(-(-count // lanes) for count in points)


@pytest.mark.behaviour("BDW-DS-02", shows="action")
@pytest.mark.parametrize("gpu", ["ivb", "hsw", "bdw", "kbl"])
def test_a_thread_may_have_a_single_point(gpu: str) -> None:
    patches = Patches(gpu, THREE, simd4x2=True)
    given = patches.gen == 7  # other generations' pages may not have the bit
    patches.ds = {"single_domain_point_dispatch": 1} if given else {}
    drawn = patches.run()
    points = [len(patches.shape(held).points) for held in THREE]
    assert drawn.vertices == patches.expected()
    assert drawn.streamed.drawn.gpu.counters.threads == 3 + sum(count if given else -(-count // 2) for count in points)


@pytest.mark.behaviour("BDW-DS-04", shows="action")
@pytest.mark.parametrize(("gpu", "enable"), [("ivb", 0), ("hsw", 1), ("bdw", 1), ("icl", 0)])
def test_w_is_what_u_and_v_leave(gpu: str, enable: int) -> None:
    patches = Patches(gpu, [Patch((3, 2, 4), (3,))], "tri", "odd_fractional", ds={"compute_w_coordinate_enable": enable})
    whole = [row[2] for row in patches.expected()]
    assert [row[2] for row in patches.run().vertices] == [w if enable else 0 for w in whole] and any(whole)


@pytest.mark.behaviour("BDW-DS-05", shows="action")
@pytest.mark.parametrize(("gpu", "start"), [("ivb", 31), ("kbl", 7), ("icl", 31)])
def test_patch_data_are_pushed_behind_constants(gpu: str, start: int) -> None:
    """From an offset, in pairs of slots, and for as many of them as the state says; past the entry they are undefined."""
    records = [b"".join(struct.pack("<2I2f", n, number, *held.mark) for n in range(3)) for number, held in enumerate(THREE)]
    for offset, length in ((0, 1), (0, 3), (1, 1), (1, 8), (3, 1)):
        patches = Patches(gpu, THREE, output="point", instances=3, patch={CONSTANTS: struct.pack("<16f", *range(60, 76))},
                          state={"3DSTATE_CONSTANT_DS": constants(2), "3DSTATE_URB_HS": {"urb_entry_allocation_size": 2}},
                          ds={"dispatch_grf_start_register_for_urb_data": start, "patch_urb_entry_read_offset": offset,
                              "patch_urb_entry_read_length": length})  # fmt: skip
        last = start + 2 + length - 1
        patches.evaluation = (domain4x2 if patches.simd4x2 else domain8)(patches.gen, last)
        entries = [held.header("quad") + record for held, record in zip(THREE, records, strict=True)]
        at = 32 * (offset + length - 1)
        for row in patches.run().words:
            assert row[4:].tobytes() == entries[row[3]][at : at + 32].ljust(32, b"\0")


@pytest.mark.parametrize("gpu", ["hsw", "bdw"])
def test_constants_of_domain_shaders_are_in_front_of_patch_data(gpu: str) -> None:
    patches = Patches(gpu, THREE, state={"3DSTATE_CONSTANT_DS": constants(1)}, patch={CONSTANTS: struct.pack("<8I", *range(60, 68))})
    words = patches.run().words
    assert words[:, 4:].tolist() == [[*range(60, 68)]] * len(words)


@pytest.mark.behaviour("BDW-DS-07", shows="action")
@pytest.mark.parametrize("gpu", ["ivb", "kbl"])
def test_domain_shader_threads_have_scratch_space_of_their_own(gpu: str) -> None:
    """More threads than there is scratch space for wait for it."""
    patches = Patches(gpu, THREE, output="point", ds={**SCRATCH, "maximum_number_of_threads": 1})
    gen = patches.gen
    patches.evaluation = (domain4x2 if gen < 8 else domain8)(gen, 0)
    words = patches.run().words
    places = {int(row[4 + 5]) & ~0x3FF for row in words}
    assert {int(row[4 + 3]) & 0xF for row in words} == {1} and len(words) > 16
    assert places == {SCRATCH["scratch_space_base_pointer"] + 2048 * n for n in range(2)}


@pytest.mark.behaviour("BDW-DS-07", shows="action")
@pytest.mark.parametrize(("gpu", "mode"), [("hsw", 0), ("hsw", 1), ("icl", 1)])
def test_domain_shader_threads_have_the_float_mode_of_their_state(gpu: str, mode: int) -> None:
    patches = Patches(gpu, THREE[:1], output="point", ds={"floating_point_mode": mode})
    products = [all_of("g61", "0x7f800000"), "mul(8) g61<1>F g61<8,8,1>F 0F { align1 WE_all 1Q };"]
    patches.evaluation = "\n".join([*products, (domain4x2 if patches.gen < 8 else domain8)(patches.gen, 61)])
    assert {np.isnan(row[6]) for row in patches.run().vertices} == {mode == 0}


# -- what comes after --------------------------------------------------------------------------------------------------


@pytest.mark.behaviour("BDW-DS-06", "ICL-3D-04", shows="action")
@pytest.mark.parametrize("gpu", LATER)
def test_the_domain_shader_says_what_later_stages_read(gpu: str) -> None:
    """Where attributes are, and which clip distances count: here they are the same slot. Its threads' vertices are streamed out as well."""
    def drawn(mark: tuple[float, float], **ds: int) -> Any:
        state: dict[str, Any] = {
            "3DSTATE_SBE": {"force_vertex_urb_entry_read_length": 0, "force_vertex_urb_entry_read_offset": 0,
                            "vertex_urb_entry_read_offset": 0},
            "3DSTATE_CLIP": {"clip_enable": 1, "perspective_divide_disable": 0}, "3DSTATE_SF": {"viewport_transform_enable": 1},
            "SF_CLIP_VIEWPORT": {"viewport_matrix_element_m00": 8.0, "viewport_matrix_element_m11": 8.0, "x_max_viewport": 15.0,
                                 "y_max_viewport": 15.0}}  # fmt: skip
        read = {"vertex_urb_entry_output_read_offset": 1, "vertex_urb_entry_output_length": 1}
        found = Patches(gpu, [Patch((1, 1, 1), (1,), mark)], "tri", state=state, unit={"rendering_disable": 0}, ds={**read, **ds})
        found.evaluation = domain8(found.gen).replace("g109<1>UD g0.1<0,1,0>UD", "g109<1>UD 0x3f800000UD")  # w
        drawn = found.run()
        assert len(drawn.words) == 3
        return drawn.streamed.drawn

    shown = drawn((-0.5, 0.25))
    assert shown.lit == {(x, y) for x in range(8) for y in range(8) if x + y < 7}
    assert shown.pixels[2, 3].tolist() == [0, 0, -0.5, 0.25] and shown.register("CL_INVOCATION_COUNT") == 1
    for name in ("user_clip_distance_clip_test_enable_bitmask", "user_clip_distance_cull_test_enable_bitmask"):
        assert not drawn((-0.5, 0.25), **{name: 4}).lit and drawn((0.5, 0.25), **{name: 4}).lit == shown.lit
