"""Messages to a data port without a thread: descriptor by name, payload from bytes, the answer as bytes.

Every message that can be compiled is sent a second time as compiled code, over the same memory: answers, memory and faults must agree.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from softgen.bits.catalogue import layout
from softgen.bits.generation import generation
from softgen.errors import DecodeError, GpuFault, SoftgenError, Unsupported
from softgen.eu.thread.block import ThreadStatus
from softgen.memory.address_space import AddressSpace
from softgen.memory.store import MemfdBuffer
from softgen.shared_functions import descriptors, message
from softgen.shared_functions.avs.bound import ScalerSurfaces
from softgen.shared_functions.avs.messages import is_scaled
from softgen.shared_functions.bindings import SAMPLE_OPERATIONS, TOLD, name_samplers
from softgen.shared_functions.dataport import DataPort, LocalMemory, Surfaces
from softgen.shared_functions.dataport.bound_media import MediaSurfaces
from softgen.shared_functions.dataport.media import is_media_block
from softgen.shared_functions.texture import TexelRequest, textured
from softgen.shared_functions.unit import MessageHandler
from tests.shared_functions.compiled import Compiled

PAGE, BASE, TABLE, DATA = 0x1000, 0x10000, 0x800, 0x20000
SLM, STATELESS = 254, 255
BOUND, FAR = {"binding_table_index": 0}, {"binding_table_index": STATELESS}


@dataclass
class Sender:
    exec_size: int


@dataclass
class Sent:
    sfid: int
    descriptor: int
    payload: np.ndarray[Any, np.dtype[np.uint8]]
    second: np.ndarray[Any, np.dtype[np.uint8]]
    response: np.ndarray[Any, np.dtype[np.uint8]]
    mask: int
    instruction: Sender
    extended: int = 0


@dataclass
class Bench:
    """A data port over a page of data, bound as surface 0 with `size` bytes."""

    gen: float = 9
    size: int = 256
    local: int = 1024
    general: int = 0
    surface: dict[str, Any] = field(default_factory=dict)
    samplers: int = 0  # where their states begin
    blocks: bool = False  # whether faults of compiled messages need not name a lane
    known: int = TOLD  # of surfaces of compiled messages

    def __post_init__(self) -> None:
        self.space = AddressSpace("bench", 48)
        self.data, self.state = MemfdBuffer(PAGE, "data"), MemfdBuffer(PAGE, "state")
        self.space.map(DATA, self.data)
        self.space.map(BASE, self.state)
        self.data.array[:] = np.arange(PAGE) % 251
        last = self.size - 1
        values = {"surface_type": 4, "surface_format": 0x1FF, "surface_base_address": DATA, "width": last & 0x7F, "height": last >> 7}
        self.put(self.state, 0, layout("RENDER_SURFACE_STATE", self.gen).pack(**values | self.surface))
        self.put(self.state, TABLE, [0])
        surfaces = Surfaces(generation(self.gen), self.space, {"surface": BASE, "general": self.general}, TABLE)
        self.slm = LocalMemory(self.local)
        self.port = DataPort(surfaces, self.slm)
        self.compiled = 0  # messages that were compared with compiled code

    @staticmethod
    def put(buffer: MemfdBuffer, at: int, dwords: list[int]) -> None:
        buffer.array[at : at + 4 * len(dwords)] = np.array(dwords, np.uint32).view(np.uint8)

    def send(self, name: str, *parts: Any, mask: int = 0xFFFF, answer: int = 0, split: Any = None, width: int = 16, fill: int = 0xEE,
             extended: int = 0, **fields: Any) -> np.ndarray[Any, np.dtype[np.uint8]]:  # fmt: skip
        """The answer's registers, filled with `fill` where nothing was written. Parts are arrays, one behind the other."""
        payload = np.concatenate([np.ascontiguousarray(part).view(np.uint8) for part in parts]) if parts else np.zeros(0, np.uint8)
        second = np.zeros(0, np.uint8) if split is None else np.ascontiguousarray(split).view(np.uint8)
        assert len(payload) % 32 == 0 and len(second) % 32 == 0, "whole registers"
        descriptor = descriptors.encode(name, self.gen, message_length=len(payload) // 32, response_length=answer, **fields)
        function = next(row.function for row in descriptors.rows(self.gen) if row.name == name)
        sfid = next(number for number, known in descriptors.shared_functions(self.gen).items() if known == function)
        sent = Sent(sfid, descriptor, payload, second, np.full(32 * answer, fill, np.uint8), mask, Sender(width), extended)
        before, again = self.snapshot(), sent.response.copy()
        fault = self._attempt(lambda: MessageHandler(self.gen, self.port)(self.sender(), sent))
        if message.compiled(sfid, descriptor, self.gen) and not isinstance(fault, (DecodeError, Unsupported)):
            self._compare(sent, again, before, fault)
        if fault is not None:
            raise fault
        return sent.response

    def sender(self) -> object:
        """The thread that sends."""
        return None

    def _compare(self, sent: Sent, response: Any, before: list[Any], fault: SoftgenError | None) -> None:
        after = self.snapshot()
        for held, was in zip(self._memories(), before, strict=True):
            held[:] = was
        twin = Compiled(self.gen, self.space, self.slm.held, self.general)
        index = sent.descriptor & 0xFF
        self._prepare(twin, sent, index)
        target = self.port.surfaces.known().get(index)
        if target is not None:
            twin.bind(index, int(getattr(target, "base", 0)), target.size or 0, self.known)
        result: list[int] = []
        other = self._attempt(lambda: result.append(twin.run(sent.sfid, sent.descriptor, sent.payload, sent.second, response, sent.mask,
                                                             sent.instruction.exec_size, sent.extended)))  # fmt: skip
        if result == [ThreadStatus.ESCAPE]:
            for held, was in zip(self._memories(), after, strict=True):
                held[:] = was
            return
        self.compiled += 1
        block = self.blocks or "block" in message.plan(sent.sfid, sent.descriptor, self.gen).name  # has no lanes to speak of
        assert (other and key(other, block)) == (fault and key(fault, block)), f"{other} and not {fault}"
        if fault is None:
            assert response.tolist() == sent.response.tolist(), "the answer differs"
            for held, wanted in zip(self._memories(), after, strict=True):
                assert (held == wanted).all(), f"memory differs at {np.flatnonzero(held != wanted)}"

    def _prepare(self, twin: Compiled, sent: Sent, index: int) -> None:
        """What a message's surface is for compiled code: of media blocks, or the function for what is done to texels."""
        if is_media_block(message.plan(sent.sfid, sent.descriptor, self.gen).name):
            self.media = MediaSurfaces(twin.bindings, self.port.surfaces)
            self.media.fill(index)
            return
        if is_scaled(message.plan(sent.sfid, sent.descriptor, self.gen).name):
            self.scalers = ScalerSurfaces(twin.bindings, self.port.surfaces, self.port.samplers)
            self.scalers.fill(index, sent.descriptor >> 8 & 15)
            return
        asked = textured(sent.sfid, sent.descriptor, self.gen, len(sent.payload) + len(sent.second))
        if asked is None:
            return
        name_samplers(twin.bindings, self.samplers, 4 * layout("SAMPLER_STATE", self.gen).dwords)
        image = self.port.picture(index, False, asked.what in SAMPLE_OPERATIONS)
        twin.pictures.fill(index, asked.what, asked.lanes, asked.sampler, image, self._how(asked), hurry=True)

    def _how(self, asked: TexelRequest) -> object:
        return None

    def _memories(self) -> list[Any]:
        return [self.data.array, self.state.array, self.slm.held]

    def snapshot(self) -> list[Any]:
        return [memory.copy() for memory in self._memories()]

    @staticmethod
    def _attempt(run: Callable[[], object]) -> SoftgenError | None:
        try:
            run()
        except SoftgenError as error:
            return error
        return None


def key(fault: SoftgenError, block: bool) -> tuple[Any, ...]:
    """What two faults must have in common: where, how, and which lane."""
    assert isinstance(fault, GpuFault), fault
    place = (fault.address, *re.findall(r"lane \d+", fault.why)) if not block else ()
    return fault.access, place, "canonical" in fault.why, "multiple" in fault.why


def header(**dwords: int) -> np.ndarray[Any, np.dtype[np.uint32]]:
    """d2=… is dword 2."""
    made = np.zeros(8, np.uint32)
    for name, value in dwords.items():
        made[int(name[1:])] = value
    return made


def lanes(count: int, step: int, start: int = 0) -> np.ndarray[tuple[int], np.dtype[np.uint32]]:
    return (start + step * np.arange(count)).astype(np.uint32)
