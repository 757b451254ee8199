"""What a worker does with a job, by the suite that its units are of."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable

from softgen.errors import SoftgenError
from softgen.inspect.farm import identity
from softgen.inspect.farm.deqp import run_deqp
from softgen.inspect.farm.piglit import run_piglit
from softgen.inspect.farm.process import ProcessLimits
from softgen.inspect.farm.replays import run_replay
from softgen.inspect.farm.unit import Job, JobOutcome
from softgen.inspect.farm.verdicts import ProgramOutput, program_verdict
from softgen.inspect.farm.worker import Stop, UnitFolder


class UnfitWorker(SoftgenError):
    """Raised on a machine whose results would not be those of the units' hashes."""


def never() -> bool:
    return False


def run_job(job: Job, stop: Stop = never) -> JobOutcome:
    """Run a job to its end. What goes wrong in units is in their results; an exception means that this worker cannot run any."""
    if job.host and job.host != identity.host_sum(job.gpu, job.environment):
        raise UnfitWorker(f"{os.uname().nodename}: has another softgen ({identity.version()}) or other drivers for {job.gpu} than the farm")
    if not os.path.isdir(job.folder):
        raise UnfitWorker(f"{os.uname().nodename}: has no folder {job.folder}")
    return SUITES[job.suite](job, stop)


def run_command(job: Job, stop: Stop) -> JobOutcome:
    """A command of a list: `softgen run --gpu G -- LINE`."""
    unit, output = job.units[0], ProgramOutput()
    with UnitFolder(job) as folder:
        ended = folder.start(["run", "--gpu", job.gpu, *job.options, *folder.images(), "--", *shlex.split(unit.name)], output.line, stop)
        return folder.judge(unit, ended, program_verdict(ended, ProcessLimits(job.seconds, job.memory), output))


SUITES: dict[str, Callable[[Job, Stop], JobOutcome]] = {"run": run_command, "deqp": run_deqp, "piglit": run_piglit, "replay": run_replay}
