"""The browsable reference: whole, linked, and made of nothing but its own files."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from softgen.bits.catalogue import catalogue, layout
from softgen.bits.describe import values_of
from softgen.bits.page import read
from softgen.inspect.cli.main import main
from softgen.inspect.spec import spec_diff, spec_html, spec_html_page
from softgen.inspect.spec.bit_diagram import Cell, Row

EMPTY = {"meta", "link", "input", "wbr"}


class Checked(HTMLParser):
    """Tags that close in order, links and anchors."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.links: list[str] = []
        self.anchors: list[str] = []
        self.text = ""
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in EMPTY:
            self.open.append(tag)
        for key, value in attrs:
            if key in ("href", "src"):
                self.links.append(value or "")
            elif key == "id":
                self.anchors.append(value or "")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("html") / "reference"
    count = spec_html.write(str(root))
    assert count == len(list(root.rglob("*.html")))
    return root


@pytest.fixture(scope="module")
def pages(folder: Path) -> dict[Path, Checked]:
    return {path: Checked(path.read_text("utf-8")) for path in folder.rglob("*.html")}


def test_every_name_has_a_page_with_all_its_fields(folder: Path, pages: dict[Path, Checked]) -> None:
    for name in catalogue().names():
        text = pages[folder / "item" / f"{name}.html"].text
        for page in catalogue().history(name).values():
            missing = [field.name for field, groups in page.walk() if ".".join([*(g.name for g in groups), field.name]) not in text]
            assert missing == [], name
    assert all((folder / "enum" / f"{name}.html").is_file() for name in catalogue().enums)


def test_every_link_leads_somewhere(pages: dict[Path, Checked]) -> None:
    wrong = []
    for path, page in pages.items():
        assert len(page.anchors) == len(set(page.anchors)), path
        for link in page.links:
            file, _, anchor = link.partition("#")
            target = (path.parent / file).resolve() if file else path
            if link != "data:," and not (target.is_file() and (not anchor or anchor in pages[target].anchors)):
                wrong.append(f"{path.name}: {link}")
    assert wrong == []


def test_nothing_comes_from_outside(folder: Path) -> None:
    """Fonts, scripts and styles are the folder's own; a page opened from a disk asks no network."""
    for path in folder.rglob("*.*"):
        assert not re.search(r"https?:|//[a-z]+\.|@import|url\(", path.read_text("utf-8")), path


def test_structures_and_enumerations_are_linked_both_ways(folder: Path, pages: dict[Path, Checked]) -> None:
    vertex_buffers, state = (pages[folder / "item" / f"{name}.html"] for name in ("3DSTATE_VERTEX_BUFFERS", "VERTEX_BUFFER_STATE"))
    assert "../item/VERTEX_BUFFER_STATE.html" in vertex_buffers.links and "../item/3DSTATE_VERTEX_BUFFERS.html" in state.links
    surface, formats = pages[folder / "item" / "RENDER_SURFACE_STATE.html"], pages[folder / "enum" / "SURFACE_FORMAT.html"]
    assert "../enum/SURFACE_FORMAT.html" in surface.links and "../item/RENDER_SURFACE_STATE.html" in formats.links


def test_generations_that_differ_have_tabs_and_say_what_changed(folder: Path) -> None:
    text = (folder / "item" / "3DSTATE_VS.html").read_text("utf-8")
    assert [m.split() for m in re.findall(r'data-generations="([^"]*)"', text)] == [["7"], ["7.5"], ["8", "9"], ["11"]]
    assert "Changes since gen 9" in text and "31:23 to 7 31:22" in text
    text = (folder / "item" / "MI_MATH.html").read_text("utf-8")  # the page describes its group more than once, with the same fields
    assert [m.split() for m in re.findall(r'data-generations="([^"]*)"', text)] == [["7.5"], ["8", "9", "11"]]


def test_registers_in_a_row_and_values_of_fields_are_listed(folder: Path) -> None:
    registers, shader = ((folder / "item" / f"{name}.html").read_text("utf-8") for name in ("CS_GPR", "3DSTATE_VS"))
    assert "<span>16 in a row</span>" in registers and "in a row" not in shader
    values = values_of(layout("3DSTATE_VS", 9).field("floating_point_mode").type, 9)
    assert len(values) == 2 and all(f"<li><b>{value}</b> {name}</li>" in shader for value, name in values.items())


def test_the_index_lists_every_name_by_kind_and_page(folder: Path, pages: dict[Path, Checked]) -> None:
    links = [link for link in pages[folder / "index.html"].links if "/" in link]
    listed = sorted(link.removeprefix("item/").removesuffix(".html") for link in links if link.startswith("item/"))
    assert listed == sorted(catalogue().names())
    assert [link for link in links if link.startswith("enum/")] == [f"enum/{name}.html" for name in spec_html.known("enum")]
    text = (folder / "index.html").read_text("utf-8")
    for heading in text.split("<h2 ")[1:]:
        found = re.match(r'id="(\w+)">\w+ <small>(\d+)</small></h2>', heading)
        assert found and int(found[2]) == heading.count("<li>")
        units = [part.partition("</details>")[0] for part in heading.split("<details")[1:]]
        names = [re.match(r"( open)?><summary>([\w/]+) \((\d+)\)</summary>", unit) for unit in units]
        assert all(name and int(name[3]) == unit.count("<li>") for name, unit in zip(names, units, strict=True))
        assert all(bool(name[1]) == (found[1] == "command") for name in names if name), "commands are shown at once"
        assert [name[2] for name in names if name] == sorted(name[2] for name in names if name)
    assert re.search(r'<summary>three_d/vertex_shader \(\d+\)</summary><ul class="columns">(<li>[^/]*/\w+\.html">\w+</a></li>)*?'
                     r'<li><a href="item/3DSTATE_VS.html">3DSTATE_VS</a></li>', text)  # fmt: skip


def test_the_search_knows_names_and_fields(folder: Path) -> None:
    text = (folder / "names.js").read_text("utf-8")
    rows = json.loads(text.removeprefix("const NAMES = ").removesuffix(";\n"))
    found = {row[0]: row for row in rows if row[1] != "enum"}
    assert set(found) == set(catalogue().names())
    assert found["3DSTATE_VS"][1:4] == ["command", "7 7.5 8 9 11", "item/3DSTATE_VS.html"]
    assert "kernel_start_pointer" in found["3DSTATE_VS"][4].split()


def test_names_are_files_on_every_system() -> None:
    for names in (catalogue().names(), [*catalogue().enums, "SURFACE_FORMAT"]):
        assert all(re.fullmatch(r"\w+", name) for name in names) and len({name.lower() for name in names}) == len(names)


def test_a_folder_of_somebody_else_is_left_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "letter.txt").write_text("dear all")
    assert main(["spec", "--html", str(tmp_path)]) == 1
    assert "is not empty and holds no reference of softgen" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["letter.txt"]
    (tmp_path / "names.js").write_text("var theirs;")
    assert main(["spec", "--html", str(tmp_path)]) == 1
    capsys.readouterr()
    assert main(["spec", "--html", str(tmp_path / "letter.txt")]) == 1
    assert capsys.readouterr().err == f"softgen: {tmp_path}/letter.txt: is no folder\n"
    assert main(["spec", "--html", "x", "--gpu", "kbl"]) == 2
    assert main(["spec", "--html", ""]) == 2


@pytest.mark.parametrize("where", ["Reference", "_clear"])
def test_a_run_that_was_interrupted_can_be_run_again(where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While the pages are made, which takes seconds, and before the first of them is written."""

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    for _ in range(2):
        with monkeypatch.context() as changed:
            changed.setattr(spec_html, where, interrupted)
            assert main(["spec", "--html", str(tmp_path / "reference")]) == 130
    assert main(["spec", "--html", str(tmp_path / "reference")]) == 0 and (tmp_path / "reference" / "index.html").is_file()


def test_writing_again_clears_what_is_gone(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "item" / "GONE.html").write_text("old")
    assert main(["spec", "--html", str(folder)]) == 0
    assert "pages; open" in capsys.readouterr().out
    assert not (folder / "item" / "GONE.html").exists()


@pytest.mark.parametrize("name, field, expected", [
    ("3DSTATE_VS", "maximum_number_of_threads", ["7", "31:23"]), ("3DSTATE_VS", "kernel_start_pointer", ["1", "63:6"]),
    ("3DSTATE_VERTEX_BUFFERS", "buffer_pitch", ["+0", "11:0"]), ("CONTEXT_IMAGE", "page_directory_0", ["49", "31:0,95:64"]),
])  # fmt: skip
def test_a_field_says_its_dword_and_bits(name: str, field: str, expected: list[str]) -> None:
    """In a group, dwords count from the start of an element."""
    (found,) = (pair for pair in layout(name, 9).walk() if pair[0].name == field)
    row = spec_html_page._field(*found, 9.0, "t", Links())
    assert re.findall(r'<td class="bits">([^<]*)</td>', row) == expected


class Links:
    """Names that have no pages."""

    def to(self, name: str) -> str:
        return name

    def users(self, name: str) -> list[str]:
        return []


@pytest.mark.parametrize("change, facts", [
    ({}, ["4 dwords", "from BDW 1"]), ({"dwords": 1}, ["1 dword", "from BDW 1"]),
    ({"variable": True}, ["4 or more dwords", "from BDW 1"]), ({"variable": True, "maximum": 9}, ["4 to 9 dwords", "from BDW 1"]),
    ({"dwords": 1, "variable": True}, ["1 or more dwords", "from BDW 1"]), ({"maximum": 4}, ["4 dwords", "from BDW 1"]),
    ({"key": "type=<3>"}, ["4 dwords", "key <code>type=&lt;3&gt;</code>", "from BDW 1"]),
    ({"count": 2, "source": "A & B"}, ["4 dwords", "2 in a row", "from A &amp; B"]),
    ({"engines": ("render", "video_enhance")}, ["4 dwords", "render video enhance", "from BDW 1"]),
])  # fmt: skip
def test_facts_of_a_page(change: dict[str, Any], facts: list[str]) -> None:
    plain = {"dwords": 4, "variable": False, "maximum": None, "key": "", "count": 1, "engines": (), "source": "BDW 1"}
    page: Any = SimpleNamespace(**plain | change)
    found = next(spec_html_page._layout(page, "t0", None))  # type: ignore[arg-type]
    assert re.findall("<span>(.*?)</span>", found) == facts
    if page.dwords > 1:
        assert spec_diff._frame(page) == (facts[0], page.key, " ".join(page.engines))


NEW, OLD, LOW, HIGH = (spec_diff.Spot(name, (bits,), "u4", "") for name, bits in (
    ("new", (43, 40)), ("old", (0, 0)), ("f", (3, 0)), ("f", (7, 4))))  # fmt: skip


@pytest.mark.parametrize("change, said", [
    (spec_diff.Change("added", None, NEW), "1 11:8 new"), (spec_diff.Change("removed", OLD, None), "0 0 old"),
    (spec_diff.Change("moved", LOW, HIGH), "0 3:0 to 0 7:4 f"),
    (spec_diff.Change("renamed", HIGH, replace(HIGH, name="g")), "0 7:4 f is now g"),
    (spec_diff.Change("changed", LOW, replace(LOW, meaning="a | b")), "0 3:0 f: u4 is now a | b"),
])  # fmt: skip
def test_a_change_says_what_was_and_what_is(change: spec_diff.Change, said: str) -> None:
    assert re.sub("<.*?>", " ", spec_html_page._change(change)).split() == said.split()


def test_cells_of_a_diagram_are_as_wide_as_their_bits_and_say_which_those_are() -> None:
    field = layout("3DSTATE_SAMPLE_MASK", 9.0).field("sample_mask")
    cells = (Cell(31, 17, "reserved"), Cell(16, 16, "reserved"), Cell(15, 1, "field", "mask", field), Cell(0, 0, "field", "on", field))
    text = "".join(spec_html_page._diagram([Row(1, cells), Row(2, cells[:1], 5)], "t", "of"))
    assert re.findall(r'colspan="(\d+)" title="([^"]*)"', text) == [
        ("15", "31:17 reserved"), ("1", "16 reserved"), ("15", "15:1 mask"), ("1", "0 on"), ("15", "31:17 reserved")]  # fmt: skip
    assert re.findall(r'<th class="dword">([^<]+)</th>', text) == ["1", "2–5"] and '<a href="#t-of.on">on</a>' in text
    assert not list(spec_html_page._diagram([], "t", "of"))


@pytest.mark.parametrize("count, folded", [(1, False), (6, False), (7, True)])
def test_up_to_six_values_are_shown_at_once(count: int, folded: bool) -> None:
    values = " | ".join(f"v{number}" for number in range(count)) if count > 1 else "v0 | -"
    found = read("p", f"source KBL 1\nstructure S\n  gen 9  1 dwords\n    0  7:0  f  {values}\n")["S", 9.0]
    text = spec_html_page._meaning(found.field("f"), 9.0, cast(Any, None))
    assert (f"<summary>{count} values</summary>" in text) is folded and text.count("<li>") == count
