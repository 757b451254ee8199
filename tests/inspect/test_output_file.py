"""Files that verbs write: whole, or not at all."""

from __future__ import annotations

import argparse
import json
import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from softgen.errors import SoftgenError
from softgen.inspect.cli.main import main
from softgen.inspect.cli.run import write_report
from softgen.inspect.output_file import write_file
from tests.conftest import ROOT

TRIANGLE = str(ROOT / "tests" / "data" / "g45-gles-tri")
VERBS: dict[str, Callable[[Path], list[str]]] = {
    "asm": lambda out: ["asm", str(ROOT / "examples" / "collatz.asm"), "--gpu", "kbl", "-o", str(out / "file")],
    "report": lambda out: ["replay", str(ROOT / "tests" / "data" / "kbl-vk-compute"), "--report", str(out / "file")],
    "images": lambda out: ["replay", TRIANGLE, "--images", str(out / "images")],
}


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("trouble, code", [(OSError(28, "No space left on device"), 1), (KeyboardInterrupt(), 130)])
def test_a_file_that_could_not_be_completed_is_not_there(verb: str, trouble: BaseException, code: int, tmp_path: Path,
                                                         monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    """Nor is an earlier one lost."""
    replace = os.replace

    def failed(old: Path, new: Path) -> None:
        if tmp_path in Path(new).parents:
            raise trouble
        replace(old, new)  # the cache's

    (tmp_path / "images").mkdir()
    (tmp_path / "file").write_text("before")
    monkeypatch.setattr(os, "replace", failed)
    assert main(VERBS[verb](tmp_path)) == code
    assert (tmp_path / "file").read_text() == "before"
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["file", "images"]


def test_the_report_of_a_run_replaces_an_earlier_one(tmp_path: Path) -> None:
    args = argparse.Namespace(report=str(tmp_path / "file"), json=False)
    write_report(args, {"exit_code": 3})
    inode = (tmp_path / "file").stat().st_ino
    write_report(args, {"exit_code": 4})
    assert json.loads((tmp_path / "file").read_bytes()) == {"exit_code": 4} and (tmp_path / "file").stat().st_ino != inode


def test_modes_links_and_long_names(tmp_path: Path) -> None:
    new, old, long = tmp_path / "new", tmp_path / "old", tmp_path / ("n" * 255)
    old.write_text("before")
    old.chmod(0o640)
    (tmp_path / "link").symlink_to("old")
    before = os.umask(0o027)
    try:
        for path in (new, tmp_path / "link", long):
            write_file(path, b"data")
    finally:
        os.umask(before)
    assert (tmp_path / "link").is_symlink() and [path.read_bytes() for path in (new, old, long)] == [b"data"] * 3
    assert [path.stat().st_mode & 0o777 for path in (new, old)] == [0o640, 0o640]


def test_what_is_no_file_is_written_to(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    found = list[bytes]()
    reader = threading.Thread(target=lambda: found.append((tmp_path / "pipe").read_bytes()))
    reader.start()
    write_file(tmp_path / "pipe", b"data")
    reader.join(60)
    assert found == [b"data"]
    for path, why in ((tmp_path, "Is a directory"), (Path("/dev/full"), "No space left on device"), (tmp_path / "no" / "x", "No such")):
        with pytest.raises(SoftgenError, match=f"{path}: cannot be written: {why}"):
            write_file(path, b"data")
