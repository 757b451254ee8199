"""Restrictions on sends. Each function says whether an instruction breaks the row of its name."""

from __future__ import annotations

from softgen.eu.check.region import REGISTERS, is_named, only
from softgen.eu.isa.instruction import Instruction, Operand
from softgen.shared_functions import message

LAST_PAYLOADS = range(112, 128)  # where the payload of the last message stands


def described(one: Instruction) -> int | None:
    """The descriptor, where the instruction says it."""
    return one.descriptor if isinstance(one.descriptor, int) else None


def lengths(one: Instruction) -> tuple[int, int]:
    """Registers of the first payload and of the response; zero where a register says them."""
    found = described(one)
    return (0, 0) if found is None else (message.mlen(found, one.gen), message.rlen(found, one.gen))


def second_length(one: Instruction) -> int:
    """Registers of a split send's second payload."""
    if one.form != "sends" or not isinstance(one.extended, int):
        return 0
    found = message.extended(one.sfid, one.extended, one.gen)
    return int(found.extended_message_length) if found is not None and "extended_message_length" in found._fields else 0


def _taken(operand: Operand | None, length: int) -> range:
    direct = operand is not None and operand.file == "grf" and not operand.indirect
    return range(operand.number, operand.number + length) if operand is not None and direct else range(0)


def _overlap(a: range, b: range) -> bool:
    return bool(a and b) and max(a.start, b.start) < min(a.stop, b.stop)


@only("send", "sends")
def payload_file(one: Instruction) -> bool:
    return one.sources[0].file != "grf"


@only("send", "sends")
def payload_whole(one: Instruction) -> bool:
    return any(source.sub for source in one.sources if source.file == "grf" and not source.indirect)


@only("send", "sends")
def payload_last(one: Instruction) -> bool:
    if not one.eot:
        return False
    ranges = [_taken(one.sources[0], 1), _taken(one.sources[1], 1) if second_length(one) else range(0)]
    return any(taken and taken.start not in LAST_PAYLOADS for taken in ranges)


@only("send", "sends")
def payload_range(one: Instruction) -> bool:
    sent, _ = lengths(one)
    first = _taken(one.sources[0], sent)
    second = _taken(one.sources[1], second_length(one)) if one.form == "sends" else range(0)
    return max(first.stop, second.stop) > REGISTERS


@only("send", "sends")
def response_range(one: Instruction) -> bool:
    return _taken(one.dst, lengths(one)[1]).stop > REGISTERS


@only("send", "sends")
def response_last(one: Instruction) -> bool:
    sent, returned = lengths(one)
    taken = _taken(one.dst, returned)
    return REGISTERS - 1 in taken and _overlap(taken, _taken(one.sources[0], sent))


@only("sends")
def split_overlap(one: Instruction) -> bool:
    return _overlap(_taken(one.sources[0], lengths(one)[0]), _taken(one.sources[1], second_length(one)))


@only("send", "sends")
def last_response(one: Instruction) -> bool:
    return one.eot and lengths(one)[1] > 0


@only("send", "sends")
def message_empty(one: Instruction) -> bool:
    found = described(one)
    return found is not None and message.mlen(found, one.gen) == 0


@only("send", "sends")
def message_known(one: Instruction) -> bool:
    found = described(one)
    return found is not None and message.identify(one.sfid, found, one.gen) is None


@only("send", "sends")
def message_fits(one: Instruction) -> bool:
    found = described(one)
    known = message.identify(one.sfid, found, one.gen) if found is not None else None
    return known is not None and known.mlen > 0 and bool(message.problems(known))


@only("send")
def descriptor_register(one: Instruction) -> bool:
    if not isinstance(one.descriptor, Operand):
        return False
    found = one.descriptor
    return not is_named(found, "a", one.gen) or bool(found.sub)
