"""Work, Expectation and Trace: the interface of all trace readers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, Protocol

from softgen.bits.generation import Device
from softgen.errors import GpuFault
from softgen.memory.space import Space


@dataclass(frozen=True)
class Mark:
    """A place a register points to: an address in the work's own space, or in its ring."""

    label: str
    address: int
    ring: bool = False


@dataclass(frozen=True)
class Stop:
    """Position of an engine in an error state: addresses its registers pointed to, and the header it was executing."""

    marks: tuple[Mark, ...] = ()
    header: int | None = None


@dataclass(frozen=True)
class Work:
    """One submission for a command streamer.

    A batch starts at `batch` in `space`. A ring stands at `batch` in `ring_space`; its commands run from `head` to `tail`, byte
    offsets that wrap at `size`, and the batches it calls are in `space`.
    Memory is as it was at this moment only until the next piece of work is asked for.
    """

    engine: str
    space: Space
    batch: int
    kind: Literal["batch", "ring"] = "batch"
    sequence: int = 0
    label: str = ""
    head: int = 0
    tail: int = 0
    size: int = 0
    end: int | None = None  # only a hint: batches end with MI_BATCH_BUFFER_END
    global_space: Space | None = None  # where rings stand and commands reach with "global" set; None: `space`
    context: int = 0
    privileged: bool = True  # of a batch: whether it may do what only the kernel driver may
    stop: Stop | None = None  # error states only

    @property
    def ring_space(self) -> Space:
        return self.global_space or self.space

    def ring(self) -> bytes:
        """The ring's commands, head to tail, in order."""
        if self.tail >= self.head:
            return self.ring_space.read(self.batch + self.head, self.tail - self.head)
        return self.ring_space.read(self.batch + self.head, self.size - self.head) + self.ring_space.read(self.batch, self.tail)


@dataclass(frozen=True)
class Expectation:
    """Required contents of memory or a register at a point of the trace."""

    kind: Literal["memory", "register"]
    address: int  # or the register's offset
    expected: Data
    space: Space | None = None  # memory only
    mask: int | None = None  # registers: the bits that count
    equal: bool = True  # False: the contents must differ
    after: int = -1  # sequence of the last work before it; -1: none yet
    where: str = ""  # file and place

    def check(self) -> str:
        """'' where memory holds the expected bytes, otherwise the difference. Registers are compared by replay.py."""
        if self.space is None:
            return ""
        for start in range(0, len(self.expected), CHUNK):
            expected = self.expected.read(start, CHUNK)
            try:
                found = self.space.read(self.address + start, len(expected))
            except GpuFault as fault:
                return f"{self.where}: {fault}"
            if found != expected:
                first = next(i for i, (a, b) in enumerate(zip(found, expected, strict=True)) if a != b)
                wrong = f"{self.where}: at {self.address + start + first:#x} expected {expected[first]:#04x}, found {found[first]:#04x}"
                return wrong if self.equal else ""
        return "" if self.equal else f"{self.where}: {self.address:#x} holds what it must not hold"


CHUNK = 1 << 20


class Data(Protocol):
    """Bytes that may still be in a file."""

    def __len__(self) -> int: ...
    def read(self, start: int = 0, size: int | None = None) -> bytes: ...


class WorkTrace(Protocol):
    """A device, and its work and expectations in order."""

    name: str
    device: Device
    notes: list[str]  # what is odd, in plain words; complete when all events have been seen
    expectations: list[Expectation]  # those passed so far, in order

    def events(self) -> Iterator[Work | Expectation]:
        """Work and expectations in order; each call starts from the beginning."""
        ...

    def work(self) -> Iterator[Work]:
        """The submissions among the events."""
        ...


class Events:
    """Base class of traces: `work`, notes without duplicates, the list of expectations."""

    def __init__(self, name: str, device: Device) -> None:
        self.name, self.device = name, device
        self.notes: list[str] = []
        self.expectations: list[Expectation] = []

    def note(self, text: str) -> None:
        if text not in self.notes:
            self.notes.append(text)

    def events(self) -> Iterator[Work | Expectation]:
        raise NotImplementedError

    def work(self) -> Iterator[Work]:
        for event in self.events():
            if isinstance(event, Work):
                yield event
