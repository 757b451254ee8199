"""`softgen profile`: counts equal those of the reference engine, instruction by instruction; its files; comparison."""

import csv
import json
from collections import Counter
from pathlib import Path

import pytest

from softgen.eu.interpreter import Interpreter
from softgen.inspect.cli.main import main
from softgen.inspect.profile.measure import ProfilingDispatcher, lanes_of, measure
from softgen.inspect.session.control import SessionDispatcher
from softgen.inspect.session.execution import CaptureExecution
from softgen.threads.dispatch import DispatchContext
from softgen.threads.dispatcher import EngineDispatcher
from softgen.trace.file import open_trace
from softgen.trace.replay import replay
from tests.conftest import ROOT, in_ci

COMPUTE, TRIANGLE, OLD = (ROOT / "tests/data" / name for name in ("kbl-vk-compute", "kbl-vk-tri", "g45-gles-tri"))


class ReferenceCounts(SessionDispatcher):
    """Counts each instruction of compiled engines' loops while the interpreter executes all of them."""

    def __init__(self) -> None:
        super().__init__("reference", 1)
        self.engine = EngineDispatcher("interpreted", 1, lambda name: __import__(
            "softgen.threads.interpreted", fromlist=["x"]).InterpretedEngine())  # fmt: skip
        self.executed: Counter[tuple[bytes, int]] = Counter()
        self.lanes: Counter[tuple[bytes, int]] = Counter()

    def watched(self, context: DispatchContext) -> DispatchContext:
        made = context.again(context.warn, context.elapsed)
        made.stepper = self._count
        return made

    def _count(self, runner: Interpreter, *_: object) -> bool:
        thread, program = runner.thread, runner.code
        inst = program.line(thread.ip).instruction
        place, lanes = (program.beginning(64), thread.ip - program.start), lanes_of(inst, thread.active)
        done = runner.step()
        self.executed[place] += done  # a wait is executed once it ends
        self.lanes[place] += lanes * done
        return done


BARRIER = ROOT / "tests/data/kbl-ocl-barrier"  # threads that wait, loops, predicated branches


@pytest.mark.parametrize("capture", in_ci([COMPUTE, TRIANGLE, OLD, BARRIER], COMPUTE, BARRIER))
def test_counts_equal_those_of_the_reference(capture: Path) -> None:
    reference, counting = ReferenceCounts(), ProfilingDispatcher(False)
    for dispatcher in (reference, counting):
        run = CaptureExecution(open_trace(capture), dispatcher=dispatcher)
        run.run_to_end()
        assert not run.errors
    executed: Counter[tuple[bytes, int]] = Counter()
    lanes: Counter[tuple[bytes, int]] = Counter()
    for (program, ip), counts in counting.totals().items():
        executed[program.beginning(64), ip - program.start] += counts[0]
        lanes[program.beginning(64), ip - program.start] += counts[1]
    assert executed == reference.executed and lanes == reference.lanes


def test_sums_are_those_of_a_replay_and_two_runs_agree() -> None:
    profiles = [measure(TRIANGLE), measure(TRIANGLE)]
    done = replay(open_trace(TRIANGLE)).counters
    for profile in profiles:
        assert (profile.threads, profile.executed) == (done.threads, done.instructions)
        assert sum(kernel.executed for kernel in profile.kernels) == sum(draw.executed for draw in profile.draws) == done.instructions
        assert sum(kernel.threads for kernel in profile.kernels) == done.threads
        assert all(kernel.executed == sum(row.executed for row in kernel.instructions) for kernel in profile.kernels)
    listed = [[(row.offset, row.executed, row.lanes) for kernel in profile.kernels for row in kernel.instructions] for profile in profiles]
    assert listed[0] == listed[1]
    assert [(kernel.stage, kernel.threads) for kernel in profiles[0].kernels] == [("ps", 256), ("ps", 93), ("vs", 1)]


def test_traffic_is_counted_by_lane_and_cache_line() -> None:
    (kernel,) = measure(COMPUTE, traffic=True).kernels
    rows = {row.offset: (row.accesses, row.bytes_read, row.bytes_written, row.lines_touched) for row in kernel.instructions}
    assert rows[0x70] == (64, 256, 0, 4) and rows[0x98] == (64, 0, 256, 4) and rows[0x60] == (None, None, None, None)


def test_bounds_are_known_for_eus_with_two_pipes() -> None:
    (kernel,) = measure(COMPUTE).kernels
    words, sends = (0x0, 0x18), (0x70, 0x80, 0x98, 0xB0)
    size = sum(row.lanes * (2 if row.offset in words else 4) for row in kernel.instructions if row.offset not in sends)
    assert kernel.at_least_cycles == pytest.approx(size / 32 / 24)
    assert {kernel.at_least_cycles for kernel in measure(OLD).kernels} == {None}
    assert kernel.driver_cycles is None and kernel.host_seconds is not None


def test_the_verb_writes_json_csv_and_stacks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = tmp_path / "rows.csv", tmp_path / "stacks.json"
    assert main(["profile", str(COMPUTE), "--json", "--csv", str(files[0]), "--speedscope", str(files[1])]) == 0
    profile = json.loads(capsys.readouterr().out)
    assert profile["format"] == "softgen profile" and profile["kernels"][0]["executed"] == 60
    rows = list(csv.DictReader(files[0].open()))
    assert [int(row["executed"]) for row in rows] == [4] * 15 and rows[0]["stage"] == "cs"
    stacks = json.loads(files[1].read_text())
    for made in stacks["profiles"]:
        assert len(made["samples"]) == len(made["weights"]) and sum(made["weights"]) == made["endValue"] == 60
        assert all(frame < len(stacks["shared"]["frames"]) for stack in made["samples"] for frame in stack)


def test_two_profiles_are_compared_exactly(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["profile", str(COMPUTE), "--json"]) == 0
    text = capsys.readouterr().out
    before, after = tmp_path / "before.json", tmp_path / "after.json"
    before.write_text(text)
    profile = json.loads(text)
    assert main(["profile", str(before), str(COMPUTE)]) == 0
    assert "the same counts" in capsys.readouterr().out
    profile["kernels"][0] |= {"executed": 61, "code": "0" * 12}
    after.write_text(json.dumps(profile))
    assert main(["profile", str(before), str(after)]) == 1
    out = capsys.readouterr().out
    assert "60" in out and "61" in out and "1.0167" in out


@pytest.mark.parametrize(("arguments", "code", "says"), [
    (["profile", "nowhere"], 1, "nowhere"), (["profile", str(COMPUTE), "--engine", "x"], 2, "no such engine"),
    (["profile", str(COMPUTE), "--kernels", "nowhere"], 2, "no such file")])  # fmt: skip
def test_mistakes_are_named(arguments: list[str], code: int, says: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == code
    assert says in capsys.readouterr().err


def test_counts_of_source_lines(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Two instructions of a line, in a source that is the kernel's disassembly in other words."""
    assert main(["disasm", str(COMPUTE)]) == 0
    lines = [line for line in capsys.readouterr().out.splitlines() if not line.startswith("//")]
    (tmp_path / "mine.asm").write_text("\n\n".join(line.partition("//")[0] for line in lines))
    assert main(["profile", str(COMPUTE), "--source", str(tmp_path / "mine.asm"), "--json"]) == 0
    (kernel,) = json.loads(capsys.readouterr().out)["kernels"]
    places = {row["offset"]: row["line"] for row in kernel["instructions"]}
    first = next(number for number, line in enumerate((tmp_path / "mine.asm").read_text().splitlines(), 1) if "mov" in line)
    assert [places[offset] for offset in (0x0, 0x10, 0x18)] == [f"{tmp_path}/mine.asm:{first + 2 * n}" for n in range(3)]
    assert main(["profile", str(COMPUTE), "--source", str(tmp_path / "mine.asm")]) == 0
    assert f"4  6.7 %     64  {tmp_path}/mine.asm:{first + 2}" in capsys.readouterr().out
    assert main(["profile", str(COMPUTE), "--source", str(tmp_path / "nothing.asm")]) == 2
