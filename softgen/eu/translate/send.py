"""Messages of a translated kernel: the shared function's lane program, on the kernel's registers."""

from __future__ import annotations

from softgen.errors import GpuFault, Unsupported
from softgen.eu.isa.instruction import Instruction
from softgen.eu.semantics.send import execute_message, has_lane_program
from softgen.eu.thread.block import BLOCK_OFFSETS, Context
from softgen.eu.translate.entry_exit import SURFACES
from softgen.eu.translate.state import TranslationState
from softgen.lanes.record import RecordLayout
from softgen.lanes.types import u64
from softgen.shared_functions.compiled import MessageCode

CONTEXT = RecordLayout.of(Context)
PIXEL_AT = BLOCK_OFFSETS["pixel"]
LOADED = frozenset({SURFACES})


def send(state: TranslationState, inst: Instruction, here: bool) -> None:
    """`here`: whether messages are compiled in; otherwise each is a side exit to the interpreter."""
    if not here or not has_lane_program(inst):
        raise Unsupported("this message has no translation")
    ip = state.m.number(u64, state.ip)
    code = MessageCode(state.m, state.gen, ip, lambda good: state.escape(~good), CONTEXT, state.indices, state.count, PIXEL_AT, LOADED)
    try:
        execute_message(state, inst, code)
    except GpuFault as fault:
        raise Unsupported(str(fault)) from None  # it happens when the message is sent, not now
