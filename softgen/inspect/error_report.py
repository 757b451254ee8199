"""The parts of an error state besides its commands: the hang, registers decoded by their pages, rings, memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from softgen.bits import describe
from softgen.bits.layout import Layout
from softgen.trace.error_state import ErrorStateTrace
from softgen.trace.error_text import LabelledValue

LOW = 0xFFFFFFFF
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
        return [self.value & LOW, self.value >> 32][: max(wanted, 1 + (self.value >> 32 > 0))]

    @property
    def name(self) -> str:
        return self.layout.name if self.layout else ""

    def fields(self) -> list[describe.FieldLine]:
        return list(describe.lines(self.layout, self.dwords[: self.layout.dwords])) if self.layout else []

    def busy(self) -> list[str] | None:
        """The units that are not done, of a register that has a done bit for each."""
        flags = [one for one in self.layout.fields if one.type.name == "bool"] if self.layout else []
        done = [one for one in flags if one.name.endswith("_done")]
        if not self.layout or len(done) < 2 or 2 * len(done) < len(self.layout.fields):
            return None
        return [one.name.removesuffix("_done") for one in flags if not self.value & one.mask and not one.name.endswith("_enable")]


def facts(trace: ErrorStateTrace) -> Iterator[tuple[str, str]]:
    """The hang: cause, time, process."""
    if trace.text.heading:
        yield "", trace.text.heading
    for one in trace.text.values:
        if one.title.startswith(FACTS):
            yield one.title, one.text


def is_register(one: LabelledValue) -> bool:
    """Whether a line is a register: its name is in capitals; others are the driver's own values."""
    return one.number is not None and one.label[:2].isupper()


def registers(trace: ErrorStateTrace) -> Iterator[Shown]:
    """Every register of the file: the GPU's first, then engine by engine."""
    for one in trace.text.values:
        if one.label == "FAULT_TLB_DATA" and one.number is not None:
            for name, value in zip(FAULT, (one.number >> 32, one.number & LOW), strict=True):
                yield Shown("", name, value, trace.register(name, None), one.line)
        elif is_register(one) and not one.title.startswith(FACTS):
            yield Shown("", one.title, one.number or 0, trace.register(one.label, None), one.line)
    for engine in trace.text.engines:
        for one in engine.values:
            if is_register(one):
                yield Shown(engine.name, one.title, one.number or 0, trace.register(one.label, engine.kind), one.line)


def fault(trace: ErrorStateTrace) -> tuple[int, str] | None:
    """The faulting address and its table; None without a fault."""
    upper, lower = (trace.register(name, None) for name in FAULT)
    value = _fault_data(trace)
    if not value or not upper or not lower:
        return None
    high, low = upper.unpack([value >> 32]), lower.unpack([value & LOW])
    return high.fault_address_47_44 << 44 | low.fault_address_43_12 << 12, describe.value_name(upper, high, "gttsel")


def _fault_data(trace: ErrorStateTrace) -> int:
    """Both registers, the upper one above: from the driver's one line, or from the firmware's two."""
    if (said := trace.text.value("FAULT_TLB_DATA")) and said.number:
        return said.number
    upper, lower = ((one.number or 0) if (one := trace.text.value(name)) else 0 for name in FAULT)
    return (upper & LOW) << 32 | lower & LOW


def fences(trace: ErrorStateTrace) -> Iterator[LabelledValue]:
    """The fence registers in use."""
    yield from (one for one in trace.text.values if one.label == "fence" and one.text.strip("0"))


def words(trace: ErrorStateTrace, engine: str) -> Iterator[LabelledValue]:
    """An engine's values that are no registers."""
    for one in next(one for one in trace.text.engines if one.name == engine).values:
        if not is_register(one):
            yield one


def as_json(trace: ErrorStateTrace) -> Iterator[dict[str, Any]]:
    """One object for the hang, one per register, one per block of memory."""
    told, bad = dict(facts(trace)), fault(trace)
    first: dict[str, Any] = {"error_state": told.pop("", ""), "gpu": trace.device.name, "facts": told}
    yield first | ({"fault": {"address": bad[0], "table": bad[1]}} if bad else {})
    for one in registers(trace):
        found: dict[str, Any] = {"register": one.name or one.title, "label": one.title, "engine": one.engine or None}
        found |= {"value": one.value, "dwords": one.dwords, "line": one.line}
        yield found | ({"fields": describe.to_json(one.layout, one.dwords[: one.layout.dwords])} if one.layout else {})
    for block in trace.text.blocks:
        where = None if block.nowhere else block.address
        yield {"memory": block.name, "owner": block.owner, "address": where, "encoding": block.encoding, "line": block.line}
