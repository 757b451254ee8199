"""Restrictions on sends. Each function tells whether an instruction violates the row of its name."""

from __future__ import annotations

from typing import TypeGuard

from softgen.bits.units import GRF_COUNT
from softgen.eu.check.region import is_named, only
from softgen.eu.isa.instruction import Instruction, Operand
from softgen.shared_functions import descriptors

LAST_PAYLOADS = range(112, 128)  # registers allowed for the payload of a message with EOT


def described(inst: Instruction) -> int | None:
    """The descriptor if it is an immediate."""
    return inst.descriptor if isinstance(inst.descriptor, int) else None


def lengths(inst: Instruction) -> tuple[int, int]:
    """Registers of the first payload and of the response; 0 where the descriptor is in a register."""
    found = described(inst)
    return (0, 0) if found is None else (descriptors.mlen(found, inst.gen), descriptors.rlen(found, inst.gen))


def second_length(inst: Instruction) -> int:
    """Registers of a split send's second payload."""
    if inst.form != "sends" or not isinstance(inst.extended, int):
        return 0
    found = descriptors.extended(inst.sfid, inst.extended, inst.gen)
    return int(found.extended_message_length) if found is not None else 0


def _direct(operand: Operand | None) -> TypeGuard[Operand]:
    """Whether an operand is a general register that is named directly."""
    return operand is not None and operand.file == "grf" and not operand.indirect


def _taken(operand: Operand | None, length: int) -> range:
    return range(operand.number, operand.number + length) if _direct(operand) else range(0)


def _overlap(a: range, b: range) -> bool:
    return max(a.start, b.start) < min(a.stop, b.stop)


@only("send", "sends")
def payload_file(inst: Instruction) -> bool:
    return inst.sources[0].file != "grf"


@only("send", "sends")
def payload_whole(inst: Instruction) -> bool:
    return any(source.sub for source in inst.sources if _direct(source))


@only("send", "sends")
def payload_last(inst: Instruction) -> bool:
    payloads = inst.sources if second_length(inst) else inst.sources[:1]
    return inst.eot and any(_direct(payload) and payload.number not in LAST_PAYLOADS for payload in payloads)


@only("send", "sends")
def payload_range(inst: Instruction) -> bool:
    sent, _ = lengths(inst)
    payloads = zip(inst.sources, (sent, second_length(inst)), strict=False)
    return any(_taken(source, length).stop > GRF_COUNT for source, length in payloads)


@only("send", "sends")
def response_range(inst: Instruction) -> bool:
    return _taken(inst.dst, lengths(inst)[1]).stop > GRF_COUNT


@only("send", "sends")
def response_last(inst: Instruction) -> bool:
    sent, returned = lengths(inst)
    taken = _taken(inst.dst, returned)
    return GRF_COUNT - 1 in taken and _overlap(taken, _taken(inst.sources[0], sent))


@only("sends")
def split_overlap(inst: Instruction) -> bool:
    return _overlap(_taken(inst.sources[0], lengths(inst)[0]), _taken(inst.sources[1], second_length(inst)))


@only("send", "sends")
def last_response(inst: Instruction) -> bool:
    return inst.eot and lengths(inst)[1] > 0


@only("send", "sends")
def message_empty(inst: Instruction) -> bool:
    found = described(inst)
    return found is not None and descriptors.mlen(found, inst.gen) == 0


@only("send", "sends")
def message_known(inst: Instruction) -> bool:
    found = described(inst)
    return found is not None and descriptors.identify(inst.sfid, found, inst.gen) is None


@only("send", "sends")
def message_fits(inst: Instruction) -> bool:
    found = described(inst)
    known = descriptors.identify(inst.sfid, found, inst.gen) if found is not None else None
    return known is not None and known.mlen > 0 and bool(descriptors.problems(known))


@only("send")
def descriptor_register(inst: Instruction) -> bool:
    if not isinstance(inst.descriptor, Operand):
        return False
    found = inst.descriptor
    return not is_named(found, "a", inst.gen) or bool(found.sub)
