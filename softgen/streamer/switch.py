"""MI_SET_CONTEXT: context switches by a ring's own commands, where there is no submission port.

Reads   MI_SET_CONTEXT CCID CS_GPR MI_PREDICATE_SRC0 MI_PREDICATE_SRC1 MI_PREDICATE_DATA MI_PREDICATE_RESULT IA_VERTICES_COUNT
        IA_PRIMITIVES_COUNT VS_INVOCATION_COUNT GS_INVOCATION_COUNT GS_PRIMITIVES_COUNT CL_INVOCATION_COUNT CL_PRIMITIVES_COUNT
        PS_INVOCATION_COUNT PS_DEPTH_COUNT HS_INVOCATION_COUNT DS_INVOCATION_COUNT CS_INVOCATION_COUNT
Writes  the state that commands see from here on

How these images are laid out is in no manual at hand; what a context keeps is kept by its image's address instead.
"""

from __future__ import annotations

from softgen.bits.catalogue import catalogue
from softgen.bits.record import Record
from softgen.command import registers_in
from softgen.errors import Unsupported
from softgen.streamer.execute import Streamer, flag
from softgen.streamer.interface import StreamerCommands

COMMANDS: StreamerCommands = {}
executes = registers_in(COMMANDS)

KEPT = (
    "CS_GPR", "MI_PREDICATE_SRC0", "MI_PREDICATE_SRC1", "MI_PREDICATE_DATA", "MI_PREDICATE_RESULT", "IA_VERTICES_COUNT",
    "IA_PRIMITIVES_COUNT", "VS_INVOCATION_COUNT", "GS_INVOCATION_COUNT", "GS_PRIMITIVES_COUNT", "CL_INVOCATION_COUNT",
    "CL_PRIMITIVES_COUNT", "PS_INVOCATION_COUNT", "PS_DEPTH_COUNT", "HS_INVOCATION_COUNT", "DS_INVOCATION_COUNT", "CS_INVOCATION_COUNT",
)  # fmt: skip
VALID = 1


@executes("MI_SET_CONTEXT")
def set_context(cs: Streamer, cmd: Record) -> None:
    """Saves the current context's state, when its work has ended, and restores the named one's, unless that is inhibited."""
    if cs.process_page is not None:
        raise Unsupported("contexts are switched by the submission port here")
    if cs.device.saved_context is None:
        raise Unsupported("there is nowhere to keep contexts")
    address, current = cmd.logical_context_address, cs.get("CCID")
    if current & VALID and current & ~0xFFF == address and not flag(cmd, "force_restore"):
        return
    cs.finish_pipelines()
    cs.saved.registers = cs.registers.save(kept(cs))
    cs.saved.drop_invalid()
    saved = cs.device.saved_context(address, cs.engine)
    if flag(cmd, "restore_inhibit"):
        saved.reset()
    saved.registers = cs.registers.restore(saved.registers)
    cs.saved.unflushed, saved.unflushed = False, cs.saved.unflushed  # the engine's work: a flush in any context is one of it
    cs.saved = cs.submitted.loaded = saved
    cs.set("CCID", address | VALID)


def kept(cs: Streamer) -> list[int]:
    """Offsets of the registers that belong to a context."""
    found = []
    for name in KEPT:
        layout = catalogue().get(name, cs.generation.number)
        if layout is not None:
            found += [cs.own(name, number) + 4 * dword for number in range(layout.count) for dword in range(layout.dwords)]
    return found
