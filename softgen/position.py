"""Position: one string that names any event of a run, as messages print it, verbs take it and URLs contain it.

    2:57/ps/g0.t54+0x20#412    submission 2, command 57, pixel shader, group 0, thread 54, byte 0x20 of the kernel, 412 instructions before

Every part may be left out from the right, and a position without them names all that they distinguish: `2:57` is a command, `2:57/ps+0x20`
an instruction of whatever thread, `/cs/g1.t0` a thread of a kernel that no submission started. Submissions have the numbers of the capture
(softgen decode); commands count from 1 in the order of execution, whatever batch they are in; groups and threads count from 0.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, fields, replace

from softgen.errors import SoftgenError, UsageError

STAGES = ("vs", "hs", "ds", "gs", "clip", "sf", "ps", "cs", "media")
FORM = re.compile(r"(?:(?P<submission>\d+)(?::(?P<command>\d+))?)?"
                  r"(?:/(?P<stage>[a-z]+)(?:/g(?P<group>\d+)(?:\.t(?P<thread>\d+))?)?(?:\+(?P<offset>0x[0-9a-f]+))?"
                  r"(?:#(?P<instructions>\d+))?)?", re.ASCII)  # fmt: skip
EXAMPLE = "2:57/ps/g0.t54+0x20#412"


@dataclass(frozen=True)
class Position:
    """An event, or all events that agree in the parts that are given."""

    submission: int | None = None
    command: int | None = None  # the how manieth that the submission executes, from 1 on
    stage: str = ""
    group: int | None = None
    thread: int | None = None
    offset: int | None = None  # of the instruction from the start of its kernel, in bytes
    instructions: int | None = None  # that the thread has executed before it

    def __str__(self) -> str:
        text = "" if self.submission is None else f"{self.submission}"
        text += "" if self.command is None else f":{self.command}"
        if not self.stage:
            return text
        text += f"/{self.stage}" + ("" if self.group is None else f"/g{self.group}")
        text += "" if self.thread is None else f".t{self.thread}"
        text += "" if self.offset is None else f"+{self.offset:#x}"
        return text + ("" if self.instructions is None else f"#{self.instructions}")

    def __contains__(self, other: Position) -> bool:
        """Whether an event is one of those that this position names."""
        return all(mine in (None, "") or mine == theirs for mine, theirs in zip(_parts(self), _parts(other), strict=True))

    def within(self, outer: Position | None) -> Position:
        """The same event with the submission and command of `outer`, where it has none of its own."""
        if outer is None or self.submission is not None:
            return self
        command = outer.command if self.command is None else self.command
        return replace(self, submission=outer.submission, command=command, stage=self.stage or outer.stage)


NOWHERE = Position()


def of(error: SoftgenError, outer: Position = NOWHERE) -> Position:
    """The position of an error, within `outer`."""
    found: Position = error.position or NOWHERE
    return found.within(outer)


def _parts(position: Position) -> list[object]:
    return [getattr(position, part.name) for part in fields(position)]


def parse(text: str) -> Position:
    """The position that a string names."""
    found = FORM.fullmatch(text)
    if not text or found is None or found["stage"] and found["stage"] not in STAGES:
        raise UsageError(f"a position looks like {EXAMPLE}, with parts left out from the right, and stages are {' '.join(STAGES)}; "
                         f"not {text!r}")  # fmt: skip
    numbers = {name: int(value, 0 if name == "offset" else 10) for name, value in found.groupdict().items()
               if name != "stage" and value is not None}  # fmt: skip
    return Position(stage=found["stage"] or "", **numbers)
