"""What an instruction changed, to take it back: the thread's block, its masks, and memory that messages wrote."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from softgen.eu.interpreter import Interpreter
from softgen.eu.thread.state import MaskStacks
from softgen.memory.space import Space


@dataclass(frozen=True)
class Write:
    """Bytes of memory before and after a write."""

    address: int
    before: bytes
    after: bytes


@dataclass
class Undo:
    """The state of a thread before an instruction, and what the instruction wrote to memory."""

    runner: Interpreter
    ip: int
    block: np.ndarray[Any, np.dtype[np.uint8]]
    masks: MaskStacks
    channel_ip: list[int]
    waiting: int | None
    writes: list[Write] = field(default_factory=list)
    local: bytes | None = None  # shared local memory, if the instruction is a message

    @classmethod
    def of(cls, runner: Interpreter, local: np.ndarray[Any, np.dtype[np.uint8]] | None) -> Undo:
        thread = runner.thread
        return cls(runner, thread.ip, thread.block.copy(), copy.deepcopy(thread.masks), list(thread.channel_ip), thread.waiting,
                   local=local.tobytes() if local is not None and len(local) else None)  # fmt: skip

    def take_back(self, space: Space, local: np.ndarray[Any, np.dtype[np.uint8]] | None) -> None:
        """Restore everything."""
        thread = self.runner.thread
        executed = thread.executed - 1
        thread.block[:] = self.block
        thread.masks, thread.channel_ip, thread.waiting = copy.deepcopy(self.masks), list(self.channel_ip), self.waiting
        thread.ip, thread.executed, thread.ended = self.ip, executed, False
        for write in reversed(self.writes):
            space.write(write.address, write.before)
        if self.local is not None and local is not None:
            local[:] = np.frombuffer(self.local, np.uint8)


class WriteLog:
    """Records writes to a space, while it is open."""

    def __init__(self, space: Space) -> None:
        self.space, self.writes = space, list[Write]()
        self._write: Callable[[int, bytes], None] = space.write

    def __enter__(self) -> WriteLog:
        self.space.write = self._logged  # type: ignore[method-assign]
        return self

    def __exit__(self, *_: object) -> None:
        del self.space.__dict__["write"]

    def _logged(self, address: int, data: bytes) -> None:
        data = bytes(data)
        before = self.space.read(address, len(data)) if data else b""
        self._write(address, data)
        if data:
            self.writes.append(Write(address, before, data))
