"""Variables: registers, masks, messages and places of a thread, as scopes of the Debug Adapter Protocol."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from softgen.eu.isa import registers as architecture
from softgen.inspect import registers
from softgen.inspect.session.thread import ThreadCursor
from softgen.shared_functions import descriptors

Row = dict[str, Any]
LANES = 64  # that a value lists


class Variables:
    """The variables of a thread, numbered anew at every stop."""

    def __init__(self, cursor: ThreadCursor, named: Mapping[str, tuple[int | float, ...]] | None = None, base: int = 1) -> None:
        self.cursor, self.named = cursor, named or {}  # lanes of variables of the source
        self._makers: list[Callable[[], Iterator[Row]]] = []
        self._base = base

    def scopes(self) -> list[Row]:
        """What an editor shows of the frame."""
        makers = {"Registers": self._registers, "Flags and masks": self._masks, "Message": self._message, "Thread": self._thread}
        if self.named:
            makers = {"Variables": self._named, **makers}
        return [{"name": name, "variablesReference": self._number(make), "expensive": False} for name, make in makers.items()]

    def of(self, number: int) -> list[Row]:
        """The variables behind a number; none where it is of an earlier stop."""
        at = number - self._base
        return list(self._makers[at]()) if 0 <= at < len(self._makers) else []

    def _number(self, make: Callable[[], Iterator[Row]]) -> int:
        self._makers.append(make)
        return self._base + len(self._makers) - 1

    def _row(self, name: str, value: object, expand: Callable[[], Iterator[Row]] | None = None) -> Row:
        return {"name": name, "value": str(value), "variablesReference": self._number(expand) if expand is not None else 0}

    def lanes(self, name: str, values: tuple[int | float, ...]) -> Row:
        """A register with its elements."""
        text = " ".join(f"{value:g}" if isinstance(value, float) else str(value) for value in values[:LANES])
        return self._row(name, text, lambda: (self._row(f"[{lane}]", value) for lane, value in enumerate(values)))

    def _named(self) -> Iterator[Row]:
        yield from (self.lanes(name, values) for name, values in self.named.items())

    def _registers(self) -> Iterator[Row]:
        """General registers that are not zero, with the types they were written with."""
        snapshot = registers.snapshot(self.cursor.runner.thread)
        for place in ("grf", "mrf", "a", "acc"):
            data = snapshot.get(place, b"")
            at = 0
            while at < len(data):
                row = registers.register_at(place, at, self.cursor.gen)
                if any(data[row.start : row.start + row.size]):
                    for lanes in self.cursor.kinds.lanes(row, snapshot, snapshot):
                        yield self.lanes(lanes.name, lanes.after)
                at = row.start + row.size

    def _masks(self) -> Iterator[Row]:
        thread = self.cursor.runner.thread
        yield self._row("active channels", f"{thread.active:#x}")
        yield self._row("dispatch mask", f"{thread.dispatch_mask:#x}")
        if thread.rules.flow == "stack":
            yield from (self._row(name, f"{getattr(thread.masks, name):#x}") for name in ("imask", "lmask", "cmask"))
        for name, data in sorted(self.cursor.snapshot().items()):
            if name.rstrip("0123456789") in ("f", "cr", "sr", "n") and architecture.register(name.rstrip("0123456789"), self.cursor.gen):
                yield self._row(name, " ".join(f"{int.from_bytes(data[at : at + 4], 'little'):#010x}" for at in range(0, len(data), 4)))

    def _message(self) -> Iterator[Row]:
        """What a send is about to say."""
        inst = self.cursor.instruction
        bits = inst.descriptor if inst is not None and isinstance(inst.descriptor, int) else None
        found = descriptors.identify(inst.sfid, bits, inst.gen) if inst is not None and bits is not None else None
        if inst is None or found is None:
            return
        yield self._row("message", f"{found.function} {found.name}")
        yield self._row("descriptor", f"{bits:#x}")
        for source in inst.sources:
            if source.file == "grf" and not source.indirect:
                yield self.lanes(f"r{source.number}:ud", self.cursor.lanes(f"r{source.number}:ud"))

    def _thread(self) -> Iterator[Row]:
        yield self._row("position", self.cursor.position)
        yield self._row("simd", self.cursor.offered.dispatch.simd)
        pixels = self.cursor.pixels()
        for lane, pixel in enumerate(pixels):
            if pixel is not None:
                yield self._row(f"pixel of lane {lane}", f"{pixel[0]}, {pixel[1]}")
