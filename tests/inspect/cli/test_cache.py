"""`softgen cache`: what is there, and that clearing removes it and nothing else."""

import json
import os
from pathlib import Path

import pytest

from softgen.cache import Cache, default_folder
from softgen.inspect.cli.cache import age
from softgen.inspect.cli.main import main


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return default_folder()


def told(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> dict[str, object]:
    assert main(["cache", "--json", *arguments]) == code
    found: dict[str, object] = json.loads(capsys.readouterr().out)
    return found


def test_before_anything_was_compiled(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = told(capsys)
    assert (found["state"], found["objects"], found["oldest"]) == ("empty", 0, None) and found["folder"] == str(folder)
    assert main(["cache"]) == 0
    assert "not made yet" in capsys.readouterr().out and not folder.exists()


def test_what_is_kept_and_its_end(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cache = Cache(folder)
    cache.save("one", b"x" * 1000)
    cache.save("two", b"y" * 2000)
    os.utime(folder / "one", (0, 86400))
    found = told(capsys)
    assert (found["state"], found["objects"], found["bytes"], found["oldest"]) == ("ok", 2, 3064, 86400.0)
    assert main(["cache"]) == 0
    shown = capsys.readouterr().out
    assert "objects  2\n" in shown and "days ago" in shown and "0.0 MB of 268 MB" in shown
    assert told(capsys, "--clear")["removed"] == 2
    assert os.listdir(folder) == [] and cache.load("one") is None


def test_how_many_were_removed_is_shown(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Cache(folder).save("one", b"x")
    assert main(["cache", "--clear"]) == 0
    assert capsys.readouterr().out.splitlines()[-1].split() == ["removed", "1"]


def test_a_folder_of_others_is_left_alone(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Cache(folder).save("one", b"x")
    folder.chmod(0o777)
    found = told(capsys, "--clear", code=1)
    assert (found["state"], found["removed"], found["objects"]) == ("unsafe", 0, 1) and (folder / "one").exists()
    assert main(["cache"]) == 0
    assert "you alone can write to" in capsys.readouterr().out


def test_what_cannot_be_removed_is_told(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Cache(folder).save("one", b"x")
    (folder / "strange").mkdir()
    assert told(capsys, "--clear", code=1)["removed"] == 1


@pytest.mark.parametrize("seconds, text", [
    (-5.0, "0 seconds ago"), (0.9, "0 seconds ago"), (1.0, "1 second ago"), (59.9, "59 seconds ago"), (60.0, "1 minute ago"),
    (119.0, "1 minute ago"), (120.0, "2 minutes ago"), (3599.0, "59 minutes ago"), (3600.0, "1 hour ago"), (7300.0, "2 hours ago"),
    (86399.0, "23 hours ago"), (86400.0, "1 day ago"), (86400.0 * 3, "3 days ago"),
])  # fmt: skip
def test_ages(seconds: float, text: str) -> None:
    assert age(seconds) == text


def test_objects_are_exported_for_a_team(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Cache(folder).save("one", b"x" * 10)
    assert main(["cache", "--export", str(tmp_path / "shared")]) == 0
    said = capsys.readouterr().out
    assert said.startswith(f"SOFTGEN_SHARED_CACHE={tmp_path}/shared@") and len(said.strip().partition("@")[2]) == 64
    assert sorted(path.name for path in (tmp_path / "shared").iterdir()) == ["index", "one"]
    assert told(capsys, "--export", str(tmp_path / "shared"))["shared"] == said.strip().partition("=")[2]
    (tmp_path / "file").write_text("")
    assert main(["cache", "--export", str(tmp_path / "file")]) == 1 and "file: File exists" in capsys.readouterr().err
