"""piglit: the tests of its profiles. Shader tests share a start of shader_runner, in groups; all others run alone."""

from __future__ import annotations

import ast
import glob
import gzip
import os
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

from softgen.errors import UsageError
from softgen.inspect.farm import identity
from softgen.inspect.farm.deqp_output import CaseResult
from softgen.inspect.farm.groups import CaseGroup, CaseReader
from softgen.inspect.farm.piglit_output import WORDS, PiglitOutput
from softgen.inspect.farm.plans import ProgramPlan, UnitSettings
from softgen.inspect.farm.process import ProcessLimits
from softgen.inspect.farm.unit import FarmUnit, Job, JobOutcome, UnitResult
from softgen.inspect.farm.verdicts import ProgramOutput, program_verdict
from softgen.inspect.farm.worker import Stop, UnitFolder

PLACES = ("/usr/lib/*/piglit", "/usr/lib/piglit", "/usr/lib64/piglit", "/usr/local/lib/piglit")
RUNNER = "shader_runner"
GROUP = 50  # shader tests of a group
TEST = re.compile(r"PIGLIT TEST: (\d+) - ")


class PiglitTest(NamedTuple):
    """A test of a profile: its command, and the window systems that it needs or excludes."""

    name: str
    command: tuple[str, ...]
    platforms: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()

    def applies(self, platform: str) -> bool:
        return (not self.platforms or platform in self.platforms) and platform not in self.excluded


def find_piglit(told: str | None) -> str:
    """The folder with piglit's tests and programs."""
    places = [told] if told else [os.environ["PIGLIT_BUILD_DIR"]] if "PIGLIT_BUILD_DIR" in os.environ else [*map(str, PLACES)]
    for place in (found for pattern in places for found in sorted(glob.glob(pattern))):
        if os.path.isdir(os.path.join(place, "tests")) and os.path.isdir(os.path.join(place, "bin")):
            return os.path.abspath(place)
    raise UsageError(f"{told}: is no folder of piglit's: it needs tests/ and bin/ in it" if told else
                     "piglit is not found: install it (Debian: apt-get install piglit) or name its folder with --piglit DIR")  # fmt: skip


def read_profile(root: str, profile: str) -> list[PiglitTest]:
    """The tests of a profile: `quick_gl` is tests/quick_gl.xml.gz."""
    paths = [os.path.join(root, "tests", f"{profile}.xml{end}") for end in (".gz", "")]
    path = next((path for path in paths if os.path.exists(path)), None)
    if path is None or os.sep in profile:
        known = sorted({os.path.basename(file).partition(".xml")[0] for file in glob.glob(os.path.join(root, "tests", "*.xml*"))})
        raise UsageError(f"piglit has no profile {profile!r} in {root}; profiles are {', '.join(known) or 'none'}")
    try:
        with gzip.open(path) if path.endswith(".gz") else open(path, "rb") as file:
            return [read_test(element) for _, element in ElementTree.iterparse(file) if element.tag == "Test"]
    except (OSError, EOFError, ElementTree.ParseError, KeyError, ValueError, SyntaxError) as error:
        raise UsageError(f"{path}: is no profile that can be read: {error}") from None


def read_test(element: ElementTree.Element) -> PiglitTest:
    """A test of a profile. Facts: the kinds of tests in piglit's framework/test."""
    told = {option.get("name"): ast.literal_eval(option.get("value", "None")) for option in element.findall("option")}
    name, kind = element.attrib["name"], element.attrib["type"]
    command = [str(word) for word in told.get("command", ())]
    match kind:
        case "gl" | "shader":
            command += ["-auto", "-fbo"] if told.get("run_concurrent", True) else ["-auto"]
        case "gl_builtin":
            command[1] = os.path.join("tests", command[1])
        case "asm_parser":
            command = ["asmparsertest", told["type_"], told["filename"]]
        case "cl_prog":
            command = ["cl-program-tester", told["filename"]]
        case "vkrunner":
            command = ["vkrunner", told["filename"]]
        case "multi_shader":
            raise ValueError(f"{name}: tests of several shaders in one; take the profile without no_isolation")
    if not command:
        raise ValueError(f"{name}: a test of kind {kind!r}, without a command")
    return PiglitTest(name, tuple(command), tuple(told.get("require_platforms") or ()), tuple(told.get("exclude_platforms") or ()))


class PiglitPlan(ProgramPlan):
    """The tests of profiles."""

    def __init__(self, root: str, tests: list[PiglitTest], gpus: list[str], settings: UnitSettings, group: int | None = None) -> None:
        super().__init__(settings)
        self.tests, self.gpus, self.group = {test.name: test for test in tests}, gpus, group or GROUP
        settings.environment = {"PIGLIT_PLATFORM": "gbm", "PIGLIT_SOURCE_DIR": root} | settings.environment
        settings.folder = root

    def everything(self) -> list[tuple[str, str]]:
        return [(gpu, name) for gpu in self.gpus for name in self.tests]

    def key(self, gpu: str, name: str) -> str:
        command = self._command(name)
        program = os.path.basename(command[0]), command[1:], identity.program_parts(command, self.settings.folder)
        return identity.key("piglit", gpu, self.settings.decisive, name, program, self.context(gpu))

    def _command(self, name: str) -> list[str]:
        program, *arguments = self.tests[name].command
        own = os.path.join(self.settings.folder, "bin", program)
        return [own if os.path.exists(own) else program, *arguments]

    def jobs(self, units: list[FarmUnit], workers: int) -> Iterator[Job]:
        platform = self.settings.environment["PIGLIT_PLATFORM"]
        for gpu in self.gpus:
            of_gpu = [unit for unit in units if unit.gpu == gpu]
            shared = [unit for unit in of_gpu if is_shader_test(self.tests[unit.name].command)]
            groups = -(-len(shared) // max(min(self.group, len(shared) // workers), 1))
            for number in range(groups):
                yield self._job(gpu, tuple(shared[number::groups]))
            for unit in (unit for unit in of_gpu if not is_shader_test(self.tests[unit.name].command)):
                yield self._job(gpu, (unit,), () if self.tests[unit.name].applies(platform) else (platform,))

    def _job(self, gpu: str, units: tuple[FarmUnit, ...], program: tuple[str, ...] = ()) -> Job:
        return self.settings.job("piglit", gpu, units, program=program, commands=tuple(tuple(self._command(unit.name)) for unit in units))


def is_shader_test(command: tuple[str, ...]) -> bool:
    """Whether a test is a file for shader_runner and nothing else, so that others can share its start."""
    return len(command) == 4 and os.path.basename(command[0]) == RUNNER and command[2:] == ("-auto", "-fbo")


class ShaderTestOutput:
    """Reads shader_runner's output: it numbers files unless there is one, names each by its file alone, may end after any of them."""

    complete = False

    def __init__(self, units: list[FarmUnit]) -> None:
        self.units, self.results = units, list[CaseResult]()
        self.running = units[0].name if len(units) == 1 else ""
        self.output, self.began = PiglitOutput(), time.monotonic()

    def line(self, text: str) -> None:
        if found := TEST.match(text):
            number = int(found[1]) - 1
            self.running, self.began = self.units[number].name if 0 <= number < len(self.units) else "", time.monotonic()
            return
        self.output.line(text)
        parts, self.output.parts = self.output.parts, []
        word = parts[0].message if parts else self.output.word  # the latter where the program ends with this test
        if word and self.running:
            seconds = time.monotonic() - self.began
            self.results.append(CaseResult(self.running, WORDS[word], "warn" if word == "warn" else "", seconds))
            self.running = ""


class ShaderTests:
    """How groups of shader tests are run."""

    def command(self, job: Job, units: list[FarmUnit], folder: Path, alone: bool) -> list[str]:
        commands = dict(zip((unit.name for unit in job.units), job.commands, strict=True))
        files = [commands[unit.name][1] for unit in units]
        return [job.commands[0][0], *files, "-auto", "-fbo", "-report-subtests"]

    def reader(self, units: list[FarmUnit]) -> CaseReader:
        return ShaderTestOutput(units)

    def extras(self, folder: Path) -> tuple[str, dict[str, bytes]]:
        return "", {}


def run_piglit(job: Job, stop: Stop) -> JobOutcome:
    if job.program:
        [unit] = job.units
        return JobOutcome([UnitResult(unit.name, unit.gpu, "skip", 0.0, f"not for the platform {job.program[0]}", unit.key)])
    if len(job.units) > 1:
        return CaseGroup(job, stop, ShaderTests()).run()
    output = ProgramOutput()
    with UnitFolder(job) as folder:
        ended = folder.start(["run", "--gpu", job.gpu, *job.options, *folder.images(), "--", *job.commands[0]], output.line, stop)
        return folder.judge(job.units[0], ended, program_verdict(ended, ProcessLimits(job.seconds, job.memory), output))
