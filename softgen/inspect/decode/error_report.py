"""The parts of an error state besides its commands: the hang, registers decoded by their pages, rings, memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from softgen.bits import describe
from softgen.bits.layout import Layout
from softgen.bits.units import DWORD_MASK
from softgen.trace.error_state import ErrorStateTrace
from softgen.trace.error_text import LabelledValue

FACTS = ("Kernel", "Time", "Platform", "Subplatform", "PCI ID", "PCI Revision", "Active process", "Reset count")
FAULT = ("FAULT_TLB_DATA1", "FAULT_TLB_DATA0")  # the line has the upper register first


@dataclass(frozen=True)
class Shown:
    """A register as a line of the file gives it, and as its page reads it; `layout` is None where no page has it."""

    engine: str
    title: str
    value: int
    layout: Layout | None
    line: int

    @property
    def dwords(self) -> list[int]:
        wanted = self.layout.dwords if self.layout else 1
        return [self.value & DWORD_MASK, self.value >> 32][: max(wanted, 1 + (self.value >> 32 > 0))]

    @property
    def name(self) -> str:
        return self.layout.name if self.layout else ""

    def fields(self) -> list[describe.FieldLine]:
        return list(describe.lines(self.layout, self.dwords[: self.layout.dwords])) if self.layout else []

    def busy(self) -> list[str] | None:
        """The units that are not done, of a register that has a done bit for each."""
        flags = [field for field in self.layout.fields if field.type.name == "bool"] if self.layout else []
        done = [flag for flag in flags if flag.name.endswith("_done")]
        if not self.layout or len(done) < 2 or 2 * len(done) < len(self.layout.fields):
            return None
        return [flag.name.removesuffix("_done") for flag in flags if not self.value & flag.mask and not flag.name.endswith("_enable")]


def facts(trace: ErrorStateTrace) -> Iterator[tuple[str, str]]:
    """The hang: cause, time, process."""
    if trace.text.heading:
        yield "", trace.text.heading
    for value in trace.text.values:
        if value.title.startswith(FACTS):
            yield value.title, value.text


def is_register(value: LabelledValue) -> bool:
    """Whether a line is a register: its name is in capitals; others are the driver's own values."""
    return value.number is not None and value.label[:2].isupper()


def registers(trace: ErrorStateTrace) -> Iterator[Shown]:
    """Every register of the file: the GPU's first, then engine by engine."""
    for entry in trace.text.values:
        if entry.label == "FAULT_TLB_DATA" and entry.number is not None:
            for name, value in zip(FAULT, (entry.number >> 32, entry.number & DWORD_MASK), strict=True):
                yield Shown("", name, value, trace.register(name, None), entry.line)
        elif is_register(entry) and not entry.title.startswith(FACTS):
            yield Shown("", entry.title, entry.number or 0, trace.register(entry.label, None), entry.line)
    for engine in trace.text.engines:
        for entry in engine.values:
            if is_register(entry):
                yield Shown(engine.name, entry.title, entry.number or 0, trace.register(entry.label, engine.kind), entry.line)


def fault(trace: ErrorStateTrace) -> tuple[int, str] | None:
    """The faulting address and its table; None without a fault."""
    upper, lower = (trace.register(name, None) for name in FAULT)
    value = _fault_data(trace)
    if not value or not upper or not lower:
        return None
    high, low = upper.unpack([value >> 32]), lower.unpack([value & DWORD_MASK])
    return high.fault_address_47_44 << 44 | low.fault_address_43_12 << 12, describe.value_name(upper, high, "gttsel")


def _fault_data(trace: ErrorStateTrace) -> int:
    """Both registers, the upper one above: from the driver's one line, or from the firmware's two."""
    if (value := trace.text.value("FAULT_TLB_DATA")) and value.number:
        return value.number
    upper, lower = ((entry.number or 0) if (entry := trace.text.value(name)) else 0 for name in FAULT)
    return (upper & DWORD_MASK) << 32 | lower & DWORD_MASK


def fences(trace: ErrorStateTrace) -> Iterator[LabelledValue]:
    """The fence registers in use."""
    yield from (value for value in trace.text.values if value.label == "fence" and value.text.strip("0"))


def words(trace: ErrorStateTrace, engine: str) -> Iterator[LabelledValue]:
    """An engine's values that are no registers."""
    for value in next(section for section in trace.text.engines if section.name == engine).values:
        if not is_register(value):
            yield value


def as_json(trace: ErrorStateTrace) -> Iterator[dict[str, Any]]:
    """One object for the hang, one per register, one per block of memory."""
    by_title, bad = dict(facts(trace)), fault(trace)
    first: dict[str, Any] = {"error_state": by_title.pop("", ""), "gpu": trace.device.name, "facts": by_title}
    yield first | ({"fault": {"address": bad[0], "table": bad[1]}} if bad else {})
    for register in registers(trace):
        found: dict[str, Any] = {"register": register.name or register.title, "label": register.title, "engine": register.engine or None}
        found |= {"value": register.value, "dwords": register.dwords, "line": register.line}
        yield found | ({"fields": describe.to_json(register.layout, register.dwords[: register.layout.dwords])} if register.layout else {})
    for block in trace.text.blocks:
        where = None if block.nowhere else block.address
        yield {"memory": block.name, "owner": block.owner, "address": where, "encoding": block.encoding, "line": block.line}
