"""A short round of every fuzz target, the same inputs each time; and that the targets and engines notice what they are for."""

from __future__ import annotations

import itertools
import random
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from softgen.device.gpu import GpuDevice
from softgen.errors import SoftgenError
from softgen.trace.work import Work
from tests.conftest import ROOT
from tests.driver.running import needs_shim, softgen_run
from tests.fuzz import captured_targets, engine, seeds, targets
from tests.fuzz.engine import CORPUS, Mutator, corpus, inputs, limited, mutate
from tests.fuzz.targets import TARGETS

# Inputs beyond the corpus, half a second's worth; of the video targets, one.
ROUNDS = {"decode": 40, "replay": 20, "draws": 3, "sends": 3, "ioctls": 30, "tbx": 30, "media": 4, "vp8": 2}


@pytest.mark.parametrize("target", ROUNDS)
def test_a_short_round(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(targets, "SECONDS", 0.1)
    count = len(corpus(target)) + ROUNDS[target]
    for number, data in enumerate(itertools.islice(inputs(target, random.Random(7)), count)):
        try:
            limited(target, data)
        except Exception as error:
            error.add_note(f"input {number} of {target}: {data[:200]!r}")
            raise


def test_the_corpus_is_what_its_script_writes(tmp_path: Path) -> None:
    seeds.write(tmp_path)
    made = {path.relative_to(tmp_path): path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    assert made == {path.relative_to(CORPUS): path.read_bytes() for path in CORPUS.rglob("*") if path.is_file()}
    assert sum(map(len, made.values())) < 100_000


# -- seeds lead where they should ----------------------------------------------------------------------------------


def seed(target: str, name: str) -> bytes:
    return (CORPUS / target / name).read_bytes()


JOBS = ("job-skl", "job-icl", "job-bdw", "kernel-t1", "self-modifying-reference", "self-modifying-t0", "self-modifying-t1")


@pytest.mark.parametrize("name", JOBS)
def test_a_job_dispatches(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(targets, "SECONDS", 60)  # a busy machine compiles slowly
    done = targets.replay_edited(seed("replay", name))
    assert done is not None and done.dispatches == 1 and done.threads == 4


@pytest.mark.parametrize("name", ["ring-skl", "ring-icl"])
def test_a_ring_leads_to_its_batch(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(targets, "SECONDS", 60)
    done = targets.replay_edited(seed("replay", name))
    assert done is not None and done.batches >= 1


@pytest.mark.parametrize("name", ["skl-work", "icl-work"])
def test_a_client_starts_work(name: str) -> None:
    done = targets.tbx(seed("tbx", name))
    assert done is not None and done.batches == 1


@pytest.fixture
def errors(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What a capture's submissions are refused for."""
    found, execute = list[str](), captured_targets.GpuDevice.execute

    def listed(gpu: GpuDevice, work: Work) -> None:
        try:
            execute(gpu, work)
        except SoftgenError as error:
            found.append(str(error))

    monkeypatch.setattr(captured_targets.GpuDevice, "execute", listed)
    monkeypatch.setattr(captured_targets, "ENGINES", ("t0",))
    monkeypatch.setattr(targets, "SECONDS", 60)
    return found


@pytest.mark.parametrize(("target", "name", "why"), [
    ("draws", "kbl-vk-tri", ""), ("draws", "g45-gles-tri", ""), ("draws", "kbl-vk-compute", ""),
    ("draws", "long-payload-vs", "VS: a payload of"), ("draws", "late-payload-vs", "VS: a payload of"),
    ("draws", "long-payload-sf-g45", "SF: a payload of 192 registers"),
    ("sends", "payload-file-kbl-vk-compute", "a payload is in general registers"),
    ("sends", "payload-file-align1-kbl-vk-tri", "a payload is in general registers")])  # fmt: skip
def test_seeds_of_captures_reach_draws_and_what_was_wrong_there(target: str, name: str, why: str, errors: list[str]) -> None:
    done = TARGETS[target](seed(target, name))
    assert done is not None and done.draws + done.dispatches > 0
    assert bool(errors) == bool(why) and all(why in error for error in errors)


def test_seeds_of_video_decode_pictures_and_damage_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(targets, "SECONDS", 60)
    plain, damaged = (TARGETS["h264"](seed("h264", f"h264-cavlc{end}")) for end in ("", "-edited"))
    assert plain is not None and damaged is not None
    assert plain.video.pictures == {"avc": 5} and damaged.video.pictures and plain.video.concealed == 0 < damaged.video.concealed


def test_bits_of_a_value_go_where_a_field_has_its_own() -> None:
    assert captured_targets.deposit(0b1101_0010, 0b1011) == 0b1001_0010
    assert captured_targets.deposit(0xFF00, 0x1FF) == 0xFF00 and captured_targets.deposit(0, 7) == 0


def test_a_self_modifying_kernel_changes_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    spaces = []
    monkeypatch.setattr(targets, "SECONDS", 60)
    execute = targets.GpuDevice.execute
    monkeypatch.setattr(targets.GpuDevice, "execute", lambda self, work: (spaces.append(work.space), execute(self, work))[1])
    targets.replay_edited(seed("replay", "job-skl"))
    targets.replay_edited(seed("replay", "self-modifying-t0"))
    before, after = (space.read(seeds.CODE, 256) for space in spaces)
    assert before != after and after[:4] == (1000).to_bytes(4, "little")


# -- finds are noticed ---------------------------------------------------------------------------------------------


def failing(monkeypatch: pytest.MonkeyPatch, function: Callable[[bytes], None]) -> None:
    monkeypatch.setitem(TARGETS, "tbx", function)


def test_a_find_is_kept_once_for_each_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def broken(data: bytes) -> None:
        if data[1:2] == b"\0":
            raise IndexError("a bug")

    failing(monkeypatch, broken)
    assert mutate("tbx", 0.3, tmp_path, 1) == 1
    (find,) = tmp_path.iterdir()
    assert find.read_bytes()[1:2] == b"\0" and "tbx: IndexError at" in capsys.readouterr().out


def test_an_input_that_takes_too_long_is_a_find(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(targets, "LIMIT", 0.1)
    failing(monkeypatch, lambda data: time.sleep(20))
    with pytest.raises(engine.TooSlow):
        limited("tbx", b"")


def test_output_that_is_no_json_is_a_find(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(targets, "main", lambda arguments: print('{"a": NaN}') or 0)
    with pytest.raises(targets.Find, match="NaN is no JSON"):
        targets.decode(b"\0\0file")
    monkeypatch.setattr(targets, "main", lambda arguments: 1)
    with pytest.raises(targets.Find, match="exit code 1"):
        targets.decode(b"\0\0file")


def test_a_server_that_fails_is_a_find(monkeypatch: pytest.MonkeyPatch) -> None:
    targets.server().log.append("softgen itself failed in X")
    with pytest.raises(targets.Find, match="itself failed"):
        targets.ioctls(b"\0")
    targets.ioctls(b"\0")


def test_mutation_makes_inputs_of_every_length() -> None:
    mutator = Mutator([b"", b"abcdefgh" * 8], random.Random(1), most=100)
    made = [mutator.next() for _ in range(2000)]
    assert len(set(made)) > 1200 and max(map(len, made)) <= 100 and b"" in made


# -- the tool ------------------------------------------------------------------------------------------------------


@needs_shim
def test_calls_through_the_shim() -> None:
    run = softgen_run("--gpu", "kbl", "--", sys.executable, str(ROOT / "tests" / "fuzz" / "shim_calls.py"), "0.5", "1")
    assert run.process.returncode == 0 and run.out.endswith(" calls\n"), run.err


def test_the_tool_runs_one_part() -> None:
    command = [sys.executable, str(ROOT / "tools" / "fuzz.py"), "--minutes", "0.02", "--part", "tbx"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and "tbx: " in done.stdout and "nothing found" in done.stdout, done.stdout + done.stderr
