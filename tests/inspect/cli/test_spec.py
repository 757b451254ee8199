"""`softgen spec`: look-up however people write it, diagrams, differences between GPUs."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest

from softgen.bits import page
from softgen.bits.catalogue import catalogue
from softgen.bits.layout import Layout
from softgen.inspect.cli import spec as cli_spec
from softgen.inspect.cli import spec_diff
from softgen.inspect.cli.main import main
from softgen.inspect.cli.output import Paint
from softgen.inspect.spec import spec_names
from softgen.inspect.spec.spec_diff import compare, place


def spec(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> str:
    assert main(["spec", *arguments]) == code
    out, err = capsys.readouterr()
    return err if code else out


# -- names -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("asked", "found"), [
    ("3dstate_vs", "3DSTATE_VS"),
    ("depth stencil", "3DSTATE_WM_DEPTH_STENCIL"),
    ("stencil-depth", "3DSTATE_WM_DEPTH_STENCIL"),
    ("surface_state", "RENDER_SURFACE_STATE"),
    ("0x2358", "TIMESTAMP"),
    ("0x2034", "RING_BUFFER_HEAD"),
    ("0x7a000004", "PIPE_CONTROL"),
    ("0x05000000", "MI_BATCH_BUFFER_END"),
    ("0x00800000", "MI_SET_PREDICATE"),  # registers end below it
    ("surface_format", "SURFACE_FORMAT"),
    ("pipecontrol", "PIPE_CONTROL"),
    ("MiBatchBufferStart", "MI_BATCH_BUFFER_START"),
])  # fmt: skip
def test_a_name_is_found(asked: str, found: str) -> None:
    assert found in spec_names.find(asked)


@pytest.mark.parametrize(("asked", "meant"), [
    ("3DSTATE_VERTX_BUFFERS", "3DSTATE_VERTEX_BUFFERS"),
    ("3DSTATE_VERTX", "did you mean 3DSTATE_VERTEX_BUFFERS"),
    ("pipe_contrl", "PIPE_CONTROL"),
    ("BATCH_BUFER_START", "MI_BATCH_BUFFER_START"),
    ("rendr_surface_state", "RENDER_SURFACE_STATE"),
    ("DETA_IMM", "did you mean MI_STORE_DATA_IMM or MI_RS_STORE_DATA_IMM"),  # two that end alike
])  # fmt: skip
def test_did_you_mean(capsys: pytest.CaptureFixture[str], asked: str, meant: str) -> None:
    err = spec(capsys, asked, code=2)
    assert f"no page describes '{asked}'; did you mean" in err and meant in err


def test_what_looks_like_nothing_gets_no_advice(capsys: pytest.CaptureFixture[str]) -> None:
    assert spec(capsys, "qqqqqqqqqq", code=2) == "softgen: no page describes 'qqqqqqqqqq'\n"
    assert spec(capsys, "0x7fffff", code=2) == "softgen: no page describes '0x7fffff'\n"
    assert "'0xffffffff'" in spec(capsys, "0xffffffff", "--gpu", "kbl", code=2)


def test_a_number_counts_on_the_gpu_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    assert "IPEHR" in spec(capsys, "0x1c0068", "--gpu", "icl")
    assert "no page describes '0x1c0068'" in spec(capsys, "0x1c0068", "--gpu", "ivb", code=2)


def test_by_a_field(capsys: pytest.CaptureFixture[str]) -> None:
    out = spec(capsys, "kernel_start_pointer")
    assert "INTERFACE_DESCRIPTOR_DATA" in out and "3DSTATE_VS" in out


def test_words_and_kinds(capsys: pytest.CaptureFixture[str]) -> None:
    out = spec(capsys, "vertex", "buffer", "--kind", "command")
    assert "3DSTATE_VERTEX_BUFFERS" in out and "VERTEX_BUFFER_STATE" not in out


def test_enumerations(capsys: pytest.CaptureFixture[str]) -> None:
    out = spec(capsys, "SURFACE_FORMAT")
    assert out.startswith("SURFACE_FORMAT  enum\n") and "R32G32B32A32_FLOAT" in out
    found = json.loads(spec(capsys, "SURFACE_FORMAT", "--json", "--gpu", "kbl"))
    assert found["SURFACE_FORMAT"]["values"]["0"] == "R32G32B32A32_FLOAT"
    assert "Sampler_Count" in spec(capsys, "--kind", "enum")


# -- text ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("encoding, drawn", [("utf-8", True), ("UTF-16", True), ("ascii", False), ("latin-1", False), (None, True)])
def test_a_box_is_drawn_with_what_the_output_can_show(encoding: str | None, drawn: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """An output that does not say what it can show is one in memory, which takes any text."""
    output = io.StringIO() if encoding is None else io.TextIOWrapper(io.BytesIO(), encoding)
    monkeypatch.setattr("sys.stdout", output)
    assert main(["spec", "3DSTATE_VS", "--gpu", "kbl"]) == 0
    output.seek(0)
    found = output.read()
    assert ("│" in found, "+--" in found) == (drawn, not drawn) and "kernel_start_pointer" in found


def test_the_diagram_and_the_table(capsys: pytest.CaptureFixture[str]) -> None:
    out = spec(capsys, "3DSTATE_VS", "--gpu", "kbl").splitlines()
    assert out[0].startswith("3DSTATE_VS  command, gen 9")
    assert any("0x7810" in line and "length" in line for line in out)
    table = next(i for i, line in enumerate(out) if line.split()[:3] == ["dword", "bits", "name"])
    assert table > 10 and out[table + 1].split()[:4] == ["1", "1", "63:6", "kernel_start_pointer"]
    plain = spec(capsys, "3DSTATE_VS", "--gpu", "kbl", "--no-diagram").splitlines()
    assert plain[2:] == out[table:]


def test_groups_are_drawn_once(capsys: pytest.CaptureFixture[str]) -> None:
    out = spec(capsys, "3DSTATE_VERTEX_BUFFERS", "--gpu", "kbl")
    assert "vertex_buffer: 128 bits, as often as there is room, from dword 1" in out and "buffer_pitch" in out


def test_a_field_of_the_table() -> None:
    """Bits count from the first dword of the field; of many values the first eight are named."""
    text = """\
source KBL 1
structure THING
  gen 8..9  3 dwords
    0  31:12,2/3:0  split  address
       11:9         eight  a | b | c | d | e | f | g | h
       8:5          nine   a | b | c | d | e | f | g | h | i
       4            flag   bool                  when eight = 1,2
    or 0  4         other  bool                  when eight != 3
    group pair at 1 size 16 times 2
      0  7:0        one
"""
    thing = page.read("p", text)["THING", 9.0]
    rows = [cli_spec.row(field, groups, thing, Paint(False))[:4] for field, groups in thing.walk()]
    assert rows == [
        ("0", "31:12,67:64", "split", "address"), ("0", "11:9", "eight", "0 a | 1 b | 2 c | 3 d | 4 e | 5 f | 6 g | 7 h"),
        ("0", "8:5", "nine", "0 a | 1 b | 2 c | 3 d | 4 e | 5 f | 6 g | 7 h | …"), ("0", "4", "flag", "bool when eight=1,2"),
        ("0", "4", "other", "bool when eight!=3"), ("0", "7:0", "pair[2].one", "uint"),
    ]  # fmt: skip


def test_generations_that_read_alike_are_shown_once(capsys: pytest.CaptureFixture[str]) -> None:
    heads = [line for line in spec(capsys, "3DSTATE_VS", "--no-diagram").splitlines() if line.startswith("3DSTATE_VS")]
    assert [head.partition("gen ")[2].partition(",")[0] for head in heads] == ["7", "7.5", "8 9", "11"]


@pytest.mark.parametrize("name, head", [
    ("3DSTATE_SAMPLE_MASK", "command, gen 9, key 3.3.0.18, 2 dwords, render"),
    ("3DSTATE_VERTEX_BUFFERS", "command, gen 9, key 3.3.0.08, 5 dwords or more, render position_only"),
    ("RENDER_SURFACE_STATE", "structure, gen 9, 16 dwords"),
    ("MI_USER_INTERRUPT", "command, gen 9, key 0.02, 1 dword, render blitter video video_enhance"),
])  # fmt: skip
def test_the_head_of_a_page_says_how_long_a_thing_is(name: str, head: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert spec(capsys, name, "--gpu", "kbl", "--no-diagram").splitlines()[0] == f"{name}  {head}"


def test_a_list_of_names_says_where_each_is(capsys: pytest.CaptureFixture[str]) -> None:
    rows = {line.split()[0]: line.split()[1:] for line in spec(capsys, "3dstate", "vertex").splitlines()}
    assert rows["3DSTATE_VERTEX_BUFFERS"] == ["command", "3.3.0.08", "4", "4.5", "7", "7.5", "8", "9", "11", "three_d/vertex_fetch.layout"]


def test_second_readings_and_conditions_in_json(capsys: pytest.CaptureFixture[str]) -> None:
    """COLOR_CALC_STATE: the reference value of the alpha test is a byte or a float (KBL, Alpha Test Format)."""
    found = json.loads(spec(capsys, "COLOR_CALC_STATE", "--gpu", "kbl", "--json"))["COLOR_CALC_STATE"]["fields"]
    fields = {field["name"]: field for field in found}
    byte, number, format = (fields[f"alpha_{name}"] for name in ("reference_value_as_unorm8", "reference_value_as_float32", "test_format"))
    assert ("alternate" in byte, number["alternate"], "alternate" in format, "when" in format) == (False, True, False, False)
    assert [field["when"] for field in (byte, number)] == [
        [{"field": "alpha_test_format", "values": [value], "not": False}] for value in (0, 1)]  # fmt: skip


def test_lengths_and_engines_of_commands_in_json(capsys: pytest.CaptureFixture[str]) -> None:
    """null: as long as the length field can say. What is no command has no engines."""
    shown = {}
    for name in ("3DSTATE_VS", "MI_LOAD_REGISTER_IMM", "XY_COLOR_BLT", "SAMPLER_STATE"):
        found = json.loads(spec(capsys, name, "--gpu", "kbl", "--json"))[name]
        shown[name] = (found["dwords"], found.get("maximum_dwords", "fixed"), found.get("engines"))
    assert shown == {"3DSTATE_VS": (9, "fixed", ["render", "position_only"]), "XY_COLOR_BLT": (7, "fixed", ["blitter"]),
                     "SAMPLER_STATE": (4, "fixed", None),
                     "MI_LOAD_REGISTER_IMM": (3, None, ["render", "blitter", "video", "video_enhance", "position_only"])}  # fmt: skip


def test_numbers_with_a_fraction_in_json(capsys: pytest.CaptureFixture[str]) -> None:
    found = json.loads(spec(capsys, "SAMPLER_STATE", "--gpu", "kbl", "--json"))["SAMPLER_STATE"]["fields"]
    fixed = [field for field in found if "fraction" in field or "signed" in field]
    assert {field["name"]: (field["type"], field["fraction"], field["signed"]) for field in fixed} == {
        "texture_lod_bias": ("fixed", 8, True), "min_lod": ("fixed", 8, False), "max_lod": ("fixed", 8, False)}  # fmt: skip


def test_fields_in_several_pieces_in_json(capsys: pytest.CaptureFixture[str]) -> None:
    """The most significant piece first; other fields have none."""
    found = json.loads(spec(capsys, "3DSTATE_GS", "--gpu", "kbl", "--json"))["3DSTATE_GS"]["fields"]
    (field,) = (field for field in found if "pieces" in field)
    assert (field["name"], field["pieces"]) == ("dispatch_grf_start_register_for_urb_data", [[222, 221], [195, 192]])
    assert (field["high"], field["low"]) == (222, 192)


# -- differences -----------------------------------------------------------------------------------------------------


def made(text: str) -> Layout:
    found = page.read("p", f"source KBL 1\nstructure THING\n  gen 9  2 dwords\n{text}")
    return found["THING", 9.0]


OLD = """\
    0  31:12  address_of_buffer  address
       5:4    stays              off | on
       3      leaves             bool
       2      old_cache_flag     bool
       1      takes_over         bool
    1  31:0   goes
"""
NEW = """\
    0  31:12  buffer_address     address
       5:4    stays              off | on | maybe
       2      new_cache_flag     bool
       1      something_else     bool
       0      comes              bool
    1  15:0   goes
"""


def test_each_kind_of_change() -> None:
    found = [(change.kind, change.name) for change in compare("THING", made(OLD), made(NEW)).changes]
    assert found == [("added", "comes"), ("added", "something_else"), ("removed", "takes_over"), ("removed", "leaves"), ("moved", "goes"),
                     ("renamed", "new_cache_flag"), ("renamed", "buffer_address"), ("changed", "stays")]  # fmt: skip
    assert compare("THING", made(OLD), made(OLD)).kind == "same"
    assert (compare("THING", None, made(OLD)).kind, compare("THING", made(OLD), None).kind) == ("added", "removed")


def test_each_kind_of_change_in_words() -> None:
    lines = [line.split() for line in spec_diff.lines([compare("THING", made(OLD), made(NEW))], True, Paint(False))]
    assert lines[0] == ["THING", "changed"] and "+ added 0 0 comes: bool".split() in lines and "- removed 0 3 leaves: bool".split() in lines
    assert [" ".join(line) for line in lines[-4:]] == [
        "> moved 1 31:0 to 1 15:0 goes", "~ renamed 0 2 old_cache_flag is now new_cache_flag",
        "~ renamed 0 31:12 address_of_buffer is now buffer_address", "* changed 0 5:4 stays: 0 off | 1 on is now 0 off | 1 on | 2 maybe",
    ]  # fmt: skip


def test_a_short_word_in_common_is_no_new_name() -> None:
    """Of two letters, such as vs and ps: units, which many fields have."""
    before, after = made("    0  2  vs_stall  bool\n"), made("    0  2  vs_prefetch  bool\n")
    assert [(change.kind, change.name) for change in compare("THING", before, after).changes] == [
        ("added", "vs_prefetch"), ("removed", "vs_stall")]  # fmt: skip


COMMON = ("enable", "enabled", "disable", "state", "mode", "control", "select", "mask", "number", "and", "the", "type", "bit", "value")


@pytest.mark.parametrize("word", COMMON)
def test_a_common_word_is_no_new_name(word: str) -> None:
    before, after = made(f"    0  2  stall_{word}  bool\n"), made(f"    0  2  {word}_prefetch  bool\n")
    assert [change.kind for change in compare("THING", before, after).changes] == ["added", "removed"]


def test_words_of_three_letters_that_tell_something_are_a_new_name() -> None:
    (change,) = compare("THING", made("    0  2  fog_stall  bool\n"), made("    0  2  of_fog  bool\n")).changes
    assert (change.kind, change.name) == ("renamed", "of_fog")


@pytest.mark.parametrize("pieces, text", [
    (((31, 27),), (0, "31:27")), (((35, 35),), (1, "3")), (((95, 70),), (2, "31:6")), (((63, 6),), (0, "63:6")), (((63, 32),), (1, "31:0")),
    (((1023, 992),), (31, "31:0")), (((47, 32), (31, 6)), (0, "47:32,31:6")), (((31, 0), (67, 64)), (0, "31:0,67:64")),
])  # fmt: skip
def test_places_count_from_their_first_dword(pieces: tuple[tuple[int, int], ...], text: tuple[int, str]) -> None:
    assert place(pieces) == text


def test_long_meanings_are_cut_to_60_characters() -> None:
    assert spec_diff.short("x" * 60) == "x" * 60 and spec_diff.short("x" * 61) == "x" * 59 + "…"


def test_the_difference_of_one_name(capsys: pytest.CaptureFixture[str]) -> None:
    out = spec(capsys, "3DSTATE_VS", "--diff", "kbl", "icl")
    assert out.startswith("kbl (gen 9) to icl (gen 11)\n3DSTATE_VS  changed\n")
    assert "+ added    7 9                 simd8_single_instance_dispatch_enable: bool" in out
    assert "> moved    7 31:23 to 7 31:22  maximum_number_of_threads" in out


def test_the_difference_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    found = json.loads(spec(capsys, "3DSTATE_VS", "--diff", "kbl", "icl", "--json"))
    assert (found["from"], found["to"]) == ("kbl", "icl")
    changes: dict[str, Any] = {item["name"]: item for item in found["names"]["3DSTATE_VS"]["fields"]}
    moved = changes["maximum_number_of_threads"]
    assert (moved["change"], moved["from"]["bits"], moved["to"]["bits"]) == ("moved", [[255, 247]], [[255, 246]])


def test_everything_that_differs(capsys: pytest.CaptureFixture[str]) -> None:
    out = spec(capsys, "--diff", "kbl", "icl")
    assert "+ 3DSTATE_3D_MODE" in out and "names changed" in out
    found = json.loads(spec(capsys, "--diff", "kbl", "icl", "--json"))["names"]
    for name, item in found.items():
        here, there = (catalogue().get(name, gen) is not None for gen in (9.0, 11.0))
        assert item["change"] == ("changed" if here and there else "removed" if here else "added"), name


def test_backwards_is_the_mirror(capsys: pytest.CaptureFixture[str]) -> None:
    there = json.loads(spec(capsys, "--diff", "hsw", "bdw", "--kind", "command", "--json"))["names"]
    back = json.loads(spec(capsys, "--diff", "bdw", "hsw", "--kind", "command", "--json"))["names"]
    turned = {"added": "removed", "removed": "added"}
    assert {name: turned.get(change["change"], change["change"]) for name, change in there.items()} == {n: inst["change"]
        for n, inst in back.items()}
    for name, values in there.items():
        fields = sorted(turned.get(change["change"], change["change"]) for change in values.get("fields", ()))
        assert fields == sorted(change["change"] for change in back[name].get("fields", ())), name


def test_gpus_of_one_generation(capsys: pytest.CaptureFixture[str]) -> None:
    assert "no difference: they are of one generation" in spec(capsys, "--diff", "skl", "kbl")
    assert json.loads(spec(capsys, "--diff", "skl", "kbl", "--json"))["names"] == {}
    assert "no difference: 1 name compared" in spec(capsys, "MI_NOOP", "--diff", "kbl", "icl")


def test_a_fields_name_compares_what_has_it(capsys: pytest.CaptureFixture[str]) -> None:
    found = json.loads(spec(capsys, "surface_pitch", "--diff", "kbl", "icl", "--json"))["names"]
    assert "RENDER_SURFACE_STATE" in found and "3DSTATE_VS" not in found


@pytest.mark.parametrize(("arguments", "why"), [
    (("--diff", "kbl", "voodoo"), "no GPU is called 'voodoo'"),
    (("3DSTATE_PIPELINED_POINTERS", "--diff", "kbl", "icl"), "neither GPU has 3DSTATE_PIPELINED_POINTERS"),
    (("3DSTATE_VX", "--diff", "kbl", "icl"), "did you mean 3DSTATE_VS"),
    (("--diff", "kbl", "icl", "--gpu", "kbl"), "leave out --gpu"),
    (("--diff", "kbl", "icl", "--kind", "enum"), "enumerations are compared with the fields that have them"),
])  # fmt: skip
def test_misuse_of_diff(capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], why: str) -> None:
    assert why in spec(capsys, *arguments, code=2)


@pytest.mark.parametrize("asked, first", [("3DSTAT_VS", "3DSTATE_VS"), ("vertex buffer", "VERTEX_BUFFER_STATE")])
def test_the_nearest_name_comes_first(asked: str, first: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["spec", asked]) == 0
    assert capsys.readouterr().out.splitlines()[1].split()[0] == first
