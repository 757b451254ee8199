"""What machines may rely on: `softgen spec --gpu X --json` says where each field is, `softgen decode --json` what it holds.

The second is worked out here again from the first and the dwords on the line, with nothing of softgen in between but its output.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import redirect_stdout
from functools import cache
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from softgen.bits.catalogue import layout
from softgen.inspect.cli.main import main
from tests.conftest import ROOT, SHARED, needs_shared

GPUS = ("gm965", "g45", "ivb", "hsw", "bdw", "skl", "kbl", "icl")
BUNDLED = sorted({path.parent for path in (ROOT / "tests" / "data").glob("*/exec-*.json")})
LARGEST = 400_000  # bytes of a capture that is read here
FOUR = 4  # captures of each GPU


def captures() -> list[Path]:
    """A few small captures of each GPU: every kind of program, and decoders for the video engines."""
    found = []
    for gpu in GPUS:
        mine = [p for p in sorted((SHARED / "traces").glob(f"{gpu}-*")) if sum(f.stat().st_size for f in p.rglob("*")) < LARGEST]
        found += mine[:: max(1, len(mine) // FOUR)] or mine
    return found


@cache
def spec(gpu: str) -> dict[str, Any]:
    return json.loads(printed("spec", "--gpu", gpu, "--json"))  # type: ignore[no-any-return]


def printed(*arguments: str) -> str:
    with redirect_stdout(StringIO()) as out:
        assert main(list(arguments)) in (0, 1)
    return out.getvalue()


def decoded(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in printed("decode", str(path), "--json").splitlines()]


# -- the values, worked out again ------------------------------------------------------------------------------------


def extract(number: int, field: dict[str, Any], shift: int = 0) -> int:
    """A field's bits: one run, or pieces with the most significant first. Addresses and register offsets keep their low zero bits."""
    value = 0
    for high, low in field.get("pieces", [[field["high"], field["low"]]]):
        value = value << high - low + 1 | number >> low + shift & (1 << high - low + 1) - 1
    if field["type"] in ("address", "offset") and "pieces" not in field:
        value <<= (field["low"] - field.get("group", {}).get("start", 0)) % 32
    if field["type"] == "int":
        width = sum(high - low + 1 for high, low in field.get("pieces", [[field["high"], field["low"]]]))
        value -= (value >> width - 1) << width
    return value


def differences(line: dict[str, Any], page: dict[str, Any]) -> Iterator[str]:
    number = sum(dword << 32 * i for i, dword in enumerate(line["dwords"]))
    bits, fields = 32 * len(line["dwords"]), line["fields"]
    for field in page["fields"]:
        where = f"{line.get('name') or line.get('state')} at {line['address']:#x}, {field['name']}"
        group = field.get("group")
        if group is None:
            yield from difference(where, fields, field, extract(number, field) if field["low"] < bits else None)
        else:
            for at, element, shift in elements(fields, group, bits):
                if element is None:
                    yield f"{where}{at}: {shift} elements in {bits} bits"
                else:
                    yield from difference(f"{where}{at}", element, field, extract(number, field, shift))


def elements(fields: dict[str, Any], group: dict[str, Any], bits: int) -> Iterator[tuple[str, dict[str, Any] | None, int]]:
    """(index, element, how far it stands from the first) of a group, inside others too; without an element where their number is wrong."""
    outer, start = [("", fields, 0)], group["start"]
    if "in" in group:
        outer = [element for element in elements(fields, group["in"], bits) if element[1] is not None]  # type: ignore[misc]
        start, bits = start - group["in"]["start"], group["in"]["size"]
    for at, holder, shift in outer:
        found = holder[group["name"]]
        held = max(0, bits - start) // group["size"]
        if len(found) != (held if group["count"] is None else min(held, group["count"])):
            yield at, None, len(found)
        for i, element in enumerate(found):
            yield f"{at}[{i}]", element, shift + i * group["size"]


def difference(where: str, values: dict[str, Any], field: dict[str, Any], expected: int | None) -> Iterator[str]:
    found = values.get(field["name"])
    if found is None:
        if expected is not None and "when" not in field:
            yield f"{where}: is missing"
        return
    if field["type"] == "enum":
        names = field.get("values", {})
        if set(found) != {"value", "name"} or found["name"] != names.get(str(found["value"])):
            yield f"{where}: {found} is not as the values {names}"
        found = found.get("value")
    if type(found) is not int or found != expected:
        yield f"{where}: decode says {found}, the bits {expected}"


@needs_shared("traces")
@pytest.mark.parametrize("path", captures(), ids=lambda path: path.name)
def test_every_value_is_where_the_spec_says(path: Path) -> None:
    pages, wrong, seen = spec(path.name.split("-")[0]), [], 0
    for line in decoded(path):
        name = line.get("name") or line.get("state")
        if name and not line.get("problems"):
            wrong += list(differences(line, pages[name]))
            seen += 1
    assert not wrong, "\n".join(wrong[:20])
    assert seen


# -- the shape -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("gpu", GPUS)
def test_the_shape_of_spec(gpu: str) -> None:
    pages = spec(gpu)
    assert list(pages) == sorted(pages)
    for name, page in pages.items():
        assert page["kind"] in ("command", "structure", "register", "message", "instruction")
        assert type(page["dwords"]) is int and page["dwords"] >= 1 and isinstance(page["key"], str)
        if page["kind"] == "command":
            assert page["key"].split(".")[0] in ("0", "2", "3"), name
        for field in page["fields"]:
            check_field(name, page, field)


def check_field(name: str, page: dict[str, Any], field: dict[str, Any]) -> None:
    at = f"{name}.{field['name']}"
    assert field["high"] >= field["low"] >= 0, at
    pieces = field.get("pieces")
    if pieces is not None:
        assert len(pieces) > 1 and field["high"] == max(h for h, _ in pieces) and field["low"] == min(low for _, low in pieces), at
        assert all(high >= low for high, low in pieces), at
    group = field.get("group")
    if group is None:
        assert not header_bits(page) >> field["low"] & (1 << field["high"] - field["low"] + 1) - 1 or pieces or field.get("alternate"), at
        longest = page.get("maximum_dwords", page["dwords"])
        assert longest is None or field["high"] < 32 * longest, at
    else:
        assert {"start", "size", "count"} <= set(group) and group["size"] > 0, at
        assert group["start"] <= field["low"] and field["high"] < group["start"] + group["size"], at
        assert group["count"] is None or group["count"] > 0, at


def header_bits(page: dict[str, Any]) -> int:
    """The bits of dword 0 that the key itself names: they are no fields."""
    if page["kind"] != "command":
        return 0
    return {"0": 0xFF800000, "2": 0xFFC00000, "3": 0xFFFF0000}[page["key"][0]]


def test_one_command_as_the_design_shows_it() -> None:
    page = spec("kbl")["3DSTATE_VS"]
    assert (page["kind"], page["key"], page["dwords"]) == ("command", "3.3.0.10", 9)
    first = page["fields"][0]
    assert {key: first[key] for key in ("name", "high", "low", "type")} == {
        "name": "kernel_start_pointer", "high": 95, "low": 38, "type": "address"}  # fmt: skip
    group = next(f["group"] for f in spec("kbl")["3DSTATE_VERTEX_ELEMENTS"]["fields"] if "group" in f)
    assert (group["start"], group["size"], group["count"]) == (32, 64, None)


@pytest.mark.parametrize("path", BUNDLED, ids=lambda path: path.name)
def test_the_shape_of_decode(path: Path) -> None:
    """Commands in order, and what they point to on lines of their own right behind them."""
    last: dict[str, Any] = {}
    kinds = set()
    for line in decoded(path):
        (kind,) = [k for k in ("name", "state", "kernel", "data", "register", "remark") if k in line]
        kinds.add(kind)
        match kind:
            case "name":
                last = line
                assert {"batch", "address", "name", "dwords", "fields"} <= set(line) and all(type(d) is int for d in line["dwords"])
            case "state":
                assert {"state", "address", "by", "dwords", "fields"} <= set(line) and line["by"] == last["address"]
            case "kernel":
                assert {"kernel", "by", "stage"} <= set(line) and line["by"] == last["address"] and type(line["kernel"]) is int
            case _:
                assert kind == "remark" or line["by"] == last["address"]
    assert {"name", "state", "kernel"} <= kinds


def test_an_unknown_command_has_no_name(tmp_path: Path) -> None:
    (tmp_path / "batch").write_bytes((0x1F000001).to_bytes(4, "little") + bytes(8))
    first = json.loads(printed("decode", str(tmp_path / "batch"), "--gpu", "kbl", "--json").splitlines()[0])
    assert (first["name"], first["fields"], first["dwords"]) == (None, {}, [0x1F000001, 0, 0])


def test_a_shorter_form_lists_only_what_it_holds(tmp_path: Path) -> None:
    """A counted group past the end of a short command has no elements there."""
    for name, page in spec("kbl").items():
        counted = [f for f in page["fields"] if f.get("group", {}).get("count")]
        if page["kind"] == "command" and counted and "maximum_dwords" in page:
            words = layout(name, 9).pack()
            (tmp_path / "batch").write_bytes(b"".join(word.to_bytes(4, "little") for word in words))
            engine = next(e for e in page["engines"] if e != "position_only")
            line = json.loads(printed("decode", str(tmp_path / "batch"), "--gpu", "kbl", "--engine", engine, "--json").splitlines()[0])
            assert not list(differences(line, page)), name


def test_a_wrong_value_is_told() -> None:
    """The comparison itself can fail."""
    page = spec("kbl")["MI_LOAD_REGISTER_IMM"]
    line = {"name": "MI_LOAD_REGISTER_IMM", "address": 0, "dwords": [0x11000001, 0x2580, 7],
            "fields": {"byte_write_disables": 0, "entry": [{"register_offset": 0x2580, "data_dword": 7}]}}  # fmt: skip
    good = list(differences(line, page))
    assert not [text for text in good if "entry" in text or "data_dword" in text]
    line["dwords"][2] = 8  # type: ignore[index]
    assert [text for text in differences(line, page) if "decode says 7, the bits 8" in text]
