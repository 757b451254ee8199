"""The same program decoded by Mesa: same commands in the same order, same values where both name a field."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from softgen.bits.layout import BitField, Group, Layout
from softgen.bits.record import Record
from softgen.inspect.decode.decoding import Decoder
from softgen.streamer.parser import Command
from softgen.trace.file import open_trace
from tests.conftest import SHARED, needs_shared
from tests.inspect import mesa_decode
from tests.inspect.mesa_decode import MesaCommand

TRACES = sorted((SHARED / "traces").glob("*/mesa-decode.txt.xz"))
# Mesa printed these before the kernel put addresses in.
BEFORE_RELOCATION = ("ivb-vk-compute", "hsw-vk-compute")
# Names by which Mesa knows something that the manuals call otherwise.
NAMES: dict[str, str] = {}


def ours(path: Path) -> list[list[Command]]:
    """Commands of each submission."""
    found = []
    for _, items in Decoder(open_trace(path)).work():
        found.append([item.what for item in items if isinstance(item.what, Command)])
    return found


def covered(path: Path, submissions: list[list[Command]]) -> list[Command]:
    """Mesa's text covers the first and the last submission of a triangle (on g45 the first only), and all of a Vulkan program."""
    if path.name.endswith("vk-compute"):
        return [command for submission in submissions for command in submission]
    if path.name.startswith("g45"):
        return submissions[0][:-1]  # it has no name for MI_BATCH_BUFFER_END there
    return submissions[0] + submissions[-1]


def named_values(layout: Layout, dwords: list[int]) -> dict[str, list[tuple[BitField, Any]]]:
    """Every value by field name, those of groups in the order of their elements."""
    found: defaultdict[str, list[tuple[BitField, Any]]] = defaultdict(list)

    def walk(fields: tuple[BitField, ...], groups: tuple[Group, ...], values: Record) -> None:
        for field in fields:
            found[field.name].append((field, getattr(values, field.name)))
        for group in groups:
            for element in getattr(values, group.name):
                walk(group.fields, group.groups, element)

    walk(layout.fields, layout.groups, layout.unpack(dwords))
    return found


def disagreements(theirs: MesaCommand, command: Command, addresses: bool) -> Iterator[str]:
    assert command.layout is not None
    values = named_values(command.layout, command.dwords)
    moved = set() if addresses else {f.low // 32 for f, _ in command.layout.walk() if f.type.name == "address"}  # dwords the kernel changed
    told: defaultdict[str, list[int | float]] = defaultdict(list)
    for name, value in theirs.fields:
        told[name].append(value)
    for name, wanted in told.items():
        found = values.get(name, [])
        if found and len(found) != len(wanted):
            yield f"{theirs.name}.{name}: Mesa has {len(wanted)} values, softgen {len(found)}"
        for (item, value), want in zip(found, wanted, strict=False):
            if not same(item, value, want) and item.low // 32 not in moved:
                yield f"{theirs.name}.{name} at {theirs.address:#x}: Mesa says {want}, softgen {value}"


def same(field: BitField, value: Any, want: int | float) -> bool:
    if isinstance(value, float) or isinstance(want, float):
        return abs(value - want) <= 1e-5 * max(1, abs(want))
    if field.type.name == "address":
        return bool(value & (1 << 48) - 1 == want & (1 << 48) - 1)
    return bool(value == want)


@needs_shared("traces")
@pytest.mark.parametrize("file", TRACES, ids=lambda file: file.parent.name)
def test_same_commands_and_values(file: Path) -> None:
    path = file.parent
    theirs, mine = mesa_decode.read(file), covered(path, ours(path))
    assert [NAMES.get(c.name, c.name) for c in theirs] == [c.name for c in mine]
    wrong = [text for a, b in zip(theirs, mine, strict=True) for text in disagreements(a, b, path.name not in BEFORE_RELOCATION)]
    assert not wrong, "\n".join(sorted(set(wrong))[:40])
    both = sum(name in named_values(b.layout, b.dwords) for a, b in zip(theirs, mine, strict=True) if b.layout for name, _ in a.fields)
    named = sum(name != "dword_length" for a in theirs for name, _ in a.fields)
    assert both >= 0.7 * named, f"only {both} of Mesa's {named} fields have a namesake"


def test_a_wrong_value_is_told() -> None:
    """The comparison itself can fail."""
    from softgen.bits.catalogue import layout

    page = layout("3DSTATE_POLY_STIPPLE_OFFSET", 9)
    command = Command(0, 0, 1, page, page.pack(polygon_stipple_x_offset=3))
    theirs = MesaCommand(0, 0, page.name, [("polygon_stipple_x_offset", 4)])
    (told,) = disagreements(theirs, command, True)
    assert told == "3DSTATE_POLY_STIPPLE_OFFSET.polygon_stipple_x_offset at 0x0: Mesa says 4, softgen 3"


