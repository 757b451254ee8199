"""dEQP: cases of Khronos's conformance tests, in groups. `--cases` lists and the program are those that deqp-runner takes."""

from __future__ import annotations

import base64
import os
import re
from collections.abc import Iterator
from pathlib import Path

from softgen.errors import UsageError
from softgen.inspect.farm import identity
from softgen.inspect.farm.deqp_output import DeqpOutput
from softgen.inspect.farm.groups import CaseGroup, CaseReader
from softgen.inspect.farm.lists import read_lines
from softgen.inspect.farm.plans import ProgramPlan, UnitSettings
from softgen.inspect.farm.unit import FarmUnit, Job, JobOutcome
from softgen.inspect.farm.worker import Stop

# What a run without a window needs; the user's own options come after, and replace them.
USUAL = ("--deqp-surface-type=pbuffer", "--deqp-surface-width=256", "--deqp-surface-height=256", "--deqp-gl-config-name=rgba8888d24s8ms0",
         "--deqp-shadercache=disable")  # fmt: skip
BRIEF = ("--deqp-log-images=disable", "--deqp-log-shader-sources=disable")  # of groups: what goes wrong runs again alone, with both
PLATFORM = {"EGL_PLATFORM": "surfaceless"}
LARGEST, SMALLEST, ROUNDS = 500, 10, 4  # cases of a group; groups for each worker
LOG = "log.qpa"
IMAGE = re.compile(r'<Image Name="(\w+)"[^>]*CompressionMode="PNG"[^>]*>([A-Za-z0-9+/=\s]+)</Image>')
TEXT = re.compile(r"<(?:Text|Section|Message)[^>]*>([^<]+)<")


def read_cases(paths: list[str]) -> list[str]:
    """The cases of lists: one a line, or the `TEST: ` lines that dEQP itself writes; a line that names a list beside it stands for that."""
    cases = [case for path in paths for case in _cases(path, ())]
    if not cases:
        raise UsageError(f"{paths[0]}: has no cases")
    return list(dict.fromkeys(cases))


def _cases(path: str, within: tuple[str, ...]) -> Iterator[str]:
    if path in within:
        raise UsageError(f"{path}: names itself as a list of cases")
    for number, line in read_lines(path):
        if line.startswith("GROUP: "):
            continue
        case = line.removeprefix("TEST: ").strip()
        if case.endswith(".txt"):
            yield from _cases(os.path.join(os.path.dirname(path), case), (*within, path))
        elif re.fullmatch(r"[\w.-]+", case):
            yield case
        else:
            raise UsageError(f"{path}:{number}: is no name of a case: {case[:80]!r}")


def group_size(cases: int, workers: int, told: int | None) -> int:
    """Cases of a group: few starts of the program, and enough groups that all workers end at about the same time."""
    return told or min(max(cases // (workers * ROUNDS), SMALLEST), LARGEST)


class DeqpPlan(ProgramPlan):
    """Cases of one dEQP program."""

    def __init__(self, program: str, arguments: list[str], cases: list[str], gpus: list[str], settings: UnitSettings,
                 group: int | None = None) -> None:  # fmt: skip
        super().__init__(settings)
        self.program, self.cases, self.gpus, self.group = os.path.abspath(program), cases, gpus, group
        named = {argument.partition("=")[0] for argument in arguments}
        self.arguments = (*(usual for usual in USUAL if usual.partition("=")[0] not in named), *arguments)
        settings.environment = PLATFORM | settings.environment
        settings.folder = os.path.dirname(self.program)

    def everything(self) -> list[tuple[str, str]]:
        return [(gpu, case) for gpu in self.gpus for case in self.cases]

    def key(self, gpu: str, name: str) -> str:
        program = os.path.basename(self.program), identity.contents(self.program), self.arguments
        return identity.key("deqp", gpu, self.settings.decisive, name, program, self.context(gpu))

    def jobs(self, units: list[FarmUnit], workers: int) -> Iterator[Job]:
        for gpu in self.gpus:
            cases = [unit for unit in units if unit.gpu == gpu]
            groups = -(-len(cases) // group_size(len(cases), workers, self.group))
            for number in range(groups):  # neighbours, which take about as long, go to different groups
                yield self.settings.job("deqp", gpu, tuple(cases[number::groups]), program=(self.program, *self.arguments))


class DeqpSuite:
    """How groups of dEQP's cases are run."""

    def command(self, job: Job, units: list[FarmUnit], folder: Path, alone: bool) -> list[str]:
        (folder / "cases.txt").write_text("".join(f"{unit.name}\n" for unit in units), "utf-8")
        brief = () if alone else BRIEF
        return [*job.program, *brief, f"--deqp-caselist-file={folder / 'cases.txt'}", f"--deqp-log-filename={folder / LOG}"]

    def reader(self, units: list[FarmUnit]) -> CaseReader:
        return DeqpOutput()

    def extras(self, folder: Path) -> tuple[str, dict[str, bytes]]:
        """Texts and pictures of the log (.qpa) that dEQP writes."""
        try:
            log = (folder / LOG).read_text("utf-8", "replace")
        except OSError:
            return "", {}
        pictures: dict[str, bytes] = {}
        for name, data in IMAGE.findall(log):
            pictures[f"{len(pictures):03}-{name}.png"] = base64.b64decode("".join(data.split()))
        return "\n--- log of dEQP\n" + "\n".join(text.strip() for text in TEXT.findall(log)), pictures


def run_deqp(job: Job, stop: Stop) -> JobOutcome:
    return CaseGroup(job, stop, DeqpSuite()).run()
