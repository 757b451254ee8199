"""The corpus, made again: `python -m tests.fuzz.seeds` writes tests/fuzz/corpus. Each seed leads somewhere a random input would not."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from softgen.bits.catalogue import layout
from softgen.bits.generation import device
from softgen.driver.uapi.uapi import ARGUMENTS
from softgen.eu.text import dialect
from tests.conftest import ROOT
from tests.fuzz import captured_targets, media_targets, video_targets
from tests.fuzz.targets import GPUS, NAMES
from tests.gpgpu.job import CODE
from tests.threads.test_reference import ENDLESS
from tests.trace import aub_bytes, error_bytes
from tests.trace.aub_bytes import CONTEXT_AT, RING_AT
from tests.trace.aub_bytes import ROOT as PML4

CORPUS = Path(__file__).resolve().parent / "corpus"
SURFACE_REGION, CODE_REGION = 2, 3  # of a job
JOB_SKL, JOB_ICL, JOB_BDW, RING_SKL, RING_ICL, VULKAN, G45 = range(7)
REFERENCE, T0, T1 = 0, 1, 3


def edits(base: int, engine: int, *changes: tuple[int, int, int]) -> bytes:
    return bytes([base, engine]) + b"".join(struct.pack("<BHI", *change) for change in changes)


def gpu_byte(name: str) -> bytes:
    return bytes([GPUS.index(name) + 1])


def decode() -> Iterator[tuple[str, bytes]]:
    for name, engine_command in (("g45", "3DPRIMITIVE"), ("hsw", "GPGPU_WALKER"), ("kbl", "3DSTATE_VERTEX_BUFFERS"), ("icl", "MI_MATH")):
        gen = device(name).generation.number
        commands = [layout("STATE_BASE_ADDRESS", gen).pack(), layout(engine_command, gen).pack(), layout("MI_BATCH_BUFFER_END", gen).pack()]
        yield f"batch-{name}", gpu_byte(name) + b"\0" + struct.pack(f"<{sum(map(len, commands))}I",
                                                                    *(d for command in commands for d in command))
    yield "aub-memory-trace", b"\0\0" + aub_bytes.machine() + aub_bytes.submit_ports()
    yield "aub-classic", b"\0\0" + aub_bytes.header() + aub_bytes.block(1, 0x1000, aub_bytes.dwords(0x05000000, 0), 1)
    yield "error-state", b"\0\0" + _error_state().encode()
    yield "submission", b"\0\1" + (ROOT / "tests" / "data" / "kbl-vk-compute" / "exec-000001.json").read_bytes()


def _error_state() -> str:
    batch = struct.pack("<2I", 0x05000000, 0).ljust(4096, b"\0")
    return error_bytes.state(error_bytes.KERNELS["6.12"], error_bytes.Hang(device("kbl").pci_id, (0x200000, batch)))


def replay() -> Iterator[tuple[str, bytes]]:
    for number, name in enumerate(("job-skl", "job-icl", "job-bdw", "ring-skl", "ring-icl", "capture-vulkan", "capture-g45")):
        yield name, edits(number, T0 if number < RING_SKL else REFERENCE)
    yield "kernel-t1", edits(JOB_SKL, T1)
    # Self-modifying kernels: the buffer they write to, or read and write, is their code.
    dword = layout("RENDER_SURFACE_STATE", 9).field("surface_base_address").low // 32
    for engine, name in ((REFERENCE, "reference"), (T0, "t0"), (T1, "t1")):
        yield f"self-modifying-{name}", edits(JOB_SKL, engine, (SURFACE_REGION, 16 + dword, CODE))
        yield f"code-onto-code-{name}", edits(JOB_SKL, engine, (SURFACE_REGION, 16 + dword, CODE), (SURFACE_REGION, dword, CODE))
    yield "state-onto-state", edits(JOB_SKL, T0, (SURFACE_REGION, 16 + dword, 0x20000))
    code = dialect.read(ENDLESS, 9)
    for engine, name in ((REFERENCE, "reference"), (T0, "t0"), (T1, "t1")):
        dwords = enumerate(struct.unpack(f"<{len(code) // 4}I", code))
        yield f"endless-kernel-{name}", edits(JOB_SKL, engine, *((CODE_REGION, at, value) for at, value in dwords))
    # Page tables that lead into themselves: each level in turn names the table it stands in, or the root.
    whole = aub_bytes.machine("skl") + aub_bytes.submit_ports()
    for level, name in enumerate(("pml4", "pointers", "directory", "table")):
        entry = struct.pack("<2I", PML4 + 4096 * (level + 1) | 7, 0) if level < 3 else struct.pack("<2I", 0x50007, 0)
        at = whole.index(entry) // 4
        yield f"loop-{name}", edits(RING_SKL, REFERENCE, (0, at, PML4 + 4096 * level | 7))
        yield f"loop-{name}-root", edits(RING_SKL, REFERENCE, (0, at, PML4 | 7))


def captured(name: str, *changes: tuple[int, int, int]) -> bytes:
    """Set (0) or flip (1), place, value."""
    return bytes([captured_targets.NAMES.index(name)]) + b"".join(struct.pack("<BHI", *change) for change in changes)


def field(name: str, command: str, wanted: str) -> int:
    """The place of a field in the first of its commands, or structures, that is not off."""
    for sequence, _, what in captured_targets.items(name):
        if getattr(what, "layout", None) is not None and what.layout.name == command and getattr(
                what.layout.raw(what.dwords), "enable", 1):  # fmt: skip
            place = captured_targets.Place(sequence, what.address, 4 * len(what.dwords), what.layout.field(wanted).mask)
            return captured_targets.fields(name).index(place)
    raise LookupError(f"{name} has no {command}")


def draws() -> Iterator[tuple[str, bytes]]:
    for name in captured_targets.NAMES:
        yield name, captured(name)
    # Payloads longer than the registers of a thread; what threads write beyond them.
    length, first = "vertex_urb_entry_read_length", "dispatch_grf_start_register_for_urb_data"
    vs = [field("kbl-vk-tri", "3DSTATE_VS", name) for name in (length, first)]
    yield "long-payload-vs", captured("kbl-vk-tri", (0, vs[0], 63))
    yield "late-payload-vs", captured("kbl-vk-tri", (0, vs[0], 15), (0, vs[1], 31))
    for stage in ("VS", "SF", "CLIP"):
        place = field("g45-gles-tri", f"{stage}_STATE", length)
        yield f"long-payload-{stage.lower()}-g45", captured("g45-gles-tri", (0, place, 63))


def sends() -> Iterator[tuple[str, bytes]]:
    for name in captured_targets.NAMES:
        yield name, captured(name)
    # A payload in an architecture register, in align16; a descriptor of nothing.
    for name in ("kbl-vk-tri", "kbl-vk-compute"):
        yield f"payload-file-{name}", captured(name, (1, 1, 0x200), (1, 0, 0x100))
        yield f"payload-file-align1-{name}", captured(name, (1, 5, 0x200))
    yield "descriptor-kbl", captured("kbl-vk-tri", (0, 3, 0x3FFFFFFF))
    yield "descriptor-g45", captured("g45-gles-tri", (0, 3, 0x3FFFFFFF))


def video(standard: str) -> Iterator[tuple[str, bytes]]:
    """Each capture as it is, and with four bytes of its first slice and a field of its state changed."""
    for number, name in enumerate(video_targets.STANDARDS[standard]):
        yield name, bytes([number])
        yield f"{name}-edited", bytes([number]) + struct.pack("<BHI", 1, 40, 0x00FF00) + struct.pack("<BHI", video_targets.STATE, 30, 1)


def media() -> Iterator[tuple[str, bytes]]:
    """Two objects in each mode; and threads that spawn, keep their entries or wait."""
    state = struct.pack("<8I", 0x11110003, 0x10000, 0x76543210, 0xFEDCBA98, 0, 0, 0, 0)
    for mode in range(6):
        one = struct.pack("<2B2HB", int(mode > 2), 12, 96, 32 * mode, 0) + bytes(range(48))
        yield f"mode-{mode}", bytes([0, mode, 0, 0, 0x31, 0]) + state + 2 * one
    for root in range(len(media_targets.ROOTS)):
        for child in range(len(media_targets.CHILDREN)):
            one = struct.pack("<2B2HB", 0, 1, 0, 0, 0) + bytes(4)
            yield f"tree-{root}-{child}", bytes([0, 0, root, child, 0x12, 1]) + bytes(32) + 3 * one


def message(kind: int, *body: int, data: bytes = b"") -> bytes:
    return struct.pack(f"<3I{len(body)}I", kind, 1, 4 * len(body), *body) + data


def tbx() -> Iterator[tuple[str, bytes]]:
    """What a runtime does: control, global table, page tables, context, ring, batch; then the port."""
    start = struct.pack("<4I", 0x18800101, *aub_bytes.address(aub_bytes.BATCH), 0)
    pieces = [(RING_AT, start), (CONTEXT_AT + 4096, aub_bytes.image(len(start))[4096:]), (0x50000, struct.pack("<2I", 0x05000000, 0))]
    for level in range(4):
        table, shift = PML4 + 4096 * level, 39 - 9 * level
        entry = (0x50000 if level == 3 else table + 4096) | 7
        pieces.append((table + 8 * (aub_bytes.BATCH >> shift & 511), struct.pack("<Q", entry)))
    setup = message(11, 0x00320002)
    setup += b"".join(message(2, 1, page, page << 12 | 1, 0) for page in (2, 6, 7, 8))
    setup += b"".join(message(4, 0, address, len(data), data=data) for address, data in pieces)
    port = b"".join(message(0, 1, 0x2230, value) for value in (0, 0, 7, CONTEXT_AT | 0x119))
    yield "skl-work", b"\0" + setup + port + message(5, 0, 0x50000, 64)
    queue = b"".join(message(0, 1, offset, value) for offset, value in ((0x2510, CONTEXT_AT | 0x119), (0x2514, 7), (0x2550, 1)))
    yield "icl-work", b"\2" + setup + queue
    yield "registers", b"\0" + b"".join(message(0, write, offset, 5) for write in (1, 0) for offset in (0x2030, 0x2034, 0x2358, 0x44304))
    yield "table-onto-itself", b"\0" + message(2, 1, 0, 1, 0) + message(4, 0, 0, 8, data=struct.pack("<Q", 1)) + port
    yield "large-read", b"\0" + message(5, 0xFF000000, 0xFFFFFFF0, 1 << 26)


def ioctls() -> Iterator[tuple[str, bytes]]:
    def call(name: str, **fields: bytes) -> bytes:
        return bytes([NAMES.index(name)]) + b"".join(fields.get(field, b"\0") for field in ARGUMENTS[name].names)

    def small(value: int) -> bytes:
        return bytes([1, value])

    page, content = b"\2\1", lambda data: bytes([3, 1, len(data)]) + data
    create = call("DRM_IOCTL_I915_GEM_CREATE", size=page)
    bound = struct.pack("<2I6Q", 1, 0, 0, 0, 0x10000, 16, 0, 0)
    submit = call("DRM_IOCTL_I915_GEM_EXECBUFFER2", buffers=content(bound), count=b"\5")
    after = call("DRM_IOCTL_I915_GEM_WAIT", handle=small(1)) + call("DRM_IOCTL_GEM_CLOSE", handle=small(1))
    yield "submit", b"\1" + create + submit + after
    yield "tiling", b"\0" + create + call("DRM_IOCTL_I915_GEM_SET_TILING", handle=small(1), mode=small(1), stride=b"\4\0\2\0\0")
    yield "share", b"\0" + create + call("DRM_IOCTL_GEM_FLINK", handle=small(1)) + call("DRM_IOCTL_PRIME_HANDLE_TO_FD", handle=small(1))
    contexts = call("DRM_IOCTL_I915_GEM_CONTEXT_CREATE") + call("DRM_IOCTL_I915_GEM_VM_CREATE")
    contexts += call("DRM_IOCTL_I915_GEM_CONTEXT_GETPARAM", param=small(3))
    yield "contexts", b"\1" + contexts
    sync = call("DRM_IOCTL_SYNCOBJ_CREATE", flags=small(1)) * 2
    yield "syncobj", b"\1" + sync + call("DRM_IOCTL_SYNCOBJ_WAIT", handles=content(struct.pack("<2I", 1, 2)), count=small(2))
    yield "query", b"\1" + call("DRM_IOCTL_I915_QUERY", count=b"\5", items=content(struct.pack("<QiIQ", 1, 0, 0, 0)))
    yield "chain", b"\1" + call("DRM_IOCTL_I915_GEM_CREATE_EXT", size=page, extensions=bytes([3, 3, 3, 0]))


SEEDS: dict[str, Callable[[], Iterator[tuple[str, bytes]]]] = {
    "decode": decode, "replay": replay, "draws": draws, "sends": sends, "ioctls": ioctls, "tbx": tbx, "media": media,
    **{standard: partial(video, standard) for standard in video_targets.STANDARDS},
}  # fmt: skip


def write(folder: Path = CORPUS) -> None:
    for target, made in SEEDS.items():
        (folder / target).mkdir(parents=True, exist_ok=True)
        for name, data in made():
            (folder / target / name).write_bytes(data)


if __name__ == "__main__":
    write()
