"""SF threads of Gen4.5: how pixel shader threads get the coefficients that they write."""

from __future__ import annotations

import numpy as np
import pytest

from tests.three_d.g45_draw import Fields, G45Draw, moves, pixel_shader, urb_write, vertex

# Coefficients of 16 attributes: dword d of message register r has 100 r + d.
NUMBERS = [vertex(x, y, attribute=(1, 2, 3, 4)) for x, y in ((0, 0), (8, 0), (0, 8))]


def sf_kernel() -> str:
    """Writes rows Cx, Cy, Co of 8 attributes, twice."""
    ramp = "\n".join(f"mov(1) g20.{dword}<1>F {np.float32(dword).view(np.uint32):#010x}F {{ align1 nomask }};" for dword in range(8))
    rows = "\n".join(f"add(8) m{1 + row}<1>F g20<8,8,1>F {np.float32(100 * row).view(np.uint32):#010x}F {{ align1 nomask }};"
                     for row in range(6))  # fmt: skip
    return "\n".join([ramp, rows, urb_write(7, eot=True)])


def payload(offset: int, length: int, transposed: int) -> list[float]:
    """What threads get of the entry: `length` registers from `offset` on, four at a draw."""
    state: dict[str, Fields] = {"WM_STATE": {"setup_urb_entry_read_length": length, "setup_urb_entry_read_offset": offset,
                                             "transposed_urb_read_enable": transposed, "grf_register_count_0": 1}}  # fmt: skip
    found: list[float] = []
    for dword in range(0, 8 * length, 4):
        shader = pixel_shader(*(f"g{8 + (dword + n) // 8}.{(dword + n) % 8}<0,1,0>" for n in range(4)))
        found += G45Draw(NUMBERS, sf=sf_kernel(), ps=shader, state=state, fill=7.0).run().pixels[1, 1].tolist()
    return found


def group(attribute: int) -> list[float]:
    """Cx, Cy, 0 and Co of an attribute."""
    first, dword = 300 * (attribute // 8), attribute % 8
    return [first + dword, first + 100 + dword, 0.0, first + 200 + dword]


@pytest.mark.behaviour("G45-SF-55", shows="action")
@pytest.mark.parametrize("transposed", [0, 1])
def test_coefficients_are_transposed_when_they_are_read(transposed: int) -> None:
    found = payload(0, 4, transposed)
    rows = [100.0 * row + dword for row in range(4) for dword in range(8)]
    assert found == ([number for attribute in range(8) for number in group(attribute)] if transposed else rows)


@pytest.mark.behaviour("G45-SF-56", shows="action")
def test_read_offsets_are_those_of_the_transposed_layout() -> None:
    """Register 4 of it has attributes 8 and 9, which are in the second three rows that the thread wrote."""
    assert payload(4, 1, 1) == [*group(8), *group(9)]
    assert payload(7, 1, 1) == [*group(14), *group(15)]


def test_large_draws_transpose_each_entry() -> None:
    """Several threads of a batch: the entries of all of them."""
    corners = [vertex(x + dx, y + dy) for y in range(0, 16, 4) for x in range(0, 16, 4) for dx, dy in ((0, 0), (4, 0), (0, 4))]
    state: dict[str, Fields] = {"WM_STATE": {"setup_urb_entry_read_length": 1, "transposed_urb_read_enable": 1}}
    sf = moves(1, "g1", "g2", "g3", "g4", "g5") + "\n" + urb_write(6, eot=True)
    drawn = G45Draw(corners, sf=sf, ps=pixel_shader("g8.2<0,1,0>"), state=state, fill=7.0).run(threads=2)
    lit = drawn.pixels[..., 0] == 0.0
    assert lit.sum() == 16 * 6 and (drawn.pixels[~lit] == 7.0).all(), "dword 2 of an attribute is zero"
