"""`softgen decode FILE`: names every command, field, indirect state and kernel."""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterator
from typing import Any

from softgen.bits import describe, registers
from softgen.bits.layout import Layout
from softgen.bits.record import to_float
from softgen.errors import UsageError
from softgen.inspect.cli.gpus import find
from softgen.inspect.cli.output import Paint, Progress, complain, counted, paint
from softgen.inspect.decode.decoding import Decoder, Item
from softgen.inspect.decode.indirect_state import CommandRegister, Found, IndirectData, IndirectKernel, IndirectState
from softgen.inspect.decode.stopped import Stopped, stopped
from softgen.inspect.decode.video_slices import VideoSlice
from softgen.streamer.parser import Command, Remark
from softgen.trace.error_state import ErrorStateTrace
from softgen.trace.file import open_trace
from softgen.trace.work import Work, WorkTrace

EXAMPLE = """examples:
  softgen decode tests/data/kbl-vk-compute          a capture directory
  softgen decode vadd.aub --json | jq .name         one JSON object per line
  softgen decode /sys/class/drm/card0/error         the error state of a hang, and where the GPU stopped
  softgen decode hang.dmp --gpu kbl                 a hang dump of Mesa
  softgen decode batch.bin --gpu skl --engine video a raw batch

exit codes: 0 everything has a name, 1 something is unknown or broken, 2 usage error"""


def add(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subparsers.add_parser("decode", description="Name every command, field, indirect state and kernel of what a driver submitted.",
                                   epilog=EXAMPLE, formatter_class=argparse.RawDescriptionHelpFormatter)  # fmt: skip
    parser.add_argument("file", help="capture directory, AUB file, i915 error state, hang dump or raw batch")
    parser.add_argument("--gpu", help="the GPU it is for, whatever the file says; needed for raw batches and hang dumps only "
                                      "(softgen gpus lists them)")  # fmt: skip
    parser.add_argument("--engine", default="render", choices=("render", "blitter", "video", "video_enhance"), help="engine of a raw batch")
    parser.add_argument("--json", action="store_true", help="one JSON object per line")
    parser.add_argument("--brief", action="store_true", help="commands by name only, without fields and state")


def run(args: argparse.Namespace) -> int:
    trace = opened(args.file, args.gpu, args.engine)
    tally = Tally()
    with Progress("commands decoded", printing=True) as progress:
        for line in lines(trace, args, tally, progress):
            sys.stdout.write(line + "\n")
    for note in trace.notes:
        print(json.dumps({"note": note}) if args.json else f"note: {note}")
    if not args.json:
        print(tally.summary())
    elif tally.unknown or tally.broken:
        complain(tally.summary())
    return 1 if tally.unknown or tally.broken else 0


def opened(file: str, gpu_name: str | None, engine: str) -> WorkTrace:
    """Open the trace; mistakes that show without reading it are usage errors."""
    if not file:
        raise UsageError("which file? an empty name was given")
    gpu = find(gpu_name) if gpu_name is not None else None
    if gpu and engine not in (engines := registers.bases(gpu.generation.number)):
        raise UsageError(f"{gpu.name} has no {engine} engine; it has {', '.join(engines)}")
    return open_trace(file, gpu and gpu.name, engine)


class Tally:
    """Counts of a whole decode."""

    def __init__(self) -> None:
        self.submissions = self.commands = self.states = self.kernels = 0
        self.unknown = self.broken = self.reserved = self.odd = self.slices = self.pictures = 0
        self.remarks: Counter[str] = Counter()

    def count(self, item: Item) -> None:
        match item.what:
            case Command() as command:
                self.commands += 1
                self.unknown += command.layout is None
                self.odd += bool(command.problems)
            case Remark() as remark:
                self.remarks[remark.kind] += 1
                self.broken += remark.kind in ("unmapped", "no_batch", "limit")
            case IndirectState():
                self.states += 1
            case IndirectKernel():
                self.kernels += 1
            case VideoSlice() as slice:
                self.slices, self.pictures = self.slices + 1, self.pictures + (slice.slice == 1)
            case _:
                pass

    def summary(self) -> str:
        parts = [counted(self.submissions, "submission"), counted(self.commands, "command"), counted(self.states, "structure")]
        parts.append(counted(self.kernels, "kernel"))
        parts += [f"{counted(self.slices, 'slice')} of {counted(self.pictures, 'picture')}"] if self.slices else []
        parts += [counted(n, "unknown command") for n in (self.unknown,) if n] + [counted(n, "broken place") for n in (self.broken,) if n]
        parts += [f"{n} of unexpected length" for n in (self.odd,) if n]
        parts += [f"{n} with reserved bits set" for n in (self.reserved,) if n]
        parts += [f"{counted(n, 'jump')} to memory that the GPU was to write" for n in (self.remarks["gpu_written"],) if n]
        return ", ".join(parts)


def lines(trace: WorkTrace, args: argparse.Namespace, tally: Tally, progress: Progress) -> Iterator[str]:
    if isinstance(trace, ErrorStateTrace):
        from softgen.inspect.cli import decode_error  # for error states only

        yield from decode_error.lines(trace, args.json, args.brief, paint())
    text = Text(paint(), args.brief)
    for work, items in Decoder(trace).work():
        tally.submissions += 1
        where = stopped(work, trace.device.generation)
        if not args.json:
            yield from heading(work, trace, paint())
            yield from text.where(work, where)
        for item in items:
            progress.step()
            tally.count(item)
            yield from as_json(item, tally, where) if args.json else text.lines(item, tally, where)


def wrong_bits(layout: Layout | None, dwords: list[int], tally: Tally) -> list[describe.Reserved]:
    found = describe.reserved(layout, dwords) if layout and dwords else []
    tally.reserved += bool(found)
    return found


# -- JSON ----------------------------------------------------------------------------------------------------------


def as_json(item: Item, tally: Tally, where: Stopped) -> Iterator[str]:
    marks = where.at(item.what) if isinstance(item.what, Command) else []
    yield json.dumps(json_object(item, tally) | ({"marks": [mark.partition(":")[0] for mark in marks]} if marks else {}))


def json_object(item: Item, tally: Tally) -> dict[str, Any]:
    match item.what:
        case Command() as c:
            found: dict[str, Any] = {"batch": c.batch, "address": c.address, "name": c.name, "dwords": c.dwords}
            found["fields"] = describe.to_json(c.layout, c.dwords) if c.layout else {}
            found |= json_reserved(c.layout, c.dwords, tally)
            return found | ({"problems": list(c.problems)} if c.problems else {})
        case IndirectState() as s:
            found = {"state": s.layout.name, "address": s.address, "by": s.by, "dwords": s.dwords}
            found["fields"] = describe.to_json(s.layout, s.dwords) if not s.problem else {}
            found |= json_reserved(s.layout, s.dwords, tally) if s.certain and not s.problem else {}
            return found | ({"problems": [s.problem]} if s.problem else {}) | ({} if s.certain else {"certain": False})
        case IndirectKernel() as k:
            return {"kernel": k.address, "by": k.by, "stage": k.stage} | ({"problems": [k.problem]} if k.problem else {})
        case IndirectData() as d:
            found = {"data": d.what, "address": d.address, "by": d.by, "bytes": d.size, "dwords": d.dwords}
            return found | ({"problems": [d.problem]} if d.problem else {})
        case CommandRegister() as g:
            found = {"register": g.label, "offset": g.offset, "by": g.by, "dwords": g.dwords}
            return found | ({"fields": describe.to_json(g.layout, g.dwords)} if g.dwords else {})
        case VideoSlice() as v:
            found = {"slice": v.slice, "picture": v.picture, "standard": v.standard, "type": v.type, "structure": v.structure}
            found |= {"width": v.size[0], "height": v.size[1], "address": v.address, "bytes": v.bytes, "by": v.by}
            return found | ({"problems": [v.problem]} if v.problem else {})
        case Remark() as r:
            return {"remark": r.kind, "batch": r.batch, "address": r.address, "text": r.text}


def json_reserved(layout: Layout | None, dwords: list[int], tally: Tally) -> dict[str, Any]:
    wrong = wrong_bits(layout, dwords, tally)
    return {"reserved": [{"high": r.high, "low": r.low, "value": r.value} for r in wrong]} if wrong else {}


# -- text ----------------------------------------------------------------------------------------------------------


def heading(work: Work, trace: WorkTrace, colour: Paint) -> Iterator[str]:
    where = f"ring at {work.batch:#x}" if work.kind == "ring" else f"batch at {work.batch:#x}"
    label = work.label or f"submission {work.sequence}"
    yield ""
    yield colour(f"== {label}: {trace.device.name}, {work.engine} engine, {where}", "heading")


class Text:
    """Commands and what they point to, as lines for people."""

    def __init__(self, colour: Paint, brief: bool) -> None:
        self.paint, self.brief = colour, brief

    def where(self, work: Work, where: Stopped) -> Iterator[str]:
        """Where the engine stopped, said before its commands."""
        if where.command:
            yield self.paint(f"   stopped in {where.command.name or 'an unknown command'} at {where.command.address:#x}", "bad")
        yield from (self.paint(f"   {lost}", "warn") for lost in where.lost)

    def lines(self, item: Item, tally: Tally, where: Stopped) -> Iterator[str]:
        match item.what:
            case Command() as c:
                yield from self._command(c, tally)
                yield from (f"    {self.paint(f'<== {mark}', 'bad')}" for mark in where.at(c))
            case Remark() as r:
                yield f"{r.address:#014x}  {self.paint(f'! {r.text}', 'warn')}"
            case found if not self.brief:
                yield from self._found(found, tally)

    def _command(self, c: Command, tally: Tally) -> Iterator[str]:
        name = self.paint(c.name, "name") if c.name else self.paint(f"unknown command {c.dwords[0]:#010x}", "bad")
        indent, length = "  " * max(0, c.level - 1), self.paint(f"({counted(len(c.dwords), 'dword')})", "note")
        yield f"{self.paint(f'{c.address:#014x}', 'address')}  {indent}{name}  {length}"
        if c.layout and not self.brief:
            yield from self._fields(c.layout, c.dwords, 4)
        yield from self._wrong(c.layout, c.dwords, tally, 4)
        yield from (f"    {self.paint(f'! {problem}', 'bad')}" for problem in c.problems)

    def _found(self, found: Found | VideoSlice, tally: Tally) -> Iterator[str]:
        at = self.paint(f"{found.offset if isinstance(found, CommandRegister) else found.address:#x}", "address")
        match found:
            case CommandRegister():
                yield f"    -> {at} register {self.paint(found.label, 'name')}"
                yield from self._fields(found.layout, found.dwords, 8) if found.dwords else ()
            case VideoSlice():
                yield f"    -> {at} {self.paint(found.title, 'name')}"
            case IndirectKernel():
                yield f"    -> {at} {self.paint('kernel', 'name')} of the {found.stage} stage"
            case IndirectData():
                yield f"    -> {at} {found.what}, {found.size} bytes"
                yield from self._dump(found.dwords)
            case IndirectState():
                sure = "" if found.certain else self.paint("  (the count is a guess)", "note")
                yield f"    -> {at} {self.paint(found.layout.name, 'name')} [{found.index}]{sure}"
                if not found.problem:
                    yield from self._fields(found.layout, found.dwords, 8)
                    yield from self._wrong(found.layout, found.dwords, tally, 8) if found.certain else ()
        if found.problem:
            yield f"       {self.paint(f'! {found.problem}', 'bad')}"

    def _fields(self, layout: Layout, dwords: list[int], indent: int) -> Iterator[str]:
        for line in describe.lines(layout, dwords):
            name = f"{' ' * (indent + 2 * line.depth)}{line.name:42}"
            yield self.paint(f"{name} {line.text}", "note") if line.zero else f"{name} {self.paint(line.text, 'value')}"

    def _wrong(self, layout: Layout | None, dwords: list[int], tally: Tally, indent: int) -> Iterator[str]:
        for wrong in wrong_bits(layout, dwords, tally):
            yield f"{' ' * indent}{self.paint(f'! reserved: {wrong}', 'warn')}"

    def _dump(self, dwords: list[int]) -> Iterator[str]:
        """Four dwords a line, as bits and as floats where they look like floats."""
        for start in range(0, len(dwords), 4):
            row = dwords[start : start + 4]
            floats = "  ".join(f"{to_float(d):.4g}" if d == 0 or 0x30000000 < d & 0x7FFFFFFF < 0x4F000000 else "." for d in row)
            yield f"        {start * 4:+5d}  {' '.join(f'{d:08x}' for d in row):36}  {self.paint(floats, 'note')}"
