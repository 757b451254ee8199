"""What the lane programs of URB messages need of their environment, and what gives it to them on both machines."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np

from softgen.errors import Unsupported
from softgen.lanes.machine import Machine
from softgen.lanes.numpy.machine import NumpyMachine
from softgen.lanes.types import u64
from softgen.lanes.value import Memory, Region, Value
from softgen.shared_functions.compiled import MessageCode
from softgen.shared_functions.dataport.target import LocalMemory
from softgen.shared_functions.descriptors import Descriptor
from softgen.shared_functions.message import SentBytes
from softgen.shared_functions.unit import DispatchBindings, GroupBindings
from softgen.shared_functions.urb.memory import ROW, UrbMemory
from softgen.surface.image import SurfaceImage

_MACHINE = NumpyMachine()
_NONE = UrbMemory(np.zeros(0, np.uint8))


class UrbEnvironment(Protocol):
    """A URB and its entry records."""

    def reach(self, starts: Value, size: int, mask: Value) -> Memory:
        """The URB, for accesses to `size` bytes from each start in a mask on (u64). Outside it, reads give 0 and writes are dropped."""
        ...

    def entries(self, m: Machine, handle: Value) -> Value:
        """The address of the entry records (one lane of u64); 0 if there are none, or none for the handle."""
        ...

    def pools(self, m: Machine) -> Value: ...

    def require(self, condition: Value) -> None:
        """The thread may allocate an entry if the condition (one lane) holds, else it is an error."""
        ...


class UrbBinding:
    """The URB of a dispatch: a UnitBinding, which the interpreter uses too."""

    def __init__(self, dispatch: DispatchBindings) -> None:
        held = dispatch.unit_states.get("urb", _NONE)
        assert isinstance(held, UrbMemory)
        self.dispatch, self.memory = dispatch, held
        self.reported = False  # an access outside

    def fields(self) -> dict[str, int]:
        entries, pools = self.memory.entries, self.memory.pools
        return {"urb": self.memory.address, "urb_size": self.memory.size, "urb_entries": 0 if entries is None else int(entries.ctypes.data),
                "urb_pools": 0 if pools is None else int(pools.ctypes.data)}  # fmt: skip

    def prepare(self, indices: frozenset[int], hurry: bool = False) -> None:
        """Nothing to resolve."""

    def resolve(self, descriptor: Descriptor, sent: SentBytes | None = None) -> bool:
        return False

    def renew(self) -> None:
        self.reported = False

    def replaced(self, index: int) -> Callable[[], None] | None:
        return self.renew

    def renumbered(self, index: int, image: SurfaceImage) -> Callable[[], None] | None:
        return self.renew


class Urb:
    """A UrbEnvironment on the interpreter."""

    def __init__(self, group: GroupBindings) -> None:
        self.bound = group.dispatch.state(UrbBinding)
        self.target = LocalMemory(self.bound.memory.bytes)
        self.target.name = "URB"
        self.sender: object = None

    def begin(self, sender: object) -> None:
        self.sender = sender

    def reach(self, starts: Value, size: int, mask: Value) -> Memory:
        held = self.bound.memory
        if not held.size:
            raise Unsupported("a URB message of a thread whose dispatch has no URB")
        outside = np.flatnonzero(mask.payload & (starts.payload + np.uint64(size) > held.size))
        if len(outside) and not self.bound.reported:
            self.bound.reported = True
            where = f"offset {int(starts.payload[outside[0]]):#x}, {size} bytes, of a URB of {held.size:#x} bytes (slot {outside[0]})"
            self.bound.dispatch.warn(self.sender, f"out of bounds: URB access at {where}")
        return Region(_MACHINE, self.target, self.target.name)

    def entries(self, m: Machine, handle: Value) -> Value:
        held = self.bound.memory
        inside = int(handle.payload[0]) * ROW < held.size and held.entries is not None
        return m.constant(u64, self.bound.fields()["urb_entries"] if inside else 0, 1)

    def pools(self, m: Machine) -> Value:
        return m.constant(u64, self.bound.fields()["urb_pools"], 1)

    def require(self, condition: Value) -> None:
        if not condition:
            why = "the stage's URB pool is used up" if self.bound.memory.pools is not None else "its dispatch has no URB pool"
            raise Unsupported(f"a thread allocates a URB entry, but {why}")


class CompiledUrb:
    """A UrbEnvironment in compiled code. What lies outside is left to the interpreter, so that accesses need no checks."""

    def __init__(self, code: MessageCode) -> None:
        self.code = code

    def reach(self, starts: Value, size: int, mask: Value) -> Memory:
        code, m = self.code, self.code.m
        limit = code.field("urb_size").lane()
        code.escape(~m.any(mask & (starts + size > m.broadcast(limit, starts.lanes))))
        return code.pointer("urb").memory("URB")

    def entries(self, m: Machine, handle: Value) -> Value:
        code = self.code
        inside = m.convert(handle, u64) * ROW < code.field("urb_size").lane()
        return m.select(inside, code.field("urb_entries").lane(), m.constant(u64, 0, 1))

    def pools(self, m: Machine) -> Value:
        return self.code.field("urb_pools").lane()

    def require(self, condition: Value) -> None:
        self.code.escape(condition)
