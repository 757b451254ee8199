"""The ioctls on hardware contexts and address spaces (VMs)."""

from __future__ import annotations

import errno
import time
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING

from softgen.driver.errors import Errno
from softgen.driver.ioctl.gem import extensions
from softgen.driver.objects.gem_context import KEPT, GemContext
from softgen.driver.objects.vm import Vm
from softgen.driver.run.protocol import Call
from softgen.driver.uapi import i915_drm as i915
from softgen.driver.uapi.uapi import CONTEXT_PARAM, ENGINE, ENGINE_CLASSES, LOAD_BALANCE, SSEU

if TYPE_CHECKING:
    from softgen.driver.objects.node import Node

POLL = 0.002  # seconds
PRIORITY, VM, ENGINES = i915.I915_CONTEXT_PARAM_PRIORITY, i915.I915_CONTEXT_PARAM_VM, i915.I915_CONTEXT_PARAM_ENGINES
SSEU_PARAM, RINGSIZE = i915.I915_CONTEXT_PARAM_SSEU, i915.I915_CONTEXT_PARAM_RINGSIZE
CREATE_FLAGS = i915.I915_CONTEXT_CREATE_FLAGS_USE_EXTENSIONS | i915.I915_CONTEXT_CREATE_FLAGS_SINGLE_TIMELINE
PROTECTED_CONTENT, GTT_SIZE = i915.I915_CONTEXT_PARAM_PROTECTED_CONTENT, i915.I915_CONTEXT_PARAM_GTT_SIZE


def lookup(node: Node, number: int) -> GemContext:
    found = node.contexts.get(number)
    if found is None:
        raise Errno(errno.ENOENT, f"no context {number}")
    return found


def new_vm(node: Node) -> Vm:
    gpu = node.gpu
    return Vm(f"address space {next(gpu.names)}", gpu.device.generation.address_bits, gpu.kernel.gtt_bytes, gpu.signals,
              partial(gpu.budget.note, node.pid), gpu.parts, node.pid)  # fmt: skip


def new(node: Node) -> GemContext:
    """Create a context in an address space of its own; in the node's only one where the GPU has no others."""
    first = node.contexts.get(0)
    vm = first.vm if first and not node.gpu.kernel.vm else new_vm(node)
    context = GemContext(0, vm, node.gpu.kernel.engines)
    context.number = node.contexts.add(context)
    return context


def create(node: Node, call: Call, arg: SimpleNamespace) -> None:
    settings = []
    if arg.flags & ~CREATE_FLAGS:
        raise Errno(errno.EINVAL, f"CONTEXT_CREATE flags {arg.flags:#x}")
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
    context = node.contexts.remove(arg.context) if arg.context else None
    if context is None:
        raise Errno(errno.ENOENT)
    with node.gpu.lock:
        node.destroyed.add(context)


def set_(node: Node, call: Call, arg: SimpleNamespace) -> None:
    set_param(node, call, lookup(node, arg.context), arg)


def set_param(node: Node, call: Call, context: GemContext, arg: SimpleNamespace) -> None:
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
    if arg.size < 8 or arg.size % 4 or arg.size > 8 + 64 * 4:
        raise Errno(errno.EINVAL, f"an engine map of {arg.size} bytes")
    data = call.read(arg.value, arg.size)
    engines = [engine_name(node, instance) for instance in ENGINE.unpack_all(data[8:])]
    for name, _, address in extensions(call, int.from_bytes(data[:8], "little")):
        if name != i915.I915_CONTEXT_ENGINES_EXT_LOAD_BALANCE:
            raise Errno(errno.EINVAL, f"engine map extension {name}")
        balance_entry(node, call, engines, address)
    return engines


def balance_entry(node: Node, call: Call, engines: list[str | None], address: int) -> None:
    """I915_CONTEXT_ENGINES_EXT_LOAD_BALANCE, checked in the kernel's order: the entry, what must be zero, then the siblings, if any."""
    if not node.gpu.kernel.preempt:
        raise Errno(errno.ENODEV, "load balancing without execlists")
    balance = LOAD_BALANCE.unpack(call.read(address, LOAD_BALANCE.size))
    if balance.index >= len(engines):
        raise Errno(errno.EINVAL, f"load balancing of entry {balance.index} of {len(engines)}")
    if engines[balance.index]:
        raise Errno(errno.EEXIST, f"load balancing of entry {balance.index}, which is {engines[balance.index]}")
    if balance.flags or balance.zero:
        raise Errno(errno.EINVAL, f"load balancing with flags {balance.flags:#x}, {balance.zero:#x}")
    siblings = ENGINE.unpack_all(call.read(address + LOAD_BALANCE.size, balance.siblings * ENGINE.size))
    names = [find_engine(node, engine) for engine in siblings]
    if "" in names or len(set(names)) < len(names) or len({engine.kind for engine in siblings}) > 1:
        raise Errno(errno.EINVAL, "load balancing between engines that are not there, are named twice, or are of several classes")
    if names:
        engines[balance.index] = names[0]


def find_engine(node: Node, engine: SimpleNamespace) -> str:
    """The name of an engine, by class and instance; an empty one where the GPU does not have it."""
    name = f"{ENGINE_CLASSES[engine.kind]}{engine.instance}" if engine.kind < len(ENGINE_CLASSES) else ""
    return name if name in node.gpu.kernel.engines else ""


def engine_name(node: Node, engine: SimpleNamespace) -> str | None:
    if (engine.kind, engine.instance) == (i915.I915_ENGINE_CLASS_INVALID, i915.I915_ENGINE_CLASS_INVALID_NONE):
        return None
    name = find_engine(node, engine)
    if not name:
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
    """DRM_IOCTL_I915_GET_RESET_STATS. Waits a little while work runs: drivers poll it in a loop, and the CPU is needed for that work."""
    context = lookup(node, arg.context)
    if (last := context.last) and not last.done:
        node.gpu.signals.wait(lambda: last.done, time.monotonic() + POLL, call.channel.gone)
    arg.resets, arg.active, arg.pending = 0, context.guilty, context.innocent


HANDLERS = {
    "DRM_IOCTL_I915_GEM_CONTEXT_CREATE": create,
    "DRM_IOCTL_I915_GEM_CONTEXT_DESTROY": destroy,
    "DRM_IOCTL_I915_GEM_CONTEXT_GETPARAM": get,
    "DRM_IOCTL_I915_GEM_CONTEXT_SETPARAM": set_,
    "DRM_IOCTL_I915_GEM_VM_CREATE": vm_create,
    "DRM_IOCTL_I915_GEM_VM_DESTROY": vm_destroy,
    "DRM_IOCTL_I915_GET_RESET_STATS": reset_stats,
}
