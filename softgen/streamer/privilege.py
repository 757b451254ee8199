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
from typing import TYPE_CHECKING, Protocol

from softgen.bits import registers
from softgen.bits.catalogue import catalogue
from softgen.bits.generation import SPEC, Generation
from softgen.bits.record import Record

if TYPE_CHECKING:
    from softgen.streamer.engine_status import EngineStatusRegisters
    from softgen.streamer.interface import RegisterFile


class PrivilegedStreamer(Protocol):
    """What the checks need of a command streamer."""

    generation: Generation
    engine: str
    registers: RegisterFile
    status: EngineStatusRegisters

    def warn(self, text: str) -> None: ...
    def register(self, offset: int, relative: object = False) -> int: ...
    def own(self, name: str, number: int = 0) -> int: ...


@cache
def _names() -> dict[str, frozenset[str]]:
    text = (SPEC / "streamer" / "privilege.toml").read_text("utf-8")
    return {kind: frozenset(names) for kind, names in tomllib.loads(text).items()}


def privileged(kind: str) -> frozenset[str]:
    """Names of the privileged `commands`, of `registers` that all contexts share, or of `context_registers`."""
    return _names()[kind]


@cache
def privileged_registers() -> frozenset[str]:
    return privileged("registers") | privileged("context_registers")


LOADS = ("MI_LOAD_REGISTER_IMM", "MI_LOAD_REGISTER_MEM", "MI_LOAD_REGISTER_REG")


@cache
def matters(command: str) -> bool:
    """Whether there is a command of this name that only privileged batches may hold."""
    return command in privileged("commands") or loads(command)


def loads(command: str) -> bool:
    """Whether it depends on a command's registers, and on other registers, whether only privileged batches may hold it."""
    return command in LOADS


def gives_up(start: Record) -> bool:
    """Whether MI_BATCH_BUFFER_START calls a batch that is not privileged: a bit of its own, or the context's space."""
    for name in ("non_privileged", "non_secure", "address_space_indicator"):
        if name in start._fields:
            return bool(getattr(start, name))
    return False


def refuses(cs: PrivilegedStreamer, name: str, values: Record) -> bool:
    """Whether a command of a batch that is not privileged is read as MI_NOOP; the engine's status says so."""
    if not denies(cs, name, values):
        return False
    cs.status.privilege_violation()
    cs.warn("a privileged command in a batch that is not; read as MI_NOOP")
    return True


def denies(cs: PrivilegedStreamer, name: str, values: Record) -> bool:
    """Whether a batch that is not privileged may not hold a command."""
    if name in privileged("commands"):
        return True
    relative = "add_cs_mmio_start_offset"
    match name:
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


def guarded(cs: PrivilegedStreamer, offset: int) -> bool:
    """Whether a register may be loaded by privileged batches only."""
    found = registers.place(offset, cs.generation.number, cs.engine)
    if found is None or found.layout.name not in privileged_registers():
        return False
    layout = catalogue().get("FORCE_TO_NONPRIV", cs.generation.number)
    return layout is None or offset not in {cs.registers.read(cs.own(layout.name, i)) & ~3 for i in range(layout.count)}
