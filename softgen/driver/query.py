"""Questions about the GPU: GETPARAM, QUERY, capabilities, versions, registers."""

from __future__ import annotations

import errno
import os
import struct
from collections.abc import Callable
from types import SimpleNamespace
from typing import TYPE_CHECKING

from softgen.device.registers import host_clock
from softgen.driver.protocol import Call, Errno
from softgen.driver.uapi import ENGINE_CLASSES, ENGINE_INFO, ENGINES_HEAD, QUERY_ITEM, REGION, TOPOLOGY

if TYPE_CHECKING:
    from softgen.driver.node import Node, Shared

DRIVER, DATE, DESCRIPTION, BUS = b"i915", b"20201103", b"Intel Graphics", b"pci:0000:00:02.0"
TIMESTAMP_REGISTER, WHOLE = 0x2358, 1  # the register programs may read, and the bit that asks for all of it
LOGICAL_INSTANCE = 1
MOST_ITEMS = 1024

YES = (5, 8, 9, 12, 13, 15, 16, 19, 21, 24, 25, 26, 29, 30, 37, 43, 44, 45, 48, 49, 52, 53, 55, 56)  # HAS_… that are there everywhere
NO = (7, 14, 20, 23, 27, 36, 38, 39, 54)  # overlay, constants, semaphores, secure batches, write-through, streamer, pooled EUs, perf
Answer = Callable[["Shared"], int | None]
PARAMS: dict[int, Answer] = {
    4: lambda gpu: gpu.device.pci_id,
    6: lambda gpu: gpu.kernel.fences,
    10: lambda gpu: int("vcs0" in gpu.kernel.engines),
    11: lambda gpu: int("bcs0" in gpu.kernel.engines),
    17: lambda gpu: int(gpu.kernel.llc),
    18: lambda gpu: gpu.kernel.ppgtt,
    22: lambda gpu: int("vecs0" in gpu.kernel.engines),
    28: lambda gpu: gpu.kernel.parser,
    31: lambda gpu: int("vcs1" in gpu.kernel.engines),
    32: lambda gpu: gpu.kernel.revision,
    33: lambda gpu: gpu.device.limit("subslices") if gpu.kernel.topology else None,
    34: lambda gpu: gpu.device.limit("eus") if gpu.kernel.topology else None,
    35: lambda gpu: 2,  # engines are reset one by one
    40: lambda gpu: 4,
    41: lambda gpu: gpu.kernel.preempt,
    42: lambda gpu: 1 if gpu.kernel.huc else None,
    46: lambda gpu: (1 << gpu.device.limit("slices")) - 1 if gpu.kernel.topology else None,
    47: lambda gpu: (1 << gpu.device.limit("subslices") // gpu.device.limit("slices")) - 1 if gpu.kernel.topology else None,
    50: lambda gpu: gpu.kernel.isolation,
    51: lambda gpu: gpu.device.limit("timestamp_hz"),
}
CAPS = {1: 0, 2: 1, 3: 24, 4: 0, 5: 3, 6: 1, 7: 0, 8: 64, 9: 64, 0x10: 1, 0x11: 0, 0x12: 1, 0x13: 1, 0x14: 1}


def getparam(node: Node, call: Call, arg: SimpleNamespace) -> None:
    value = 1 if arg.param in YES else 0 if arg.param in NO else None
    if value is None:
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


def topology(gpu: Shared) -> bytes | int:
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


def engines(gpu: Shared) -> bytes:
    found = []
    for name in gpu.kernel.engines:
        kind, instance = name.rstrip("0123456789"), int(name[-1])
        found.append(ENGINE_INFO.pack(SimpleNamespace(
            kind=ENGINE_CLASSES.index(kind), instance=instance, flags=LOGICAL_INSTANCE, capabilities=getattr(gpu.kernel, kind, 0),
            logical=instance, r0=0, r1=0, r2=0, r3=0, r4=0, r5=0)))  # fmt: skip
    return ENGINES_HEAD.pack(SimpleNamespace(count=len(found), r0=0, r1=0, r2=0)) + b"".join(found)


def regions(gpu: Shared) -> bytes:
    """System memory only; as much as the host has."""
    size = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    zeros = {f"r{i}": 0 for i in (0, *range(2, 8))}
    region = SimpleNamespace(kind=0, instance=0, probed=size, unallocated=size, visible=size, unallocated_visible=size, **zeros)
    return ENGINES_HEAD.pack(SimpleNamespace(count=1, r0=0, r1=0, r2=0)) + REGION.pack(region)


def not_there(gpu: Shared) -> int:
    return -errno.ENODEV


ANSWERS: dict[int, Callable[[Shared], bytes | int]] = {1: topology, 2: engines, 4: regions, 5: not_there}


def version(node: Node, call: Call, arg: SimpleNamespace) -> None:
    arg.major, arg.minor, arg.patch = 1, 6, 0
    for name, text in (("name", DRIVER), ("date", DATE), ("description", DESCRIPTION)):
        room = getattr(arg, f"{name}_size")
        if getattr(arg, name):
            call.write(getattr(arg, name), text[:room])
        setattr(arg, f"{name}_size", len(text))


def unique(node: Node, call: Call, arg: SimpleNamespace) -> None:
    if arg.unique and arg.size >= len(BUS):
        call.write(arg.unique, BUS)
    arg.size = len(BUS)


def magic(node: Node, call: Call, arg: SimpleNamespace) -> None:
    arg.magic = 1


def client(node: Node, call: Call, arg: SimpleNamespace) -> None:
    if arg.index:
        raise Errno(errno.EINVAL)
    arg.auth, arg.pid, arg.uid, arg.magic, arg.uses = 1, call.channel.pid, call.channel.uid, 0, 0


def set_version(node: Node, call: Call, arg: SimpleNamespace) -> None:
    arg.interface_major, arg.interface_minor, arg.driver_major, arg.driver_minor = 1, 4, 1, 6


def capability(node: Node, call: Call, arg: SimpleNamespace) -> None:
    if arg.capability not in CAPS:
        raise Errno(errno.EINVAL, f"capability {arg.capability}")
    arg.value = CAPS[arg.capability]


def client_capability(node: Node, call: Call, arg: SimpleNamespace) -> None:
    raise Errno(errno.EOPNOTSUPP, "there is no display")


def aperture(node: Node, call: Call, arg: SimpleNamespace) -> None:
    arg.size = min(node.gpu.kernel.gtt_bytes, 1 << 32)
    arg.available = arg.size - (16 << 20)


def register(node: Node, call: Call, arg: SimpleNamespace) -> None:
    if arg.offset & ~7 != TIMESTAMP_REGISTER:
        raise Errno(errno.EINVAL, f"register {arg.offset:#x}")
    now = host_clock(node.gpu.device)()
    arg.value = now if arg.offset & WHOLE else now & 0xFFFFFFFF


def refuse(node: Node, call: Call, arg: SimpleNamespace) -> None:
    raise Errno(errno.ENODEV, "performance counters are not there")


def granted(node: Node, call: Call, arg: SimpleNamespace) -> None:
    """Nothing is to be done."""


HANDLERS = {
    "VERSION": version, "GET_UNIQUE": unique, "GET_MAGIC": magic, "GET_CLIENT": client, "SET_VERSION": set_version, "GET_CAP": capability,
    "SET_CLIENT_CAP": client_capability, "AUTH_MAGIC": granted, "SET_MASTER": granted, "DROP_MASTER": granted, "I915_GETPARAM": getparam,
    "I915_QUERY": query, "I915_GEM_GET_APERTURE": aperture, "I915_REG_READ": register, "I915_PERF_OPEN": refuse,
    "I915_PERF_ADD_CONFIG": refuse, "I915_PERF_REMOVE_CONFIG": refuse,
}  # fmt: skip
