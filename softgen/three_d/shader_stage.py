"""What the thread dispatches of VS, HS, DS and GS have in common: fields of a ThreadDispatch, and the header of payloads.

    fields = {**stage_fields(state.gen, unit), **stage_tables(state, "GS")}
    header = payload_header(state.gen, "GS_SIMD8_PAYLOAD", fields)
"""

from __future__ import annotations

from functools import cache, lru_cache
from typing import Any

from softgen.bits import catalogue
from softgen.bits.record import Record
from softgen.threads.dispatch import KIB, Scratch, control_register, size_code, state_register
from softgen.threads.native.scheduler_h import UndefinedDwords
from softgen.three_d.state.state import DrawState
from softgen.three_d.state.unit_state import binding_table, samplers

CHANNELS = 8  # of every thread
LOW = 0xFFFFFFFF  # bits of pointers to kernels and scratch space that count (ICL 3248-3254)
POINTER = 0xFFFFFFE0  # bits of a pointer; a table elsewhere is known to the shared functions alone
# State fields and the fields of cr0 that they set.
CONTROL = {"single_program_flow": "single_program_flow", "floating_point_mode": "alternate_float_mode",
           "vector_mask_enable": "vector_mask_enable", "illegal_opcode_exception_enable": "illegal_opcode_enable",
           "software_exception_enable": "software_enable"}  # fmt: skip


def stage_fields(gen: float, unit: Record, stage: str, each: int = 1) -> dict[str, Any]:
    """The fields of a ThreadDispatch that a stage's state determines: kernel, cr0, sr0 and scratch space.

    `each`: threads for which its limit counts one. Kernel pointers have 32 bits, whatever the command has above them (ICL 2923-2924).
    """
    priority = bool(getattr(unit, "thread_dispatch_priority", 0))
    return {"kernel": unit.kernel_start_pointer & LOW, "control": _control(gen, unit), "scratch": _scratch(unit, each),
            "stage": stage.lower(), "thread_state": state_register(gen, stage, priority)}  # fmt: skip


def stage_tables(state: DrawState, stage: str) -> dict[str, Any]:
    """The fields of a ThreadDispatch that say where binding table and sampler states are."""
    return {"binding_table": binding_table(state, stage), "samplers": samplers(state, stage)}


@lru_cache(256)
def _control(gen: float, unit: Record) -> tuple[int, ...]:
    found = {name: getattr(unit, field, 0) for field, name in CONTROL.items()}
    return control_register(gen, **{name: value for name, value in found.items() if value})


def _scratch(unit: Record, each: int) -> Scratch | None:
    """2^n KiB for each thread; none where the state has neither a pointer nor a size."""
    if not unit.scratch_space_base_pointer and not unit.per_thread_scratch_space:
        return None
    return Scratch(unit.scratch_space_base_pointer & LOW, KIB << unit.per_thread_scratch_space, (unit.maximum_number_of_threads + 1) * each)


def payload_header(gen: float, page: str, fields: dict[str, Any], **more: int) -> tuple[int, ...]:
    """The fixed part of a payload as all threads have it, in dwords: handles, scratch space and the thread's number differ."""
    return _header(gen, page, fields["binding_table"] & POINTER, fields["samplers"] & POINTER, fields["scratch"], **more)


@lru_cache(256)
def _header(gen: float, page: str, binding_table: int, samplers: int, scratch: Scratch | None, **more: int) -> tuple[int, ...]:
    base = scratch.base if scratch is not None else 0
    layout = catalogue.layout(page, gen)
    table = {"binding_table_pointer": binding_table} if has_field(page, gen, "binding_table_pointer") else {}
    return tuple(layout.pack(sampler_state_pointer=samplers, per_thread_scratch_space=size_code(scratch), scratch_space_offset=base,
                             **table, **more))  # fmt: skip


@cache
def thread_mask(gen: float, page: str) -> int:
    """The bits of a thread's number in its header."""
    return (1 << catalogue.layout(page, gen).field("fftid").width) - 1


@cache
def place(gen: float, page: str, field: str) -> int:
    """The byte at which a payload has a field."""
    return catalogue.layout(page, gen).field(field).low // 32 * 4


@cache
def has_field(page: str, gen: float, field: str) -> bool:
    """Whether a page has a field on a generation."""
    return any(held.name == field for held in catalogue.layout(page, gen).fields)


def lane_dwords(offset: int, lanes: int, size: int = 4) -> list[UndefinedDwords]:
    """A value of each lane, one after another: nothing says what those have whose channels are off. Reserved bits of r0 are not among what
    is undefined here: drivers copy r0 into headers of messages, where other bits must be zero."""
    channels = CHANNELS // lanes
    return [UndefinedDwords(offset + size * lane, size, (1 << channels) - 1 << channels * lane, LOW) for lane in range(lanes)]
