"""Numbers and sizes in a capture's JSON, up to their limits."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from softgen.errors import DecodeError
from softgen.trace import capture_json
from softgen.trace.capture_json import ZERO, Batch, BufferObject, Exec, JsonValue, load, read_exec, write_exec
from tests.conftest import ROOT

FIRST = ROOT / "tests" / "data" / "kbl-vk-compute" / "exec-000001.json"
GIB = 1 << 30


def with_buffers(path: Path, *buffers: tuple[int, int]) -> Path:
    """The first submission of a capture with more buffers: (address, bytes) each."""
    content: dict[str, Any] = json.loads(FIRST.read_text("utf-8"))
    content["bos"] = content["bos"][: content["batch"]["bo"] + 1]
    zero = {**content["bos"][0], "blob": "zero", "nonzero": 0}
    content["bos"] += [{**zero, "gpu_addr": hex(address), "size": size} for address, size in buffers]
    (path / "exec.json").write_text(json.dumps(content))
    return path / "exec.json"


def test_buffers_of_a_submission_have_64_gib_together(tmp_path: Path) -> None:
    own = sum(bo.size for bo in read_exec(with_buffers(tmp_path)).bos)
    sizes = [16 * GIB] * 3 + [16 * GIB - own]
    exec_ = read_exec(with_buffers(tmp_path, *((n * 32 * GIB, size) for n, size in enumerate(sizes, 1))), 48)
    assert sum(bo.size for bo in exec_.bos) == 64 * GIB
    sizes[-1] += 4096
    with pytest.raises(DecodeError, match=r"exec\.json: bos have 0x1000001000 bytes together; at most 0x1000000000 are read"):
        read_exec(with_buffers(tmp_path, *((n * 32 * GIB, size) for n, size in enumerate(sizes, 1))), 48)


def test_neighbours_may_touch(tmp_path: Path) -> None:
    buffers = [(0x10000, 4096), (0x12000, 8192), (0x11000, 4096), (0, 4096)]
    assert [(bo.gpu_addr, bo.size) for bo in read_exec(with_buffers(tmp_path, *buffers)).bos[-4:]] == buffers
    with pytest.raises(DecodeError, match=r"bos\[(\d+)\] at 0x12000 overlaps bos\[\d+\], which ends at 0x13000"):
        read_exec(with_buffers(tmp_path, (0x10000, 4096), (0x12000, 8192), (0x11000, 8192)))


@pytest.mark.parametrize("value, shown", [("x" * 57, "'" + "x" * 57 + "'"), ("x" * 58, "'" + "x" * 56 + "..."), ([], "[]")])
def test_a_complaint_shows_no_more_than_60_characters(value: Any, shown: str) -> None:
    assert str(JsonValue("f", "k", value).wrong("short")) == f"f: k must be short, not {shown}" and len(shown) <= 60
    assert str(JsonValue("f", "", value).wrong("short")) == f"f: the file must be short, not {shown}"


def test_what_a_submission_does_not_say_is_zero() -> None:
    exec_ = Exec(1, "kbl", 0x5916, 90, "rcs0", Batch(0, 0, 0x1000, 0, 8), (BufferObject(0x1000, 4096, ZERO),))
    written = json.loads(write_exec(exec_))
    assert {key: written[key] for key in ("pid", "ctx", "vm", "flags", "relocs", "total_bytes")} == {
        "pid": 0, "ctx": 0, "vm": 0, "flags": "0x0", "relocs": 0, "total_bytes": 0}  # fmt: skip
    assert written["bos"] == [{"handle": 0, "uid": 0, "gpu_addr": "0x1000", "size": 4096, "nonzero": 0, "tiling": "none", "stride": 0,
                               "pinned": False, "write": False, "userptr": False, "flags": "0x0", "relocs": 0, "blob": "zero"}]  # fmt: skip


def test_whole_numbers() -> None:
    assert [JsonValue("f", "k", value).integer(5) for value in (0, 4)] == [0, 4]
    for value in (5, -1, True, "1", 1.0):
        with pytest.raises(DecodeError, match="f: k must be a whole number from 0 to 4, not "):
            JsonValue("f", "k", value).integer(5)


def test_hexadecimal_numbers() -> None:
    fine = [("0x0", 8), ("0XfF", 8), ("0x100", 9), ("0x" + "f" * 16, 64)]
    assert [JsonValue("f", "k", value).hexadecimal(bits) for value, bits in fine] == [0, 255, 256, (1 << 64) - 1]
    for value, bits in (("0x100", 8), ("ff", 8), ("0x" + "0" * 17, 64), ("0x", 8), (16, 8)):
        with pytest.raises(DecodeError, match=r"f: k must be (a hexadecimal string|at most 8 bits wide)"):
            JsonValue("f", "k", value).hexadecimal(bits)


def test_a_file_has_a_largest_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(capture_json, "MAX_JSON_BYTES", 8)
    (tmp_path / "f").write_bytes(b'"123456"')
    assert load(tmp_path / "f").value == "123456"
    (tmp_path / "f").write_bytes(b'"1234567"')
    with pytest.raises(DecodeError, match="f: a submission's JSON must be at most 8 bytes"):
        load(tmp_path / "f")
