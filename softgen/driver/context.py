"""Hardware contexts and their address spaces (VMs), and the ioctls on them.

Addresses are decided when work is submitted (a relocation needs them) and buffers are mapped when it runs: until then an earlier
submission may still use the addresses for something else.
"""

from __future__ import annotations

import errno
import itertools
import threading
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import TYPE_CHECKING

from softgen.driver import i915_drm as i915
from softgen.driver.fence import Fence
from softgen.driver.gem import GemObject, extensions
from softgen.driver.placement import PAGE, Placement
from softgen.driver.protocol import Call, Errno
from softgen.driver.uapi import CONTEXT_PARAM, ENGINE, ENGINE_CLASSES, LOAD_BALANCE, SSEU
from softgen.memory.address_space import AddressSpace

if TYPE_CHECKING:
    from softgen.driver.node import Node, Shared

HIGHEST = 0xFFF0_0000  # unless pinned, addresses fit 32 bits
POLL = 0.002  # seconds
RINGS = {
    i915.I915_EXEC_DEFAULT: "rcs0", i915.I915_EXEC_RENDER: "rcs0", i915.I915_EXEC_BSD: "vcs0", i915.I915_EXEC_BLT: "bcs0",
    i915.I915_EXEC_VEBOX: "vecs0",
}  # fmt: skip
PRIORITY, VM, ENGINES = i915.I915_CONTEXT_PARAM_PRIORITY, i915.I915_CONTEXT_PARAM_VM, i915.I915_CONTEXT_PARAM_ENGINES
SSEU_PARAM, RINGSIZE = i915.I915_CONTEXT_PARAM_SSEU, i915.I915_CONTEXT_PARAM_RINGSIZE
PROTECTED_CONTENT, GTT_SIZE = i915.I915_CONTEXT_PARAM_PROTECTED_CONTENT, i915.I915_CONTEXT_PARAM_GTT_SIZE
KEPT = {
    i915.I915_CONTEXT_PARAM_NO_ZEROMAP: 0, i915.I915_CONTEXT_PARAM_NO_ERROR_CAPTURE: 0, i915.I915_CONTEXT_PARAM_BANNABLE: 1,
    i915.I915_CONTEXT_PARAM_RECOVERABLE: 1, i915.I915_CONTEXT_PARAM_PERSISTENCE: 1,
}  # fmt: skip  # parameters that are stored and read back, with their defaults


class Vm:
    """An address space: addresses given to buffers, and buffers mapped now."""

    def __init__(self, gpu: Shared, name: str) -> None:
        self.gpu, self.name = gpu, name
        self.space = AddressSpace(name, gpu.device.generation.address_bits)
        self.limit = min(gpu.kernel.gtt_bytes, HIGHEST)
        self.lock = threading.RLock()
        self.placed, self.mapped = Placement(), Placement()
        self.running: dict[GemObject, int] = {}  # buffers of submissions that run now

    def place(self, wanted: list[tuple[GemObject, int | None, int]]) -> list[int]:
        """Addresses for the buffers of a submission: the pinned address, the one a buffer has, or a free one, aligned."""
        with self.lock:
            if (kept := self._kept(wanted)) is not None:
                return kept
            taken = sorted((address, address + bo.size) for bo, address, _ in wanted if address is not None)
            for (_, end), (start, _) in itertools.pairwise(taken):
                if start < end:
                    raise Errno(errno.EINVAL, f"two buffers are pinned at {start:#x}")
            if any(end > 1 << self.space.bits for _, end in taken):
                raise Errno(errno.EINVAL, f"a buffer is pinned beyond {self.space.bits} bits")
            for start, end in taken:
                for bo in self.placed.overlapping(start, end):
                    self.placed.remove(bo)
            for bo, address, _ in wanted:
                if address is not None:
                    self.placed.put(bo, address)
                    bo.bound.add(self)
            return [self._place(bo, alignment) for bo, _, alignment in wanted]

    def _kept(self, wanted: list[tuple[GemObject, int | None, int]]) -> list[int] | None:
        """The addresses they have, if all may stay where they are: those do not overlap."""
        found = []
        for bo, address, alignment in wanted:
            at = self.placed.get(bo)
            if at is None or (at != address if address is not None else alignment and at % alignment):
                return None
            found.append(at)
        return found

    def _place(self, bo: GemObject, alignment: int) -> int:
        address = self.placed.get(bo)
        if address is None or alignment and address % alignment:
            self.placed.remove(bo)
            address = self.placed.free(bo.size, max(alignment, PAGE))
            if address + bo.size > self.limit:
                raise Errno(errno.ENOSPC, f"no room for {bo.size:#x} bytes")
            self.placed.put(bo, address)
        bo.bound.add(self)
        return address

    def enter(self, wanted: list[tuple[GemObject, int]], before_waiting: Callable[[], None] = lambda: None) -> None:
        """Map what a submission needs; buffers in the way are unmapped, when nothing that runs needs them."""
        with self.lock:
            if all(self.mapped.get(bo) == address for bo, address in wanted):
                self._run(wanted)
                return
        for bo, address in wanted:
            while blockers := self._try(bo, address):
                before_waiting()
                self.gpu.signals.wait(lambda those=blockers: not any(bo in self.running for bo in those), None)  # type: ignore[misc]
        with self.lock:
            self._run(wanted)

    def _run(self, wanted: list[tuple[GemObject, int]]) -> None:
        for bo, _ in wanted:
            self.running[bo] = self.running.get(bo, 0) + 1

    def _try(self, bo: GemObject, address: int) -> list[GemObject]:
        """Map a buffer; the buffers that run where it should be, if there are any."""
        with self.lock:
            if self.mapped.get(bo) == address:
                return []
            there = set(self.mapped.overlapping(address, address + bo.size))
            if self.mapped.get(bo) is not None:
                there.add(bo)
            if blockers := [other for other in there if other in self.running]:
                return blockers
            for other in there:
                self._unmap(other)
            at = address
            for piece in bo.pieces:
                self.space.map(at, piece.buffer, piece.offset, piece.size)
                at += piece.size
            self.mapped.put(bo, address)
            return []

    def _unmap(self, bo: GemObject) -> None:
        address = self.mapped.remove(bo)
        if address is not None:
            self.space.unmap(address, bo.size)

    def leave(self, bos: list[GemObject]) -> None:
        with self.lock:
            for bo in bos:
                self.running[bo] -= 1
                if not self.running[bo]:
                    del self.running[bo]
        self.gpu.signals.notify()

    def forget(self, bo: GemObject) -> None:
        with self.lock:
            self.placed.remove(bo)
            bo.bound.discard(self)
            self._unmap(bo)


class Context:
    """A hardware context."""

    def __init__(self, gpu: Shared, number: int, vm: Vm) -> None:
        self.gpu, self.number, self.vm = gpu, number, vm
        self.engines: list[str | None] | None = None
        self.params = dict(KEPT)
        self.priority = 0
        self.banned = self.cancelled = False
        self.guilty = self.innocent = 0
        self.last: Fence | None = None  # of the newest submission

    def engine(self, flags: int) -> str:
        """The engine a submission asks for."""
        index = flags & i915.I915_EXEC_RING_MASK
        name = self.engines[index] if self.engines is not None and index < len(self.engines) else None
        if self.engines is None:
            name = RINGS.get(index)
        if name not in self.gpu.kernel.engines:
            raise Errno(errno.EINVAL, f"no engine {index} in this context")
        assert name is not None
        return name


def lookup(node: Node, number: int) -> Context:
    found = node.contexts.get(number)
    if found is None:
        raise Errno(errno.ENOENT, f"no context {number}")
    return found


def new_vm(node: Node) -> Vm:
    return Vm(node.gpu, f"address space {next(node.gpu.names)}")


def new(node: Node) -> Context:
    """Create a context in an address space of its own; in the node's only one where the GPU has no others."""
    first = node.contexts.get(0)
    vm = first.vm if first and not node.gpu.kernel.vm else new_vm(node)
    context = Context(node.gpu, 0, vm)
    context.number = node.contexts.add(context)
    return context


def create(node: Node, call: Call, arg: SimpleNamespace) -> None:
    settings = []
    if arg.flags & i915.I915_CONTEXT_CREATE_FLAGS_USE_EXTENSIONS:
        for name, _, address in extensions(call, arg.extensions):
            if name != i915.I915_CONTEXT_CREATE_EXT_SETPARAM:
                raise Errno(errno.EINVAL, f"CONTEXT_CREATE extension {name}")
            settings.append(CONTEXT_PARAM.unpack(call.read(address, CONTEXT_PARAM.size)))
    context = new(node)
    try:
        for setting in settings:
            set_param(node, call, context, setting)
    except Errno:
        node.contexts.remove(context.number)
        raise
    arg.context = context.number


def destroy(node: Node, call: Call, arg: SimpleNamespace) -> None:
    if not arg.context or node.contexts.remove(arg.context) is None:
        raise Errno(errno.ENOENT)


def set_(node: Node, call: Call, arg: SimpleNamespace) -> None:
    set_param(node, call, lookup(node, arg.context), arg)


def set_param(node: Node, call: Call, context: Context, arg: SimpleNamespace) -> None:
    kernel = node.gpu.kernel
    if arg.param in KEPT:
        context.params[arg.param] = arg.value
    elif arg.param == PRIORITY and kernel.preempt:
        context.priority = arg.value
    elif arg.param == VM and kernel.vm:
        vm = node.vms.get(arg.value)
        if vm is None:
            raise Errno(errno.ENOENT, f"no address space {arg.value}")
        context.vm = vm
    elif arg.param == ENGINES:
        context.engines = engine_map(node, call, arg) if arg.size else None
    elif arg.param == SSEU_PARAM and kernel.vm or arg.param == PROTECTED_CONTENT and not arg.value:
        pass
    elif arg.param in (PRIORITY, VM, SSEU_PARAM, RINGSIZE, PROTECTED_CONTENT):
        raise Errno(errno.ENODEV, f"context parameter {arg.param} is not there on this GPU")
    else:
        raise Errno(errno.EINVAL, f"context parameter {arg.param:#x}")


def engine_map(node: Node, call: Call, arg: SimpleNamespace) -> list[str | None]:
    data = call.read(arg.value, arg.size)
    if len(data) < 8 or len(data) % 4 or len(data) > 8 + 64 * 4:
        raise Errno(errno.EINVAL, f"an engine map of {len(data)} bytes")
    engines = [engine_name(node, each) for each in ENGINE.unpack_all(data[8:])]
    for name, _, address in extensions(call, int.from_bytes(data[:8], "little")):
        if name != i915.I915_CONTEXT_ENGINES_EXT_LOAD_BALANCE:
            raise Errno(errno.EINVAL, f"engine map extension {name}")
        balance = LOAD_BALANCE.unpack(call.read(address, LOAD_BALANCE.size))
        if balance.index >= len(engines) or not 0 < balance.siblings <= 64:
            raise Errno(errno.EINVAL, "load balancing of an engine that is not there")
        siblings = ENGINE.unpack_all(call.read(address + LOAD_BALANCE.size, balance.siblings * ENGINE.size))
        engines[balance.index] = engine_name(node, siblings[0])
    return engines


def engine_name(node: Node, engine: SimpleNamespace) -> str | None:
    if engine.kind == i915.I915_ENGINE_CLASS_INVALID:
        return None
    name = f"{ENGINE_CLASSES[engine.kind]}{engine.instance}" if engine.kind < len(ENGINE_CLASSES) else ""
    if name not in node.gpu.kernel.engines:
        raise Errno(errno.ENOENT, f"engine class {engine.kind} instance {engine.instance} is not there")
    return name


def get(node: Node, call: Call, arg: SimpleNamespace) -> None:
    context, kernel, param = lookup(node, arg.context), node.gpu.kernel, arg.param
    if param in KEPT:
        arg.value, arg.size = context.params[param], 0
    elif param == GTT_SIZE:
        arg.value, arg.size = kernel.gtt_bytes, 0
    elif param == PRIORITY:
        arg.value, arg.size = context.priority, 0
    elif param == VM and kernel.vm:
        arg.value, arg.size = node.vms.add(context.vm), 0
    elif param == SSEU_PARAM and kernel.vm:
        if arg.size:
            call.write(arg.value, sseu(node, call, arg))
        arg.size = SSEU.size
    elif param == ENGINES:
        arg.size = 0
    elif param in (VM, SSEU_PARAM, RINGSIZE):
        raise Errno(errno.ENODEV, f"context parameter {param} is not there on this GPU")
    else:
        raise Errno(errno.EINVAL, f"context parameter {param:#x}")


def sseu(node: Node, call: Call, arg: SimpleNamespace) -> bytes:
    device = node.gpu.device
    slices, subslices, eus = (device.limit(name) for name in ("slices", "subslices", "eus"))
    record = SSEU.unpack(call.read(arg.value, SSEU.size))
    record.slices, record.subslices = (1 << slices) - 1, (1 << subslices // slices) - 1
    record.eus_min = record.eus_max = eus // subslices
    return SSEU.pack(record)


def vm_create(node: Node, call: Call, arg: SimpleNamespace) -> None:
    if not node.gpu.kernel.vm:
        raise Errno(errno.ENODEV, "no address spaces of their own on this GPU")
    arg.vm = node.vms.add(new_vm(node))


def vm_destroy(node: Node, call: Call, arg: SimpleNamespace) -> None:
    if node.vms.remove(arg.vm) is None:
        raise Errno(errno.ENOENT)


def reset_stats(node: Node, call: Call, arg: SimpleNamespace) -> None:
    """I915_GET_RESET_STATS. Waits a little while work runs: drivers poll it in a loop, and the CPU is needed for that work."""
    context = lookup(node, arg.context)
    if (last := context.last) and not last.done:
        node.gpu.signals.wait(lambda: last.done, time.monotonic() + POLL, call.channel.gone)
    arg.resets, arg.active, arg.pending = 0, context.guilty, context.innocent


HANDLERS = {
    "I915_GEM_CONTEXT_CREATE": create, "I915_GEM_CONTEXT_DESTROY": destroy, "I915_GEM_CONTEXT_GETPARAM": get,
    "I915_GEM_CONTEXT_SETPARAM": set_, "I915_GEM_VM_CREATE": vm_create, "I915_GEM_VM_DESTROY": vm_destroy,
    "I915_GET_RESET_STATS": reset_stats,
}  # fmt: skip
