"""Vertex fetch: vertex_fetch.c against plain arithmetic for every format, and the rules of elements and generated values."""

from __future__ import annotations

import math
import random
import struct
from fractions import Fraction

import numpy as np
import pytest

from softgen.bits.formats import Format, surface_formats
from softgen.errors import DecodeError, Unsupported
from softgen.three_d.vertices.vertex_fetch import Destination, channels, fetch_key, vertex_fetch
from tests.three_d.fetched import (
    AT,
    GENS,
    INSTANCE_ID,
    NOSTORE,
    ONE,
    ONE_INT,
    PRIMITIVE_ID,
    R32_UINT,
    SRC,
    VERTEX_ID,
    ZERO,
    buffer,
    dwords,
    fetched,
    value,
)
from tests.three_d.made import call, controls, made_state

UNIT_BUFFERS = [gen for gen in GENS if gen <= 7.5]  # instancing in the buffer's state, IDs as component controls
LATER = [gen for gen in GENS if gen >= 8]
R32G32B32A32_UINT = 2

# -- formats ---------------------------------------------------------------------------------------------------------


def nearest(exact: Fraction) -> int:
    """The bits of the nearest float32, ties to even."""
    return int(np.float32(np.longdouble(exact.numerator) / np.longdouble(exact.denominator)).view(np.uint32))


def small_float(bits: int, mantissa: int) -> float:
    exponent, fraction = bits >> mantissa & 31, bits & (1 << mantissa) - 1
    if exponent == 31:
        return math.nan if fraction else math.inf
    return math.ldexp((exponent > 0) + fraction / (1 << mantissa), max(exponent, 1) - 15)


def converted(kind: str, width: int, bits: int) -> int | None:
    """A channel as a 32-bit component; None for a NaN."""
    signed = bits - (1 << width) if bits >> width - 1 else bits
    if kind == "float" and width == 32:
        return bits
    if kind in ("float", "ufloat"):
        number = floating(kind, width, bits)
        with np.errstate(over="ignore"):
            return None if math.isnan(number) else int(np.float32(number).view(np.uint32))
    whole = {"uint": bits, "sint": signed & 0xFFFFFFFF}
    exact = {"unorm": Fraction(bits, (1 << width) - 1), "snorm": max(Fraction(signed, max((1 << width - 1) - 1, 1)), Fraction(-1)),
             "uscaled": Fraction(bits), "sscaled": Fraction(signed), "sfixed": Fraction(signed, 65536)}  # fmt: skip
    return whole[kind] if kind in whole else nearest(exact[kind])


def floating(kind: str, width: int, bits: int) -> float:
    if kind == "ufloat":
        return small_float(bits, width - 5)
    if width == 16:
        return small_float(bits & 0x7FFF, 10) * (-1 if bits >> 15 else 1)
    return float(struct.unpack("<d", bits.to_bytes(8, "little"))[0])


def expected(form: Format, data: bytes) -> list[int | None]:
    """The components of one source element; absent ones are 0, and 1.0 as the fourth."""
    number, found = int.from_bytes(data, "little"), [0, 0, 0, 0x3F800000]
    made: list[int | None] = list(found)
    for channel in form.channels:
        if channel.name in "rgba":
            made["rgba".index(channel.name)] = converted(channel.type, channel.bits, number & (1 << channel.bits) - 1)
        number >>= channel.bits
    return made


def fetchable(gen: float) -> list[Format]:
    return [form for form in surface_formats().values() if form.supports("vertex", gen) and "PASSTHRU" not in form.name]


@pytest.mark.behaviour("G45-VF-22", "G45-VF-23", "G45-VF-24", "G45-VF-25", shows="action")
@pytest.mark.parametrize("gen", [4.5, 7.5, 11])
def test_every_format_converts_as_arithmetic_says(gen: float) -> None:
    """Random bits, and the largest, smallest and all-ones of each channel."""
    draw = random.Random(f"{gen}")
    assert len(fetchable(gen)) > 70
    for form in fetchable(gen):
        size, count = form.bits // 8, 40
        data = [bytes(size), b"\xff" * size, bytes([0x80] * size), bytes([0x7F] * size), *(draw.randbytes(size) for _ in range(count - 4))]
        names = {channel.name for channel in form.channels}
        stored = (SRC if name in names else (ZERO, ONE)[name == "a"] for name in "rgba")
        element = {"source_element_format": form.value, **controls(*stored)}
        state = made_state(gen, {AT: b"".join(data)}, {}, {0: buffer(gen, size * count, size)}, [element])
        for bits, words in zip(data, fetched(state, call(count), list(range(count))), strict=True):
            for n, (found, right) in enumerate(zip(words.tolist(), expected(form, bits), strict=True)):
                same = math.isnan(float(np.uint32(found).view(np.float32))) if right is None else found == right
                assert same, f"{form.name} component {n} of {bits.hex()}: {found:#x}, not {right and hex(right)}"


@pytest.mark.parametrize("width", [2, 8, 10, 16])
def test_normalised_numbers_reach_both_ends(width: int) -> None:
    """The twin above, by hand: 1.0 for the largest, -1.0 for the two smallest (Vulkan, fixed-point conversion)."""
    assert converted("unorm", width, (1 << width) - 1) == converted("snorm", width, (1 << width - 1) - 1) == 0x3F800000
    assert converted("snorm", width, 1 << width - 1) == converted("snorm", width, (1 << width - 1) + 1) == 0xBF800000


@pytest.mark.behaviour("KBL-VF-23", shows="action")
@pytest.mark.parametrize("gen", LATER)
def test_passthru_formats_copy_64_bit_components(gen: float) -> None:
    """One or two of them fill an element of 128 bits, three or four one of 256; what is not stored there is zero."""
    data = dwords(*range(1, 9))
    two = {"source_element_format": value("R64G64_PASSTHRU"), **controls(SRC, ZERO, NOSTORE, NOSTORE)}
    four = {"source_element_format": value("R64G64B64A64_PASSTHRU"), **controls(SRC, SRC, SRC, SRC)}
    state = made_state(gen, {AT: data}, {}, {0: buffer(gen, 32, 32)}, [two, four])
    assert fetched(state, call(), [0]).tolist() == [[1, 2, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8]]
    second, hole = two | controls(ZERO, SRC, NOSTORE, NOSTORE), four | controls(SRC, ZERO, SRC, SRC)  # a constant has 64 bits, too
    state = made_state(gen, {AT: data}, {}, {0: buffer(gen, 32, 32)}, [second, hole])
    assert fetched(state, call(), [0]).tolist() == [[0, 0, 3, 4, 1, 2, 0, 0, 5, 6, 7, 8]]


@pytest.mark.parametrize("name, loads", [
    ("R8G8B8A8_UNORM", [("unorm", n, 1, 0, 8) for n in range(4)]), ("R16G16_FLOAT", [("float16", 2 * n, 2, 0, 16) for n in range(2)]),
    ("R16G16B16_SNORM", [("snorm", 2 * n, 2, 0, 16) for n in range(3)]), ("R32G32_UINT", [("raw", 4 * n, 4, 0, 32) for n in range(2)]),
    ("R64G64_FLOAT", [("float64", 8 * n, 8, 0, 64) for n in range(2)]),
    ("R10G10B10A2_UNORM", [("unorm", 0, 4, shift, width) for shift, width in ((0, 10), (10, 10), (20, 10), (30, 2))]),
    ("B5G6R5_UNORM", [("unorm", 0, 2, shift, width) for shift, width in ((11, 5), (5, 6), (0, 5))]),
])  # fmt: skip
def test_fields_of_whole_bytes_are_loaded_by_themselves(name: str, loads: list[tuple[str, int, int, int, int]]) -> None:
    """Kind, first byte, bytes, shift and width of red, green, blue and alpha."""
    (form,) = (form for form in surface_formats().values() if form.name == name)
    found = channels(form)
    assert [found[number][:1] + found[number][2:6] for number in sorted(found)] == loads


def test_formats_that_are_not_fetched_are_refused() -> None:
    element = {"source_element_format": value("BC1_UNORM"), **controls(SRC, SRC, SRC, SRC)}
    with pytest.raises(Unsupported, match=r"vertex element 0: source_element_format \d+, BC1_UNORM: gen 9 does not fetch it"):
        fetched(made_state(9, {AT: b""}, {}, {0: buffer(9, 16)}, [element]), call(), [0])
    fixed = {"source_element_format": value("R32_SFIXED"), **controls(SRC, ZERO, ZERO, ONE)}
    with pytest.raises(Unsupported, match="R32_SFIXED: gen 7 does not fetch it"):
        fetched(made_state(7, {AT: b""}, {}, {0: buffer(7, 16)}, [fixed]), call(), [0])
    with pytest.raises(DecodeError, match="source_element_format 10 is no format"):
        fetched(made_state(9, {AT: b""}, {}, {0: buffer(9, 16)}, [{**element, "source_element_format": 10}]), call(), [0])


# -- elements --------------------------------------------------------------------------------------------------------


@pytest.mark.behaviour("KBL-VF-22", "G45-VF-31", shows="action")
@pytest.mark.parametrize("gen", GENS)
def test_elements_of_constants_need_no_buffer(gen: float) -> None:
    element = {"vertex_buffer_index": 9, "source_element_format": 511, **controls(ZERO, ONE, ONE_INT, ZERO)}
    assert fetched(made_state(gen, {AT: b""}, {}, {}, [element]), call(), [5]).tolist() == [[0, 0x3F800000, 1, 0]]


@pytest.mark.behaviour("G45-VF-06", "G45-VF-07", "G45-VF-05", shows="action")
@pytest.mark.parametrize("gen", UNIT_BUFFERS)
def test_component_controls_store_ids(gen: float) -> None:
    """Neither start vertex and instance nor base vertex are in them."""
    state = made_state(gen, {AT: b""}, {}, {}, [controls(VERTEX_ID, INSTANCE_ID, ZERO, VERTEX_ID)])
    draw = call(9, indexed=True, base_vertex=100, instances=4, start_instance=50)
    assert fetched(state, draw, [7, 8], [0, 3]).tolist() == [[7, 0, 0, 7], [8, 3, 0, 8]]


@pytest.mark.behaviour("BDW-VF-27", shows="action")
@pytest.mark.parametrize("gen", LATER)
def test_ids_go_over_elements_and_behind_them(gen: float) -> None:
    """Between the last element and the one that receives an ID there are zeros."""
    ids = {"vertex_id_enable": 1, "vertex_id_component_number": 2, "vertex_id_element_offset": 0,
           "instance_id_enable": 1, "instance_id_component_number": 1, "instance_id_element_offset": 2}  # fmt: skip
    state = made_state(gen, {AT: b""}, {"3DSTATE_VF_SGVS": ids}, {}, [controls(ONE, ONE, ONE, ONE)])
    one = 0x3F800000
    assert fetched(state, call(9), [7], [3]).tolist() == [[one, one, 7, one, 0, 0, 0, 0, 0, 3, 0, 0]]


@pytest.mark.behaviour("BDW-VF-28", shows="action")
def test_ids_in_places_that_are_not_allowed_are_remarked() -> None:
    remarks: list[str] = []
    for element in (3, 33):
        ids = {"vertex_id_enable": 1, "vertex_id_element_offset": element, "instance_id_enable": 1, "instance_id_element_offset": 3}
        state = made_state(9, {AT: b""}, {"3DSTATE_VF_SGVS": ids}, {}, [controls(ONE, ONE, ONE, ONE)], warn=remarks.append)
        fetched(state, call(), [7], [5])
    assert remarks == ["3DSTATE_VF_SGVS: VertexID and InstanceID go into the same component; InstanceID is stored",
                       "3DSTATE_VF_SGVS: vertex_id_element_offset 33; the last is 32"]  # fmt: skip


@pytest.mark.behaviour("G45-VF-27", "KBL-VF-22", shows="action")
@pytest.mark.parametrize("gen", GENS)
def test_holes_among_components_are_remarked(gen: float) -> None:
    remarks: list[str] = []
    for codes in ((ONE_INT, NOSTORE, ONE_INT, ZERO), (NOSTORE, NOSTORE, NOSTORE, NOSTORE), (ONE_INT, NOSTORE, NOSTORE, NOSTORE)):
        words = fetched(made_state(gen, {AT: b""}, {}, {}, [controls(*codes)], warn=remarks.append), call(), [0])
        assert words.tolist() == [[codes[0] // 4, 0, codes[2] // 4, 0]]
    assert remarks == ["vertex element 0: a component is stored after one that is not, or none is"] * 2


def test_gen11_inserts_start_vertex_and_instance() -> None:
    where = {"xp0_enable": 1, "xp0_source_select": 1, "xp1_enable": 1, "xp1_source_select": 1, "xp1_component_number": 1}
    state = made_state(11, {AT: b""}, {"3DSTATE_VF_SGVS_2": where}, {}, [controls(ZERO, ZERO, ZERO, ZERO)])
    assert fetched(state, call(9, start_vertex=5, start_instance=6), [0]).tolist() == [[5, 6, 0, 0]]
    assert fetched(state, call(9, indexed=True, start_vertex=5, base_vertex=-2), [0]).tolist() == [[0xFFFFFFFE, 0, 0, 0]]


def test_gen11_inserts_parameters_of_the_command() -> None:
    """XP0 and XP1 where the state does not choose the starts, XP2 always; draws that differ in them have plans of their own."""
    where = {"xp0_enable": 1, "xp1_enable": 1, "xp1_component_number": 1, "xp2_enable": 1, "xp2_component_number": 3}
    state = made_state(11, {AT: b""}, {"3DSTATE_VF_SGVS_2": where}, {}, [controls(ZERO, ZERO, ZERO, ZERO)])
    own = call(9, start_vertex=5)._replace(parameters=(7, 8, 9))
    assert fetched(state, own, [0]).tolist() == [[7, 8, 0, 9]]
    assert fetch_key(state, own) != fetch_key(state, own._replace(parameters=(7, 8, 10)))


def test_gen11_may_add_where_a_draw_starts_to_vertex_ids() -> None:
    commands = {"3DSTATE_VF_SGVS": {"vertex_id_enable": 1}, "3DSTATE_VF": {"vertex_id_offset_enable": 1}}
    state = made_state(11, {AT: b""}, commands, {}, [controls(ZERO, ZERO, ZERO, ZERO)])
    assert fetched(state, call(9, start_vertex=5), [2])[0, 0] == 7
    assert fetched(state, call(9, indexed=True, start_vertex=5, base_vertex=-1), [2])[0, 0] == 1
    plain = made_state(11, {AT: b""}, {**commands, "3DSTATE_VF": {}}, {}, [controls(ZERO, ZERO, ZERO, ZERO)])
    assert fetched(plain, call(9, start_vertex=5), [2])[0, 0] == 2


@pytest.mark.behaviour("G45-VF-21", "BDW-VF-20", shows="action")
@pytest.mark.parametrize("gen", GENS)
def test_invalid_elements_are_skipped(gen: float) -> None:
    elements = [controls(ONE_INT, ZERO, ZERO, ZERO), {"valid": 0, **controls(ONE, ONE, ONE, ONE)}, controls(ZERO, ONE_INT, ZERO, ZERO)]
    where = [{"destination_element_offset": 4 * n} if gen < 7 else {} for n in (0, 0, 1)]
    state = made_state(gen, {AT: b""}, {}, {}, [{**element, **at} for element, at in zip(elements, where, strict=True)])
    assert fetched(state, call(), [0]).tolist() == [[1, 0, 0, 0, 0, 1, 0, 0]]


@pytest.mark.behaviour("G45-VF-29", "G45-VF-30", shows="action")
def test_gen45_elements_say_where_they_go() -> None:
    """In dwords; a later one may begin where an earlier one stores nothing."""
    first = {"destination_element_offset": 0, **controls(ONE_INT, ONE_INT, NOSTORE, NOSTORE)}
    second = {"destination_element_offset": 2, **controls(ONE, ONE, ONE, NOSTORE)}
    third = {"destination_element_offset": 8, **controls(ONE_INT, NOSTORE, NOSTORE, NOSTORE)}
    one = 0x3F800000
    state = made_state(4.5, {AT: b""}, {}, {}, [first, second, third])
    assert fetched(state, call(), [0]).tolist() == [[1, 1, one, one, one, 0, 0, 0, 1, 0, 0, 0]]


@pytest.mark.behaviour("G45-VF-28", shows="action")
def test_a_component_that_the_format_lacks_is_zero_and_remarked() -> None:
    remarks: list[str] = []
    element = {"source_element_format": R32_UINT, **controls(SRC, SRC, ZERO, ZERO)}
    state = made_state(9, {AT: dwords(5, 6)}, {}, {0: buffer(9, 8, 4)}, [element], warn=remarks.append)
    assert fetched(state, call(), [0]).tolist() == [[5, 0, 0, 0]]
    assert remarks == ["vertex element 0: component 1 of R32_UINT, which has none; 0 is stored"]


def test_primitive_ids_in_vertices_are_not_built() -> None:
    with pytest.raises(Unsupported, match="vertex element 0: component_2_control 7, store_pid"):
        fetched(made_state(9, {AT: b""}, {}, {}, [controls(ZERO, ZERO, PRIMITIVE_ID, ZERO)]), call(), [0])


@pytest.mark.parametrize("gen", [9, 11])
def test_component_packing_leaves_components_out(gen: float) -> None:
    """Only while 3DSTATE_VF enables it."""
    packing = {"vertex_element": [{"component_enables": enables} for enables in (0b1010, 0b0001, *[15] * 30)]}
    elements = [controls(ZERO, ONE, ZERO, ONE_INT), controls(ONE_INT, ONE, ONE, ONE)]
    for enabled, right in ((1, [0x3F800000, 1, 1]), (0, [0, 0x3F800000, 0, 1, 1, *[0x3F800000] * 3])):
        commands = {"3DSTATE_VF": {"component_packing_enable": enabled}, "3DSTATE_VF_COMPONENT_PACKING": packing}
        assert fetched(made_state(gen, {AT: b""}, commands, {}, elements), call(), [0]).tolist() == [right]


# -- destinations ----------------------------------------------------------------------------------------------------


def test_components_go_where_the_destination_says() -> None:
    """Registers of a SIMD8 thread, of which the first element is not read: what is behind the last is zero."""
    elements = [controls(ONE, ONE, ONE, ONE), {"source_element_format": R32G32B32A32_UINT, **controls(SRC, SRC, SRC, SRC)}]
    state = made_state(9, {AT: dwords(1, 2, 3, 4)}, {}, {0: buffer(9, 16)}, elements)
    plan = vertex_fetch(state, call(), Destination(4, 8, 128, 32))
    ids, into = np.zeros(1, np.uint32), np.full(64, 0xDEADBEEF, np.uint32)
    plan.run(ids.ctypes.data, ids.ctypes.data, 1, into.ctypes.data + 4, 0, 0)
    assert into[1::8].tolist() == [1, 2, 3, 4, 0, 0, 0, 0]
    assert (np.delete(into, range(1, 64, 8)) == 0xDEADBEEF).all()
