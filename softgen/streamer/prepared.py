"""Prepared batches: batches that drivers submit over and over, decoded once.

Reads   MI_BATCH_BUFFER_END
Writes  whatever their commands do

An enqueue of a compute runtime is a short batch that differs from the one before in a few fields: where indirect data and interface
descriptors are, and the number that the last flush writes. The packages that own the commands say which of their fields may differ, and
execute such a command with less work than their handlers do (`Preparer` in softgen/command.py). A batch is recognised by all its other
bits. It is compared with memory again after each command that may have changed memory, and goes on command by command from there if it is
another one now. Batches with any other command, with state that is latched, calls or chains, are not prepared; a batch that another one
chains to may be.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

from softgen.bits.layout import Layout
from softgen.bits.record import Record
from softgen.command import CommandStreamer, FieldPlace, PreparedCommand
from softgen.streamer import rules
from softgen.streamer.command_kinds import SimpleCommands
from softgen.streamer.context import SavedContext
from softgen.streamer.interface import DeviceInterface
from softgen.streamer.latch import PIPELINE_NAMES
from softgen.streamer.parser import Command, record, understood

END = "MI_BATCH_BUFFER_END"
MOST_BYTES = 1024  # of a batch
MOST_BATCHES = 8  # that are kept


class PreparingStreamer(CommandStreamer, Protocol):
    """The parts of a Streamer that preparing uses."""

    device: DeviceInterface
    rules: str
    simple_commands: SimpleCommands
    saved: SavedContext

    def begin_special(self, step: PreparedStep) -> None: ...


class PreparedStep(NamedTuple):
    """A command of a prepared batch."""

    offset: int  # bytes
    end: int
    header: int
    layout: Layout
    number: int  # in the batch
    ruled: bool  # there are rules that it may break
    reads_registers: bool  # it may read any register


class PreparedBatch(NamedTuple):
    """A batch, recognised by the bits of `mask`."""

    pipelines: object  # of the context: their states, which its commands use
    size: int
    mask: int
    value: int
    steps: tuple[tuple[PreparedStep, PreparedCommand], ...]
    last: PreparedStep  # MI_BATCH_BUFFER_END


class FoundBatch(NamedTuple):
    """A prepared batch in memory: where, the memory itself, what it held when the batch was found, and the same as one number."""

    batch: PreparedBatch
    start: int
    view: memoryview
    data: bytes
    bits: int

    def command(self, step: PreparedStep) -> Command:
        dwords = list(memoryview(self.data[step.offset : step.end]).cast("I"))
        return Command(self.start, self.start + step.offset, 1, step.layout, dwords)


class PreparedBatches:
    """The last batches of a context that could be prepared; the one used last comes first."""

    def __init__(self) -> None:
        self._batches: list[PreparedBatch] = []

    def find(self, cs: PreparingStreamer, start: int) -> FoundBatch | None:
        """The batch that begins at an address, if it is one of these, and prepared with the states that the pipelines have."""
        batches = self._batches
        for batch in batches:
            view = cs.space.view(start, batch.size)
            if view is not None:
                data = bytes(view)
                bits = int.from_bytes(data, "little")
                if bits & batch.mask == batch.value and batch.pipelines is cs.saved.pipelines:
                    if batch is not batches[0]:
                        batches.remove(batch)
                        batches.insert(0, batch)
                    return FoundBatch(batch, start, view, data, bits)
        return None

    def learn(self, cs: PreparingStreamer, start: int) -> None:
        """Prepare the batch at an address, if all its commands can be."""
        prepared = prepare(cs, cs.space.read_mapped(start, MOST_BYTES))
        if prepared is not None:
            others = [held for held in self._batches if (held.mask, held.value) != (prepared.mask, prepared.value)]
            self._batches = [prepared, *others][:MOST_BATCHES]


# -- preparing -----------------------------------------------------------------------------------------------------


def prepare(cs: PreparingStreamer, data: bytes) -> PreparedBatch | None:
    """A batch whose commands can all be prepared, from its first dword to its end; None for any other."""
    steps, mask, offset = list[tuple[PreparedStep, PreparedCommand]](), 0, 0
    while offset + 4 <= len(data):
        header = int.from_bytes(data[offset : offset + 4], "little")
        layout, length, problems = understood(header, cs.generation.number, cs.engine)
        end = offset + 4 * length
        if layout is None or problems or end > len(data):
            return None
        if layout.name == END:
            mask |= ((1 << 8 * (end - offset)) - 1) << 8 * offset
            last = PreparedStep(offset, end, header, layout, len(steps), False, False)
            return PreparedBatch(cs.saved.pipelines, end, mask, int.from_bytes(data[:end], "little") & mask, tuple(steps), last)
        found = _step(cs, layout, header, data[offset:end], offset, len(steps))
        if found is None:
            return None
        step, run, fixed = found
        steps.append((step, _special(step, run) if step.ruled or step.reads_registers else run))
        mask |= fixed << 8 * offset
        offset = end
    return None


def _special(step: PreparedStep, run: PreparedCommand) -> PreparedCommand:
    """A command that needs something before it is executed."""

    def special(cs: Any, batch: int) -> None:
        cs.begin_special(step)
        run(cs, batch)

    return special


def _step(cs: PreparingStreamer, layout: Layout, header: int, data: bytes, offset: int,
          number: int) -> tuple[PreparedStep, PreparedCommand, int] | None:  # fmt: skip
    """A command, what executes it, and which of its bits may not differ."""
    simple, preparer = cs.simple_commands[header], cs.device.prepared.get(layout.name)
    if simple is None or simple.guarded or preparer is None:
        return None
    values, varying = record(layout, list(memoryview(data).cast("I"))), set[str]()

    def place(name: str) -> FieldPlace:
        field = layout.field(name)
        if len(field.pieces) != 1 or field.high >= 8 * len(data):
            raise LookupError(f"{name} is not in one piece")
        varying.add(name)
        return FieldPlace.of(field, 8 * offset)

    try:
        run = preparer(cs, values, place)
    except LookupError:
        return None
    if run is None:
        return None
    fixed = (1 << 8 * len(data)) - 1
    for name in varying:
        fixed &= ~layout.field(name).mask
    ruled = simple.ruled and _may_break_rules(cs, layout, values, varying)
    step = PreparedStep(offset, offset + len(data), header, layout, number, ruled, simple.reads_registers)
    return step, run, fixed


def _may_break_rules(cs: PreparingStreamer, layout: Layout, values: Record, varying: set[str]) -> bool:
    """Whether a command may break a rule, depending on what comes before it and on its varying fields."""
    fixed = type(values)(0 if name in varying else value for name, value in values._asdict().items())
    return not varying.isdisjoint(rules.ruled_fields(layout.name, cs.rules)) or any(
        rules.broken(layout.name, fixed, cs.rules, cs.engine, pipeline, unflushed=True)  # after a flush, no more are broken
        for pipeline in ("", *PIPELINE_NAMES))  # fmt: skip
