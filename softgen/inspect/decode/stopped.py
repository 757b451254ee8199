"""Where an engine stopped: which commands of a submission its registers point to.

ACTHD is how far the streamer had read, which may be a few commands past the one at work; IPEHR is the header of that one. So the
command that was executing is the last one with this header that stands at or before ACTHD.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from softgen.bits.generation import Generation
from softgen.streamer.parser import Command, CommandParser
from softgen.trace.work import Mark, Work

MEANING = {
    "ACTHD": "ACTHD: the engine had read up to here",
    "BBADDR": "BBADDR: where it stood in the batch",
    "HEAD": "HEAD: where it stood in the ring",
}
EXECUTING = "IPEHR: the command that was executing"


@dataclass(frozen=True)
class Stopped:
    """Marks by (is it in the ring?, address of the command), and what could not be found."""

    marks: dict[tuple[bool, int], list[str]] = field(default_factory=dict)
    lost: tuple[str, ...] = ()
    command: Command | None = None  # the one that was executing

    def at(self, command: Command) -> list[str]:
        return self.marks.get((command.level == 0, command.address), [])


def stopped(work: Work, generation: Generation) -> Stopped:
    """The marks of a submission's commands; none without an error state."""
    if work.stop is None:
        return Stopped()
    walk = CommandParser(generation, work.engine, work.space, work.global_space)
    road = walk.ring(work.batch, work.head, work.tail, work.size) if work.kind == "ring" else walk.batch(work.batch)
    commands = [item for item in road if isinstance(item, Command)]
    marks: dict[tuple[bool, int], list[str]] = {}
    lost, active = [], len(commands) - 1
    for mark in work.stop.marks:
        found = next((i for i, command in enumerate(commands) if _holds(command, mark)), None)
        if found is None:
            if not mark.ring or work.kind == "ring":
                lost.append(f"{mark.label} points to {mark.address:#x}, which is not on this road")
            continue
        marks.setdefault(_key(commands[found]), []).append(MEANING.get(mark.label, mark.label))
        active = found if mark.label == "ACTHD" else active
    executing = next((command for command in reversed(commands[: active + 1]) if command.dwords[0] == work.stop.header), None)
    if executing:
        marks.setdefault(_key(executing), []).append(EXECUTING)
    elif work.stop.header is not None:
        lost.append(f"IPEHR is {work.stop.header:#010x}, which heads no command before that place")
    return Stopped(marks, tuple(lost), executing)


def _key(command: Command) -> tuple[bool, int]:
    return command.level == 0, command.address


def _holds(command: Command, mark: Mark) -> bool:
    return (command.level == 0) == mark.ring and command.address <= mark.address < command.address + 4 * len(command.dwords)
