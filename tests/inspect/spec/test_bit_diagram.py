"""Bit diagrams: every bit of every layout in exactly one cell, and boxes that close."""

from __future__ import annotations

import pytest

from softgen.bits import page
from softgen.bits.catalogue import catalogue, layout
from softgen.bits.layout import Layout
from softgen.inspect.spec import bit_diagram

PAGE = """\
source KBL 1
structure SMALL
  gen 8  4 dwords
    0  31:6   pointer   address
       5:4    mode      off | on
    1  63:0   wide
    or 1  31:0   other
"""
BOX = {
    "┌": (False, True), "┬": (False, True), "┐": (False, True), "├": (True, True), "┼": (True, True), "┤": (True, True),
    "└": (True, False), "┴": (True, False), "┘": (True, False),
}  # fmt: skip


def small() -> Layout:
    return page.read("small.layout", PAGE)["SMALL", 8.0]


def test_a_small_one_is_drawn_so() -> None:
    drawn = list(bit_diagram.draw(small(), {("", "pointer"): 1, ("", "mode"): 2, ("", "wide"): 3}))
    assert drawn[0].split() == [str(bit) for bit in reversed(range(32))]
    assert drawn[2].startswith("0 │") and "pointer" in drawn[2] and drawn[2].count("│") == 4 and drawn[2].endswith("│ mode│┄┄┄┄┄┄┄┄┄┄┄│")
    assert [line.split("│")[1].strip() for line in drawn[4:8:2]] == ["wide", "wide"] and "┄" in drawn[8] and len(drawn) == 10
    assert len({len(line) for line in drawn[1:]}) == 1


def test_without_unicode() -> None:
    drawn = "\n".join(bit_diagram.draw(small(), {}, unicode=False))
    assert drawn.isascii() and "+--" in drawn and "|" in drawn


def test_a_name_that_does_not_fit_is_the_number_of_its_line() -> None:
    drawn = list(bit_diagram.draw(layout("3DSTATE_VS", 9), {("", "enable"): 20, ("", "statistics_enable"): 17}))
    assert "│20│" in "".join(drawn) and "│17│" in "".join(drawn)


def test_bits_of_a_second_reading_alone_are_shown() -> None:
    """On Gen11 the clear colours are a second reading of an address that ends inside the second of them."""
    text = PAGE.replace("1  63:0   wide", "1  31:0   wide").replace("or 1  31:0", "or 2  31:0")
    rows = bit_diagram.rows(page.read("p", text)["SMALL", 8.0])
    assert [cell.text for cell in rows[2].cells] == ["other"]


def test_cells_of_a_command() -> None:
    """Fixed bits and the length are no fields, and are not drawn a second time; a group stands where its elements are."""
    text = "source KBL 1\ncommand C  0.22  all\n  gen 9  2+ dwords\n    0  8  flag\n    or 0  5:0  again\n    1  0  first\n"
    text += "    group g  at 2  size 32  times *\n      31:0  v\n"
    rows = bit_diagram.rows(page.read("p", text)["C", 9.0])
    assert [[(cell.high, cell.low, cell.kind, cell.text) for cell in row.cells] for row in rows] == [
        [(31, 23, "header", "0x22"), (22, 9, "reserved", ""), (8, 8, "field", "flag"), (7, 0, "length", "length")],
        [(31, 1, "reserved", ""), (0, 0, "field", "first")]]  # fmt: skip


@pytest.mark.parametrize("kind", page.KINDS)
def test_every_bit_once_and_every_box_closed(kind: str) -> None:
    for item in (found for name in catalogue().names(kind) for found in catalogue().history(name).values()):
        fields = 0
        for field in item.fields:
            fields |= 0 if field.alternate else field.mask
        for row in bit_diagram.rows(item):
            covered = [bit for cell in row.cells for bit in range(cell.high, cell.low - 1, -1)]
            assert covered == list(range(31, -1, -1)), (row, item.name, item.gen)
            blank = sum((1 << cell.high + 1) - (1 << cell.low) for cell in row.cells if cell.kind == "reserved")
            hidden = [dword for dword in range(row.dword, (row.last or row.dword) + 1) if fields >> 32 * dword & blank]
            assert not hidden, (row, item.name, item.gen)
        lines = list(bit_diagram.draw(item, {}))
        for above, line, below in zip(["", *lines], lines, [*lines[1:], ""], strict=False):
            for column, char in enumerate(line):
                up, down = BOX.get(char, (None, None))
                assert up is None or (above[column : column + 1] == "│") == up, (item.name, item.gen, line)
                assert down is None or (below[column : column + 1] == "│") == down, (item.name, item.gen, line)


def test_a_command_begins_with_its_opcode_and_length() -> None:
    """The first field after them keeps all its bits."""
    rows = bit_diagram.rows(layout("3DSTATE_VS", 9))
    assert [(cell.high, cell.low, cell.kind, cell.text) for cell in rows[0].cells] == [
        (31, 16, "header", "0x7810"), (15, 8, "reserved", ""), (7, 0, "length", "length")]  # fmt: skip
    assert [(cell.high, cell.low, cell.text) for cell in rows[1].cells] == [(31, 6, "kernel_start_pointer"), (5, 0, "")]


def test_single_bits_that_are_reserved_have_cells() -> None:
    """At the top, between fields and at the bottom."""
    text = "source KBL 1\nstructure SMALL\n  gen 8  1 dwords\n    0  30:17  upper\n       15:1   lower\n"
    (row,) = bit_diagram.rows(page.read("p", text)["SMALL", 8.0])
    assert [(cell.high, cell.low, cell.kind) for cell in row.cells] == [
        (31, 31, "reserved"), (30, 17, "field"), (16, 16, "reserved"), (15, 1, "field"), (0, 0, "reserved")]  # fmt: skip


def test_dwords_that_only_longer_commands_have_are_shown() -> None:
    """PIPE_CONTROL of Gen7 has four dwords, and one more for the upper half of its data; a page may end with any bit."""
    assert [row.dword for row in bit_diagram.rows(layout("PIPE_CONTROL", 7))] == [0, 1, 2, 3, 4]
    text = PAGE.replace("4 dwords", "1+ dwords").replace("1  63:0   wide", "1  0   last").replace("    or 1  31:0   other\n", "")
    rows = bit_diagram.rows(page.read("p", text)["SMALL", 8.0])
    assert [[cell.text for cell in row.cells] for row in rows] == [["pointer", "mode", ""], ["", "last"]]


def test_a_field_has_a_cell_in_each_of_its_dwords() -> None:
    """Also one that is a single bit at the top, or begins there."""
    text = "source KBL 1\nstructure SMALL\n  gen 8  3 dwords\n    0  31  first\n    1  31:30  second\n    2  0  last\n"
    found = bit_diagram.rows(page.read("p", text)["SMALL", 8.0])
    assert [[(cell.high, cell.low, cell.text) for cell in row.cells if cell.field] for row in found] == [
        [(31, 31, "first")], [(31, 30, "second")], [(0, 0, "last")]]  # fmt: skip
    text = "source KBL 1\nstructure SMALL\n  gen 8  3 dwords\n    0  64:31  long\n"
    found = bit_diagram.rows(page.read("p", text)["SMALL", 8.0])
    assert [[(cell.high, cell.low, cell.text) for cell in row.cells if cell.field] for row in found] == [
        [(31, 31, "long")], [(31, 0, "long")], [(0, 0, "long")]]  # fmt: skip


@pytest.mark.parametrize("dwords, shown, rest", [(1, 1, None), (47, 47, None), (48, 48, None), (49, 48, 1), (60, 48, 12)])
def test_a_long_structure_ends_with_how_many_rows_are_left_out(dwords: int, shown: int, rest: int | None) -> None:
    """A terminal has 48 rows of it."""
    fields = "".join(f"    {dword}  31:0  f{dword}\n" for dword in range(dwords))
    item = page.read("p", f"source KBL 1\nstructure LONG\n  gen 8  {dwords} dwords\n{fields}")["LONG", 8.0]
    _, *drawn = bit_diagram.draw(item, {})
    names = [line.split("│")[1].strip() for line in drawn if "│" in line]
    assert names == [f"f{dword}" for dword in range(shown)]
    assert [line.strip() for line in drawn[2 * shown + 1 :]] == ([] if rest is None else [f"and {rest} rows more"])


def test_groups_are_one_row_and_their_element_is_drawn_apart() -> None:
    rows = bit_diagram.rows(layout("3DSTATE_VERTEX_BUFFERS", 9))
    assert [(row.dword, row.last, [cell.text for cell in row.cells]) for row in rows[1:]] == [(1, 4, ["vertex_buffer[…]"])]
    (group,) = layout("3DSTATE_VERTEX_BUFFERS", 9).groups
    assert [row.dword for row in bit_diagram.element_rows(group)] == [0, 1, 2, 3]
    (row,) = bit_diagram.element_rows(layout("3DSTATE_MULTISAMPLE", 7).groups[0])
    assert [(cell.high, cell.low, cell.text) for cell in row.cells] == [(7, 4, "x_offset"), (3, 0, "y_offset")]
