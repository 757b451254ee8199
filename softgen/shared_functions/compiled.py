"""The code of one message inside a kernel: what compiled environments of units are written with.

Before a message touches graphics memory its instruction's ip goes into the guard's record and a note of its lanes into the context;
access_fault.py reads them after a fault.
"""

from __future__ import annotations

from collections.abc import Callable

from softgen.bits.generation import generation
from softgen.lanes.code_machine import CodeMachine, HostPointer, Scalar
from softgen.lanes.record import RecordLayout
from softgen.lanes.types import u64
from softgen.lanes.value import Value


def _no_branch() -> None:
    """Nothing to do."""


class MessageCode:
    """A send being compiled.

    `ip` is its address. `escape` is a side exit to the interpreter where a lane of truth does not hold, before the message has had any
    effect. `layout` is that of the context; `indices` collects the binding table entries that the message names; `before_branch` is called
    where the code branches, with a side exit on one branch only. `pixel_at`: where a thread's block has its PixelDispatch.
    `loaded` are pointers of the context that a kernel loads once, by name. `resolved`: a surface index that is a value is known to whoever
    runs the code, and was resolved before, as one that code names is; `indices` then has what is needed of entry 0.
    """

    def __init__(self, m: CodeMachine, gen: float, ip: Scalar, escape: Callable[[Value], None], layout: RecordLayout,
                 indices: set[int] | None = None, before_branch: Callable[[], None] = _no_branch, pixel_at: int = 0,
                 loaded: frozenset[str] = frozenset(), resolved: bool = False) -> None:  # fmt: skip
        self.m, self.gen, self.ip, self.escape, self.layout = m, gen, ip, escape, layout
        self.indices: set[int] = set() if indices is None else indices
        self.before_branch, self.pixel_at, self.loaded, self.resolved = before_branch, pixel_at, loaded, resolved
        self.address_bits = generation(gen).address_bits

    def named(self, index: object) -> int | None:
        """The binding table entry by which a message's index is named in `indices`, if it is."""
        return index if isinstance(index, int) else 0 if self.resolved else None

    @property
    def context(self) -> HostPointer:
        return self.m.pointer("context")

    def pixel(self) -> HostPointer:
        """The thread's PixelDispatch."""
        return self.m.pointer("block").at(self.pixel_at)

    def field(self, name: str) -> Scalar:
        """A context field. None changes while a function runs."""
        return self.context.field(self.layout, name).load(u64, invariant=True)

    def pointer(self, name: str, dereferenceable: int = 0) -> HostPointer:
        """A context field that points at `dereferenceable` bytes."""
        if name in self.loaded:
            return self.m.pointer(name)
        return self.context.field(self.layout, name).load_pointer(invariant=True, dereferenceable=dereferenceable)

    @property
    def note(self) -> HostPointer:
        """Where accesses leave a note of their lanes."""
        return self.context.field(self.layout, "mask")

    def announce(self) -> HostPointer:
        """Record which instruction is about to touch memory; returns the place of the note."""
        self.pointer("record").store(self.ip)
        return self.note
