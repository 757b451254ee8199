"""Units: a shared function declared once, for all engines.

    UNIT = Unit(
        name="sampler",
        functions=("sampler",),                 # of enum SHARED_FUNCTION, as messages.table names them
        interpreter=sampler,                    # GroupBindings -> the environment of its messages on the NumPy machine
        compiled=compiled,                      # MessageCode -> their environment in compiled code
        fields=(ContextField("surfaces", Scope.DISPATCH),),     # what compiled code reads of the context
        bind=bind_surfaces,                     # DispatchBindings -> what these fields point to (UnitBinding)
    )

`compiled` and `bind` import what writes code when they are called: the interpreter needs none of it.
A new unit is a folder with lane programs (`@answers`), an environment for each machine, and such a declaration, and a line in units.py.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar, runtime_checkable

import numpy as np
import numpy.typing as npt

from softgen.bits import catalogue
from softgen.bits.generation import Generation
from softgen.errors import SoftgenError
from softgen.memory.read_set import ENDLESS, ReadPointer, ReadRange, ReadSet
from softgen.memory.space import Space
from softgen.shared_functions import descriptors
from softgen.shared_functions.context import ContextField
from softgen.shared_functions.descriptors import Descriptor
from softgen.shared_functions.message import SentBytes, answer

if TYPE_CHECKING:
    from softgen.shared_functions.compiled import MessageCode
    from softgen.shared_functions.dataport.watched import AccessWatch
    from softgen.surface.image import SurfaceImage

T = TypeVar("T")
Bytes = npt.NDArray[np.uint8]
TABLES_END = "binding_table_end"  # among bases: where the pool of binding tables ends
ENTRY = 4  # bytes of a binding table entry
NEVER = -1  # in place of a count of changes
UnitStates = tuple[tuple[str, Hashable], ...]  # by a unit's name: what the pipeline tells it about a dispatch


class StateBase(IntEnum):
    """Bases of what a dispatch's bindings were resolved from."""

    ADDRESS, SAMPLER_TABLE, SAMPLER, BLEND, SURFACE, TABLE = range(6)


class ResolvedState:
    """State that a dispatch's bindings were resolved from: compared with memory before another dispatch uses them."""

    def __init__(self) -> None:
        self.entries: dict[int, bytes] = {}  # of the binding table, by index
        self.surfaces: dict[int, tuple[int, bytes]] = {}  # address and bytes of the surface states that they lead to, by index
        self.states: dict[tuple[int, int], bytes] = {}  # other bytes, by address and size
        self.samplers: dict[int, bytes] = {}  # of the sampler table, by offset in it
        self.behind: dict[int, bytes] = {}  # border colours and samplers of other tables, by offset from the sampler base
        self.sampler_base = 0  # that their offsets count from
        self.blend: dict[tuple[int, int], bytes] = {}  # entries of the blend state, by address and size, where unit states say it is
        self.hosts: dict[int, HostRange] = {}  # buffers that compiled code reaches by host address, by index
        self.hosts_at = NEVER  # changes of the space when they were last looked up
        self.volatile = False  # something could not be read: keep nothing
        self.reads: dict[bool, ReadSet] = {}  # all of that, with the binding table and without; made when it is compared


class HostRange(NamedTuple):
    """A buffer, and where compiled code finds it; its first bytes are mapped for certain (`mapped`)."""

    address: int
    size: int
    host: int
    mapped: int

    def holds(self, space: Space) -> bool:
        """Whether it is still there, and mapped as it was."""
        return space.contiguous(self.address, self.size) == self.host and space.mapped(self.address, self.size) == self.mapped


class DispatchBindings:
    """What a dispatch binds: generation, address space, base addresses and state tables. Units keep their states of a dispatch here."""

    def __init__(self, generation: Generation, space: Space, bases: Mapping[str, int], binding_table: int = 0, samplers: int = 0,
                 unit_states: UnitStates = ()) -> None:  # fmt: skip
        self.unit_states = dict(unit_states)
        self.generation, self.space, self.bases = generation, space, bases
        self.binding_table, self.samplers = binding_table, samplers  # offsets from the surface and dynamic state bases
        self.warn: Callable[[object, str], None] = lambda sender, what: None  # reports what a thread's message did wrong
        self.blend_moved = 0  # bytes that the blend state has moved by since unit states were made
        self.resolved = ResolvedState()
        self._states: dict[object, Any] = {}

    def table_address(self, index: int) -> int:
        """Where a binding table entry is."""
        return self.bases.get("surface", 0) + self.binding_table + 4 * index & (1 << self.space.bits) - 1

    def current(self) -> bool:
        """Whether all state that was resolved is as it was."""
        return self.follow_table(self.binding_table)

    def follow_table(self, table: int) -> bool:
        """Whether the binding table at an offset means the surfaces that were resolved, and all other state is as it was; if so, the
        table is there from now on. Drivers write tables and surface state anew for each dispatch."""
        resolved = self.resolved
        if resolved.volatile:
            return False
        if resolved.entries and not self._same(table) or not self._others_current(not resolved.entries):
            return False
        if resolved.entries:
            self._take_moved(table)
        self.binding_table = table
        return True

    def rest_current(self) -> bool:
        """Whether all but the surfaces is as it was."""
        resolved = self.resolved
        if resolved.volatile:
            return False
        if not (resolved.states or resolved.samplers or resolved.behind or resolved.blend) and resolved.hosts_at == self.space.changes:
            return True
        return self._others_current(True)

    def _same(self, table: int, tables: bool = True) -> bool:
        """Whether memory is as it was, with the binding table at an offset, or (`tables`) without it."""
        reads = self.resolved.reads.get(tables)
        if reads is None:
            reads = self.resolved.reads[tables] = self._reads(tables)
        surface, sampler = self.bases.get("surface", 0), self.resolved.sampler_base
        bases = 0, sampler + self.samplers, sampler, self.blend_moved, surface, surface + table
        return reads.same(self.space, bases, self.bases.get(TABLES_END, ENDLESS))

    def _reads(self, tables: bool) -> ReadSet:
        held, mask = self.resolved, pointer_bits(self.generation.number)
        ranges = [*(ReadRange(StateBase.ADDRESS, address, data) for (address, _), data in held.states.items()),
                  *(ReadRange(StateBase.SAMPLER_TABLE, offset, data) for offset, data in held.samplers.items()),
                  *(ReadRange(StateBase.SAMPLER, offset, data) for offset, data in held.behind.items()),
                  *(ReadRange(StateBase.BLEND, address, data) for (address, _), data in held.blend.items())]  # fmt: skip
        if not tables:
            return ReadSet(ranges, len(StateBase))
        surfaces = enumerate(held.surfaces.values(), len(StateBase))
        ranges += [ReadRange(number, 0, state) for number, (_, state) in surfaces]
        pointers = [ReadPointer(StateBase.TABLE, ENTRY * index, StateBase.SURFACE, mask) for index in held.surfaces]
        return ReadSet(ranges, len(StateBase), pointers)

    def _take_moved(self, table: int) -> None:
        """After the comparison: where the surface states are now, with the table at an offset."""
        held, bases = self.resolved, self.resolved.reads[True].bases
        for number, (index, (address, state)) in enumerate(held.surfaces.items(), len(StateBase)):
            if bases[number] != address:
                at = bases[StateBase.SURFACE] + table + ENTRY * index & (1 << self.space.bits) - 1
                held.entries[index], held.surfaces[index] = self.space.read(at, ENTRY), (bases[number], state)

    def _pointer(self, entry: bytes, table: int, index: int) -> int:
        """Where a binding table entry leads to, from the surface state base on; one past the end of the pool of tables reads as 0."""
        if TABLES_END in self.bases and self.bases.get("surface", 0) + table + ENTRY * index + ENTRY > self.bases[TABLES_END]:
            return 0
        return int.from_bytes(entry, "little") & pointer_bits(self.generation.number)

    def _others_current(self, states: bool) -> bool:
        """Whether buffers are mapped as they were, and (`states`) what was read besides the binding table and its surfaces is the same."""
        resolved, space = self.resolved, self.space
        if states and (resolved.states or resolved.samplers or resolved.behind or resolved.blend) and not self._same(0, False):
            return False
        changes = space.changes
        if changes == resolved.hosts_at:
            return True
        try:
            if not all(held.holds(space) for held in resolved.hosts.values()):
                return False
        except SoftgenError:
            return False
        resolved.hosts_at = NEVER if changes is None else changes
        return True

    def depend(self, address: int, size: int) -> bytes:
        """Reads state that a binding is made from."""
        self.resolved.reads.clear()
        address &= (1 << self.space.bits) - 1
        try:
            data = self.resolved.states[address, size] = self.space.read(address, size)
        except SoftgenError:
            self.resolved.volatile = True
            return b""
        return data

    def depend_on_surface(self, index: int, size: int) -> None:
        """Read the surface state of a binding table entry, and depend on it."""
        self.resolved.reads.clear()
        try:
            entry = self.resolved.entries[index] = self.space.read(self.table_address(index), ENTRY)
            address = self.bases.get("surface", 0) + self._pointer(entry, self.binding_table, index) & (1 << self.space.bits) - 1
            self.resolved.surfaces[index] = address, self.space.read(address, size)
        except SoftgenError:
            self.resolved.volatile = True

    def sampler_address(self, offset: int) -> int:
        """Where the sampler state at an offset in the table is."""
        return self.resolved.sampler_base + self.samplers + offset & (1 << self.space.bits) - 1

    def depend_on_sampler(self, base: int, offset: int, size: int) -> bytes:
        """Read a sampler state that a binding is made from, by its offset in the table, which counts from `base`."""
        self.resolved.reads.clear()
        self.resolved.sampler_base = base
        try:
            data = self.resolved.samplers[offset] = self.space.read(self.sampler_address(offset), size)
        except SoftgenError:
            self.resolved.volatile = True
            return b""
        return data

    def behind_address(self, offset: int) -> int:
        """Where state at an offset from the sampler base is."""
        return self.resolved.sampler_base + offset & (1 << self.space.bits) - 1

    def depend_behind(self, base: int, offset: int, size: int) -> bytes:
        """Read a border colour, or a sampler of another table, that a binding is made from, by its offset from the sampler base."""
        self.resolved.reads.clear()
        self.resolved.sampler_base = base
        try:
            data = self.resolved.behind[offset] = self.space.read(self.behind_address(offset), size)
        except SoftgenError:
            self.resolved.volatile = True
            return b""
        return data

    def depend_on_blend(self, address: int, size: int) -> None:
        """Depend on an entry of the blend state, by its address as unit states have it."""
        self.resolved.reads.clear()
        try:
            self.resolved.blend[address, size] = self.space.read(address + self.blend_moved, size)
        except SoftgenError:
            self.resolved.volatile = True

    def state(self, make: Callable[[DispatchBindings], T]) -> T:
        """What a unit's function makes of the dispatch, made on first use and shared by all threads."""
        if make not in self._states:
            self._states[make] = make(self)
        found: T = self._states[make]
        return found


@cache
def pointer_bits(gen: float) -> int:
    """The bits of a binding table entry that are its pointer, which stands in place."""
    return catalogue.layout("BINDING_TABLE_STATE", gen).field("surface_state_pointer").mask


def _no_barrier() -> None:
    """No thread waits."""


class ThreadTree(Protocol):
    """Threads that spawn threads and write into each other's registers: what the thread spawner and the message gateway do for them.
    `sender` is the ThreadState that sends, `dwords` the first register of the message."""

    def dereference(self, sender: Any, dwords: Sequence[int], root: bool, free: bool) -> None: ...

    def spawn(self, sender: Any, dwords: Sequence[int], root: bool) -> None: ...

    def open_gateway(self, sender: Any, dwords: Sequence[int]) -> None: ...

    def close_gateway(self, sender: Any) -> None: ...

    def forward(self, sender: Any, dwords: Sequence[int], notify: bool) -> None: ...


@dataclass
class GroupBindings:
    """What a thread group has of its own: local memory, a barrier that `notify` opens when `threads` threads have arrived, or a tree.
    `watch` is called with the accesses of its threads to memory, on the interpreter."""

    dispatch: DispatchBindings
    local: Bytes = field(default_factory=lambda: np.zeros(0, np.uint8))
    threads: int = 1
    notify: Callable[[], None] = _no_barrier
    watch: AccessWatch | None = None
    tree: ThreadTree | None = None  # of threads that may spawn others


class InterpreterEnvironment(Protocol):
    """The environment of a unit's messages on the interpreter; what else it has is between the unit and its lane programs."""

    def begin(self, sender: object) -> None:
        """A thread's message is about to be executed."""
        ...


class UnitBinding(Protocol):
    """What a unit has resolved of a dispatch's state for compiled code; kept for later dispatches with the same tables."""

    def fields(self) -> dict[str, int]:
        """The values of the unit's dispatch-scoped context fields."""
        ...

    def prepare(self, indices: frozenset[int], hurry: bool = False) -> None:
        """Resolve binding table entries that code names, before it runs. `hurry`: what can be compiled for them is."""
        ...

    def resolve(self, descriptor: Descriptor, sent: SentBytes | None = None) -> bool:
        """Resolve what a message lacked, after a side exit; True if compiled code can now execute it. `sent`: with its payload, as far as
        that is in registers."""
        ...

    def renew(self) -> None:
        """Another dispatch begins with the same state."""
        ...

    def renumbered(self, index: int, image: SurfaceImage) -> Callable[[], None] | None:
        """Variant of `replaced` for a plain image that differs from the one before in numbers only (surface/resized.py)."""
        ...

    def replaced(self, index: int) -> Callable[[], None] | None:
        """A binding table entry leads to another surface state now: what takes over its numbers, if the code that was made for the one
        before is right for it. None: it is not, and nothing has changed."""
        ...


@runtime_checkable
class SamplerBinding(Protocol):
    """A UnitBinding that has resolved sampler states."""

    def move_samplers(self, offset: int) -> None:
        """The sampler table is elsewhere; what was resolved of it is the same there."""
        ...

    def sampler_keys(self) -> list[tuple[int, int]]:
        """Addresses of what compiled code compares with sampler tables of messages, and the values."""
        ...


@dataclass(frozen=True)
class Unit:
    """A shared function: whose messages it answers, their environments, its context fields, and what these point to.

    `messages` are names of messages that it answers, of functions that are another unit's otherwise.
    """

    name: str
    functions: tuple[str, ...]
    interpreter: Callable[[GroupBindings], InterpreterEnvironment]
    compiled: Callable[[MessageCode], object]
    fields: tuple[ContextField, ...] = ()
    bind: Callable[[DispatchBindings], UnitBinding] | None = None
    messages: tuple[str, ...] = ()
    indexed: bool = False  # compiled messages take surface and sampler index from registers, too (Message.surface_index)


class MessageHandler:
    """Answers the messages of one shared function on the interpreter; `others` are the environments of messages that other units answer."""

    def __init__(self, gen: float, environment: InterpreterEnvironment, others: Mapping[str, InterpreterEnvironment] | None = None) -> None:
        self.gen, self.environment, self.others = gen, environment, others or {}

    def __call__(self, sender: object, sent: SentBytes) -> None:
        environment = self.environment
        if self.others:
            found = descriptors.identify(sent.sfid, sent.descriptor, self.gen)
            environment = self.others.get(found.name, environment) if found else environment
        environment.begin(sender)
        answer(sent, self.gen, environment)


def handlers(units: Iterable[Unit], group: GroupBindings) -> dict[int, MessageHandler]:
    """For the message table of a group's threads: a handler for each shared function number."""
    gen = group.dispatch.generation.number
    numbers = {name: sfid for sfid, name in descriptors.shared_functions(gen).items()}
    environments = [(unit, unit.interpreter(group)) for unit in units]
    others = {name: environment for unit, environment in environments for name in unit.messages}
    found: dict[int, MessageHandler] = {}
    for unit, environment in environments:
        handler = MessageHandler(gen, environment, others)
        found |= {numbers[name]: handler for name in unit.functions if name in numbers}
    return found
