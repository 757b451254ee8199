"""Any bytes in, a clear answer out: `softgen decode` of damaged captures, AUB files and raw batches, as text and as JSON.

Whatever the file holds, the answer is lines, an exit code of 0 or 1 and at most one complaint; never an exception, and every line of
--json is JSON that any reader accepts (no NaN, no Infinity).
"""

from __future__ import annotations

import json
import shutil
import struct
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from functools import cache
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import zstandard
from hypothesis import example, given
from hypothesis import strategies as st

from softgen.bits.catalogue import catalogue, layout
from softgen.bits.generation import device, devices
from softgen.bits.layout import Layout
from softgen.bits.registers import bases
from softgen.inspect.cli.main import main
from softgen.trace.raw import ADDRESS
from tests.conftest import ROOT
from tests.trace import aub_bytes

CAPTURES = (ROOT / "tests" / "data" / "kbl-vk-compute", ROOT / "tests" / "data" / "g45-gles-tri")
DWORD = st.integers(0, 0xFFFFFFFF)
# Numbers that hurt: limits, the batch itself, addresses that are not canonical or wrap.
EDGES = (0, 1, 0x7FFFFFFF, 0x80000000, 0xFFFF8000, 0xFFFFFFFC, 0xFFFFFFFF)
NASTY = st.one_of(DWORD, st.sampled_from(EDGES), st.integers(ADDRESS, ADDRESS + 4096))


def decode(*arguments: str) -> tuple[int, str]:
    """Exit code and output of one run, after the checks that hold for every run."""
    out, err = StringIO(), StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = main(["decode", *arguments])
    assert code in (0, 1) and err.getvalue().count("\n") <= 1 and "Traceback" not in err.getvalue()
    assert code == 0 or err.getvalue() or "--json" not in arguments, "a failure must say why"
    if "--json" in arguments:
        for line in out.getvalue().splitlines():
            assert isinstance(json.loads(line, parse_constant=refuse), dict)
    return code, out.getvalue()


def refuse(constant: str) -> None:
    raise AssertionError(f"{constant} is no JSON")


def both(path: Path, *arguments: str) -> tuple[int, str]:
    """Text, then JSON; they must come to the same."""
    code, _ = decode(str(path), *arguments)
    again, lines = decode(str(path), *arguments, "--json")
    assert code == again
    return again, lines


@contextmanager
def file(content: bytes) -> Iterator[Path]:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "file"
        path.write_bytes(content)
        yield path


def raw(dwords: Iterable[int], gpu: str, engine: str = "render") -> tuple[int, list[dict[str, Any]]]:
    words = list(dwords)
    with file(struct.pack(f"<{len(words)}I", *words)) as path:
        code, lines = both(path, "--gpu", gpu, "--engine", engine)
    return code, [json.loads(line) for line in lines.splitlines()]


# -- raw batches -----------------------------------------------------------------------------------------------------


@cache
def commands(gen: float, engine: str) -> list[Layout]:
    known = (catalogue().layout(name, gen) for name in catalogue().names("command", gen))
    return [item for item in known if engine in item.engines]


@st.composite
def batches(draw: st.DrawFn) -> tuple[str, str, list[int]]:
    """Commands of one engine with any contents and, now and then, any length; sometimes no command at all."""
    gpu = draw(st.sampled_from(list(devices())))
    gen = device(gpu).generation.number
    engine = draw(st.sampled_from([name for name in bases(gen) if name != "position_only"]))
    words: list[int] = []
    for item in draw(st.lists(st.sampled_from(commands(gen, engine)), min_size=1, max_size=12)):
        assert item.header is not None
        length = draw(st.sampled_from((item.dwords, item.dwords, item.dwords + 2, 0xFF, 0xFFFF)))
        stated = pack_length(item, length)
        words += [item.header.value | stated | draw(DWORD) & ~item.header.claimed, *draw(st.lists(NASTY, max_size=min(length, 40)))]
    return gpu, engine, words + draw(st.lists(NASTY, max_size=4))


def pack_length(page: Layout, dwords: int) -> int:
    assert page.header is not None
    if page.header.length is None:
        return 0
    high, low = page.header.length
    return max(0, dwords - page.header.bias) & (1 << high - low + 1) - 1 << low


@given(batches())
@example(("kbl", "render", [0xFFFFFFFF] * 8))
def test_any_raw_batch(made: tuple[str, str, list[int]]) -> None:
    gpu, engine, words = made
    raw(words, gpu, engine)


@given(st.binary(min_size=1, max_size=400), st.sampled_from(list(devices())))
def test_any_bytes(content: bytes, gpu: str) -> None:
    with file(content) as path:
        both(path, "--gpu", gpu)
        both(path)


def start(gen: float, address: int, **more: int) -> list[int]:
    return layout("MI_BATCH_BUFFER_START", gen).pack(batch_buffer_start_address=address, **more)


@pytest.mark.parametrize("gpu", list(devices()))
def test_a_batch_that_jumps_to_itself(gpu: str) -> None:
    code, lines = raw(start(device(gpu).generation.number, ADDRESS), gpu)
    assert code == 0 and [line.get("name") or line.get("remark") for line in lines] == ["MI_BATCH_BUFFER_START"] * 2 + ["loop"]


def test_batches_that_call_each_other() -> None:
    first, other = start(9, ADDRESS + 12, second_level_batch_buffer=1), start(9, ADDRESS, second_level_batch_buffer=1)
    code, lines = raw(first + other, "kbl")
    assert code == 1 and len(lines) < 20 and lines[-1]["remark"] == "unmapped"


@pytest.mark.parametrize("target", [0xFFFFFFFFFFFC, 0xFFFF800010000000, 0x800000000000, 4])
def test_a_jump_out_of_memory_says_where(target: int) -> None:
    code, lines = raw(start(9, target), "kbl")
    assert code == 1 and lines[-1]["remark"] == "unmapped" and lines[-1]["address"] == target & (1 << 48) - 1


def test_a_raw_batch_ends_with_its_file() -> None:
    """What fills up the last page of memory is not the user's."""
    code, lines = raw([0], "kbl")
    assert code == 1 and [line.get("name") or line.get("remark") for line in lines] == ["MI_NOOP", "unmapped"]


@pytest.mark.parametrize("name, engine", [("MEDIA_OBJECT", "render"), ("MEDIA_STATE_FLUSH", "render"), ("MFX_PAK_INSERT_OBJECT", "video"),
                                          ("MFX_PIPE_MODE_SELECT", "video")])
def test_the_longest_commands_take_no_time(name: str, engine: str) -> None:
    """64 Ki dwords with every other bit set: neither groups nor reports of reserved bits may cost their square."""
    page = layout(name, 9)
    assert page.header and page.header.length
    full = (1 << page.header.length[0] + 1) - 1
    _, lines = raw([page.header.value | full, *[0x55555555] * (full + page.header.bias)], "kbl", engine)
    assert len(lines[0]["dwords"]) == full + page.header.bias
    assert len(lines[0].get("reserved", ())) <= 16 * (page.maximum or page.dwords)


def test_tables_that_point_into_themselves() -> None:
    """4096 interface descriptors, each with a table whose surfaces are those same bytes: a small file must not become a day's work."""
    base = {f"{b}_state_base_address{m}": v for b in ("dynamic", "surface") for m, v in (("", ADDRESS), ("_modify_enable", 1))}
    words = layout("STATE_BASE_ADDRESS", 9).pack(**base)
    load = {"interface_descriptor_total_length": (1 << 17) - 1, "interface_descriptor_data_start_address": 4096}
    words += layout("MEDIA_INTERFACE_DESCRIPTOR_LOAD", 9).pack(**load) + layout("MI_BATCH_BUFFER_END", 9).pack()
    words += [4096 + 64 * i for i in range(64)]
    words += [0] * (1024 - len(words))
    table = 4 * (words.index(4096 + 64) - 1)
    pointers = {"binding_table_pointer": table & ~31, "binding_table_entry_count": 31, "sampler_state_pointer": 4096, "sampler_count": 4}
    code, lines = raw(words + layout("INTERFACE_DESCRIPTOR_DATA", 9).pack(**pointers) * 4096, "kbl")
    assert code == 1 and sum("by" in line for line in lines) == 4096
    (limit,) = (line["text"] for line in lines if line.get("remark") == "limit")
    assert limit == "MEDIA_INTERFACE_DESCRIPTOR_LOAD leads to more than 4096 structures; the rest is left out"


def test_a_vertex_buffer_that_ends_before_it_starts_says_so() -> None:
    buffer = {"buffer_starting_address": ADDRESS + 64, "end_address": ADDRESS, "address_modify_enable": 1}
    words = layout("3DSTATE_VERTEX_BUFFERS", 7).pack(vertex_buffer=[buffer]) + layout("MI_BATCH_BUFFER_END", 7).pack()
    _, lines = raw(words, "ivb")
    assert [line["problems"] for line in lines if "data" in line] == [["its end lies before its start"]]


# -- captures --------------------------------------------------------------------------------------------------------


@st.composite
def damage(draw: st.DrawFn, content: bytes) -> bytes:
    """Cut off, or bits flipped, or dwords replaced."""
    changed = bytearray(content)
    match draw(st.sampled_from(("cut", "flip", "dword"))):
        case "cut":
            return bytes(changed[: draw(st.integers(0, len(changed)))])
        case "flip":
            for at in draw(st.lists(st.integers(0, 8 * len(changed) - 1), min_size=1, max_size=20)):
                changed[at // 8] ^= 1 << at % 8
        case _:
            for at in draw(st.lists(st.integers(0, max(0, len(changed) // 4 - 1)), min_size=1, max_size=8)):
                changed[4 * at : 4 * at + 4] = struct.pack("<I", draw(NASTY))
    return bytes(changed)


def first_submission(source: Path, folder: Path) -> tuple[Path, dict[str, Any]]:
    """A copy that ends after its first submission, and that submission."""
    shutil.copytree(source, folder)
    first, *rest = sorted(folder.glob("exec-*.json"))
    for item in rest:
        item.unlink()
    return first, json.loads(first.read_bytes())


@given(st.sampled_from(CAPTURES), st.sampled_from(("json", "blob")), st.data())
def test_any_damage_to_the_files_of_a_capture(source: Path, part: str, data: st.DataObject) -> None:
    with TemporaryDirectory() as name:
        submission, _ = first_submission(source, Path(name) / "c")
        path = submission if part == "json" else data.draw(st.sampled_from(sorted((Path(name) / "c" / "bo").iterdir())))
        path.write_bytes(data.draw(damage(path.read_bytes())))
        both(Path(name) / "c")


@given(st.sampled_from(CAPTURES), st.data())
def test_any_damage_to_what_a_capture_holds(source: Path, data: st.DataObject) -> None:
    """The files are sound; the batch, or memory it points to, is not."""
    with TemporaryDirectory() as name:
        _, told = first_submission(source, Path(name) / "c")
        buffers = [line for line in told["bos"] if line["blob"] != "zero"]
        batch = told["bos"][told["batch"]["bo"]]
        chosen = data.draw(st.sampled_from([batch, *buffers]))
        path = Path(name) / "c" / "bo" / f"{chosen['blob']}.zst"
        content = zstandard.ZstdDecompressor().decompress(path.read_bytes(), max_output_size=chosen["size"])
        used = min(len(content), told["batch"]["start"] + max(told["batch"]["len"], 512)) if chosen is batch else len(content)
        changed = data.draw(damage(content[:used]))
        path.write_bytes(zstandard.ZstdCompressor().compress(changed.ljust(used, b"\0") + content[used:]))
        both(Path(name) / "c")


# -- AUB files -------------------------------------------------------------------------------------------------------


@given(st.data())
def test_any_damage_to_an_aub_file(data: st.DataObject) -> None:
    with file(data.draw(damage(aub_bytes.machine()))) as path:
        both(path)
        both(path, "--gpu", "skl")
