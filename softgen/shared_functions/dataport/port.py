"""The data port of one thread group: finds out what a message asks for and lets the right function answer it.

A function answers the messages it names: `@answers("untyped_surface_read")`. Names are those of spec/message/messages.table; a message
that nobody answers raises Unsupported with its description.

Reads   MH_A32_GO MH1_BTS_PSM
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

import numpy as np

from softgen.bits import catalogue, describe
from softgen.bits.record import Record
from softgen.errors import DecodeError, Unsupported
from softgen.shared_functions import message
from softgen.shared_functions.dataport.surface import Surfaces
from softgen.shared_functions.dataport.target import Addresses, Bytes, LocalMemory, Mask, Memory, Target

REGISTER = 32  # bytes
PORTS = ("sampler_cache", "data_port_2", "constant_cache", "read_only", "data_cache_0", "data_cache_1")  # functions answered here
ADDRESS_64 = "a64_"  # how the names of messages with 64-bit addresses begin


class Sender(Protocol):
    @property
    def exec_size(self) -> int: ...


class Sent(Protocol):
    """What a thread sends, as far as a data port looks at it."""

    @property
    def instruction(self) -> Sender: ...

    sfid: int
    descriptor: int
    payload: Bytes
    second: Bytes
    response: Bytes
    mask: int  # bit n: channel n of the instruction


@dataclass(frozen=True)
class Plan:
    """What can be known from a descriptor alone."""

    name: str
    fields: Record
    words: dict[str, str]  # enumerated fields by the names of their values
    answer: Answer
    header: bool

    def count(self, field: str) -> int:
        """The number that the name of a value begins with: 4 of '4_owords'."""
        return int(self.words[field].partition("_")[0])


@dataclass
class Request:
    """One message, ready to be answered."""

    plan: Plan
    header: list[int]  # eight dwords; empty where the message has none
    data: Bytes  # the payload behind the header, and what a split send adds
    response: Bytes
    mask: int
    width: int  # channels of the instruction

    def lanes(self, count: int) -> Mask:
        return (self.mask >> np.arange(count) & 1).astype(np.bool_)

    def take(self, start: int, size: int) -> Bytes:
        """Payload bytes; a message that is too short for what it asks is an error of the program."""
        if start + size > len(self.data):
            short = f"{len(self.data) // REGISTER} registers of payload, too few; {-(-(start + size) // REGISTER)} are needed"
            raise DecodeError(f"{self.plan.name} has {short}")
        return self.data[start : start + size]

    def answer(self, start: int, size: int) -> Bytes:
        """The place for response bytes."""
        if start + size > len(self.response):
            short = f"{len(self.response) // REGISTER} registers for its answer, too few; {-(-(start + size) // REGISTER)} are needed"
            raise DecodeError(f"{self.plan.name} has {short}")
        return self.response[start : start + size]


Answer = Callable[["DataPort", Request], None]
ANSWERS: dict[str, Answer] = {}


def answers(*names: str) -> Callable[[Answer], Answer]:
    """This function answers the messages of these names."""

    def keep(function: Answer) -> Answer:
        ANSWERS.update(dict.fromkeys(names, function))
        return function

    return keep


@lru_cache(maxsize=1 << 12)
def plan(sfid: int, descriptor: int, gen: float) -> Plan:
    found = message.named(sfid, descriptor, gen)
    if found.name not in ANSWERS:
        raise message.unbuilt(found, sfid)
    words = {}
    for one in found.layout.fields:
        names = describe.values_of(one.type, gen)
        if names:
            words[one.name] = names.get(getattr(found.values, one.name), "reserved")
    return Plan(found.name, found.values, words, ANSWERS[found.name], found.header)


class DataPort:
    """Answers the messages of one thread group."""

    def __init__(self, surfaces: Surfaces, local: LocalMemory) -> None:
        self.surfaces, self.local = surfaces, local
        self.gen, self.space = surfaces.gen, surfaces.space
        self.general = surfaces.bases.get("general", 0)

    def handlers(self) -> dict[int, Callable[[object, Sent], None]]:
        """For the table of a thread: shared function number -> who answers."""
        return {sfid: self.handle for sfid, name in message.shared_functions(self.gen).items() if name in PORTS}

    def handle(self, thread: object, sent: Sent) -> None:
        one = plan(sent.sfid, sent.descriptor, self.gen)
        start = REGISTER if one.header else 0
        data = np.concatenate([sent.payload[start:], sent.second]) if len(sent.second) else sent.payload[start:]
        header = sent.payload[:start].view(np.uint32).tolist()
        one.answer(self, Request(one, header, data, sent.response, sent.mask, sent.instruction.exec_size))

    def target(self, request: Request) -> Target:
        """The memory a message means: its binding table index, or 64-bit addresses by the message's name."""
        if request.plan.name.startswith(ADDRESS_64):
            return Addresses(self.space)
        index = int(request.plan.fields.binding_table_index)
        match catalogue.enumeration(message.SURFACES, self.gen).get(index):
            case None:
                return self.surfaces.bound(index)
            case "slm":
                return self.local
            case "stateless" | "stateless_non_coherent":
                return Memory(self.space, self.general + self.buffer_base(request))
            case special:
                raise Unsupported(f"{request.plan.name} to {special} surfaces: not yet simulated")

    def buffer_base(self, request: Request) -> int:
        """Where stateless offsets begin, counted from the general state base: a header may say so (KBL 734-750)."""
        return int(self.header("MH_A32_GO", request).buffer_base_address) if len(request.header) else 0

    def header(self, name: str, request: Request) -> Record:
        return catalogue.layout(name, self.gen).raw(request.header)

    def pixel_mask(self, request: Request) -> int:
        """Lanes that the header of a surface message leaves on (KBL 17848-17865)."""
        return int(self.header("MH1_BTS_PSM", request).pixel_sample_mask) if len(request.header) else -1
