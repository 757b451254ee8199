"""The part of `softgen decode` that only error states have: registers and memory, before the commands."""

from __future__ import annotations

import json
from collections.abc import Iterator

from softgen.inspect.cli.output import Paint, table
from softgen.inspect.decode import error_report
from softgen.inspect.decode.error_report import Shown
from softgen.trace.error_state import ErrorStateTrace


def lines(trace: ErrorStateTrace, as_json: bool, brief: bool, colour: Paint) -> Iterator[str]:
    if as_json:
        yield from (json.dumps(record) for record in error_report.as_json(trace))
        return
    for title, text in error_report.facts(trace):
        yield f"{title}: {text}" if title else colour(text, "heading")
    if bad := error_report.fault(trace):
        yield colour(f"fault at {bad[0]:#x} in the {bad[1]}", "bad")
    yield from _registers(trace, brief, colour)
    yield from (f"  {fence.title:24} {colour(f'0x{fence.text}', 'value')}" for fence in error_report.fences(trace))
    yield ""
    yield colour("== memory in the file", "heading")
    rows = [("nowhere" if block.nowhere else f"{block.address:#014x}", block.owner, block.name, block.encoding, f"line {block.line}")
            for block in trace.text.blocks]  # fmt: skip
    yield from table(rows, ("address", "owner", "what", "written as", ""))


def _registers(trace: ErrorStateTrace, brief: bool, colour: Paint) -> Iterator[str]:
    engine: str | None = None
    for register in error_report.registers(trace):
        if register.engine != engine:
            engine = register.engine
            yield ""
            yield colour(f"== registers of {engine or 'the GPU'}", "heading")
            if engine:
                yield from (f"  {word.title:24} {word.text}" for word in error_report.words(trace, engine))
        yield from _register(register, brief, colour)


def _register(register: Shown, brief: bool, colour: Paint) -> Iterator[str]:
    """A line; below it the fields that are not zero, unless a single field is the whole register."""
    name = colour(register.name, "name") if register.layout else colour("(no page)", "note")
    yield f"  {register.title:24} {colour(f'{register.value:#010x}', 'value')}  {name if register.name != register.title else ''}".rstrip()
    if (busy := register.busy()) is not None:
        yield f"    not done: {colour(', '.join(busy), 'bad')}" if busy else colour("    everything is done", "note")
        return
    fields = register.fields()
    if brief or len(fields) == 1 and register.layout and register.layout.fields[0].width == 32:
        return
    for line in fields:
        if not line.zero:
            yield f"    {'  ' * line.depth}{line.name:40} {colour(line.text, 'value')}"
