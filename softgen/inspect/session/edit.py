"""Edits of a capture: fields of commands, and kernels, that are changed in memory before a submission is executed.

    2:124.vertex_count_per_instance=3        a field of a command, by POSITION; elements of groups as vertex_buffer_state[0].buffer_pitch
    ps=mine.asm                              the kernels of a stage, at an address (0x200004040), or of a code that `softgen profile` names

Values are integers, floats for fields that are floats, and names of enumerated ones. The capture itself stays as it is.
"""

from __future__ import annotations

import hashlib
import re
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from softgen.bits.describe import values_of
from softgen.bits.field import BitField, Group
from softgen.bits.generation import Device
from softgen.bits.layout import Layout
from softgen.bits.pack import place_value
from softgen.errors import SoftgenError, UsageError
from softgen.eu.text import dialect
from softgen.inspect.session.events import Event, SubmissionEvents
from softgen.position import STAGES, parse
from softgen.trace.work import Work

ASSIGNMENT = re.compile(r"(\d+:\d+)\.([\w.\[\]]+)=(.*)", re.ASCII)
PART = re.compile(r"(\w+)(?:\[(\d{1,9})\])?")


@dataclass(frozen=True)
class MemoryEdit:
    """Bytes that are changed: those with a one in the mask."""

    address: int
    mask: bytes
    value: bytes

    def apply(self, work: Work) -> None:
        old = work.space.read(self.address, len(self.value))
        new = bytes(before & ~mask & 0xFF | value for before, mask, value in zip(old, self.mask, self.value, strict=True))
        work.space.write(self.address, new)


class CaptureEdits:
    """The edits of a capture, by submission."""

    def __init__(self, submissions: Sequence[SubmissionEvents], device: Device, fields: Sequence[str], kernels: Sequence[str]) -> None:
        self.gen = device.generation.number
        self.by_submission: dict[int, list[MemoryEdit]] = {}
        for text in fields:
            self._add_field(submissions, text)
        for text in kernels:
            self._add_kernel(submissions, text)

    def apply(self, work: Work) -> None:
        """Change the memory of a submission that is about to be executed."""
        for edit in self.by_submission.get(work.sequence, ()):
            edit.apply(work)

    # -- fields --------------------------------------------------------------------------------------------------------

    def _add_field(self, submissions: Sequence[SubmissionEvents], text: str) -> None:
        found = ASSIGNMENT.fullmatch(text)
        if found is None:
            raise UsageError(f"--set {text}: expected SUBMISSION:COMMAND.FIELD=VALUE, such as 2:124.vertex_count_per_instance=3")
        where, path, value = found.groups()
        position = parse(where)
        event = next((event for submission in submissions for event in submission.events if event.position == position), None)
        if event is None or event.layout is None:
            raise UsageError(f"--set {text}: there is no command {where}" if event is None else f"--set {text}: no page describes {where}")
        field, at = _field(event.layout, path, text)
        bits = place_value(event.layout.name, field, _value(event.layout, field, value, text))
        mask = field.mask << at
        size = 4 * len(event.dwords)
        if mask >> 8 * size:
            raise UsageError(f"--set {text}: {event.name} at {where} has {len(event.dwords)} dwords, and {path} stands after them")
        edit = MemoryEdit(event.address, mask.to_bytes(size, "little"), (bits << at).to_bytes(size, "little"))
        assert position.submission is not None
        self.by_submission.setdefault(position.submission, []).append(edit)

    # -- kernels -------------------------------------------------------------------------------------------------------

    def _add_kernel(self, submissions: Sequence[SubmissionEvents], text: str) -> None:
        name, equals, file = text.partition("=")
        if not equals or not name or not file:
            raise UsageError(f"--replace {text}: expected KERNEL=FILE, such as ps=mine.asm")
        try:
            code = dialect.read(Path(file).read_text("utf-8"), self.gen, name=file)
        except OSError as error:
            raise UsageError(f"--replace {text}: {file}: {error.strerror}") from None
        except UnicodeDecodeError:
            raise UsageError(f"--replace {text}: {file} is no text") from None
        count = 0
        for submission in submissions:
            for address, old in _kernels(submission.events, name).items():
                if len(code) > len(old):
                    raise UsageError(f"--replace {text}: {file} has {len(code)} bytes, the kernel at {address:#x} has {len(old)}: "
                                     "there is no space for more")  # fmt: skip
                edit = MemoryEdit(address, b"\xff" * len(code), code)
                self.by_submission.setdefault(submission.number, []).append(edit)
                count += 1
        if not count:
            known = sorted({stage for submission in submissions for event in submission.events for stage in event.kernels})
            raise UsageError(f"--replace {text}: no command points to such a kernel; stages that have kernels: {' '.join(known) or 'none'}")


def _kernels(events: Sequence[Event], name: str) -> dict[int, bytes]:
    """The kernels that a name means, by address."""
    found: dict[int, bytes] = {}
    for event in events:
        for stage, address in event.kernels.items():
            code = event.code[stage]
            named = name == stage if name in STAGES else name in (f"{address:#x}", hashlib.sha256(code).hexdigest()[:12])
            if named and code:
                found[address] = code
    return found


def _field(layout: Layout, path: str, text: str) -> tuple[BitField, int]:
    """A field by its path, and the first bit of what it stands in."""
    fields: tuple[BitField, ...] = layout.fields
    groups: tuple[Group, ...] = layout.groups
    at = 0
    *outer, last = path.split(".")
    for part in outer:
        found = PART.fullmatch(part)
        group = next((group for group in groups if found and group.name == found[1]), None)
        if group is None or found is None or found[2] is None:
            raise UsageError(f"--set {text}: {layout.name} has no group {part}; it has {_names(groups)}")
        if group.count is not None and int(found[2]) >= group.count:
            raise UsageError(f"--set {text}: {group.name} has {group.count} elements")
        at += group.start + int(found[2]) * group.size
        fields, groups = group.fields, group.groups
    field = next((field for field in fields if field.name == last), None)
    if field is None:
        raise UsageError(f"--set {text}: {layout.name} has no field {last}; it has {_names(fields)}")
    return field, at


def _names(parts: Sequence[BitField | Group]) -> str:
    return ", ".join(part.name for part in parts) or "none"


def _value(layout: Layout, field: BitField, text: str, what: str) -> int | float:
    """A value as it is typed."""
    names = {name: value for value, name in values_of(field.type, layout.gen).items()}
    if text in names:
        return names[text]
    hint = f"; names are {', '.join(names)}" if names else ""
    try:
        value: int | float = float(text) if field.type.name in ("float", "half", "double", "fixed") else int(text, 0)
    except ValueError:
        raise UsageError(f"--set {what}: {text!r} is no number{hint}") from None
    try:
        place_value(layout.name, field, value)
    except (ValueError, struct.error, OverflowError, SoftgenError) as error:
        raise UsageError(f"--set {what}: {error}{hint}") from None
    return value
