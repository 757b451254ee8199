"""TE: points and connectivity of every domain, partitioning and output."""

from __future__ import annotations

import math
import zlib
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import pytest

from softgen.bits import catalogue
from softgen.three_d.tessellation.tessellator import CORNERS, TessellatedDomain, TessellatorPlan, tessellate

DOMAINS, PARTITIONINGS, OUTPUTS = ("quad", "tri", "isoline"), ("integer", "odd_fractional", "even_fractional"), tuple(CORNERS)


def planned(domain: str, partitioning: str = "integer", output: str = "tri_cw", odd: float = 63.0, most: float = 64.0) -> TessellatorPlan:
    return TessellatorPlan(PARTITIONINGS.index(partitioning), OUTPUTS.index(output), DOMAINS.index(domain), odd, most)


def factors(seed: int) -> tuple[list[float], list[float]]:
    """Outer and inner factors from a small generator: a quarter of them whole numbers."""
    word, found = seed * 2654435761 + 12345 & 0xFFFFFFFF, []
    for _ in range(6):
        word = word * 1664525 + 1013904223 & 0xFFFFFFFF
        high = word >> 8
        found.append(float(1 + high % 64) if not high >> 20 & 3 else high % 4225 / 64)
    return found[:4], found[4:]


# How many points and indices 200 patches have, and the checksum of all of them: computed with Direct3D's reference tessellator
# (public: Mesa src/gallium/auxiliary/tessellator).
REFERENCE = [
    ("quad", "integer", "tri_cw", 230589, 1303635, 0xC5031D6D), ("quad", "integer", "tri_ccw", 230589, 1303635, 0x8882225B),
    ("quad", "odd_fractional", "tri_cw", 236874, 1340382, 0xD17E4D4B), ("quad", "odd_fractional", "tri_ccw", 236874, 1340382, 0x7EBB7862),
    ("quad", "even_fractional", "tri_cw", 237218, 1342146, 0x74FB2E80), ("quad", "even_fractional", "tri_ccw", 237218, 1342146, 0xB41DF563),
    ("tri", "integer", "tri_cw", 222272, 1273458, 0xBBB4E92E), ("tri", "integer", "tri_ccw", 222272, 1273458, 0x10EBEF59),
    ("tri", "odd_fractional", "tri_cw", 226500, 1298112, 0x9EF12C98), ("tri", "odd_fractional", "tri_ccw", 226500, 1298112, 0x22407A95),
    ("tri", "even_fractional", "tri_cw", 226882, 1300164, 0xEFFE655F), ("tri", "even_fractional", "tri_ccw", 226882, 1300164, 0xDE142E97),
    ("isoline", "integer", "line", 223968, 434916, 0x409C1385), ("isoline", "odd_fractional", "line", 226640, 440260, 0xA2F24264),
    ("isoline", "even_fractional", "line", 227060, 441100, 0x95815904),
]  # fmt: skip


@pytest.mark.behaviour("BDW-TE-02", shows="action")
@pytest.mark.behaviour("BDW-TE-03", shows="action")
@pytest.mark.parametrize("domain, partitioning, output, points, indices, checksum", REFERENCE)
def test_patches_are_those_of_the_reference(domain: str, partitioning: str, output: str, points: int, indices: int, checksum: int) -> None:
    plan, found, counted = planned(domain, partitioning, output), 0, [0, 0]
    for seed in range(200):
        made = tessellate(plan, *factors(seed))
        found = zlib.crc32(made.indices.tobytes(), zlib.crc32(made.points.tobytes(), found))
        counted = [counted[0] + len(made.points), counted[1] + len(made.indices)]
    assert (*counted, found) == (points, indices, checksum)


# -- by hand ---------------------------------------------------------------------------------------------------------------


def points(made: TessellatedDomain) -> list[tuple[float, float]]:
    return [(float(u), float(v)) for u, v in made.points]


def test_a_quad_of_factors_1_is_two_triangles() -> None:
    made = tessellate(planned("quad"), (1, 1, 1, 1), (1, 1))
    assert points(made) == [(0, 0), (1, 0), (1, 1), (0, 1)] and made.indices.tolist() == [0, 1, 3, 1, 2, 3]


def test_a_triangle_of_factors_1_is_itself() -> None:
    made = tessellate(planned("tri"), (1, 1, 1, 0), (1, 0))
    assert points(made) == [(0, 1), (0, 0), (1, 0)] and made.indices.tolist() == [0, 1, 2]


def test_outer_factors_of_a_quad_divide_their_own_edges() -> None:
    """Edges u = 0, v = 0, u = 1 and v = 1 in the order of the patch header."""
    made = points(tessellate(planned("quad"), (2, 3, 4, 5), (1, 1)))
    assert [sum(1 for u, v in made if at(u, v)) - 1 for at in (lambda u, v: u == 0, lambda u, v: v == 0, lambda u, v: u == 1,
                                                               lambda u, v: v == 1)] == [2, 3, 4, 5]  # fmt: skip


def test_inner_factors_of_a_quad_are_along_u_and_along_v() -> None:
    inside = [(u, v) for u, v in points(tessellate(planned("quad"), (1, 1, 1, 1), (4, 3))) if 0 < u < 1 and 0 < v < 1]
    assert sorted({u for u, _ in inside}) == [0.25, 0.5, 0.75] and len({v for _, v in inside}) == 2


@pytest.mark.behaviour("BDW-TE-04", shows="action")
@pytest.mark.parametrize("partitioning", PARTITIONINGS)
def test_the_density_of_isolines_is_always_an_integer(partitioning: str) -> None:
    """2.25 is 3 lines, at v = 0, 1/3 and 2/3; detail has the partitioning of the state."""
    made = points(tessellate(planned("isoline", partitioning, "line"), (2.25, 2.25, 0, 0), (0, 0)))
    assert sorted({v for _, v in made}) == pytest.approx([0, 1 / 3, 2 / 3], abs=2e-5)
    middle = sorted(u for u, v in made if v == 0)
    assert len(middle) == {"integer": 4, "odd_fractional": 4, "even_fractional": 5}[partitioning]
    if partitioning != "integer":
        assert len({round(b - a, 3) for a, b in pairwise(middle)}) > 1  # the segments that appear are narrower


@pytest.mark.behaviour("BDW-TE-05", shows="action")
def test_outputs_are_points_lines_and_triangles_of_either_winding() -> None:
    outer, inner = (3.5, 2.0, 1.5, 4.0), (3.0, 2.0)
    clockwise, other = (tessellate(planned("quad", output=output), outer, inner) for output in ("tri_cw", "tri_ccw"))
    assert clockwise.indices.reshape(-1, 3)[:, (0, 2, 1)].tolist() == other.indices.reshape(-1, 3).tolist()
    only_points = tessellate(planned("quad", output="point"), outer, inner)
    assert points(only_points) == points(clockwise) and not only_points.indices.size
    lines = tessellate(planned("isoline", output="line"), (2.0, 3.0, 0, 0), (0, 0))
    assert lines.indices.tolist() == [0, 1, 1, 2, 2, 3, 4, 5, 5, 6, 6, 7]


# -- bounds ----------------------------------------------------------------------------------------------------------------


@pytest.mark.behaviour("BDW-TE-03", shows="action")
@pytest.mark.parametrize("partitioning, most", [("integer", 7), ("odd_fractional", 5), ("even_fractional", 7)])
def test_factors_end_at_the_maximum_of_their_partitioning(partitioning: str, most: int) -> None:
    plan = planned("quad", partitioning, odd=5.0, most=7.0)
    assert points(tessellate(plan, [100.0] * 4, [math.inf] * 2)) == points(tessellate(plan, [most] * 4, [most] * 2))


def test_no_factor_goes_beyond_64() -> None:
    """Whatever the state says: arrays have room for that many."""
    made = tessellate(planned("quad", most=1e9), [1e9] * 4, [math.nan, 1e9])
    assert len(made.points) <= 65 * 65 and made.indices.max() < len(made.points)


@pytest.mark.parametrize("wrong", [0.0, -1.0, math.nan, -math.inf])
@pytest.mark.parametrize("domain, outers", [("quad", 4), ("tri", 3), ("isoline", 2)])
def test_a_patch_with_an_outer_factor_that_is_not_positive_is_culled(domain: str, outers: int, wrong: float) -> None:
    for number in range(4):
        outer = [wrong if i == number else 2.0 + i for i in range(4)]
        made = tessellate(planned(domain, output="line" if domain == "isoline" else "tri_cw"), outer, (2.0, 3.0))
        assert bool(len(made.points)) == (number >= outers)


def test_an_inner_factor_that_is_no_number_is_the_least() -> None:
    plan = planned("tri", "even_fractional")
    assert points(tessellate(plan, (3, 3, 3, 0), (math.nan, 0))) == points(tessellate(plan, (3, 3, 3, 0), (2.0, 0)))


# -- properties ------------------------------------------------------------------------------------------------------------


def areas(made: TessellatedDomain) -> np.ndarray:
    a, b, c = (made.points[made.indices[n::3]].astype(np.float64) for n in range(3))
    return ((b[:, 0] - a[:, 0]) * (c[:, 1] - a[:, 1]) - (b[:, 1] - a[:, 1]) * (c[:, 0] - a[:, 0])) / 2


def every(domain: str) -> Iterator[TessellatedDomain]:
    for partitioning in PARTITIONINGS:
        for seed in range(300, 340):
            yield tessellate(planned(domain, partitioning), *factors(seed))


@pytest.mark.parametrize("domain, area", [("quad", 1.0), ("tri", 0.5)])
def test_triangles_cover_the_domain_once(domain: str, area: float) -> None:
    for made in every(domain):
        found = areas(made)
        assert (found >= -1e-9).all() or (found <= 1e-9).all()
        assert abs(found.sum()) == pytest.approx(area, abs=1e-4) if len(made.points) else not made.indices.size


@pytest.mark.parametrize("domain", ["quad", "tri"])
def test_triangles_share_their_edges(domain: str) -> None:
    """Each edge inside belongs to two triangles, in opposite directions; each on the boundary to one."""
    for made in every(domain):
        corners = made.indices.reshape(-1, 3)
        edges = Counter((int(row[a]), int(row[b])) for row in corners for a, b in ((0, 1), (1, 2), (2, 0)))
        assert set(edges.values()) <= {1}
        for a, b in (edge for edge in edges if edge[::-1] not in edges):
            (u0, v0), (u1, v1) = made.points[a].astype(float), made.points[b].astype(float)
            third = domain == "tri" and u0 + v0 == 1.0 == u1 + v1
            assert third or u0 == u1 in (0.0, 1.0) or v0 == v1 in (0.0, 1.0)


def test_edges_that_patches_share_have_the_same_points() -> None:
    """Seen from either side: points are symmetric about the middle, whatever the other factors are."""
    for seed in range(60):
        (first, *others), inner = factors(seed)
        for partitioning in PARTITIONINGS:
            made = [points(tessellate(planned(domain, partitioning), (max(first, 0.1), *rest), inner))
                    for domain in ("quad", "tri") for rest in (others, [7.5, 1.0, 30.0])]  # fmt: skip
            if not all(made):
                continue  # a factor of 0
            edges = [sorted(v for u, v in found if u == 0) for found in made]
            assert edges[0] == edges[1] == edges[2] == edges[3] == sorted(1 - v for v in edges[0])


def test_the_page_codes_what_the_c_code_reads() -> None:
    layout = catalogue.layout("3DSTATE_TE", 9.0)
    assert [dict(layout.field(name).type.values)[n] for name, words in (("partitioning", PARTITIONINGS), ("output_topology", OUTPUTS),
            ("domain", DOMAINS)) for n in range(len(words))] == [*PARTITIONINGS, *OUTPUTS, *DOMAINS]  # fmt: skip
