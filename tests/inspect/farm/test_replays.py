"""`softgen farm replay`: captures in folders, each as its own GPU or as others, with pictures and plain failures."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from softgen.errors import UsageError
from softgen.inspect.cli import main as cli
from softgen.inspect.cli.main import main
from softgen.inspect.farm.lists import find_captures, own_gpu
from softgen.inspect.farm.process import EndedProcess, ProcessLimits
from softgen.inspect.farm.replays import check_worlds, replay_verdict
from tests.conftest import ROOT
from tests.inspect.farm.farming import farm, lines

DATA = ROOT / "tests" / "data"


def test_captures_of_a_folder(tmp_path: Path) -> None:
    captures = tmp_path / "captures"
    for name in ("b", "a/deep", "c"):
        shutil.copytree(DATA / "kbl-vk-compute", captures / name)
    (captures / "notes.txt").write_text("nothing")
    first = next((captures / "b" / "bo").iterdir())
    first.write_bytes(first.read_bytes()[:-5])
    shutil.copy(captures / "notes.txt", tmp_path / "one.txt")
    ran = farm("replay", captures, tmp_path / "one.txt", "--out", tmp_path / "out")
    found = {line["name"]: line for line in lines(tmp_path / "out")}
    assert ran.returncode == 1 and set(found) == {str(tmp_path / "one.txt"), *(str(captures / name) for name in ("a/deep", "b", "c"))}
    good, bad, none = found[str(captures / "a" / "deep")], found[str(captures / "b")], found[str(tmp_path / "one.txt")]
    assert (good["gpu"], good["result"], good["message"]) == ("kbl", "pass", "")
    assert (bad["gpu"], bad["result"]) == ("kbl", "fail") and first.name in bad["message"]
    assert (none["gpu"], none["result"]) == ("unknown", "fail") and "is text; a trace is" in none["message"]


def test_a_capture_as_other_gpus(tmp_path: Path) -> None:
    capture = DATA / "kbl-vk-tri"
    farm("replay", capture, "--out", tmp_path, "--gpu", "kbl,icl", "--images")
    icl, kbl = sorted(lines(tmp_path), key=lambda line: str(line["gpu"]))
    assert (kbl["gpu"], kbl["result"]) == ("kbl", "pass") and (icl["gpu"], icl["result"]) == ("icl", "fail")
    assert icl["message"].startswith("read at 0x") and "3DPRIMITIVE" in icl["message"]
    pictures = list((tmp_path / "pictures" / kbl["hash"]).iterdir())
    assert pictures and all(path.read_bytes().startswith(b"\x89PNG") for path in pictures)
    assert (tmp_path / "logs" / f"{icl['hash']}.txt").exists() and not (tmp_path / "logs" / f"{kbl['hash']}.txt").exists()


def test_another_capture_in_its_place_is_another_unit(tmp_path: Path) -> None:
    capture = tmp_path / "capture"
    hashes = set()
    for name in ("kbl-vk-compute", "kbl-vk-tri"):
        shutil.copytree(DATA / name, capture)
        assert farm("replay", capture, "--out", tmp_path / "out").returncode == 0
        [line] = lines(tmp_path / "out")
        hashes.add(line["hash"])
        shutil.rmtree(capture)
    assert len(hashes) == 2


def test_inputs_that_are_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for path, told in ((tmp_path / "none", "none: no such file or folder"), (tmp_path, "no captures in it")):
        with pytest.raises(UsageError, match=told):
            find_captures([str(path)])
    assert main(["farm", "replay", str(DATA / "kbl-vk-tri"), "--out", str(tmp_path / "out"), "--gpu", ""]) == 2
    assert "--gpu needs names" in capsys.readouterr().err and own_gpu(str(tmp_path)) == "unknown"
    found = find_captures([str(DATA), str(DATA / "kbl-vk-tri")])
    assert found[-3:] == [str(DATA / name) for name in ("kbl-ocl-barrier", "kbl-vk-compute", "kbl-vk-tri")]
    assert len(set(found)) == len(found)


def ended(code: int, out: object = "", err: str = "", limit: str = "") -> tuple[str, str, tuple[str, ...]]:
    text = out if isinstance(out, str) else json.dumps(out)
    return replay_verdict(EndedProcess(code, 1.0, limit, text, err), ProcessLimits(9, 1 << 30))


def test_verdicts() -> None:
    assert ended(0, {"faults": []}) == ("pass", "", ()) and ended(1, limit="time") == ("timeout", "no end after 9 s", ())
    assert ended(139) == ("crash", "ended by SIGSEGV", ())
    report = {"faults": [{"what": "read at 0x10"}], "unsupported": [{"what": "hull shader"}]}
    assert ended(1, report) == ("fail", "read at 0x10", ()) and ended(1, {**report, "faults": []})[1] == "hull shader"
    assert ended(1, {}, "softgen: 0x1000 is 5, expected 6\n") == ("fail", "0x1000 is 5, expected 6", ())
    assert ended(2, "no json") == ("fail", "exit code 2: no json", ()) and ended(1, "[]")[1] == "exit code 1: []"


def test_findings_of_a_check() -> None:
    found = {"findings": [{"message": "race in saxpy"}, "leak", {"kind": "odd"}]}
    assert ended(1, found) == ("fail", "race in saxpy", ("race in saxpy", "leak", '{"kind": "odd"}'))


def test_worlds_of_a_check(monkeypatch: pytest.MonkeyPatch) -> None:
    assert check_worlds(None) == []
    monkeypatch.setattr(cli, "VERBS", {})  # not changed in place: other tests read their order
    with pytest.raises(UsageError, match="--check needs the verb check, which this softgen does not have"):
        check_worlds("order")
    monkeypatch.setattr(cli, "VERBS", {"check": "planted"})
    assert check_worlds("order,fill") == ["order", "fill"]
    with pytest.raises(UsageError, match="--check needs worlds"):
        check_worlds(",")


AVX2 = """
from softgen.lanes.compile import jit

features = "+avx2,+fma,+f16c,+bmi,+bmi2,+lzcnt,+popcnt,+avx,+sse4.2"
jit.host = lambda: jit.Target("x86_64-unknown-linux-gnu", "x86-64-v3", features)
"""


@pytest.mark.witness
@pytest.mark.skipif("avx512f" not in Path("/proc/cpuinfo").read_text("utf-8"), reason="this processor has no AVX-512")
def test_results_do_not_depend_on_the_hosts_vectors(tmp_path: Path) -> None:
    """A farm's machines need not be alike: of code for AVX-512 and for AVX2 all is equal but the seconds, pictures too."""
    (tmp_path / "sitecustomize.py").write_text(AVX2)
    captures = [DATA / name for name in ("g45-gles-tri", "kbl-vk-compute", "kbl-vk-tri")]
    places = {"wide": str(ROOT), "narrow": f"{tmp_path}:{ROOT}"}
    for name, path in places.items():
        command = ("replay", *captures, "--out", tmp_path / name, "--images", "--engine", "t1")
        assert farm(*command, PYTHONPATH=path, XDG_CACHE_HOME=str(tmp_path / f"{name} cache")).returncode == 0
    wide, narrow = ({line["name"]: {**line, "seconds": 0} for line in lines(tmp_path / name)} for name in places)
    assert wide == narrow and len(wide) == 3
    pictures = [{path.relative_to(tmp_path / name): path.read_bytes() for path in (tmp_path / name).rglob("*.png")} for name in places]
    assert pictures[0] == pictures[1] and len(pictures[0]) >= 3
    kept = [(tmp_path / f"{name} cache").rglob("*") for name in places]
    objects = [{path.name for path in paths if path.is_file() and "-" not in path.name} for paths in kept]
    assert objects[0] and objects[1] and not objects[0] & objects[1]  # other code was made
