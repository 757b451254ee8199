"""Trees of threads: root threads that spawn children, synchronised roots, and the queues of the thread spawner (G45 9155-9320).

    VideoFrontEndTree(cs, state, context, roots).run()      # vfe/trees.py; FrontEndTree of children.py from Gen7 on

Threads run in turns on the reference engine, one after another on one host thread: a thread whose gateway is open may find its registers
changed between any two of its instructions, and one that polls them starves no other. The child queue takes eight messages; who sends one
more waits until there is room. If nothing can go on, that is an error which says what waits, and not a hang.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from softgen.bits import catalogue
from softgen.bits.record import Record
from softgen.bits.units import GRF_BYTES, GRF_COUNT
from softgen.command import CommandStreamer
from softgen.errors import DecodeError, SoftgenError
from softgen.eu.interpreter import Interpreter, KernelProgram, RunOutcome
from softgen.eu.thread.state import ThreadState
from softgen.media.queued import CHANNELS, Interface, QueuedThread
from softgen.media.walk import BlockPosition
from softgen.shared_functions import units
from softgen.shared_functions.unit import GroupBindings, MessageHandler, handlers
from softgen.shared_functions.urb.memory import ROW, UrbMemory
from softgen.threads import places
from softgen.threads.bindings import dispatch_bindings
from softgen.threads.dispatch import DispatchContext, Scratch, ThreadDispatch
from softgen.threads.payload import PayloadList, SlotField, check_length, patched
from softgen.threads.programs import load
from softgen.threads.reference import TURN, start_thread

SLOTS = 50  # threads that run at the same time: ten execution units of five each on G45
QUEUE = 8  # messages that the child queue takes
NOTIFICATION = 0


class QueueFull(Exception):
    """A thread's message finds no room: it sends it again later."""


class SpawnMessage(NamedTuple):
    """A message in the child queue."""

    root: bool  # it releases a synchronised root thread
    fields: Record  # THREAD_SPAWN_PAYLOAD


class OpenGateway(NamedTuple):
    """Registers of a thread that others may write to."""

    first: int  # byte
    size: int
    key: int


EVERYTHING = OpenGateway(0, GRF_COUNT * GRF_BYTES, 0)


@dataclass(eq=False)
class LiveThread:
    """A thread that was dispatched."""

    runner: Interpreter
    dispatch: ThreadDispatch
    program: KernelProgram
    number: int  # among live threads: what sr0.0 has
    fftid: int | None  # of a root
    position: BlockPosition | None = None  # of a root
    gateway: OpenGateway | None = None
    released: bool = False  # it has sent the message that root threads end with

    @property
    def state(self) -> ThreadState:
        return self.runner.thread

    @property
    def place(self) -> str:
        return f"thread {self.number}, {places.instruction_at(self.program, self.state.ip)}"


class ThreadTreeRun:
    """Root threads of the queue and all that they spawn: a ThreadTree. Subclasses say what a child starts with."""

    bypass = False  # gateways are open for all, with any key

    def __init__(self, cs: CommandStreamer, context: DispatchContext, roots: Sequence[QueuedThread], most_roots: int, urb: UrbMemory,
                 scratch: Scratch | None, slots: tuple[SlotField, ...]) -> None:  # fmt: skip
        """`slots`: fields of r0 that tell live root threads apart."""
        self.cs, self.context, self.gen = cs, context, context.generation.number
        self.roots, self.children = deque(roots), deque[SpawnMessage]()
        self.live: list[LiveThread] = []
        self.taken: set[int] = set()  # handles of entries that no message has released
        self.fenced = False  # a persistent thread's fence: no root before a message spawns a thread
        self.most_roots, self.urb, self.scratch, self.slots = most_roots, urb, scratch, slots
        self._programs: dict[int, KernelProgram] = {}
        self._handlers: dict[Interface, tuple[ThreadDispatch, dict[int, MessageHandler]]] = {}

    def child(self, fields: Record, header: bytes) -> tuple[Interface, bytes]:
        """The interface of a child, and its constants, which come after r0. `fields`: THREAD_SPAWN_PAYLOAD."""
        raise NotImplementedError

    def run(self) -> None:
        """Until all threads have ended."""
        self.cs.memory_changed()
        while self.live or self.roots or self.children:
            moved = self._dispatch()
            for thread in list(self.live):
                moved |= self._turn(thread)
            if not moved:
                raise SoftgenError(self._deadlock())
            if self.cs.timed_out():
                raise places.timed_out(self.live[0].place if self.live else "while no thread ran")

    def _turn(self, thread: LiveThread) -> bool:
        """A turn of one thread; whether it did anything."""
        state, before = thread.state, thread.state.executed
        try:
            outcome = thread.runner.run(TURN)
        except QueueFull:
            outcome = RunOutcome.WAITING
        if outcome is RunOutcome.OUT_OF_BUDGET:
            self.cs.told(lambda: thread.place)
        self.cs.counters.instructions += state.executed - before
        if state.ended:
            self._ended(thread)
        return state.executed > before or state.ended

    def _ended(self, thread: LiveThread) -> None:
        self.live.remove(thread)
        self.cs.counters.threads += 1
        if thread.fftid is not None and not thread.released:
            self.cs.warn(f"{thread.program.title}: a root thread ended without its message to the thread spawner (G45 11883)")

    def _deadlock(self) -> str:
        synchronised = sum(root.synchronised for root in self.roots)
        spawns = sum(message.root for message in self.children)
        text = (f"deadlock: {len(self.live)} threads wait, {len(self.roots)} root threads are queued, {synchronised} of them synchronised, "
                f"{spawns} messages to spawn one, {len(self.taken)} entries of the URB are not released")  # fmt: skip
        return f"{text}; {self.live[0].place}" if self.live else text

    # -- dispatch ------------------------------------------------------------------------------------------------------------

    def _dispatch(self) -> bool:
        """Starts what can start, children first (G45 9260, 9271)."""
        before = len(self.live)
        while len(self.live) < SLOTS and (self._next_child() or self._next_root()):
            pass
        return len(self.live) > before

    def _next_child(self) -> bool:
        if not self.children:
            return False
        message = self.children[0]
        if not message.root:
            self.children.popleft()
            self._start_child(message.fields)
            return True
        if not (self.roots and self.roots[0].synchronised and self._root_fits()):
            return False
        self.children.popleft()
        self._start_root(self.roots.popleft(), self._spawned(message.fields, 0, int(message.fields.dispatch_urb_length)))
        return True

    def _next_root(self) -> bool:
        """The head of the root queue; while the child queue has a child, that one goes first."""
        if not self.roots or self.roots[0].synchronised or not self._root_fits():
            return False
        self._start_root(self.roots.popleft(), b"")
        return True

    def _root_fits(self) -> bool:
        live = sum(thread.fftid is not None for thread in self.live)
        if any(thread.position in self.roots[0].before for thread in self.live):
            return False
        return not self.fenced and live < self.most_roots and self.roots[0].handle not in self.taken

    def _start_root(self, root: QueuedThread, message: bytes) -> None:
        """Of a synchronised root the message's data comes before that of the front end (G45 11153)."""
        fftid = next(number for number in range(SLOTS) if all(thread.fftid != number for thread in self.live))
        payload = root.header + root.constants + message + root.data
        if root.children:  # else it is free as soon as the thread has its payload (G45 9180)
            self.taken.add(root.handle)
        self.fenced = root.fence
        self._start(root.interface, patched(payload, self.slots, fftid, None, 0), fftid, root.position)

    def _start_child(self, fields: Record) -> None:
        """r0 is what the URB has, then come constants, then the rest (G45 8528, 11924-11932)."""
        header = self._spawned(fields, 0, 1)
        kind, constants = self.child(fields, header)
        self._start(kind, header + constants + self._spawned(fields, 1, int(fields.dispatch_urb_length)), None)

    def _spawned(self, fields: Record, skip: int, count: int) -> bytes:
        """Registers of the URB that a message names, from the `skip`-th on."""
        start = int(fields.dispatch_urb_handle) * ROW + (int(fields.urb_handle_offset) + skip) * GRF_BYTES
        if start + count * GRF_BYTES > self.urb.size:
            raise DecodeError(f"a spawn message names {count} registers at {start:#x} of a URB of {self.urb.size:#x} bytes")
        return self.urb.bytes[start : start + count * GRF_BYTES].tobytes()

    def _start(self, kind: Interface, payload: bytes, fftid: int | None, position: BlockPosition | None = None) -> None:
        check_length(-(-len(payload) // GRF_BYTES), "media thread")
        dispatch, messages = self._environment(kind)
        if kind.kernel not in self._programs:
            self._programs[kind.kernel] = load(self.context, dispatch)
        program = self._programs[kind.kernel]
        state = start_thread(self.gen, dispatch, 0, 0, messages, self.context.elapsed)
        state.grf[: len(payload)] = np.frombuffer(payload, np.uint8)
        number = next(number for number in range(SLOTS) if all(thread.number != number for thread in self.live))
        state.dwords("sr")[0] = number
        self.live.append(LiveThread(Interpreter(state, program, text=places.text), dispatch, program, number, fftid, position))

    def _environment(self, kind: Interface) -> tuple[ThreadDispatch, dict[int, MessageHandler]]:
        """Threads with the same interface have the same surfaces and messages."""
        if kind not in self._handlers:
            dispatch = ThreadDispatch(
                kernel=kind.kernel, control=kind.control, simd=CHANNELS, threads=1, groups=1, payload=PayloadList((bytes(GRF_BYTES),)),
                binding_table=kind.binding_table, samplers=kind.samplers, scratch=self.scratch, barrier=False,
                system_routine=self.context.system_routine, unit_states=self.context.unit_states)  # fmt: skip
            bindings = dispatch_bindings(self.context, dispatch)
            bindings.warn = lambda sender, what: self.context.warn(what)
            messages = handlers([units.named(name) for name in dispatch.units], GroupBindings(bindings, tree=self))
            self._handlers[kind] = dispatch, messages
        return self._handlers[kind]

    # -- messages: ThreadTree ------------------------------------------------------------------------------------------------

    def _thread(self, sender: object) -> LiveThread:
        return next(thread for thread in self.live if thread.state is sender)

    def _fields(self, name: str, dwords: Sequence[int]) -> Record:
        return catalogue.layout(name, self.gen).raw(list(dwords))

    def dereference(self, sender: object, dwords: Sequence[int], root: bool, free: bool) -> None:
        """The end of a root thread, or the release of its entry; of a child thread nothing (G45 11904)."""
        if not root:
            return
        self._thread(sender).released = True
        handle = int(self._fields("THREAD_SPAWN_PAYLOAD", dwords).dispatch_urb_handle)
        if free and handle not in self.taken:
            self.cs.warn(f"URB handle {handle:#x} is released, but no thread holds it; it can be released once (G45 11900)")
        if free:
            self.taken.discard(handle)

    def spawn(self, sender: object, dwords: Sequence[int], root: bool) -> None:
        if len(self.children) >= QUEUE:
            raise QueueFull
        self.fenced = False
        self.children.append(SpawnMessage(root, self._fields("THREAD_SPAWN_PAYLOAD", dwords)))

    def open_gateway(self, sender: object, dwords: Sequence[int]) -> None:
        fields = self._fields("GATEWAY_OPEN_PAYLOAD", dwords)
        self._thread(sender).gateway = OpenGateway(int(fields.base_register) * GRF_BYTES, GRF_BYTES << int(fields.size), int(fields.key))

    def close_gateway(self, sender: object) -> None:
        self._thread(sender).gateway = None

    def forward(self, sender: object, dwords: Sequence[int], notify: bool) -> None:
        """Writes into the registers that another thread has opened, and notifies it."""
        fields = self._fields("GATEWAY_FORWARD_PAYLOAD", dwords)
        target = next((thread for thread in self.live if thread.number == fields.target), None)
        gateway = target.gateway if target is not None else None
        size, at = 1 << int(fields.length), int(fields.byte_offset)
        if target is not None and self.bypass:
            gateway = EVERYTHING
        if target is None or gateway is None or gateway.key != fields.key and not self.bypass:
            self.cs.warn(f"a message to thread {fields.target}, whose gateway is not open for key {fields.key:#x}, is dropped")
            return
        if at + size > gateway.size or gateway.first + at + size > len(target.state.grf) or size > 16:
            self.cs.warn(f"{size} bytes at {at:#x} of a gateway of {gateway.size:#x} bytes are dropped")
            return
        data = int(fields.data).to_bytes(16, "little")[:size]
        target.state.grf[gateway.first + at : gateway.first + at + size] = np.frombuffer(data, np.uint8)
        if notify:
            target.state.dwords("n")[NOTIFICATION] += 1
