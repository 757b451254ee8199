"""Privilege: what only the kernel driver's own batches may do.

Reads   MI_LOAD_REGISTER_IMM MI_LOAD_REGISTER_MEM MI_LOAD_REGISTER_REG FORCE_TO_NONPRIV
Writes  nothing

A batch that a command calls "not privileged" (from Gen8 on: one in the context's space) may not hold the commands of
spec/streamer/privilege.toml, nor load the registers listed there unless FORCE_TO_NONPRIV names them (ICL 83-84); its bits that ask
for the global space are taken as clear.
"""

from __future__ import annotations

import tomllib
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING

from softgen.bits import registers
from softgen.bits.catalogue import catalogue
from softgen.bits.record import Record
from softgen.streamer.parser import Command

if TYPE_CHECKING:
    from softgen.streamer.execute import Streamer


@cache
def _table(name: str) -> frozenset[str]:
    text = (resources.files("softgen") / "spec" / "streamer" / "privilege.toml").read_text("utf-8")
    return frozenset(tomllib.loads(text)[name])


def gives_up(start: Record) -> bool:
    """Whether MI_BATCH_BUFFER_START calls a batch that is not privileged: a bit of its own, or the context's space."""
    for name in ("non_privileged", "non_secure", "address_space_indicator"):
        if name in start._fields:
            return bool(getattr(start, name))
    return False


def denies(cs: Streamer, command: Command) -> bool:
    """Whether a batch that is not privileged may not hold a command."""
    if command.name in _table("commands"):
        return True
    values, relative = command.record, "add_cs_mmio_start_offset"
    match command.name:
        case "MI_LOAD_REGISTER_IMM":
            loaded = [pair.register_offset for pair in values.entry]
        case "MI_LOAD_REGISTER_MEM":
            loaded = [values.register_address]
        case "MI_LOAD_REGISTER_REG":
            loaded, relative = [values.destination_register_address], "add_cs_mmio_start_offset_destination"
        case _:
            return False
    counts = relative in values._fields and getattr(values, relative)
    return any(guarded(cs, cs.register(offset, counts)) for offset in loaded)


def guarded(cs: Streamer, offset: int) -> bool:
    """Whether a register may be loaded by privileged batches only."""
    found = registers.place(offset, cs.generation.number, cs.engine)
    if found is None or found.layout.name not in _table("registers"):
        return False
    layout = catalogue().get("FORCE_TO_NONPRIV", cs.generation.number)
    return layout is None or offset not in {cs.registers.read(cs.own(layout.name, i)) & ~3 for i in range(layout.count)}
