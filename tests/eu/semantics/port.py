"""A data port for tests alone: just enough messages for kernels of `shared/kernels`, one lane at a time, over plain buffers."""

from __future__ import annotations

import numpy as np

from softgen.bits.units import GRF_BYTES
from softgen.errors import GpuFault, Unsupported
from softgen.eu.thread.message import SentMessage
from softgen.eu.thread.state import MessageHandler, ThreadState

SLM, STATELESS = 0xFE, (0xFF, 0xFD)
SIZES = (1, 2, 4, 8)
ATOMICS = {1: "and", 2: "or", 3: "xor", 4: "mov", 5: "inc", 6: "dec", 7: "add", 8: "sub", 9: "revsub", 10: "imax", 11: "imin", 12: "umax",
           13: "umin", 14: "cmpwr", 15: "predec"}


class Memory:
    """Buffers by address and by binding table index, local memory, scratch."""

    def __init__(self) -> None:
        self.buffers: list[tuple[int, np.ndarray]] = []
        self.surfaces: dict[int, tuple[int, np.ndarray]] = {}
        self.local = np.zeros(1 << 16, np.uint8)
        self.scratch = np.zeros(1 << 22, np.uint8)

    def add(self, data: np.ndarray, address: int) -> None:
        self.buffers.append((address, data))

    def at(self, index: int | None, address: int, size: int) -> np.ndarray:
        if index == SLM:
            return self.local[address & 0xFFFF : (address & 0xFFFF) + size]
        if index in STATELESS:
            return self.scratch[address : address + size]
        if index is not None:
            _, data = self.surfaces[index]
            found = data[address : address + size]
            return found if len(found) == size else np.zeros(size, np.uint8)  # out of bounds: reads zero, writes nothing
        address &= (1 << 48) - 1
        for start, data in self.buffers:
            if start <= address and address + size <= start + len(data):
                return data[address - start : address - start + size]
        raise GpuFault(address, "access", why="no buffer there")


class Port:
    """One message being answered."""

    def __init__(self, memory: Memory, sent: SentMessage) -> None:
        self.memory, self.sent = memory, sent
        self.control = sent.descriptor >> 8 & 0x3F
        self.index = sent.descriptor & 0xFF
        body = sent.payload[GRF_BYTES:] if sent.header else sent.payload
        self.data = np.concatenate([body, sent.second])

    def lanes(self, count: int) -> list[int]:
        return [lane for lane in range(count) if self.sent.mask >> lane & 1]

    def scattered(self, count: int, size: int, elements: int, wide: bool, write: bool, slot: int = 0) -> None:
        """`elements` values of `size` bytes at each lane's address, each in `slot` bytes of the payload."""
        slot = slot or max(size, 4)
        step = 8 if wide else 4
        start = max(count * step, GRF_BYTES)
        for lane in self.lanes(count):
            address = int.from_bytes(self.data[lane * step : (lane + 1) * step].tobytes(), "little")
            place = self.memory.at(None if wide else self.index, address, size * elements)
            for element in range(elements):
                at = element * count * slot + lane * slot
                if write:
                    place[element * size : (element + 1) * size] = self.data[start + at : start + at + size]
                else:
                    self.sent.response[at : at + slot] = 0
                    self.sent.response[at : at + size] = place[element * size : (element + 1) * size]

    def packed(self, count: int, size: int, wide: bool, write: bool) -> None:
        """Up to four bytes of each lane in a dword, eight in a quadword."""
        self.scattered(count, size, 1, wide, write)

    def untyped(self, wide: bool, write: bool) -> None:
        count = {1: 16, 2: 8}[self.control >> 4 & 3]
        channels = [channel for channel in range(4) if not self.control >> channel & 1]
        step = 8 if wide else 4
        for lane in self.lanes(count):
            address = int.from_bytes(self.data[lane * step : (lane + 1) * step].tobytes(), "little")
            for order, channel in enumerate(channels):
                place = self.memory.at(None if wide else self.index, address + 4 * channel, 4)
                at = (order * count + lane) * 4
                if write:
                    place[:] = self.data[count * step + at : count * step + at + 4]
                else:
                    self.sent.response[at : at + 4] = place

    def atomic(self, wide: bool) -> None:
        count = 8 if wide or self.control >> 4 & 1 else 16
        step, op, size = 8 if wide else 4, ATOMICS[self.control & 0xF], 8 if wide and self.control >> 4 & 1 else 4
        for lane in self.lanes(count):
            address = int.from_bytes(self.data[lane * step : (lane + 1) * step].tobytes(), "little")
            place = self.memory.at(None if wide else self.index, address, size)
            old = int.from_bytes(place.tobytes(), "little")
            places = [count * (step + size * k) + lane * size for k in (0, 1)]
            first, second = (int.from_bytes(self.data[at : at + size].tobytes(), "little") for at in places)
            new = updated(op, old, first, second, 8 * size)
            place[:] = np.frombuffer((new & (1 << 8 * size) - 1).to_bytes(size, "little"), np.uint8)
            if len(self.sent.response):
                self.sent.response[lane * size : (lane + 1) * size] = np.frombuffer(old.to_bytes(size, "little"), np.uint8)

    def block(self, address: int, index: int | None, size: int, write: bool) -> None:
        place = self.memory.at(index, address, size)
        if write:
            place[:] = self.data[:size]
        else:
            self.sent.response[:size] = place


def updated(op: str, old: int, a: int, b: int, bits: int) -> int:
    def signed(value: int) -> int:
        return (value ^ 1 << bits - 1) - (1 << bits - 1)

    made = {"and": old & a, "or": old | a, "xor": old ^ a, "mov": a, "inc": old + 1, "dec": old - 1, "add": old + a, "sub": old - a,
            "revsub": a - old, "umax": max(old, a), "umin": min(old, a), "imax": max(signed(old), signed(a)), "predec": old - 1,
            "imin": min(signed(old), signed(a)), "cmpwr": b if old == a else old}
    return made[op]


def data_cache_1(memory: Memory) -> MessageHandler:
    def handle(thread: ThreadState, sent: SentMessage) -> None:
        port, kind = Port(memory, sent), sent.descriptor >> 14 & 0x1F
        if kind in (1, 9, 0x11, 0x19):
            port.untyped(kind > 9, kind in (9, 0x19))
        elif kind in (0x10, 0x1A):
            size, elements, count = SIZES[(0, 2, 3, 0)[port.control & 3]], SIZES[port.control >> 2 & 3], 16 if port.control >> 4 & 1 else 8
            if size == 1:
                port.packed(count, elements, True, kind == 0x1A)
            else:
                port.scattered(count, size, elements, True, kind == 0x1A)
        elif kind in (2, 0x12):
            port.atomic(kind == 0x12)
        elif kind in (0x14, 0x15):
            header = sent.payload[:8].view(np.uint64)
            owords = (1, 1, 2, 4, 8)[port.control & 7]
            port.block(int(header[0]), None, 16 * owords, kind == 0x15)
        else:
            raise Unsupported(f"test port: data cache 1 message {kind:#x}")

    return handle


def data_cache_0(memory: Memory) -> MessageHandler:
    def handle(thread: ThreadState, sent: SentMessage) -> None:
        port, kind = Port(memory, sent), sent.descriptor >> 14 & 0xF
        if sent.descriptor >> 18 & 1:
            base = (int(sent.payload[20:24].view(np.uint32)[0]) & ~0x3FF) + 32 * (sent.descriptor & 0xFFF)
            port.block(base, 0xFF, GRF_BYTES << (sent.descriptor >> 12 & 3), bool(sent.descriptor >> 17 & 1))
        elif kind in (4, 12):
            port.packed(16 if port.control & 1 else 8, SIZES[port.control >> 2 & 3], False, kind == 12)
        elif kind in (0, 1, 8):
            offset = int(sent.payload[8:12].view(np.uint32)[0]) * (1 if kind == 1 else 16)
            port.block(offset, port.index, 16 * (1, 1, 2, 4, 8)[port.control & 7], kind == 8)
        elif kind != 7:
            raise Unsupported(f"test port: data cache 0 message {kind:#x}")

    return handle


def handlers(memory: Memory, barrier: list[ThreadState]) -> dict[int, MessageHandler]:
    """Those of a thread of a group; `barrier` collects the threads that have reached it."""

    def gateway(thread: ThreadState, sent: SentMessage) -> None:
        if sent.descriptor & 7 == 4:
            barrier.append(thread)

    return {7: lambda thread, sent: None, 3: gateway, 10: data_cache_0(memory), 12: data_cache_1(memory)}
