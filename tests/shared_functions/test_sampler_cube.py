"""Cube maps: faces, edges and corners against a twin that turns texels into directions and back, on both machines."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.shared_functions import mipmaps
from tests.shared_functions.levels import GENERATIONS, LINEAR, limits, sample_l, send, values
from tests.shared_functions.mipmaps import Mipmap, Twin
from tests.shared_functions.sending import DATA
from tests.shared_functions.test_sampler import filters, modes

SIZE = 8
FACE_NAMES = ("positive_x", "negative_x", "positive_y", "negative_y", "positive_z", "negative_z")
FACE_BYTES = 32 * mipmaps.PITCH
ACROSS = 0xFFFFF000  # an address from which on an image crosses 4 GiB
# Of each face, as OpenGL has it: the direction of its middle, of u and of v.
FACES = (((1, 0, 0), (0, 0, -1), (0, -1, 0)), ((-1, 0, 0), (0, 0, 1), (0, -1, 0)), ((0, 1, 0), (1, 0, 0), (0, 0, 1)),
         ((0, -1, 0), (1, 0, 0), (0, 0, -1)), ((0, 0, 1), (1, 0, 0), (0, -1, 0)), ((0, 0, -1), (-1, 0, 0), (0, -1, 0)))  # fmt: skip


def cube(gen: float, seamless: bool = True, levels: int = 1, array: bool = False, **state: Any) -> Mipmap:
    mode = modes("cube") if seamless else modes("clamp")
    return Mipmap(gen=gen, kind="cube", shape=(SIZE, SIZE, 2 if array else 1), levels=levels, array=array, sampler=mode | state)


def direction(face: int, s: float, t: float) -> Any:
    """The direction of a place on a face, from -1 to 1."""
    middle, u, v = (np.array(axis, float) for axis in FACES[face])
    return middle + s * u + t * v


def onto(where: Any) -> tuple[int, float, float]:
    """The face that a direction meets, and the place on it."""
    for face in (4, 5, 2, 3, 0, 1):
        middle, u, v = (np.array(axis, float) for axis in FACES[face])
        if middle @ where == np.abs(where).max():
            return face, u @ where / (middle @ where), v @ where / (middle @ where)
    raise AssertionError


def texel(mipmap: Mipmap, face: int, i: int, j: int, n: int, level: int) -> Any:
    """A texel by its number on a face; over an edge, the one beside it on the next face: half a texel further on, seen from the middle."""
    if 0 <= i < n and 0 <= j < n:
        return np.array(mipmap.texel(i, j, face, level))
    s, t = ((2 * c + 1) / n - 1 for c in (i, j))
    inner = [min(max(c, -1.0), 1.0) for c in (s, t)]
    middle, u, v = (np.array(part, float) for part in FACES[face])
    where = middle * (1 - 1 / n) + inner[0] * u + inner[1] * v  # on the neighbour, down by half a texel
    other, a, b = onto(where)
    return np.array(mipmap.texel(int((a + 1) * n / 2), int((b + 1) * n / 2), other, level))


def filtered(mipmap: Mipmap, where: Any, level: int, linear: bool) -> Any:
    n = SIZE >> level
    face, s, t = onto(where.astype(np.float64))
    twin = Twin(mipmap)
    twin.modes = ["clamp"] * 3
    u, v = (np.float32((c + 1) / 2) for c in (s, t))
    if not linear:
        (i, _), (j, _) = (twin.taps(axis, c, level, False, 0)[0] for axis, c in ((0, u), (1, v)))
        return np.array(mipmap.texel(min(i, n - 1), min(j, n - 1), face, level))
    found, lost = np.zeros(4), None
    four = {(i, j): a * b for i, a in twin.taps(0, u, level, True, 0) for j, b in twin.taps(1, v, level, True, 0)}
    held = {}
    for i, j in four:
        if (0 <= i < n) or (0 <= j < n):
            held[i, j] = texel(mipmap, face, i, j, n, level)
        else:
            lost = i, j
    if lost is not None:
        held[lost] = sum(held.values()) / 3
    for spot, weight in four.items():
        found += weight * held[spot]
    return found


def directions(count: int = 96) -> Any:
    """Some anywhere, some at edges, some at corners; normalised as kernels send them: the largest is 1 or -1."""
    random = np.random.default_rng(3)
    found = random.uniform(-1, 1, (count, 3))
    found[: count // 3, 1] = np.sign(found[: count // 3, 1]) * (1 - random.uniform(0, 0.1, count // 3))
    found[: count // 6, 2] = np.sign(found[: count // 6, 2]) * (1 - random.uniform(0, 0.1, count // 6))
    return (found / np.abs(found).max(1)[:, None]).astype(np.float32)


@pytest.mark.covering(1)
@pytest.mark.parametrize("filter", ["nearest", "linear"])
@pytest.mark.parametrize("gen", GENERATIONS)
def test_places_on_faces_and_across_edges(gen: float, filter: str) -> None:
    cube_map = cube(gen, **filters(filter))
    if gen == 4.5:
        cube_map = Mipmap(gen=gen, kind="cube", shape=(SIZE, SIZE, 1), levels=1, sampler=cube_map.sampler,
                          surface={"cube_map_corner_mode": 1})
    every = directions()
    for start in range(0, len(every), 16):
        part = every[start : start + 16]
        found = values(sample_l(cube_map, list(part.T), np.zeros(16, np.float32)))
        for lane in range(16):
            wanted = filtered(cube_map, part[lane], 0, filter == "linear")
            assert np.allclose(found[lane], wanted, atol=2e-2 if filter == "linear" else 1e-6), part[lane]
            close = np.abs(found[lane] - wanted).max()
            assert close < 3e-6 or filter == "linear" and close < 1.5 / 256, (close, part[lane])
    assert cube_map.compiled == len(every) // 16


def test_nothing_is_read_beside_a_corner() -> None:
    """The texel that a corner lacks has no address, and offsets of an image that crosses 4 GiB are not taken modulo 2^32."""
    mipmap = Mipmap(gen=9, kind="cube", shape=(SIZE, SIZE, 1), levels=1, sampler=modes("cube") | filters("linear"),
                 surface={"surface_base_address": ACROSS})  # fmt: skip
    mipmap.space.map(ACROSS, mipmap.data)
    where = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)] * 2, np.float32)
    found = values(sample_l(mipmap, list(where.T), np.zeros(16, np.float32)))
    for lane in range(16):
        assert np.allclose(found[lane], filtered(mipmap, where[lane], 0, True), atol=1.5 / 256)
    assert mipmap.compiled == 1


def test_a_corner_of_floats_is_the_average_of_three() -> None:
    """Infinity elsewhere does not count."""
    mipmap = Mipmap(gen=9, kind="cube", shape=(SIZE, SIZE, 1), levels=1, format="R32_FLOAT", sampler=modes("cube") | filters("linear"))
    held, last = mipmap.data.array.view(np.float32), SIZE - 1
    held[:] = np.inf
    for face, i, j in ((1, 0, last), (3, 0, last), (5, last, last)):  # around -x -y -z
        at = mipmaps.place(mipmap.image, i, j, face, 0)
        assert at is not None
        held[at // 4] = 3.0 * face
    where = np.full((16, 3), -1, np.float32)
    found = values(sample_l(mipmap, list(where.T), np.zeros(16, np.float32)))
    assert found[:, 0] == pytest.approx(9.0)


@pytest.mark.parametrize("face", range(6))
def test_a_corner_may_be_the_texel_beside_it(face: int) -> None:
    """cube_map_corner_mode 0, of early generations: the texel that there is not is the nearest of the same face."""
    made = Mipmap(gen=4.5, kind="cube", shape=(SIZE, SIZE, 1), levels=1, sampler=modes("cube") | filters("linear"),
                  surface={"cube_map_corner_mode": 0})  # fmt: skip
    where = np.array([direction(face, 0.9999, 0.9999)] * 16, np.float32)
    found = values(sample_l(made, list(where.T), np.zeros(16, np.float32)))[0]
    last = SIZE - 1
    own, right, down = (np.array(texel(made, face, x, y, SIZE, 0)) for x, y in ((last, last), (SIZE, last), (last, SIZE)))
    assert np.allclose(found, (2 * own + right + down) / 4, atol=12 / 256)


def test_every_face_has_its_texels() -> None:
    """The middle of each texel of each face, by its direction."""
    cube_map = cube(9)
    for face in range(6):
        for j in range(SIZE):
            where = np.array([direction(face, (2 * i + 1) / SIZE - 1, (2 * j + 1) / SIZE - 1) for i in range(SIZE)], np.float32)
            found = values(send(cube_map, "sample_lz", *where.T, lanes=8))
            assert [row.tolist() for row in found] == [pytest.approx(cube_map.texel(i, j, face, 0)) for i in range(SIZE)]


@pytest.mark.behaviour("KBL-SAMP-19", shows="action")
def test_faces_alone_are_clamped() -> None:
    cube_map = cube(9, seamless=False, **filters("linear"))
    where = np.array([[1, 1, 0.3]] * 8, np.float32)  # y comes before x
    found = values(send(cube_map, "sample_lz", *where.T, lanes=8))[0]
    twin = Twin(cube_map)
    twin.modes = ["clamp"] * 3
    assert np.allclose(found, twin.filtered([np.float32(1.0), np.float32(0.65)], 2, 0, True), atol=3e-6)
    state = modes("clamp") | filters("linear") | {"cube_surface_control_mode": 1}
    over = Mipmap(gen=8, kind="cube", shape=(SIZE, SIZE, 1), levels=1, sampler=state)
    across = values(sample_l(over, list(np.resize(where, (16, 3)).T), np.zeros(16, np.float32)))[0]
    assert np.allclose(across, filtered(over, where[0], 0, True), atol=1.5 / 256) and not np.allclose(across, found, atol=1.5 / 256)


class PartialCube(Mipmap):
    """A cube map without some of its faces, which have the border colour."""

    lacking: frozenset[int] = frozenset()

    def texel(self, x: int, y: int, r: int, level: int) -> Any:
        return self.border if r % 6 in self.lacking else super().texel(x, y, r, level)


@pytest.mark.behaviour("KBL-SAMP-15", shows="action")
@pytest.mark.parametrize("lacking", [{2}, {0, 3, 5}])
@pytest.mark.parametrize("filter", ["nearest", "linear"])
@pytest.mark.parametrize("format", ["R8G8B8A8_UNORM", "R32_FLOAT"])
def test_disabled_faces_have_the_border_colour(lacking: set[int], filter: str, format: str) -> None:
    """Across edges too; memory of a disabled face is not read."""
    off = {f"cube_face_enable_{FACE_NAMES[face]}": 0 for face in lacking}
    partial_cube = PartialCube(gen=9, kind="cube", shape=(SIZE, SIZE, 1), levels=1, format=format, surface=off,
                               border=(0.25, 0.5, 0.75, 1.0),
                      sampler=modes("cube") | filters(filter))  # fmt: skip
    partial_cube.lacking = frozenset(lacking)
    for face in lacking:
        partial_cube.space.unmap(DATA + FACE_BYTES * face, FACE_BYTES)
    if format == "R32_FLOAT":
        partial_cube.data.array.view(np.float32)[:] = np.random.default_rng(1).uniform(-4, 4, len(partial_cube.data.array) // 4)
        partial_cube.border = (0.25, 0.0, 0.0, 1.0)  # channels that the format lacks have no border
    every = directions()
    for start in range(0, len(every), 16):
        part = every[start : start + 16]
        found = values(sample_l(partial_cube, list(part.T), np.zeros(16, np.float32)))
        wanted = np.array([filtered(partial_cube, part[lane], 0, filter == "linear") for lane in range(16)])
        assert np.abs(found - wanted).max() < (3e-6 if filter == "nearest" else 12 / 256 if format == "R32_FLOAT" else 1.5 / 256), start
    assert partial_cube.compiled == len(every) // 16


def test_disabled_faces_have_the_border_colour_where_edges_have_it_too() -> None:
    """The middle of each face, with an address mode that has a border."""
    made = PartialCube(gen=9, kind="cube", shape=(SIZE, SIZE, 1), levels=1, format="R8G8B8A8_UNORM", border=(0.25, 0.5, 0.75, 1.0),
                       surface={f"cube_face_enable_{FACE_NAMES[2]}": 0}, sampler=modes("clamp_border") | filters("nearest"))  # fmt: skip
    made.lacking = frozenset({2})
    where = np.array([direction(lane % 6, 0.1, 0.1) for lane in range(16)], np.float32)
    found = values(sample_l(made, list(where.T), np.zeros(16, np.float32)))
    assert found[2].tolist() == pytest.approx(made.border, abs=1 / 255) and made.compiled == 1
    assert [row.tolist() for row in found] == [pytest.approx(made.texel(4, 4, lane % 6, 0), abs=1 / 255) for lane in range(16)]


@pytest.mark.parametrize("gen", [8, 9, 11])
def test_gather4_takes_texels_across_edges(gen: float) -> None:
    """At a corner the texel that there is not is the average of the others."""
    cube_map, every = cube(gen), directions()
    for start in range(0, len(every), 16):
        part = every[start : start + 16]
        found = values(send(cube_map, "gather4", *part.T))
        for lane in range(16):
            face, s, t = onto(part[lane].astype(np.float64))
            (i, _), (i2, _) = Twin(cube_map).taps(0, np.float32((s + 1) / 2), 0, True, 0)
            (j, _), (j2, _) = Twin(cube_map).taps(1, np.float32((t + 1) / 2), 0, True, 0)
            wanted = [None if (x in (-1, SIZE)) and (y in (-1, SIZE)) else texel(cube_map, face, x, y, SIZE, 0)[0]
                      for x, y in ((i, j2), (i2, j2), (i2, j), (i, j))]  # fmt: skip
            there = [value for value in wanted if value is not None]
            full = [sum(there) / 3 if value is None else value for value in wanted]
            assert np.allclose(found[lane], full, atol=1e-6), part[lane]
    assert cube_map.compiled == len(every) // 16


def test_cubes_of_an_array() -> None:
    cube_map = cube(9, array=True)
    where = np.array([direction(face % 6, 0.1, 0.1) for face in range(16)], np.float32)
    number = np.arange(16) % 2
    found = values(send(cube_map, "sample_lz", *where.T, number))
    for lane in range(16):
        assert found[lane].tolist() == pytest.approx(cube_map.texel(4, 4, number[lane] * 6 + lane % 6, 0))


@pytest.mark.parametrize("filter", ["nearest", "linear"])
def test_edges_of_the_cubes_of_an_array(filter: str) -> None:
    """Beyond an edge is a face of the same cube, of the third one, too."""
    cube_map = Mipmap(gen=9, kind="cube", shape=(SIZE, SIZE, 3), levels=1, array=True, sampler=modes("cube") | filters(filter))
    places = [(face, s, t) for face in range(6) for s, t in ((0.97, 0.3), (-0.97, 0.3), (0.3, 0.97), (0.3, -0.97))]
    for first, count in ((0, 16), (8, 16)):
        part = places[first : first + count]
        where = np.array([direction(*place) for place in part], np.float32)
        for number in (0, 1, 2):
            found = values(send(cube_map, "sample_lz", *where.T, np.full(16, number)))
            for lane, (face, s, t) in enumerate(part):
                i, j = (np.floor((c + 1) * SIZE / 2 - (0.5 if filter == "linear" else 0)) for c in (s, t))
                taps = [(int(i + x), int(j + y)) for x in (0, 1) for y in (0, 1)] if filter == "linear" else [(int(i), int(j))]
                texels = [at_cube(cube_map, number, face, *tap) for tap in taps]
                weights = [1.0] if filter == "nearest" else [a * b for a in split(s) for b in split(t)]
                assert np.allclose(found[lane], sum(w * x for w, x in zip(weights, texels, strict=True)), atol=1.5e-2), (number, face, s, t)


def split(c: float) -> tuple[float, float]:
    """The weights of two texels around a place between -1 and 1."""
    part = ((c + 1) * SIZE / 2 - 0.5) % 1
    return 1 - part, part


def at_cube(cube_map: Mipmap, number: int, face: int, i: int, j: int) -> Any:
    """A texel of one cube of an array, across its edges."""

    class Shifted:
        @staticmethod
        def texel(x: int, y: int, on: int, level: int) -> Any:
            return cube_map.texel(x, y, 6 * number + on, level)

    return texel(Shifted, face, i, j, SIZE, 0)  # type: ignore[arg-type]


@pytest.mark.parametrize("gen", GENERATIONS)
def test_the_level_on_a_face(gen: float) -> None:
    """Gradients are those on the face of each pixel."""
    cube_map = cube(gen, levels=4, **filters("nearest"), **limits(1))
    for level, step in ((0, 2 / 8), (1, 4 / 8), (2, 8 / 8)):
        corners = [(face, x, y) for face in (0, 3) for y in (0, 1) for x in (0, 1)]
        places = np.array([direction(face, -0.6 + (x + 0.25) * step, -0.6 + (y + 0.25) * step) for face, x, y in corners])
        places = np.concatenate([places, places]).astype(np.float32)
        found = values(send(cube_map, "sample", *places.T))
        for lane in (0, 4):
            wanted = filtered(cube_map, places[lane] / np.abs(places[lane]).max(), level, False)
            assert np.allclose(found[lane], wanted, atol=1e-6), (level, lane)


@pytest.mark.parametrize("gen", GENERATIONS)
def test_helper_lanes_that_look_past_an_edge_do_not_change_the_level(gen: float) -> None:
    """A subspan at the left edge of a face, a texel wide and high: its left pixels look at another face."""
    cube_map = cube(gen, levels=4, **filters("nearest"), **limits(1))
    step, corners = 2 / 8, [(x, y) for y in (0, 1) for x in (0, 1)]
    places = np.array([direction(0, -1 + (x - 0.5) * step, -0.6 + y * step) for x, y in corners] * 4).astype(np.float32)
    found = values(send(cube_map, "sample", *places.T))
    for lane in (1, 3):
        wanted = filtered(cube_map, places[lane] / np.abs(places[lane]).max(), 0, False)
        assert np.allclose(found[lane], wanted, atol=1e-6), lane


def test_gradients_of_a_direction() -> None:
    cube_map = cube(9, levels=4, **filters("linear"), **limits(LINEAR))
    where = direction(4, 0.2, 0.1)
    parts = [np.float32(c) for axis in range(3) for c in (where[axis], (0.5, 0, 0)[axis], (0, -0.25, 0)[axis])]
    found = values(send(cube_map, "sample_d", *parts, lanes=8))[0]
    wanted = filtered(cube_map, where.astype(np.float32), 1, True)  # half a face of 8 texels is 4 texels in 2 units: 2 for a pixel
    assert np.allclose(found, wanted, atol=1.5 / 256)


@pytest.mark.covering(1)
@pytest.mark.parametrize("face", range(6))
@pytest.mark.parametrize("further", [-0.5, 0.75])
def test_a_change_along_the_direction_changes_no_place_on_a_face(face: int, further: float) -> None:
    """Only where a direction points to counts: another length is the same texel, and adds nothing to a gradient across the face."""
    cube_map, where = cube(9, levels=4, **filters("linear"), **limits(LINEAR)), direction(face, 0.75, -0.5)
    across = np.array(FACES[face][1]) * 0.5
    for gradient, level in ((0 * where, 0), (across, 1)):
        changes = gradient + further * where
        parts = [np.float32(c) for axis in range(3) for c in (where[axis], changes[axis], 0)]
        wanted = filtered(cube_map, where.astype(np.float32), level, True)
        assert np.allclose(values(send(cube_map, "sample_d", *parts, lanes=8))[0], wanted, atol=1.5 / 256)


def test_two_slots_are_no_subspan() -> None:
    """Directions of two slots have no differences: level 0 is sampled, however far apart they are."""
    mipmap = cube(8, levels=3, **limits(LINEAR))
    places, level = np.array([1.0, 0.25, -0.25, 0, -0.5, 1.0, 0.25, 0], np.float32), np.full(8, 2.0, np.float32)
    found = mipmap.send("sample", places, answer=1, width=8, simd_mode=0)
    assert (found == mipmap.send("sample_l", places, 0 * level, answer=1, width=8, simd_mode=0)).all()
    assert (found != mipmap.send("sample_l", places, level, answer=1, width=8, simd_mode=0)).any()
