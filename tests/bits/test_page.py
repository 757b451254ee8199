"""Pages read right, and complain well."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import pytest

from softgen.bits import page
from softgen.bits.catalogue import Catalogue
from softgen.bits.layout import GENERATIONS, Effect, Layout, generations
from softgen.bits.page import enumeration, read, sections
from softgen.errors import SpecError

INDEX_BUFFER = """
source BDW 5700-5800
command 3DSTATE_INDEX_BUFFER  3.3.0.0a  render
  gen ..7.5  3 dwords
    0  15:12  mocs                 mocs                @7+
       10     cut_index_enable     bool                @..7     # 7.5 moved it to 3DSTATE_VF
       9:8    index_format         byte | word | dword
    1  31:0   start                address
    2  31:0   end                  address             # last byte, inclusive
    derive    size                 end - start + 1

  gen 8+  5 dwords
    1  9:8    index_format         byte | word | dword
       6:0    mocs                 mocs
    2  63:0   start                address             ; BDW 5755
    4  31:0   size                 bytes
"""


def test_one_face_on_every_generation() -> None:
    page = read("p", INDEX_BUFFER)
    for gen in GENERATIONS:
        assert {"index_format", "start", "size"} <= set(page["3DSTATE_INDEX_BUFFER", gen].unpack([0] * 5)._fields)
    assert page["3DSTATE_INDEX_BUFFER", 7].unpack([1 << 8, 0x1000, 0x1FFF]).size == 0x1000
    assert page["3DSTATE_INDEX_BUFFER", 9].unpack([0, 2 << 8, 0x1000, 1, 0x40]).start == 0x1_0000_1000


def test_a_line_names_its_own_source() -> None:
    layout = read("p", INDEX_BUFFER)["3DSTATE_INDEX_BUFFER", 8]
    assert layout.field("start").source == "BDW 5755"
    assert layout.field("size").source == "BDW 5700-5800"


def test_a_source_counts_for_the_lines_after_it() -> None:
    """In the same block, and in those that follow in the section, whose `gen` lines name none."""
    text = "source BDW 1\nstructure S\n  gen 8  3 dwords\n    0  31:0  a\n    source KBL 2\n    1  31:0  b\n    2  31:0  c  ; ICL 3\n"
    text += "  gen 9  2 dwords\n    0  31:0  a\n    source public x\n    1  31:0  b\nstructure T\n  gen 8  1 dwords\n    0  31:0  a\n"
    layouts = read("p", text)
    found = {key: [field.source for field in layout.fields] for key, layout in layouts.items()}
    assert found == {("S", 8.0): ["BDW 1", "KBL 2", "ICL 3"], ("S", 9.0): ["KBL 2", "public x"], ("T", 8.0): ["BDW 1"]}


def test_the_header_is_the_key_and_no_field() -> None:
    layout = read("p", INDEX_BUFFER)["3DSTATE_INDEX_BUFFER", 9]
    assert layout.header and layout.header.value == 0x780A0000
    assert layout.length(0x780A0003) == 5
    assert layout.reserved() & 0xFFFFFFFF == 0xFF00


@pytest.mark.parametrize(
    "key, value, length, header, dwords",
    [
        ("0.22", 0x11000000, "", 0x11000001, 3),
        ("0.26", 0x13000000, "length 5:0", 0x13000083, 5),
        ("2.53", 0x54C00000, "", 0x54C00006, 8),
        ("3.2.1.05", 0x71050000, "", 0x7105000D, 15),
        ("3.2.1.1.8", 0x71280000, "", 0x71280004, 6),
        ("3.2.7.7.1f", 0x77FF0000, "", 0x77FF0FFF, 0x1001),
        ("0.3f", 0x1F800000, "", 0x1F8000FF, 0x101),
        ("2.7f", 0x5FC00000, "", 0x5FC00000, 2),
        ("3.3.7.ff", 0x7FFF0000, "", 0x7FFF0100, 2),
        ("3.1.1.04", 0x69040000, "fixed", 0x69040001, 1),
    ],
)
def test_keys(key: str, value: int, length: str, header: int, dwords: int) -> None:
    layout = read("p", f"source public x\ncommand C  {key}  all\n  gen 9  1+ dwords {length}\n")["C", 9]
    assert layout.header and layout.header.value == value
    assert layout.length(header) == dwords


@pytest.mark.parametrize("key, mask, value", [
    ("0.3f", 0xFF800000, 0x1F800000), ("2.7f", 0xFFC00000, 0x5FC00000), ("3.3.7.ff", 0xFFFF0000, 0x7FFF0000),
    ("3.2.7.7.1f", 0xFFFF0000, 0x77FF0000), ("3.0.0.00", 0xFFFF0000, 0x60000000),
])  # fmt: skip
def test_a_key_says_all_bits_from_the_commands_type_to_its_number(key: str, mask: int, value: int) -> None:
    header = read("p", f"source public x\ncommand C  {key}  all\n  gen 9  1+ dwords\n")["C", 9].header
    assert header and (header.mask, header.value) == (mask, value)


@pytest.mark.parametrize("key", [
    "", "x", "0", "0.40", "0.22.0", "0.3.0.08", "0.3.0.0.8", "1.22", "2.80", "2.3.0.08", "7.1", "3.3", "3.3.0", "3.4.0.00", "3.0.8.00",
    "3.0.0.100", "3.3.0.08.1.2", "3.2.0.8.0", "3.2.0.0.20", "3.3.0.0.8", "-1.3.0.08", "3.-1.0.08",
])  # fmt: skip
def test_what_is_no_key_is_refused(key: str) -> None:
    """Numbers that do not fit: six or seven bits of an opcode; two of a subtype, three of an opcode and eight below it, of which B has five."""
    with pytest.raises(SpecError, match=re.escape(f"p:3: {key!r} is no key; keys are 0.OP, 2.OP, 3.S.O.SUB and 3.2.O.A.B with OP, SUB and B")):
        read("p", f"source public x\ncommand C {key} {'all' if key else ''}\n  gen 9 1 dwords engines all\n")


@pytest.mark.parametrize("option, mask, value", [
    ("with 15:12=10", 0xFFFFF000, 0x7808A000), ("with 8=1", 0xFFFF0100, 0x78080100), ("with 8=0", 0xFFFF0100, 0x78080000),
    ("with 15:8=3", 0xFFFFFF00, 0x78080300), ("", 0xFFFF0000, 0x78080000),
])  # fmt: skip
def test_a_key_may_take_in_further_bits_of_the_header(option: str, mask: int, value: int) -> None:
    header = read("p", f"source public x\ncommand C  3.3.0.08  render\n  gen 9  2 dwords  {option}\n    1  31:0  value\n")["C", 9].header
    assert header and (header.mask, header.value, header.length, header.bias) == (mask, value, (7, 0), 2)


def test_only_registers_have_an_offset() -> None:
    layout = read("p", "source public x\nstructure S\n  gen 9  1 dwords\n    0  31:0  value\n")["S", 9]
    assert (layout.offset, layout.relative, layout.count, layout.key) == (None, False, 1, "")


def test_a_group_ends_within_the_longest_command() -> None:
    """Half a MiB: 2^22 bits."""
    text = "source public x\nstructure S\n  gen 9  1+ dwords\n    group g  at {}  size 32768  times 128\n      7:0  a\n"
    assert read("p", text.format("0"))["S", 9].groups[0].times(1 << 22) == 128
    with pytest.raises(SpecError, match="p:4: group g must have a size and a count above zero, and end before bit 4194304"):
        read("p", text.format("0.1"))


def test_groups_pieces_readings_and_structures() -> None:
    page = read(
        "p",
        """
source public x
structure ELEMENT
  gen 9  2 dwords
    0  31:4   where     address - data
       3:0    bias      s1.2
    1  7:0,15:8  turned
command C  3.3.0.08  render
  gen 9  2+ dwords
    0  9:8    mode      plain | other
    1  31:0   value                when mode=plain
    or 31:0   number    float      when mode=other
    group element  at 2  size 64  times *  of ELEMENT
""",
    )
    layout = page["C", 9]
    dwords = layout.pack(mode=1, element=[{"where": 0x20, "bias": -1.75, "turned": 0x1234}, {"turned": 0xFF}])
    assert len(dwords) == 6 and dwords[0] == 0x78080104
    got = layout.unpack(dwords)
    assert got.element[0].where == 0x20 and got.element[0].bias == -1.75 and dwords[3] == 0x3412
    assert [e.turned for e in got.element] == [0x1234, 0xFF]
    assert layout.reserved(6) >> 96 & 0xFFFF0000 == 0xFFFF0000
    assert layout.fields[2].alternate and layout.fields[2].when[0].values == (1,)


def test_a_group_of_a_structure_has_its_derived_attributes() -> None:
    text = "source public x\nstructure S\n  gen 9  1 dwords\n    0 7:0 a\n    0 15:8 b\n    derive c a + b\n    derive d c * 2\n"
    text += "structure T\n  gen 9  2 dwords\n    group s at 0 size 32 times 2 of S\n"
    got = read("p", text)["T", 9].unpack([0x0203, 0x0405])
    assert [(e.c, e.d) for e in got.s] == [(5, 10), (9, 18)]


def test_a_group_with_lines_of_its_own_has_derived_attributes() -> None:
    text = "source public x\nstructure S\n  gen 8,9  2 dwords\n    group s at 0 size 32 times 2\n      7:0 a\n      15:8 b\n"
    text += "      derive c a + b  @9\n      group t at 0.16 size 8 times 2\n        7:0 e\n        derive f e << 1\n    derive g 7\n"
    found = read("p", text)
    got = found["S", 9].unpack([0x0504_0203, 0])
    assert got.g == 7 and got.s[0]._asdict() == {"a": 3, "b": 2, "c": 5, "t": ((4, 8), (5, 10))} and got.s[0].t[1].f == 10
    assert found["S", 8].unpack([3, 0]).s[0]._fields == ("a", "b", "t")


def test_derived_attributes_divide_and_shift_by_small_numbers() -> None:
    text = "source public x\nstructure S\n  gen 9  1 dwords\n    0 5:0 few\n      31:8 many\n"
    (layout,) = read("p", f"{text}    derive a many // 4\n    derive b many << few\n    derive c many >> 63\n"
                     "    derive d many << 0\n    derive e many >> 0\n    derive f many // 1\n    derive g few << 63\n").values()  # fmt: skip
    assert layout.unpack([1000 << 8 | 3])[-7:] == (250, 8000, 0, 1000, 1000, 1000, 3 << 63)
    with pytest.raises(SpecError, match="expression names no field: 'nothing'"):
        read("p", f"{text}    derive a many << nothing\n")
    for bad in ("many // 0", "many // few", "many << 64", "few >> many", "1\n    derive b many << a"):
        with pytest.raises(SpecError, match="may shift by numbers below 64 and fields of at most 6 bits, and divide by numbers above 0"):
            read("p", f"{text}    derive a {bad}\n")


def test_a_group_up_to_the_end_leaves_bits_between_its_fields_to_others() -> None:
    layout = read("p", OPEN.format("3 31:16,7:0 a") + "    group h at 4.16 size 32 times *\n      15:0 c\n")["S", 9]
    got = layout.unpack([0, 0x100, 0x200, 0x1234_0356, 0x789A_0400])
    assert [e.b for e in got.g] == [1, 2, 3, 4] and got.a == 0x123456


def test_nested_groups() -> None:
    text = "source public x\nstructure S\n  gen 9  2 dwords\n    group row  at 0  size 32  times 2\n"
    text += "      group cell  at 0.8  size 4  times 3\n        3:1  v\n"
    layout = read("p", text)["S", 9]
    got = layout.unpack([0b1110_1010_0110 << 8, 0])
    assert [c.v for c in got.row[0].cell] == [3, 5, 7] and [c.v for c in got.row[1].cell] == [0, 0, 0]


def test_enumerations_are_gated() -> None:
    (section,) = sections("p", "source public x\nenum Compare\n  0  always\n  0x1  never\n  2  less  @..7.5\n  2  smaller  @8+\n")
    assert enumeration(section)[9.0] == {0: "always", 1: "never", 2: "smaller"}
    assert enumeration(section)[7.0][2] == "less"


def test_ranges() -> None:
    assert generations("8+") == {8, 9, 11} and generations("..7.5") == {4, 4.5, 7, 7.5}
    assert generations("7..8") == {7, 7.5, 8} and generations("7,9+") == {7, 9, 11}


# Each bad page with the complaint it must get.
HEAD = "source public x\nstructure S\n  gen 9  1 dwords\n"
OF_ELEMENT = "source public x\nstructure E\n  gen 9  1 dwords\n    0 7:0 a\nstructure S\n  gen 9  1 dwords\n    group g at 0 size 32 times 1 of E\n"
OPEN = "source public x\nstructure S\n  gen 9  1+ dwords\n    {}\n    group g at 1 size 32 times *\n      15:8 b\n"
BAD = {
    "overlap": (HEAD + "    0 5:0 a\n      3 b\n", "p:5: S.b overlaps a; write 'or' if it is meant"),
    "overlap with the header": ("source public x\ncommand C 0.22 all\n  gen 9 1+ dwords\n    0 5 a\n", "p:4: C.a overlaps the header; write 'or' if it is meant"),
    "past end": (HEAD + "    1 0 a\n", "p:4: S.a ends at bit 32 of 32"),
    "part past end": (HEAD + "    0 1/3:0,31:24 a\n", "p:4: S.a ends at bit 35 of 32"),
    "nonsense": (HEAD + "    hello\n", "p:4: cannot read 'hello'"),
    "twice": (HEAD + "    0 1 a\n  gen 8+  1 dwords\n    0 1 a\n", "p:5: S is laid out twice for gen 9"),
    "named twice": (HEAD + "    0 1 a\n    0 2 a\n", "p:5: S.a is named twice"),
    "group named as a field": (HEAD + "    0 7:0 a\n    group a at 0.8 size 8 times 2\n      7:0 b\n", "p:5: S.a is named twice"),
    "group named twice": (HEAD + "    group g at 0 size 8 times 2\n      7:0 b\n    group g at 0.16 size 8 times 2\n      7:0 b\n", "p:6: S.g is named twice"),
    "derived named as a field": (HEAD + "    0 7:0 a\n    derive a a + 1\n", "p:5: S.a is named twice"),
    "derived named twice": (HEAD + "    0 7:0 a\n    derive b a + 1\n    derive b a + 2\n", "p:6: S.b is named twice"),
    "derived named as a group": (HEAD + "    0 7:0 a\n    group g at 0.8 size 8 times 2\n      7:0 b\n    derive g a + 1\n", "p:7: S.g is named twice"),
    "no source": ("structure S\n  gen 9  1 dwords\n    0 1 a\n", "p:1: S has no source; write 'source …' above it"),
    "bad source": ("source rumour\n", "p:1: a source is BDW, KBL, G45, IVB or ICL with line numbers, or public and a name, not 'rumour'"),
    "bad kind": ("source public x\nthing S\n", "p:2: cannot read 'thing S'; a section is one of command, structure, register, message, instruction, enum or source"),
    "bad gate": (HEAD + "    0 1 a @6\n", "p:4: no generations in '6'; they are 4, 4.5, 7, 7.5, 8, 9, 11"),
    "bad gen": ("source public x\nstructure S\n  gen 9  dwords\n", "p:3: cannot read 'gen 9  dwords'; expected 'gen 8+  9 dwords'"),
    "bits upside down": (HEAD + "    0 3:5 a\n", "p:4: bits run from high to low, not 3:5"),
    "no type": (HEAD + "    0 5:0 a colour\n", "p:4: 'colour' is no type; types are uint, int, bool, address, bytes, float, double, half, fixed, mocs, offset, mbz, mbo, enum, struct, minus1, u4.8, s4.8 and a | b | c"),
    "wide bool": (HEAD + "    0 5:0 a bool\n", "p:4: a bool is 1 bits wide, not 6"),
    "wrong fixed point": (HEAD + "    0 5:0 a u4.8\n", "p:4: u4.8 is 12 bits wide, the field 6"),
    "enum too big": (HEAD + "    0 0 a x | y | z\n", "p:4: 'z' has value 2, which is taken or does not fit 1 bits"),
    "bad base": (HEAD + "    0 31:6 a address moon\n", "p:4: an address counts from general, surface, dynamic, instruction, indirect, bindless, -, not 'moon'"),
    "bad condition": (HEAD + "    0 1:0 m x | y\n    0 5 a when m=z\n", "p:5: m has no value 'z'"),
    "derived from nothing": (HEAD + "    0 5:0 a\n    derive b a + c\n", "p:5: expression names no field: 'c'"),
    "derived before": (HEAD + "    0 5:0 a\n    derive b c\n    derive c a\n", "p:5: expression names no field: 'c'"),
    "derived in a group": (HEAD + "    0 31 b\n    group g at 0 size 8 times 1\n      5:0 a\n      derive c b\n", "p:7: expression names no field: 'b'"),
    "derived twice in a group": (HEAD + "    group g at 0 size 8 times 1\n      5:0 a\n      derive a 1\n", "p:6: S.g.a is named twice"),
    "derived by a call": (HEAD + "    0 5:0 a\n    derive b a.real\n", "p:5: expression 'a.real' may use + - * // << >> & | ( ), whole numbers and fields"),
    "group past end": (HEAD + "    group g at 0 size 32 times 2\n      0 a\n", "p:4: S.g ends at bit 63 of 32"),
    "group overlap": (HEAD + "    0 4 a\n    group g at 0 size 8 times 4\n      7:0 b\n", "p:5: S.g overlaps other fields; write 'or' if it is meant"),
    "group to the end over a field": (OPEN.format("2 8 a"), "p:5: S.g overlaps other fields; write 'or' if it is meant"),
    "group to the end over a group": (OPEN.format("0 8 a") + "    group h at 3 size 16 times 1\n      8 c\n", "p:7: S.h overlaps other fields; write 'or' if it is meant"),
    "group to the end over a later element": (OPEN.replace("32", "96").format("0 8 a") + "    group h at 2 size 128 times 3\n      8 c\n", "p:7: S.h overlaps other fields; write 'or' if it is meant"),
    "past the end of a group": (HEAD + "    group g at 0 size 8 times 2\n      8:0 a\n", "p:5: S.g.a ends at bit 8 of 8"),
    "groups to the end": (OPEN.format("0 8 a") + "    group h at 1 size 64 times *\n      8 c\n", "p:7: S.h overlaps other fields; write 'or' if it is meant"),
    "empty group": (HEAD + "    group g at 0 size 8 times 4\n", "p:4: group g has no fields"),
    "group of nothing": (HEAD + "    group g at 0 size 8 times 4 of T\n", "p:4: group g is of T, which gen 9 does not have"),
    "group of a structure with a field": (OF_ELEMENT + "      15:8 b\n", "p:7: group g is of E, and has lines of its own"),
    "group of a structure with a group": (OF_ELEMENT + "      group h at 0 size 8 times 1\n        0 b\n", "p:7: group g is of E, and has lines of its own"),
    "group of a structure that derives": (OF_ELEMENT + "      derive b 1\n", "p:7: group g is of E, and has lines of its own"),
    "bad key": ("source public x\ncommand C 7.1 all\n  gen 9 1 dwords\n", "p:3: '7.1' is no key; keys are 0.OP, 2.OP, 3.S.O.SUB and 3.2.O.A.B with OP, SUB and B in hex"),
    "key too big": ("source public x\ncommand C 0.80 all\n  gen 9 1 dwords\n", "p:3: '0.80' is no key; keys are 0.OP, 2.OP, 3.S.O.SUB and 3.2.O.A.B with OP, SUB and B in hex"),
    "bad engine": ("source public x\ncommand C 0.22 moon\n  gen 9 1 dwords\n", "p:2: command C needs a key and engines out of render, blitter, video, video_enhance, position_only, not '0.22 moon'"),
    "words after the engines": ("source public x\ncommand C 0.22 all soon\n  gen 9 1 dwords\n", "p:2: command C needs a key and engines out of render, blitter, video, video_enhance, position_only, not '0.22 all soon'"),
    "no engine": ("source public x\ncommand C 0.22\n  gen 9 1 dwords\n", "p:2: command C needs a key and engines out of render, blitter, video, video_enhance, position_only, not '0.22'"),
    "no engine of this generation": ("source public x\ncommand C 0.22 render@8\n  gen 9 1 dwords\n", "p:2: command C needs a key and engines out of render, blitter, video, video_enhance, position_only, not '0.22 render@8'"),
    "bad option": ("source public x\ncommand C 0.22 all\n  gen 9 1 dwords soon\n", "p:3: 'soon' is no option of a gen line; key, length, bias, at, times, engines, with and fixed are"),
    "no generation": ("source public x\nstructure S\n", "p:2: S has no `gen` block"),
    "tab": (HEAD + "    0 5:0\ta\n", "p:4: a tab; pages are aligned with spaces"),
    "before anything": ("  0 5:0 a\n", "p:1: cannot read '0 5:0 a' before any command, structure, register or enum"),
}  # fmt: skip


@pytest.mark.parametrize("text, complaint", BAD.values(), ids=BAD)
def test_bad_pages_are_refused(text: str, complaint: str) -> None:
    with pytest.raises(SpecError) as error:
        read("p", text)
    assert str(error.value) == complaint


EFFECTS = """source KBL 1
command A_COMMAND  3.3.0.10  render
  {effect}
  gen 8+  3 dwords
    1  31:6   pointer  address dynamic data  gate pointer_valid
       0      pointer_valid  bool
    2  7:4    index
       0      clear_enable   bool
"""


@pytest.mark.parametrize(("text", "expected"), [
    ("latches  group depth", Effect("latches", group="depth")),
    ("latches  group depth  acts when clear_enable", Effect("latches", group="depth", acts_when=("clear_enable",))),
    ("merges by index  group depth", Effect("merges", "index", ("index",), "depth")),
    ("merges by index,clear_enable  group depth", Effect("merges", "index", ("index", "clear_enable"), "depth")),
    ("merges by gates  group depth", Effect("merges", "gates", group="depth")),
    ("merges by position  group depth", Effect("merges", "position", group="depth")),
    ("merges under index  group depth", Effect("merges", "mask", ("index",), "depth")),
    ("acts", Effect("acts")),
    ("starts", Effect("starts")),
])  # fmt: skip
def test_a_command_says_what_it_does(text: str, expected: Effect) -> None:
    found = page.read("p", EFFECTS.format(effect=text))["A_COMMAND", 9.0]
    assert found.effect == expected and found.field("pointer").gates == ("pointer_valid",)
    assert found.effect is not None and found.effect.sets_state == (expected.kind in ("latches", "merges"))


def test_a_line_after_gen_or_with_a_gate_says_it_for_some_generations() -> None:
    text = EFFECTS.format(effect="acts\n  starts  @11")
    found = page.read("p", text)
    assert [found["A_COMMAND", gen].effect for gen in (9.0, 11.0)] == [Effect("acts"), Effect("starts")]
    found = page.read("p", text.replace("3 dwords\n", "3 dwords\n    latches  group g\n"))
    assert found["A_COMMAND", 9.0].effect == Effect("latches", group="g")


@pytest.mark.parametrize(("text", "complaint"), [
    ("latches", "p:3: 'latches' does not say what the command does"),
    ("acts  group depth", "p:3: 'acts  group depth' does not say what the command does"),
    ("merges  group depth", "does not say what the command does"),
    ("merges by nothing  group depth", "has no field 'nothing' on gen 8"),
    ("latches  group depth  acts when nothing", "has no field 'nothing' on gen 8"),
    ("latches  group depth  acts when pointer_valid,clear_enable",
     "p:4: A_COMMAND acts when pointer_valid and clear_enable on gen 8; these bits must stand in one dword"),
])  # fmt: skip
def test_a_line_that_does_not_say_what_a_command_does_is_refused(text: str, complaint: str) -> None:
    with pytest.raises(SpecError, match=re.escape(complaint)):
        page.read("p", EFFECTS.format(effect=text))


def test_a_gate_that_is_no_bit_beside_the_field_is_refused() -> None:
    with pytest.raises(SpecError, match=r"p:5: A_COMMAND\.pointer has the gate 'other', which is no bit beside it"):
        page.read("p", EFFECTS.format(effect="acts").replace("gate pointer_valid", "gate other"))
    with pytest.raises(SpecError, match="merges by gates on gen 8, where no field has a gate"):
        page.read("p", EFFECTS.format(effect="merges by gates  group g").replace("  gate pointer_valid", ""))


# -- what is read, and when


PARTED = """
source BDW 1
structure S
  gen 8  1 dwords
    0  31:0  no such type here
  gen 9+  1 dwords                # a gen line with a comment
    0  31:0  value
register R  0x2000  render
  gen 9  2 dwords  times 4
    no field
"""


def test_a_generation_is_read_without_the_others() -> None:
    pages = Catalogue([("p", PARTED)])
    assert pages.layout("S", 9.0).field("value").line == 7
    assert pages.get("S", 7.0) is None and pages.generations("S") == (8.0, 9.0, 11.0)
    with pytest.raises(SpecError, match="p:5: "):
        pages.history("S")


def test_a_layout_is_made_once() -> None:
    pages = Catalogue([("p", INDEX_BUFFER)])
    first = pages.layout("3DSTATE_INDEX_BUFFER", 9.0)
    assert pages.history("3DSTATE_INDEX_BUFFER")[9.0] is first is pages.get("3DSTATE_INDEX_BUFFER", 9.0)
    assert list(pages.history("3DSTATE_INDEX_BUFFER")) == list(GENERATIONS)


def test_a_history_reads_in_one_go_what_is_not_known_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    pages, asked, layouts = Catalogue([("p", INDEX_BUFFER)]), list[frozenset[float]](), page.layouts

    def counted(section: page.PageSection, resolve: Callable[[str, float], Layout], wanted: frozenset[float]) -> Iterator[Layout]:
        asked.append(wanted)
        return layouts(section, resolve, wanted)

    monkeypatch.setattr(page, "layouts", counted)
    pages.layout("3DSTATE_INDEX_BUFFER", 9.0)
    for _ in range(2):
        assert [layout.gen for layout in pages.history("3DSTATE_INDEX_BUFFER").values()] == list(GENERATIONS)
    assert asked == [{9.0}, set(GENERATIONS) - {9.0}]


def test_the_place_of_a_register_is_known_without_its_fields() -> None:
    pages = Catalogue([("p", PARTED)])
    assert list(pages.registers(9.0)) == [("R", page.RegisterSpan(0x2000, False, 32, ("render",)))] and not list(pages.registers(8.0))
    with pytest.raises(SpecError, match="p:10: cannot read"):
        pages.layout("R", 9.0)


@pytest.mark.parametrize("text, complaint", [
    ("  lost\n", "p:1: cannot read 'lost' before"),
    ("# comment\nsource BDW 1\n\n  lost\nenum E\n", "p:4: cannot read 'lost' before"),
    ("source BDW 1\nenum E\n  0 a\nnonsense\n", "p:4: cannot read 'nonsense'"),
    ("enum E\n  0\ta\n", "p:2: a tab"),
    ("enum E\r\n  0 \x01\r\n", "p:2: .* no plain ASCII"),
])  # fmt: skip
def test_a_complaint_names_the_line(text: str, complaint: str) -> None:
    with pytest.raises(SpecError, match=complaint):
        list(sections("p", text))


def test_numbers_of_dwords_have_up_to_five_digits() -> None:
    pages = Catalogue([("p", "source BDW 1\nstructure S\n  gen 9  10001 dwords\n    9999  7:0  last\n    10000  7:0  beyond\n")])
    assert pages.layout("S", 9.0).raw([0] * 9999 + [3, 4])._asdict() == {"last": 3, "beyond": 4}


def test_comments_may_hold_anything() -> None:
    (found,) = sections("p", "enum E  # \t×\r\n  # é\r\n  0 a  # \x01\r\n")
    assert (found.line, found.body) == (1, ((3, "  0 a"),))
