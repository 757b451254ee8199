"""The verdict on a program that `softgen run` has run: pass, fail, crash, timeout or skip, and a message that another run would repeat."""

from __future__ import annotations

import re

from softgen.inspect.farm.deqp_output import DeqpOutput
from softgen.inspect.farm.piglit_output import PiglitOutput
from softgen.inspect.farm.process import EndedProcess, ProcessLimits

SKIP = 77  # the exit code by which test programs say that they do not apply here
LONGEST = 400  # characters of a message
SAID = "softgen: "
KILLED = re.compile(r"(?:simulator|server)\b.* \(killed by signal (\d+)\)")
# What differs from run to run: where a failure is kept, numbers of processes, times, addresses of the host.
VARIES = ((re.compile(r"; kept in \S+"), ""), (re.compile(r"\(process \d+, "), "("), (re.compile(r"\b(pid|process) \d+\b"), r"\1 N"),
          (re.compile(r"0x(?:7f|55|56)[0-9a-f]{10}\b"), "0x…"),
          (re.compile(r"/[\w/]+/(?:softgen-(?:[0-9a-f]{12}|\w+-\w{8})|tmp\w{8})\b"), "…"),
          (re.compile(r"\b\d\d:\d\d:\d\d(?:\.\d+)?\b"), "…"))  # fmt: skip
NOT_THE_CAUSE = ("was ended by SIG", "the program is ended", "the launcher has ended", "picture", "note:", "no pictures")


class ProgramOutput:
    """Reads what a program of any suite prints: piglit's and dEQP's own words count."""

    def __init__(self) -> None:
        self.piglit, self.deqp = PiglitOutput(), DeqpOutput()

    def line(self, text: str) -> None:
        self.piglit.line(text)
        self.deqp.line(text)

    def word(self) -> tuple[str, str]:
        """The suite's own result and message; "" where the program says none. Of several dEQP cases the worst."""
        if self.piglit.result:
            return self.piglit.result, self.piglit.message
        for result in ("crash", "timeout", "fail", "pass", "skip"):
            if found := next((case for case in self.deqp.results if case.result == result), None):
                return result, found.message if result == "skip" else f"{found.case}: {found.message}" if found.message else ""
        return "", ""


def limit_verdict(ended: EndedProcess, limits: ProcessLimits) -> tuple[str, str] | None:
    """The verdict on a process that a limit or a signal ended; None if it ended by itself."""
    if ended.limit == "time":
        what = "no output" if limits.silence else "no end"
        return "timeout", f"{what} after {limits.seconds:g} s"
    if ended.limit == "memory":
        return "crash", f"more than {limits.memory >> 20:,} MiB of memory"
    if ended.signal:
        return "crash", f"ended by {ended.signal}" + (f": {said}" if (said := last_error(ended.err)) else "")
    if killed := KILLED.search(ended.err):
        return "crash", f"the simulator was killed by signal {killed[1]}"
    return None


def program_verdict(ended: EndedProcess, limits: ProcessLimits, output: ProgramOutput) -> tuple[str, str]:
    """Result and message of a program."""
    if found := limit_verdict(ended, limits):
        return found
    word, message = output.word()
    if ended.code == SKIP:
        return "skip", message or f"exit code {SKIP}"
    if ended.code == 0 and word != "fail":
        return word or "pass", message
    if word in ("fail", "crash", "timeout"):
        return word, " ".join(filter(None, (message, first_error(ended.err))))[:LONGEST]
    return "fail", first_error(ended.err) or last_line(ended) or f"exit code {ended.code}"


def first_error(err: str) -> str:
    """softgen's own first error."""
    said = (line.removeprefix(SAID) for line in err.splitlines() if line.startswith(SAID))
    return next((stable(line) for line in said if not any(part in line for part in NOT_THE_CAUSE)), "")


def last_error(err: str) -> str:
    """The last that a program printed on standard error, such as a failed assertion."""
    lines = [line for line in err.splitlines() if line.strip() and not line.startswith(SAID)]
    return stable(lines[-1].strip()) if lines else ""


def last_line(ended: EndedProcess) -> str:
    """The exit code and the last that the program printed, on standard error if anything."""
    said = last_error(ended.err) or last_error(ended.out)
    return f"exit code {ended.code}: {said}" if said else ""


def stable(text: str) -> str:
    """A message without what differs from run to run."""
    for pattern, instead in VARIES:
        text = pattern.sub(instead, text)
    return text[:LONGEST]
