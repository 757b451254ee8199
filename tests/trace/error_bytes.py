"""Error states written the way kernels write them, from what is published of the driver and not from our reader.

A `Kernel` is one version's habits: what engines and blocks are called, how memory is written. `state()` writes a whole file.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field

PAGE = 4096


@dataclass(frozen=True)
class Kernel:
    release: str
    engine: str = "rcs0"  # as `… command stream:` has it
    owner: str = "rcs0"  # as blocks of memory have it
    batch: str = "batch"
    ring: str = "ring"
    memory: str = ":"  # ':' deflated, '~' base 85, 'x' dwords
    wide: bool = True  # addresses in two halves
    requests: bool = True  # the part of the ring that was running
    page_sizes: bool = False
    esr: bool = False
    user: bool = True  # buffers of the user are saved
    context: str = ""  # the submitting context, after the process
    default: bool = False  # the context that new ones start from is saved: it has no address


KERNELS = {
    "3.14": Kernel("3.14.0", "render", "render ring", "gtt_offset", "ringbuffer", "x", wide=False, requests=False, user=False),
    "4.4": Kernel("4.4.0-generic", "render", "render ring", "gtt_offset", "ringbuffer", "x", requests=False, user=False),
    "4.10": Kernel("4.10.0", "render", "render ring", "gtt_offset", "ringbuffer", ":", user=False),
    "4.10 without zlib": Kernel("4.10.0", "render", "render ring", "gtt_offset", "ringbuffer", "~", user=False),
    "4.11": Kernel("4.11.0", "render", "render ring", "gtt_offset", "ringbuffer", ":", context=", ctx 3 [7]"),
    "4.14": Kernel("4.14.0", "render", "rcs0", "gtt_offset", "ringbuffer", ":", context=", ctx 3 [7], score 0"),
    "4.15": Kernel("4.15.0-20-generic", "render", "rcs0", "gtt_offset", "ringbuffer", ":", context=", ctx 3 [7], score 40", default=True),
    "4.19": Kernel("4.19.0", "rcs0", "rcs0", "gtt_offset", "ringbuffer", ":", context=", ctx 3 [7], score 0 (unbannable)", default=True),
    "5.4 without zlib": Kernel("5.4.0", "rcs0", "rcs0", "gtt_offset", "ringbuffer", "~", page_sizes=True, default=True),
    "5.6": Kernel("5.6.6-942.native x86_64", page_sizes=True),
    "6.12": Kernel("6.12.1 x86_64", page_sizes=True, esr=True),
    "6.12 without zlib": Kernel("6.12.1 x86_64", memory="~", page_sizes=True, esr=True),
}


@dataclass
class Hang:
    """One hung engine of one GPU."""

    pci: int
    batch: tuple[int, bytes]
    ring: tuple[int, bytes] = (0x00100000, bytes(PAGE))
    head: int = 0  # where the streamer stands in the ring
    tail: int = 0
    request: tuple[int, int] = (0, 0)
    acthd: int = 0
    bbaddr: int = 0
    ipehr: int = 0
    instdone: int = 0xFFFFFFFE
    user: list[tuple[int, bytes]] = field(default_factory=list)
    many: bool = True  # Gen8 and later: four page directories, faults in two registers
    fault: int = 0


def base85(data: bytes) -> str:
    out = []
    for at in range(0, len(data), 4):
        value = int.from_bytes(data[at : at + 4].ljust(4, b"\0"), "little")
        if value == 0:
            out.append("z")
            continue
        group = ""
        for _ in range(5):
            value, digit = divmod(value, 85)
            group = chr(ord("!") + digit) + group
        out.append(group)
    return "".join(out)


def deflate(data: bytes, finish: bool = True) -> bytes:
    """Page by page, each flushed; old kernels may run out of room for the end."""
    packer, out = zlib.compressobj(), b""
    for at in range(0, len(data), PAGE):
        out += packer.compress(data[at : at + PAGE]) + packer.flush(zlib.Z_SYNC_FLUSH)
    return out + (packer.flush(zlib.Z_FINISH) if finish else b"")


def block(kernel: Kernel, name: str, address: int, data: bytes, by: str = "", finish: bool = True) -> Iterator[str]:
    data = data.ljust(-(-len(data) // PAGE) * PAGE, b"\0")
    where = f"0x{address >> 32:08x} {address & 0xFFFFFFFF:08x}" if kernel.wide else f"0x{address:08x}"
    who = f" (submitted by {by} [4711]{kernel.context})" if by else ""
    yield f"{kernel.owner}{who} --- {name} = {where}"
    if kernel.page_sizes and address >> 32 and not address >> 48:
        yield "gtt_page_sizes = 0x00010000"
    if kernel.memory == "x" and name == "HW Status":
        words = [data[at : at + 4][::-1].hex() for at in range(0, len(data), 4)]
        yield from (f"[{4 * at:04x}] {' '.join(words[at : at + 4])}" for at in range(0, PAGE // 16, 4))
    elif kernel.memory == "x":
        yield from (f"{at:08x} :  {data[at : at + 4][::-1].hex()}" for at in range(0, len(data), 4))
    elif kernel.memory == ":":
        yield ":" + base85(deflate(data, finish))
    else:
        yield "~" + base85(data)


def heading(kernel: Kernel, hang: Hang) -> Iterator[str]:
    yield f"GPU HANG: ecode 9:1:0x{hang.ipehr ^ hang.instdone:08x}, in triangle [4711]"
    yield f"Kernel: {kernel.release}"
    yield "Time: 1587962360 s 775135 us"
    yield "Boottime: 2103 s 852522 us"
    yield f"Active process (on ring {kernel.engine}): triangle [4711]"
    yield "Reset count: 0"
    yield "Platform: SOMELAKE"
    yield f"PCI ID: 0x{hang.pci:04x}"
    yield "PCI Revision: 0x07"
    yield "PCI Subsystem: 1028:096d"
    yield "IOMMU enabled?: 0"
    yield "EIR: 0x00000000"
    yield from (f"GTIER[{n}]: 0x01010101" for n in range(2))
    yield "PGTBL_ER: 0x00000000"
    yield from (f"  fence[{n}] = {n * 0x9C5307707440001:08x}" for n in range(2))
    yield "ERROR: 0x00000001"
    if hang.many:
        yield f"FAULT_TLB_DATA: 0x{hang.fault >> 44 & 15:08x} 0x{hang.fault >> 12 & 0xFFFFFFFF:08x}"
    yield "DONE_REG: 0x00000000"


def engine(kernel: Kernel, hang: Hang) -> Iterator[str]:
    start, ring = hang.ring
    high, low = hang.acthd >> 32, hang.acthd & 0xFFFFFFFF
    yield f"{kernel.engine} command stream:"
    yield f"  START: 0x{start:08x}"
    yield f"  HEAD:  0x{hang.head:08x}" + (f" [0x{hang.request[0]:08x}]" if kernel.requests else "")
    yield f"  TAIL:  0x{hang.tail:08x}" + (f" [0x{hang.request[1]:08x}, 0x{hang.request[1]:08x}]" if kernel.requests else "")
    yield f"  CTL:   0x{len(ring) - PAGE | 1:08x}"
    yield "  MODE:  0x00004040"
    yield "  HWS:   0x7fdfd000"
    yield f"  ACTHD: 0x{high:08x} {low:08x}"
    yield "  IPEIR: 0x00000000"
    yield f"  IPEHR: 0x{hang.ipehr:08x}"
    if kernel.esr:
        yield "  ESR:   0x00000000"
    yield f"  INSTDONE: 0x{hang.instdone:08x}"
    yield "  SC_INSTDONE: 0xffffffff"
    yield from (f"  SAMPLER_INSTDONE[0][{n}]: 0xffffffff" for n in range(3))
    address, data = hang.batch
    end = address + len(data)
    yield f"  batch: [0x{address >> 32:08x}_{address & 0xFFFFFFFF:08x}, 0x{end >> 32:08x}_{end & 0xFFFFFFFF:08x}]"
    yield f"  BBADDR: 0x{hang.bbaddr >> 32:08x}_{hang.bbaddr & 0xFFFFFFFF | 1:08x}"
    yield "  BB_STATE: 0x00000020"
    yield "  INSTPS: 0x00008301"
    yield "  INSTPM: 0x00000000"
    yield "  FADDR: 0x00000000 00bc6200"
    yield "  RC PSMI: 0x00000010"
    yield "  FAULT_REG: 0x00000000"
    if hang.many:
        yield "  GFX_MODE: 0x00008000"
        yield from (f"  PDP{n}: 0x{n << 32 | 0x1000:016x}" for n in range(4))
    else:
        yield "  PP_DIR_BASE: 0x00000000"
    yield f"  ELSP[0]:  pid 4711, seqno       1f:00000006, prio 0, head {hang.request[0]:08x}, tail {hang.request[1]:08x}"
    yield "  hung: 1"
    yield "  engine reset count: 0"
    yield "  Active context: triangle[4711] prio 0, guilty 0 active 0"
    yield "  context timeline seqno 6"


def buffers(kernel: Kernel, hang: Hang) -> Iterator[str]:
    """The tables of buffers that kernels up to 4.18 or so had."""
    found = [(address, len(data)) for address, data in [hang.batch, *hang.user]]
    yield f"Active ({kernel.owner}) [{len(found)}]:" if kernel.wide else f"Active [{len(found)}]:"
    for address, size in found:
        where = f"    {address >> 32:08x}_{address & 0xFFFFFFFF:08x}" if kernel.wide else f"  {address & 0xFFFFFFFF:08x}"
        yield f"{where} {size:8} 3e 00 [ c9559 00 00 ] 00 dirty purgeable uncached (fence: 2)"


def state(kernel: Kernel, hang: Hang, finish: bool = True) -> str:
    lines = [*heading(kernel, hang), *engine(kernel, hang)]
    if kernel.memory == "x" or kernel.owner == "render ring":
        lines += buffers(kernel, hang)
    lines += block(kernel, kernel.batch, *hang.batch, by="" if kernel.batch == "batch" else "triangle", finish=finish)
    if kernel.user:
        for address, data in [hang.batch, *hang.user]:  # the batch is one of the user's buffers
            lines += block(kernel, "user", address, data)
    lines.append(f"{kernel.owner} --- 2 requests")
    if kernel.requests:
        lines.append("  pid 4711, seqno       1f:00000006, prio 0, head 00000000, tail 00000068")
    else:
        lines.append(f"  seqno 0x000c9559, emitted 4297777194, tail 0x{hang.request[1]:08x}")
    lines.append("  seqno 0x000c955a, emitted 4297777194, tail 0x0000f000")
    lines += block(kernel, kernel.ring, *hang.ring)
    lines += block(kernel, "HW Status", 0x7FDFD000, bytes(range(256)) * 16)
    lines += block(kernel, "HW context" if kernel.wide else "HW Context", 0x7FDF0000, bytes(2 * PAGE))
    if kernel.default:
        lines += block(kernel, "NULL context", (1 << 64) - 1, bytes(PAGE))
    return "\n".join(lines) + "\n"
