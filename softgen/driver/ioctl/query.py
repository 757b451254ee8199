"""Ioctls that query the GPU: GETPARAM, QUERY, capabilities, versions, registers."""

from __future__ import annotations

import errno
import struct
from collections.abc import Callable
from types import SimpleNamespace
from typing import TYPE_CHECKING

from softgen.device.clock import host_clock
from softgen.driver.errors import Errno
from softgen.driver.kms.handler import as_master
from softgen.driver.run.protocol import Call
from softgen.driver.uapi import drm
from softgen.driver.uapi import i915_drm as i915
from softgen.driver.uapi.uapi import ENGINE_CLASSES, ENGINE_INFO, ENGINES_HEAD, QUERY_ITEM, REGION, TOPOLOGY
from softgen.memory.host import host_memory

if TYPE_CHECKING:
    from softgen.driver.objects.node import GpuState, Node

INTERFACE, VERSION = (1, 4), (1, 6)  # DRM's and the driver's: major and minor
NAMING = 1  # the interface's minor version from which on SET_VERSION names the device
DRIVER, DATE, DESCRIPTION, BUS = b"i915", b"20201103", b"Intel Graphics", b"pci:0000:00:02.0"
RING_TIMESTAMP = 0x2358  # the register that programs may read, of the render engine
MOST_ITEMS = 1024

HAS = frozenset({
    i915.I915_PARAM_HAS_GEM, i915.I915_PARAM_HAS_PAGEFLIPPING, i915.I915_PARAM_HAS_EXECBUF2, i915.I915_PARAM_HAS_RELAXED_FENCING,
    i915.I915_PARAM_HAS_COHERENT_RINGS, i915.I915_PARAM_HAS_RELAXED_DELTA, i915.I915_PARAM_HAS_GEN7_SOL_RESET,
    i915.I915_PARAM_HAS_WAIT_TIMEOUT, i915.I915_PARAM_HAS_PRIME_VMAP_FLUSH, i915.I915_PARAM_HAS_PINNED_BATCHES,
    i915.I915_PARAM_HAS_EXEC_NO_RELOC, i915.I915_PARAM_HAS_EXEC_HANDLE_LUT, i915.I915_PARAM_HAS_COHERENT_PHYS_GTT,
    i915.I915_PARAM_MMAP_VERSION, i915.I915_PARAM_HAS_EXEC_SOFTPIN, i915.I915_PARAM_HAS_EXEC_ASYNC, i915.I915_PARAM_HAS_EXEC_FENCE,
    i915.I915_PARAM_HAS_EXEC_CAPTURE, i915.I915_PARAM_HAS_EXEC_BATCH_FIRST, i915.I915_PARAM_HAS_EXEC_FENCE_ARRAY,
    i915.I915_PARAM_MMAP_GTT_COHERENT, i915.I915_PARAM_HAS_EXEC_SUBMIT_FENCE, i915.I915_PARAM_HAS_EXEC_TIMELINE_FENCES,
    i915.I915_PARAM_HAS_USERPTR_PROBE,
})  # fmt: skip
HAS_NOT = frozenset({
    i915.I915_PARAM_HAS_OVERLAY, i915.I915_PARAM_HAS_EXEC_CONSTANTS, i915.I915_PARAM_HAS_SEMAPHORES, i915.I915_PARAM_HAS_SECURE_BATCHES,
    i915.I915_PARAM_HAS_WT, i915.I915_PARAM_HAS_RESOURCE_STREAMER, i915.I915_PARAM_HAS_POOLED_EU, i915.I915_PARAM_MIN_EU_IN_POOL,
    i915.I915_PARAM_PERF_REVISION,
})  # fmt: skip
PER_ENGINE_RESET = 2  # I915_PARAM_HAS_GPU_RESET: engines are reset one by one
MMAP_GTT_VERSION = 4
Answer = Callable[["GpuState"], int | None]  # None: not there on this GPU
PARAMS: dict[int, Answer] = {
    **dict.fromkeys(HAS, lambda gpu: 1),
    **dict.fromkeys(HAS_NOT, lambda gpu: 0),
    i915.I915_PARAM_CHIPSET_ID: lambda gpu: gpu.device.pci_id,
    i915.I915_PARAM_NUM_FENCES_AVAIL: lambda gpu: gpu.kernel.fences,
    i915.I915_PARAM_HAS_BSD: lambda gpu: int("vcs0" in gpu.kernel.engines),
    i915.I915_PARAM_HAS_BLT: lambda gpu: int("bcs0" in gpu.kernel.engines),
    i915.I915_PARAM_HAS_LLC: lambda gpu: int(gpu.kernel.llc),
    i915.I915_PARAM_HAS_ALIASING_PPGTT: lambda gpu: gpu.kernel.ppgtt,
    i915.I915_PARAM_HAS_VEBOX: lambda gpu: int("vecs0" in gpu.kernel.engines),
    i915.I915_PARAM_CMD_PARSER_VERSION: lambda gpu: gpu.kernel.parser,
    i915.I915_PARAM_HAS_BSD2: lambda gpu: int("vcs1" in gpu.kernel.engines),
    i915.I915_PARAM_REVISION: lambda gpu: gpu.kernel.revision,
    i915.I915_PARAM_SUBSLICE_TOTAL: lambda gpu: gpu.device.limit("subslices") if gpu.kernel.topology else None,
    i915.I915_PARAM_EU_TOTAL: lambda gpu: gpu.device.limit("eus") if gpu.kernel.topology else None,
    i915.I915_PARAM_HAS_GPU_RESET: lambda gpu: PER_ENGINE_RESET,
    i915.I915_PARAM_MMAP_GTT_VERSION: lambda gpu: MMAP_GTT_VERSION,
    i915.I915_PARAM_HAS_SCHEDULER: lambda gpu: gpu.kernel.preempt,
    i915.I915_PARAM_HUC_STATUS: lambda gpu: 0 if gpu.kernel.huc else None,  # no firmware runs on it
    i915.I915_PARAM_SLICE_MASK: lambda gpu: (1 << gpu.device.limit("slices")) - 1 if gpu.kernel.topology else None,
    i915.I915_PARAM_SUBSLICE_MASK: lambda gpu: subslice_mask(gpu) if gpu.kernel.topology else None,
    i915.I915_PARAM_HAS_CONTEXT_ISOLATION: lambda gpu: gpu.kernel.isolation,
    i915.I915_PARAM_CS_TIMESTAMP_FREQUENCY: lambda gpu: gpu.device.limit("timestamp_hz"),
}
CAPS = {
    drm.DRM_CAP_DUMB_BUFFER: 1, drm.DRM_CAP_VBLANK_HIGH_CRTC: 1, drm.DRM_CAP_DUMB_PREFERRED_DEPTH: 24, drm.DRM_CAP_DUMB_PREFER_SHADOW: 0,
    drm.DRM_CAP_PRIME: drm.DRM_PRIME_CAP_IMPORT | drm.DRM_PRIME_CAP_EXPORT, drm.DRM_CAP_TIMESTAMP_MONOTONIC: 1,
    drm.DRM_CAP_ASYNC_PAGE_FLIP: 0, drm.DRM_CAP_CURSOR_WIDTH: 256, drm.DRM_CAP_CURSOR_HEIGHT: 256, drm.DRM_CAP_ADDFB2_MODIFIERS: 1,
    drm.DRM_CAP_PAGE_FLIP_TARGET: 0, drm.DRM_CAP_CRTC_IN_VBLANK_EVENT: 1, drm.DRM_CAP_SYNCOBJ: 1, drm.DRM_CAP_SYNCOBJ_TIMELINE: 1,
}  # fmt: skip


def subslice_mask(gpu: GpuState) -> int:
    """The subslices of a slice."""
    return (1 << gpu.device.limit("subslices") // gpu.device.limit("slices")) - 1


def getparam(node: Node, call: Call, arg: SimpleNamespace) -> None:
    if arg.param not in PARAMS:
        node.gpu.log_once(f"GETPARAM {arg.param} is not known")
        raise Errno(errno.EINVAL, f"parameter {arg.param}")
    value = PARAMS[arg.param](node.gpu)
    if value is None:
        raise Errno(errno.ENODEV, f"parameter {arg.param} is not there on this GPU")
    call.write(arg.value, struct.pack("<i", value))


def query(node: Node, call: Call, arg: SimpleNamespace) -> None:
    if arg.flags or arg.count > MOST_ITEMS:
        raise Errno(errno.EINVAL)
    items = QUERY_ITEM.unpack_all(call.read(arg.items, arg.count * QUERY_ITEM.size))
    for number, item in enumerate(items):
        answer = ANSWERS[item.kind](node.gpu) if item.kind in ANSWERS else -errno.EINVAL
        if isinstance(answer, int):
            item.size = answer
        elif item.size and item.size < len(answer):
            item.size = -errno.EINVAL
        else:
            if item.size:
                call.write(item.data, answer)
            item.size = len(answer)
        call.write(arg.items + number * QUERY_ITEM.size, QUERY_ITEM.pack(item))


def topology(gpu: GpuState) -> bytes | int:
    """Masks of slices, of subslices in each, of EUs in each of those."""
    if not gpu.kernel.topology:
        return -errno.ENODEV
    slices, subslices, eus = gpu.kernel.topology
    has_slices = gpu.device.limit("slices")
    has_subslices = gpu.device.limit("subslices") // has_slices
    has_eus = gpu.device.limit("eus") // gpu.device.limit("subslices")
    slice_bytes, subslice_bytes, eu_bytes = (-(-count // 8) for count in (slices, subslices, eus))
    head = SimpleNamespace(flags=0, slices=slices, subslices=subslices, eus=eus, subslice_offset=slice_bytes,
                           subslice_stride=subslice_bytes, eu_offset=slice_bytes + slices * subslice_bytes, eu_stride=eu_bytes)  # fmt: skip
    data = mask(has_slices, slice_bytes)
    for number in range(slices):
        data += mask(has_subslices if number < has_slices else 0, subslice_bytes)
    for number in range(slices * subslices):
        there = number // subslices < has_slices and number % subslices < has_subslices
        data += mask(has_eus if there else 0, eu_bytes)
    return TOPOLOGY.pack(head) + data


def mask(count: int, size: int) -> bytes:
    return ((1 << count) - 1).to_bytes(size, "little")


def engines(gpu: GpuState) -> bytes:
    found = []
    for name in gpu.kernel.engines:
        kind, instance = name.rstrip("0123456789"), int(name[-1])
        found.append(ENGINE_INFO.pack(SimpleNamespace(
            kind=ENGINE_CLASSES.index(kind), instance=instance, flags=i915.I915_ENGINE_INFO_HAS_LOGICAL_INSTANCE,
            capabilities=getattr(gpu.kernel, kind, 0), logical=instance, r0=0, r1=0, r2=0, r3=0, r4=0, r5=0)))  # fmt: skip
    return ENGINES_HEAD.pack(SimpleNamespace(count=len(found), r0=0, r1=0, r2=0)) + b"".join(found)


def regions(gpu: GpuState) -> bytes:
    """System memory only; as much as the host has and the server may take."""
    size = min(host_memory(), gpu.budget.limit)
    sizes = dict.fromkeys(("probed", "unallocated", "visible", "unallocated_visible"), size)
    region = SimpleNamespace(**{**dict.fromkeys(REGION.names, 0), **sizes, "kind": i915.I915_MEMORY_CLASS_SYSTEM})
    return ENGINES_HEAD.pack(SimpleNamespace(count=1, r0=0, r1=0, r2=0)) + REGION.pack(region)


def not_there(gpu: GpuState) -> int:
    return -errno.ENODEV


ANSWERS: dict[int, Callable[[GpuState], bytes | int]] = {
    i915.DRM_I915_QUERY_TOPOLOGY_INFO: topology, i915.DRM_I915_QUERY_ENGINE_INFO: engines, i915.DRM_I915_QUERY_MEMORY_REGIONS: regions,
    i915.DRM_I915_QUERY_HWCONFIG_BLOB: not_there,
}  # fmt: skip


def version(node: Node, call: Call, arg: SimpleNamespace) -> None:
    (arg.major, arg.minor), arg.patch = VERSION, 0
    for name, text in (("name", DRIVER), ("date", DATE), ("description", DESCRIPTION)):
        room = getattr(arg, f"{name}_size")
        if getattr(arg, name):
            call.write(getattr(arg, name), text[:room])
        setattr(arg, f"{name}_size", len(text))


def unique(node: Node, call: Call, arg: SimpleNamespace) -> None:
    """DRM_IOCTL_GET_UNIQUE: the bus id, which there is from SET_VERSION on (drm_set_busid); drmOpen by name takes a node without one."""
    name = BUS if node.gpu.display.master_of(node).named else b""
    if arg.unique and arg.size >= len(name):
        call.write(arg.unique, name)
    arg.size = len(name)


def magic(node: Node, call: Call, arg: SimpleNamespace) -> None:
    arg.magic = 1


def client(node: Node, call: Call, arg: SimpleNamespace) -> None:
    if arg.index:
        raise Errno(errno.EINVAL)
    arg.auth, arg.pid, arg.uid, arg.magic, arg.uses = 1, call.channel.pid, call.channel.uid, 0, 0


def set_version(node: Node, call: Call, arg: SimpleNamespace) -> None:
    """DRM_IOCTL_SET_VERSION: both versions, those that are asked for checked (drm_setversion); -1 asks for none."""
    asked = (arg.interface_major, arg.interface_minor, INTERFACE), (arg.driver_major, arg.driver_minor, VERSION)
    (arg.interface_major, arg.interface_minor), (arg.driver_major, arg.driver_minor) = INTERFACE, VERSION
    for number, (major, minor, ours) in enumerate(asked):
        if major == -1:
            continue
        if major != ours[0] or not 0 <= minor <= ours[1]:
            raise Errno(errno.EINVAL, f"version {major}.{minor} of the {'driver' if number else 'interface'}")
        if not number and minor >= NAMING:
            node.gpu.display.master_of(node).named = True


def capability(node: Node, call: Call, arg: SimpleNamespace) -> None:
    if arg.capability not in CAPS:
        raise Errno(errno.EINVAL, f"capability {arg.capability}")
    arg.value = CAPS[arg.capability]


def aperture(node: Node, call: Call, arg: SimpleNamespace) -> None:
    arg.size = min(node.gpu.kernel.gtt_bytes, 1 << 32)
    arg.available = arg.size - (16 << 20)


def register(node: Node, call: Call, arg: SimpleNamespace) -> None:
    if arg.offset & ~i915.I915_REG_READ_8B_WA != RING_TIMESTAMP:
        raise Errno(errno.EINVAL, f"register {arg.offset:#x}")
    now = host_clock(node.gpu.device)()
    arg.value = now if arg.offset & i915.I915_REG_READ_8B_WA else now & 0xFFFFFFFF


def refuse(node: Node, call: Call, arg: SimpleNamespace) -> None:
    raise Errno(errno.ENODEV, "performance counters are not there")


def granted(node: Node, call: Call, arg: SimpleNamespace) -> None:
    """An ioctl that succeeds without doing anything."""


HANDLERS = {
    "DRM_IOCTL_VERSION": version,
    "DRM_IOCTL_GET_UNIQUE": unique,
    "DRM_IOCTL_GET_MAGIC": magic,
    "DRM_IOCTL_GET_CLIENT": client,
    "DRM_IOCTL_SET_VERSION": as_master(set_version),
    "DRM_IOCTL_GET_CAP": capability,
    "DRM_IOCTL_AUTH_MAGIC": granted,
    "DRM_IOCTL_I915_GETPARAM": getparam,
    "DRM_IOCTL_I915_QUERY": query,
    "DRM_IOCTL_I915_GEM_GET_APERTURE": aperture,
    "DRM_IOCTL_I915_REG_READ": register,
    "DRM_IOCTL_I915_PERF_OPEN": refuse,
    "DRM_IOCTL_I915_PERF_ADD_CONFIG": refuse,
    "DRM_IOCTL_I915_PERF_REMOVE_CONFIG": refuse,
}
