"""`softgen diff`: what differs between two captures, and nothing else."""

import json
import re
import shutil
from pathlib import Path

import pytest
import zstandard
from PIL import Image

from softgen.inspect.cli.main import main
from softgen.inspect.diff.pictures import compare
from softgen.inspect.session import Session
from softgen.inspect.session.edit import CaptureEdits
from softgen.trace.replay import ReplayedCapture
from softgen.trace.work import Work
from tests.conftest import ROOT

COMPUTE, TRIANGLE = (ROOT / "tests/data" / name for name in ("kbl-vk-compute", "kbl-vk-tri"))


def changed(into: Path, capture: Path, *edits: str, kernels: tuple[str, ...] = ()) -> Path:
    """A copy of a capture in which bytes differ as edits say."""
    shutil.copytree(capture, into)
    session, replayed = Session(capture), ReplayedCapture(capture)
    applied = CaptureEdits(session.submissions, replayed.device, edits, kernels)
    for event in replayed.expected_events():
        if not isinstance(event, Work) or event.sequence not in applied.by_submission:
            continue
        applied.apply(event)
        assert replayed.now is not None
        path = into / f"exec-{event.sequence:06}.json"
        record = json.loads(path.read_text())
        for row, bo in zip(record["bos"], replayed.now.bos, strict=True):
            held, blob = replayed.kept[bo.uid]
            if bytes(held.view) != bytes(replayed.blobs.get(blob, bo.size).view):
                row["blob"], row["nonzero"] = f"{event.sequence:016x}{bo.uid:016x}", bo.size
                (into / "bo" / f"{row['blob']}.zst").write_bytes(zstandard.compress(bytes(held.view)))
        path.write_text(json.dumps(record))
        break
    return into


def test_a_capture_does_not_differ_from_itself(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diff", str(TRIANGLE), str(TRIANGLE)]) == 0
    assert capsys.readouterr().out == "no difference in 260 commands\n"


def test_a_changed_field_is_the_only_difference(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = changed(tmp_path / "other", TRIANGLE, "2:124.vertex_count_per_instance=0")
    assert main(["diff", str(TRIANGLE), str(other), "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    (command,) = found["commands"]
    assert (command["name"], command["before"], command["after"]) == ("3DPRIMITIVE", "2:124", "2:124")
    assert command["fields"] == [{"field": "vertex_count_per_instance", "before": 3, "after": 0}]
    assert found["kernels"] == [] and found["differs"]
    nothing, copied = found["targets"]
    assert (nothing["before"], nothing["text"]) == ("2:124", "drawn to 1 target and to 0")
    assert copied["before"] == "2:245" and copied["pixels"] > 500 and copied["sizes"] == [[64, 64], [64, 64]]
    assert main(["diff", str(TRIANGLE), str(other), "--no-run"]) == 1
    assert "vertex_count_per_instance: 3 -> 0" in capsys.readouterr().out


def test_a_changed_kernel_is_shown_as_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["disasm", str(COMPUTE)]) == 0
    text = re.sub(r"(r9\.0<1>:d\s+r3\.0<8;8,1>:d\s+)0x4:ud", r"\g<1>0x5:ud", capsys.readouterr().out)
    assert "0x5:ud" in text
    (tmp_path / "k.asm").write_text(text)
    other = changed(tmp_path / "other", COMPUTE, kernels=(f"cs={tmp_path / 'k.asm'}",))
    assert main(["diff", str(COMPUTE), str(other), "--no-run", "--json"]) == 1
    (kernel,) = json.loads(capsys.readouterr().out)["kernels"]
    assert kernel["stage"] == "cs"
    assert [line[0] for line in kernel["text"][2:] if "r9.0<1>" in line and line[0] != " "] == ["-", "+"]


def test_commands_that_are_in_one_capture_only_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = changed(tmp_path / "other", TRIANGLE)
    (other / "exec-000003.json").unlink()
    assert main(["diff", str(TRIANGLE), str(other), "--no-run", "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert found["notes"] == ["3 submissions and 2"] and {command["after"] for command in found["commands"]} == {None}


def test_captures_of_two_gpus_are_told_apart(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diff", str(TRIANGLE), str(ROOT / "tests/data/g45-gles-tri"), "--no-run"]) == 1
    assert "they are for different GPUs: kbl and g45" in capsys.readouterr().out


def test_pictures_are_compared_exactly_unless_told_otherwise() -> None:
    one = Image.new("RGB", (4, 3), (10, 20, 30))
    other = one.copy()
    other.putpixel((2, 1), (10, 23, 30))
    found = compare(one, other)
    assert (found.pixels, found.most, found.first, found.got) == (1, 3, (2, 1), (10, 23, 30, 255)) and not found.same
    assert compare(one, other, most=1).same and compare(one, other, by=3).same and not compare(one, other, by=2).same
    assert not compare(one, Image.new("RGB", (3, 4))).same and compare(one, one.copy()).same
