"""EXECBUFFER2: addresses, relocations, engines, and work that is really done."""

import ctypes
import errno
import itertools
import mmap
import os
import struct
import threading
import time
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from softgen.driver import gem
from softgen.driver.context import ENGINES, VM
from softgen.driver.protocol import READ, Channel, ShimMessage
from softgen.driver.queue import Later
from softgen.driver.submission import Submission
from softgen.driver.uapi import CONTEXT_PARAM, EXEC_OBJECT, EXTENSION, LOAD_BALANCE, RELOCATION
from tests.driver.program import Gpu, Held, Program, served

PINNED, HIGH, NO_RELOC, LUT, FIRST = 1 << 4, 1 << 3, 1 << 11, 1 << 12, 1 << 18
STORE, END, SEMAPHORE = 0x10000002, 0x05000000, 0x0E000002  # MI_STORE_DATA_IMM, MI_BATCH_BUFFER_END, MI_SEMAPHORE_WAIT of 4 dwords


def buffer(program: Program, data: bytes = b"", size: int = 4096) -> int:
    handle: int = program.ioctl("DRM_IOCTL_I915_GEM_CREATE", size=size).handle
    if data:
        program.ioctl("DRM_IOCTL_I915_GEM_PWRITE", handle=handle, offset=0, size=len(data), data=program.memory(data).address)
    return handle


def content(program: Program, handle: int, size: int = 16) -> tuple[int, ...]:
    """Dwords of a buffer, when the GPU is done with it."""
    data = program.memory(size)
    program.ioctl("DRM_IOCTL_I915_GEM_PREAD", handle=handle, offset=0, size=size, data=data.address)
    return struct.unpack(f"<{size // 4}I", bytes(data))


def row(handle: int, **fields: int) -> SimpleNamespace:
    return SimpleNamespace(**{**dict.fromkeys(EXEC_OBJECT.names, 0), "handle": handle, **fields})


def submit(program: Program, rows: list[SimpleNamespace], **fields: int) -> list[SimpleNamespace]:
    memory = program.memory(b"".join(EXEC_OBJECT.pack(row) for row in rows))
    program.ioctl("DRM_IOCTL_I915_GEM_EXECBUFFER2", buffers=memory.address, count=len(rows), **fields)
    return EXEC_OBJECT.unpack_all(bytes(memory))


def refused(number: int, program: Program, rows: list[SimpleNamespace], **fields: int) -> None:
    with pytest.raises(OSError) as found:
        submit(program, rows, **fields)
    assert found.value.errno == number


def relocations(program: Program, *entries: dict[str, int]) -> dict[str, int]:
    data = b"".join(RELOCATION.pack(SimpleNamespace(**{**dict.fromkeys(RELOCATION.names, 0), **entry})) for entry in entries)
    return {"relocations": len(entries), "relocations_at": program.memory(data).address}


# -- addresses


def test_addresses_are_given_out_apart_and_kept(gpu: Gpu) -> None:
    program = gpu.program()
    handles = [buffer(program, size=size) for size in (4096, 65536, 4096)]
    first = [object_.offset for object_ in submit(program, [row(handle, alignment=65536 * (handle == 2)) for handle in handles])]
    assert len(set(first)) == 3 and min(first) >= 0x100000 and first[1] % 65536 == 0
    ranges = sorted(zip(first, (4096, 65536, 4096), strict=True))
    assert all(start + size < after for (start, size), (after, _) in itertools.pairwise(ranges))
    assert [object_.offset for object_ in submit(program, [row(handle) for handle in handles])] == first


def test_pinned_addresses_are_taken_as_they_are_and_others_make_room(gpu: Gpu, held: Held) -> None:
    program = gpu.program()
    loose, pinned = buffer(program), buffer(program)
    address = submit(program, [row(loose)])[0].offset
    found = submit(program, [row(pinned, offset=address, flags=PINNED), row(loose)])
    assert found[0].offset == address and found[1].offset != address
    high = 0xFFFF_8000_0000_0000 | 0x1234000  # canonical: bit 47 repeated
    submit(program, [row(pinned, offset=high, flags=PINNED | HIGH)])
    assert held.submissions[-1].bound[0].address == 0x8000_0123_4000


def test_only_buffers_that_support_48_bits_are_above_4_gib(gpu: Gpu, held: Held) -> None:
    """As the kernel's PIN_ZONE_4G: others are refused where they are pinned there, and moved where they were before."""
    program = gpu.program()
    handle = buffer(program)
    submit(program, [row(handle, offset=0xFFFF_E000, flags=PINNED)])
    for address in (0xFFFF_F000, 0x5_0000_0000):
        submit(program, [row(handle, offset=address, flags=PINNED | HIGH)])
        refused(errno.EINVAL, program, [row(handle, offset=address, flags=PINNED)])
        assert submit(program, [row(handle, flags=HIGH)])[0].offset == address
        assert submit(program, [row(handle)])[0].offset < 0xFFFF_F000


def test_the_same_list_again_means_what_its_handles_mean_now(gpu: Gpu, held: Held, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is looked up once, and again when a handle or an address has changed meanwhile."""
    looked: list[int] = []
    lookup = gem.lookup
    monkeypatch.setattr(gem, "lookup", lambda node, handle: (looked.append(handle), lookup(node, handle))[1])
    program = gpu.program()
    first, other = buffer(program), buffer(program)
    rows = [row(first, offset=0x200000, flags=PINNED), row(other, offset=0x300000, flags=PINNED)]
    for _ in range(3):
        submit(program, rows)
    assert looked.count(first) == 1
    before = held.submissions[-1].bound[0].bo
    submit(program, [row(other, offset=0x200000, flags=PINNED)])  # in the way
    submit(program, rows)
    assert [bound.address for bound in held.submissions[-1].bound] == [0x200000, 0x300000]
    program.ioctl("DRM_IOCTL_GEM_CLOSE", handle=first)
    refused(errno.ENOENT, program, rows)
    assert buffer(program) == first
    submit(program, rows)
    assert held.submissions[-1].bound[0].bo is not before


@pytest.mark.parametrize("rows, number", [
    ([row(1, offset=0x10000, flags=PINNED), row(2, offset=0x10000, flags=PINNED)], errno.EINVAL),
    ([row(1), row(1)], errno.EINVAL),
    ([row(9)], errno.ENOENT),
    ([row(1, offset=(1 << 48) - 2048, flags=PINNED | HIGH)], errno.EINVAL),
    ([row(1, offset=0x10800, flags=PINNED)], errno.EINVAL),  # no page
    ([row(1, offset=1 << 47, flags=PINNED | HIGH)], errno.EINVAL),  # not canonical: bits above 47 do not repeat it
    ([row(1, offset=0x1_0000_0001_0000, flags=PINNED | HIGH)], errno.EINVAL),
    ([row(1, offset=0xFFFF_0000_0001_0000, flags=PINNED | HIGH)], errno.EINVAL),
    ([row(1, offset=0x10000, flags=PINNED, alignment=0x20000)], errno.EINVAL),
    ([row(1, offset=0xFFFF_F000, flags=PINNED)], errno.EINVAL),  # the last page below 4 GiB is as good as above
    ([row(1, offset=0x5_0000_0000, flags=PINNED)], errno.EINVAL),
    ([row(1, alignment=3 << 12)], errno.EINVAL),  # no power of two
    ([row(1, alignment=(1 << 64) - 1)], errno.EINVAL),
    ([row(1, alignment=1 << 63)], errno.ENOSPC),
    ([row(1, flags=1 << 8)], errno.EINVAL),
    ([row(1, flags=1 << 5, r1=100)], errno.EINVAL),
])  # fmt: skip
def test_lists_that_make_no_sense(gpu: Gpu, rows: list[SimpleNamespace], number: int) -> None:
    program = gpu.program()
    buffer(program), buffer(program)
    refused(number, program, rows)


def test_what_is_refused_is_not_held_against_the_context(gpu: Gpu) -> None:
    program = gpu.program()
    handle = buffer(program)
    refused(errno.EINVAL, program, [row(handle, offset=0x10800, flags=PINNED)])
    assert submit(program, [row(handle, alignment=1 << 20)])[0].offset % (1 << 20) == 0
    assert program.ioctl("DRM_IOCTL_I915_GET_RESET_STATS").active == 0


def test_arguments_that_make_no_sense(gpu: Gpu) -> None:
    program = gpu.program()
    handle = buffer(program)
    refused(errno.EINVAL, program, [row(handle)], start=4)
    refused(errno.EINVAL, program, [row(handle)], size=12)
    refused(errno.EINVAL, program, [row(handle)], flags=1 << 22)
    refused(errno.EINVAL, program, [row(handle)], fences=1)
    refused(errno.EINVAL, program, [row(handle)], dr4=1)
    refused(errno.EINVAL, program, [row(handle)], start=4096, size=8)
    refused(errno.ENOENT, program, [row(handle)], context=77)
    refused(errno.EINVAL, program, [row(handle)], flags=9)
    refused(errno.EPERM, program, [row(handle)], flags=1 << 9)
    with pytest.raises(OSError) as found:
        program.ioctl("DRM_IOCTL_I915_GEM_EXECBUFFER2", buffers=8, count=1)
    assert found.value.errno == errno.EFAULT
    with pytest.raises(OSError, match="Invalid"):
        program.ioctl("DRM_IOCTL_I915_GEM_EXECBUFFER2", buffers=8, count=0)


# -- relocations


@pytest.mark.parametrize("name, width", [("g45", 4), ("hsw", 4), ("bdw", 8), ("icl", 8)])
@pytest.mark.parametrize("flags", [0, LUT])
def test_a_relocation_writes_the_address_and_its_presumption(name: str, width: int, flags: int) -> None:
    with served(name, Held()) as gpu:
        program = gpu.program()
        target, batch = buffer(program), buffer(program, b"\xff" * 32)
        entries = relocations(program, {"target": 0 if flags else target, "delta": 0x40, "offset": 8, "presumed": 0})
        address = submit(program, [row(target), row(batch, **entries)], flags=flags)[0].offset
        found = content_now(gpu, program, batch, 24)
        assert int.from_bytes(found[8 : 8 + width], "little") == address + 0x40 and found[8 + width :] == b"\xff" * (16 - width)
        assert RELOCATION.unpack(bytes(program.kept[-3])).presumed == address


def content_now(gpu: Gpu, program: Program, handle: int, size: int) -> bytes:
    node = next(iter(gpu.server.nodes.values()))
    bo = node.objects.get(handle)
    assert bo is not None
    return bo.read(0, size)


def test_an_address_in_the_upper_half_is_written_canonically(gpu: Gpu) -> None:
    program = gpu.program()
    target, batch = buffer(program), buffer(program)
    entries = relocations(program, {"target": target, "delta": 16, "offset": 0})
    submit(program, [row(target, offset=0xFFFF_8000_0000_0000, flags=PINNED | HIGH), row(batch, **entries)])
    assert content_now(gpu, program, batch, 8) == struct.pack("<Q", 0xFFFF_8000_0000_0010)


def test_a_right_presumption_is_left_alone(gpu: Gpu) -> None:
    program = gpu.program()
    target, batch = buffer(program), buffer(program)
    address = submit(program, [row(target), row(batch)])[0].offset
    gpu.shared.runner.submissions.clear()  # type: ignore[attr-defined]
    entries = relocations(program, {"target": target, "offset": 8, "presumed": address})
    submit(program, [row(target), row(batch, **entries)], flags=NO_RELOC)
    assert content_now(gpu, program, batch, 16) == bytes(16)


@pytest.mark.parametrize("entry, flags, number", [
    ({"target": 77, "offset": 8}, 0, errno.ENOENT), ({"target": 2, "offset": 8}, LUT, errno.ENOENT),
    ({"target": 1, "offset": 4092}, 0, errno.EINVAL), ({"target": 1, "offset": (1 << 64) - 4}, 0, errno.EINVAL),
    ({"target": 1, "offset": 6}, 0, errno.EINVAL),
])  # fmt: skip
def test_relocations_that_lead_nowhere(gpu: Gpu, entry: dict[str, int], flags: int, number: int) -> None:
    program = gpu.program()
    target, batch = buffer(program), buffer(program)
    fine = {"target": 0 if flags else 1, "offset": 0}
    refused(number, program, [row(target), row(batch, **relocations(program, fine, entry))], flags=flags)


@pytest.mark.parametrize("count, number", [(1 << 22, errno.EFAULT), ((1 << 22) + 1, errno.EINVAL)])
def test_four_million_relocations_are_the_most(gpu: Gpu, count: int, number: int) -> None:
    """Fewer are looked for in the program's memory; there are none."""
    program = gpu.program()
    refused(number, program, [row(buffer(program), relocations=count, relocations_at=0x10000)])


def test_of_relocations_that_overlap_the_later_one_counts(gpu: Gpu) -> None:
    program = gpu.program()
    target, batch = buffer(program), buffer(program)
    places = ((1, 8), (2, 4), (3, 8), (4, 12))
    entries = relocations(program, *({"target": target, "delta": delta, "offset": offset} for delta, offset in places))
    address = submit(program, [row(target), row(batch, **entries)])[0].offset
    assert content_now(gpu, program, batch, 24) == struct.pack("<6I", 0, address + 2, address + 3, address + 4, 0, 0)


def test_a_delta_is_signed(gpu: Gpu) -> None:
    program = gpu.program()
    target, batch = buffer(program), buffer(program)
    entries = relocations(program, {"target": target, "delta": (1 << 32) - 16, "offset": 0})
    submit(program, [row(target, offset=0x5_0000_0000, flags=PINNED | HIGH), row(batch, **entries)])
    assert content_now(gpu, program, batch, 8) == struct.pack("<Q", 0x4_FFFF_FFF0)


def test_a_million_relocations_take_no_time_worth_mentioning(gpu: Gpu) -> None:
    """Four million once took 83 seconds."""
    program, count = gpu.program(), 1 << 20
    targets, batch = [buffer(program) for _ in range(3)], buffer(program, size=count * 8)
    table = np.zeros(count, [("target", "<u4"), ("delta", "<u4"), ("offset", "<u8"), ("presumed", "<u8"), ("domains", "<u8")])
    table["target"] = np.array(targets)[np.arange(count) % 3]
    table["offset"], table["delta"] = np.arange(count) * 8, np.arange(count) % 4096
    rows = [*map(row, targets), row(batch, relocations=count, relocations_at=program.memory(table.tobytes()).address)]
    before = time.process_time()
    addresses = [row.offset for row in submit(program, rows)[:3]]
    assert time.process_time() - before < 5
    found = np.frombuffer(content_now(gpu, program, batch, count * 8), np.uint64)
    assert np.array_equal(found, np.array(addresses, np.uint64)[np.arange(count) % 3] + np.arange(count, dtype=np.uint64) % 4096)


def test_work_on_the_same_buffer_keeps_its_order(gpu: Gpu, held: Held) -> None:
    """Readers wait for writers, writers for readers and writers, nobody for readers alone; not where the driver says it knows better."""
    program = gpu.program()
    shared, writes, asynchronous = buffer(program), 1 << 2, 1 << 6
    for flags in (0, 0, writes, 0, writes | asynchronous):
        submit(program, [row(shared, flags=flags), row(buffer(program))])
    fences = [submission.fence for submission in held.submissions]
    assert [submission.after for submission in held.submissions] == [[], [], fences[:2], [fences[2]], []]


# -- contexts and engines


def context(program: Program, **param: int) -> int:
    """A context made with one parameter set."""
    head = EXTENSION.pack(SimpleNamespace(next=0, name=0, flags=0, r0=0, r1=0, r2=0, r3=0))
    setting = CONTEXT_PARAM.pack(SimpleNamespace(**{**dict.fromkeys(CONTEXT_PARAM.names, 0), **param}))
    return int(program.ioctl("DRM_IOCTL_I915_GEM_CONTEXT_CREATE", flags=1, extensions=program.memory(head + setting).address).context)


def test_an_engine_map_says_where_work_goes(gpu: Gpu, held: Held) -> None:
    program = gpu.program()
    handle = buffer(program)
    balance = EXTENSION.pack(SimpleNamespace(next=0, name=0, flags=0, r0=0, r1=0, r2=0, r3=0))
    balance += LOAD_BALANCE.pack(SimpleNamespace(index=1, siblings=1, flags=0, zero=0)) + struct.pack("<HH", 2, 0)
    chain = program.memory(balance).address
    engines = program.memory(struct.pack("<QHHHHHH", chain, 1, 0, 0xFFFF, 0xFFFF, 0, 0))
    number = context(program, param=ENGINES, size=len(bytes(engines)), value=engines.address)
    for index in range(3):
        submit(program, [row(handle)], context=number, flags=index)
    assert [submission.engine for submission in held.submissions] == ["bcs0", "vcs0", "rcs0"]
    refused(errno.EINVAL, program, [row(handle)], context=number, flags=3)
    missing = program.memory(struct.pack("<QHH", 0, 2, 1))
    with pytest.raises(OSError, match="No such"):
        context(program, param=ENGINES, size=12, value=missing.address)


def test_entries_of_an_engine_map_have_states_of_their_own() -> None:
    """Mesa's iris draws and computes in two entries of one context, both of the render engine; legacy rings share a state."""
    general, load, store = 0x2600, 0x11000001, 0x12000002  # CS_GPR 0, MI_LOAD_REGISTER_IMM, MI_STORE_REGISTER_MEM
    with served("kbl") as gpu:
        program = gpu.program()
        engines = program.memory(struct.pack("<QHHHH", 0, 0, 0, 0, 0))
        mapped, target = context(program, param=ENGINES, size=16, value=engines.address), buffer(program)
        for number, at in ((mapped, 0), (0, 8)):
            sets = buffer(program, struct.pack("<4I", load, general, 7, END))
            reads = [buffer(program, struct.pack("<6I", store, general, 0x10000 + at + 4 * n, 0, END, 0)) for n in range(2)]
            for index, batch in ((0, sets), *enumerate(reads)):
                submit(program, [row(target, offset=0x10000, flags=PINNED), row(batch)], context=number, flags=index)
        assert content(program, target) == (7, 0, 7, 7)


def test_rings_without_a_map(gpu: Gpu, held: Held) -> None:
    program = gpu.program()
    handle = buffer(program)
    for ring in range(5):
        submit(program, [row(handle)], flags=ring)
    assert [submission.engine for submission in held.submissions] == ["rcs0", "rcs0", "vcs0", "bcs0", "vecs0"]


def test_contexts_share_an_address_space_when_told(gpu: Gpu, held: Held) -> None:
    program = gpu.program()
    handle = buffer(program)
    vm = program.ioctl("DRM_IOCTL_I915_GEM_VM_CREATE").vm
    for number in (context(program, param=VM, value=vm), context(program, param=VM, value=vm), context(program, param=8, value=0)):
        submit(program, [row(handle)], context=number)
    spaces = [submission.vm for submission in held.submissions]
    assert spaces[0] is spaces[1] is not spaces[2]
    with pytest.raises(OSError, match="No such"):
        context(program, param=VM, value=99)
    program.ioctl("DRM_IOCTL_I915_GEM_VM_DESTROY", vm=vm)


def test_old_gpus_have_one_address_space() -> None:
    with served("hsw", held := Held()) as gpu:
        program = gpu.program()
        handle = buffer(program)
        for number in (0, program.ioctl("DRM_IOCTL_I915_GEM_CONTEXT_CREATE").context):
            submit(program, [row(handle)], context=number)
        assert held.submissions[0].vm is held.submissions[1].vm
        with pytest.raises(OSError) as found:
            program.ioctl("DRM_IOCTL_I915_GEM_VM_CREATE")
        assert found.value.errno == errno.ENODEV


# -- work that is done


def store(address: int, value: int) -> bytes:
    return struct.pack("<4I", STORE, address & 0xFFFFFFFF, address >> 32, value)


def test_work_is_done_and_seen() -> None:
    with served("kbl") as gpu:
        program = gpu.program()
        target, batch = buffer(program), buffer(program, store(0x20008, 0xCAFE) + struct.pack("<2I", END, 0))
        rows = [row(target, offset=0x20000, flags=PINNED), row(batch, offset=0x10000, flags=PINNED)]
        submit(program, rows)
        assert content(program, target) == (0, 0, 0xCAFE, 0)


def test_the_batch_may_come_first_and_start_inside() -> None:
    with served("icl") as gpu:
        program = gpu.program()
        target, batch = buffer(program), buffer(program, bytes(64) + store(0x20000, 7) + struct.pack("<2I", END, 0))
        rows = [row(batch, offset=0x10000, flags=PINNED), row(target, offset=0x20000, flags=PINNED)]
        submit(program, rows, flags=FIRST, start=64)
        assert content(program, target)[0] == 7


def test_buffers_change_places() -> None:
    """The same address for another buffer, and the same buffer elsewhere: each submission sees its own."""
    with served("skl") as gpu:
        program = gpu.program()
        first, two = buffer(program), buffer(program)
        batch = buffer(program, store(0x20000, 1) + struct.pack("<2I", END, 0))
        for target in (first, two, first):
            submit(program, [row(target, offset=0x20000, flags=PINNED), row(batch, offset=0x10000, flags=PINNED)])
        assert content(program, first)[0] == content(program, two)[0] == 1
        submit(program, [row(first, offset=0x50000, flags=PINNED), row(batch, offset=0x20000, flags=PINNED)])  # overwrites itself
        assert content(program, batch)[0] == 1


def test_a_fault_bans_the_context_and_nobody_hangs() -> None:
    kept: list[Submission] = []

    def save(submission: Submission, text: str) -> str:
        kept.append(submission)
        return "somewhere"

    with served("kbl", save=save) as gpu:
        program = gpu.program()
        batch = buffer(program, store(0x7F0000, 1) + struct.pack("<2I", END, 0))
        first, second = (program.ioctl("DRM_IOCTL_I915_GEM_CONTEXT_CREATE").context for _ in range(2))
        submit(program, [row(batch, offset=0x10000, flags=PINNED)], context=first)
        program.ioctl("DRM_IOCTL_I915_GEM_WAIT", handle=batch, timeout=10**10)
        [told] = gpu.told
        assert "0x7f0000" in told and "MI_STORE_DATA_IMM" in told and told.endswith("kept in somewhere") and len(kept) == 1
        refused(errno.EIO, program, [row(batch)], context=first)
        stats = program.ioctl("DRM_IOCTL_I915_GET_RESET_STATS", context=first)
        assert (stats.active, stats.pending) == (1, 0)
        assert program.ioctl("DRM_IOCTL_I915_GET_RESET_STATS", context=second).active == 0
        fine = buffer(program, struct.pack("<2I", END, 0))
        submit(program, [row(fine)], context=second)
        program.ioctl("DRM_IOCTL_I915_GEM_WAIT", handle=fine, timeout=10**10)
        assert len(gpu.told) == 1


def test_two_programs_at_once() -> None:
    """Each stores into its own buffer, many times, from two threads each."""
    with served("kbl") as gpu:

        def work(program: Program, base: int, wrong: list[str]) -> None:
            target = buffer(program)
            number = program.ioctl("DRM_IOCTL_I915_GEM_CONTEXT_CREATE").context
            for turn in range(1, 20):
                batch = buffer(program, store(base, turn) + struct.pack("<2I", END, 0))
                rows = [row(target, offset=base, flags=PINNED), row(batch, offset=base + 0x10000, flags=PINNED)]
                submit(program, rows, context=number)
                if content(program, target)[0] != turn:
                    wrong.append(f"{base:#x}: turn {turn}")
                program.ioctl("DRM_IOCTL_GEM_CLOSE", handle=batch)

        wrong: list[str] = []
        programs = [gpu.program(), gpu.program()]
        threads = [threading.Thread(target=work, args=(program.thread(), 0x100000 * at, wrong))
                   for at, program in enumerate(programs * 2, 1)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert wrong == [] and not any(thread.is_alive() for thread in threads)


def test_resets_are_asked_for_while_work_is_pending(gpu: Gpu, held: Held) -> None:
    """A driver that polls gets its answer a little later, and at once when the work is done."""
    program = gpu.program()
    submit(program, [row(buffer(program))])
    began = time.monotonic()
    program.ioctl("DRM_IOCTL_I915_GET_RESET_STATS", context=0)
    assert time.monotonic() - began >= 0.002
    held.finish()
    program.ioctl("DRM_IOCTL_I915_GET_RESET_STATS", context=0)


def test_a_failure_that_cannot_be_kept_is_a_failure_nonetheless() -> None:
    """Whatever goes wrong while it is written down, the program is not left waiting."""

    def save(submission: Submission, text: str) -> str:
        raise MemoryError("no room for it")

    with served("kbl", save=save) as gpu:
        program = gpu.program()
        bad = buffer(program, store(0x7654000, 3) + struct.pack("<2I", END, 0))
        submit(program, [row(bad, offset=0x10000, flags=PINNED)])
        program.ioctl("DRM_IOCTL_I915_GEM_WAIT", handle=bad, timeout=20 * 10**9)
        assert any("could not be kept: no room for it" in text for text in gpu.told) and any("0x7654000" in text for text in gpu.told)


def test_what_follows_a_failing_command_is_done() -> None:
    """A driver that looks at a tag must not look for ever."""
    with served("kbl") as gpu:
        program = gpu.program()
        target, batch = buffer(program), buffer(program, store(0x7F0000, 1) + store(0x20000, 0x7A6) + struct.pack("<2I", END, 0))
        submit(program, [row(target, offset=0x20000, flags=PINNED), row(batch, offset=0x10000, flags=PINNED)])
        assert content(program, target)[0] == 0x7A6
        assert len(gpu.told) == 1 and program.ioctl("DRM_IOCTL_I915_GET_RESET_STATS", context=0).active == 1


def semaphore(address: int, value: int) -> bytes:
    """MI_SEMAPHORE_WAIT: poll until memory equals the value."""
    return struct.pack("<4I", SEMAPHORE | 1 << 15 | 4 << 12, value, address, 0)


def test_a_semaphore_parks_its_context_until_somebody_lets_it_pass() -> None:
    with served("kbl") as gpu:
        program = gpu.program()
        flag, target = buffer(program), buffer(program)
        first, second = (program.ioctl("DRM_IOCTL_I915_GEM_CONTEXT_CREATE").context for _ in range(2))
        waits = buffer(program, semaphore(0x30000, 5) + store(0x20000, 1) + struct.pack("<2I", END, 0))
        pinned = [row(flag, offset=0x30000, flags=PINNED | 1 << 6), row(target, offset=0x20000, flags=PINNED | 1 << 6)]
        submit(program, [*pinned, row(waits, offset=0x10000, flags=PINNED)], context=first)
        with pytest.raises(OSError) as found:
            program.ioctl("DRM_IOCTL_I915_GEM_WAIT", handle=waits, timeout=50_000_000)
        assert found.value.errno == errno.ETIME
        opens = buffer(program, store(0x30000, 5) + struct.pack("<2I", END, 0))
        submit(program, [pinned[0], row(opens, offset=0x10000, flags=PINNED)], context=second)
        program.ioctl("DRM_IOCTL_I915_GEM_WAIT", handle=waits, timeout=10**10)
        assert content(program, target)[0] == 1 and gpu.told == []


def test_a_program_goes_on_while_work_that_was_short_before_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Short work runs on the thread that answers its program; when it waits, another answers."""
    with served("kbl") as gpu:
        program = gpu.program()
        flag, target = buffer(program), buffer(program)
        pinned = [row(flag, offset=0x30000, flags=PINNED), row(target, offset=0x20000, flags=PINNED)]
        quick, ran = buffer(program, store(0x20000, 7) + struct.pack("<2I", END, 0)), gpu.shared.runner.at_once
        here: list[bool] = []

        def at_once(submission: Submission, awaited: bool = False) -> Later | None:
            found = ran(submission, awaited)
            here.append(found is not None)
            return found

        monkeypatch.setattr(gpu.shared.runner, "at_once", at_once)
        for _ in range(100):
            submit(program, [*pinned, row(quick, offset=0x10000, flags=PINNED)])
            program.ioctl("DRM_IOCTL_I915_GEM_WAIT", handle=quick, timeout=10**10)
            if here[-1]:
                break
        assert here[-1] and content(program, target)[0] == 7
        waits = buffer(program, semaphore(0x30000, 5) + store(0x20000, 1) + struct.pack("<2I", END, 0))
        shared, at = program.mmap(program.ioctl("DRM_IOCTL_I915_GEM_MMAP_OFFSET", handle=flag).offset, 4096)
        submit(program, [*pinned, row(waits, offset=0x11000, flags=PINNED)])
        for _ in range(3):
            assert program.ioctl("DRM_IOCTL_I915_GEM_BUSY", handle=waits).busy
        os.pwrite(shared, struct.pack("<I", 5), at)
        os.close(shared)
        program.ioctl("DRM_IOCTL_I915_GEM_WAIT", handle=waits, timeout=10**10)
        assert content(program, target)[0] == 1 and gpu.told == []


def test_a_thread_that_waits_each_time_finds_its_work_done(monkeypatch: pytest.MonkeyPatch) -> None:
    """Then nothing has to be waited for; where the work takes long after all, the answer comes before it is done."""
    monkeypatch.setattr("softgen.driver.queue.SHORT", 60.0)  # whatever else the machine does
    monkeypatch.setattr("softgen.driver.queue.PATIENT", 60.0)
    with served("kbl") as gpu:
        program = gpu.program()
        flag, target = buffer(program), buffer(program)
        pinned = [row(flag, offset=0x30000, flags=PINNED), row(target, offset=0x20000, flags=PINNED)]
        quick = buffer(program, store(0x20000, 7) + struct.pack("<2I", END, 0))
        for _ in range(10):
            submit(program, [*pinned, row(quick, offset=0x10000, flags=PINNED)])
            program.ioctl("DRM_IOCTL_I915_GEM_WAIT", handle=quick, timeout=10**10)
            assert gpu.shared.runner.drain(10)
        shared, at = program.mmap(program.ioctl("DRM_IOCTL_I915_GEM_MMAP_OFFSET", handle=target).offset, 4096)
        os.pwrite(shared, bytes(4), at)
        submit(program, [*pinned, row(quick, offset=0x10000, flags=PINNED)])
        assert os.pread(shared, 4, at) == struct.pack("<I", 7)
        waits = buffer(program, semaphore(0x30000, 5) + store(0x20000, 1) + struct.pack("<2I", END, 0))
        submit(program, [*pinned, row(waits, offset=0x11000, flags=PINNED)])
        assert program.ioctl("DRM_IOCTL_I915_GEM_BUSY", handle=waits).busy and os.pread(shared, 4, at) == struct.pack("<I", 7)
        opened, first = program.mmap(program.ioctl("DRM_IOCTL_I915_GEM_MMAP_OFFSET", handle=flag).offset, 4096)
        os.pwrite(opened, struct.pack("<I", 5), first)
        program.ioctl("DRM_IOCTL_I915_GEM_WAIT", handle=waits, timeout=10**10)
        assert content(program, target)[0] == 1 and gpu.told == []
        os.close(shared)
        os.close(opened)


@pytest.mark.parametrize("near", [True, False])
def test_lists_are_read_from_afar_or_asked_for(near: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the kernel does not let one process read another's memory, the program's thread is asked."""
    asked: list[int] = []
    ask = Channel.ask

    def noted(self: Channel, kind: int, *rest: Any, **more: Any) -> ShimMessage:
        asked.append(kind)
        return ask(self, kind, *rest, **more)

    monkeypatch.setattr(Channel, "ask", noted)
    if not near:
        monkeypatch.setattr("softgen.driver.protocol.read_ranges", lambda pid, wanted, into: False)
        monkeypatch.setattr("softgen.driver.protocol.write_range", lambda pid, address, data: False)
    with served("kbl") as gpu:
        program = gpu.program()
        target, batch = buffer(program), buffer(program, store(0x20000, 3) + struct.pack("<2I", END, 0))
        for _ in range(3):
            submit(program, [row(target, offset=0x20000, flags=PINNED), row(batch, offset=0x10000, flags=PINNED)])
        assert content(program, target)[0] == 3
        assert asked.count(READ) == (0 if near else 4)
        with pytest.raises(OSError) as found:
            program.ioctl("DRM_IOCTL_I915_GEM_EXECBUFFER2", buffers=0x1000, count=1)
        assert found.value.errno == errno.EFAULT


def test_a_semaphore_nobody_opens_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("softgen.driver.execute.HANG", 0.05)
    with served("kbl") as gpu:
        program = gpu.program()
        flag = buffer(program)
        waits = buffer(program, semaphore(0x30000, 5) + struct.pack("<2I", END, 0))
        submit(program, [row(flag, offset=0x30000, flags=PINNED), row(waits, offset=0x10000, flags=PINNED)])
        program.ioctl("DRM_IOCTL_I915_GEM_WAIT", handle=waits, timeout=10**10)
        assert len(gpu.told) == 1 and "waits for ever" in gpu.told[0]


def test_nothing_is_kept_of_what_is_closed() -> None:
    """Descriptors and address space of a server that works for long."""
    with served("kbl") as gpu:
        program = gpu.program()

        def once() -> None:
            target, batch = buffer(program), buffer(program, store(0x20000, 3) + struct.pack("<2I", END, 0))
            rows = [row(target, offset=0x20000, flags=PINNED), row(batch, offset=0x10000, flags=PINNED)]
            submit(program, rows, flags=1 << 17)  # with a sync file
            assert content(program, target)[0] == 3
            for handle in (target, batch):
                program.ioctl("DRM_IOCTL_GEM_CLOSE", handle=handle)
            os.close(program.received.pop())

        for _ in range(5):
            once()
        before = len(os.listdir("/proc/self/fd"))
        for _ in range(50):
            once()
        assert len(os.listdir("/proc/self/fd")) <= before + 4
        [node] = gpu.server.nodes.values()
        context = node.contexts.get(0)
        assert context is not None and not context.vm.placed and not context.vm.mapped and not gpu.shared.objects


def test_copied_memory_is_there_before_the_tag_is() -> None:
    """A program that looks at a tag in a buffer must find the result in memory that was only copied."""
    with served("kbl") as gpu:
        program, shared = gpu.program(), mmap.mmap(-1, 4096)
        address = ctypes.addressof(ctypes.c_char.from_buffer(memoryview(shared)))
        program.lent.append((address, 4096))
        user = program.ioctl("DRM_IOCTL_I915_GEM_USERPTR", address=address, size=4096).handle
        tag = buffer(program)
        code = store(0x20000, 0xD0) + store(0x30000, 1) + semaphore(0x30004, 1) + struct.pack("<2I", END, 0)  # result, tag, and it goes on
        places = ((user, 0x20000), (tag, 0x30000), (buffer(program, code), 0x10000))
        submit(program, [row(handle, offset=offset, flags=PINNED) for handle, offset in places])
        [node] = gpu.server.nodes.values()
        bo = node.objects.get(tag)
        assert bo is not None
        end = time.monotonic() + 10
        while bo.read(0, 4) == bytes(4) and time.monotonic() < end:
            pass
        assert shared[0] == 0xD0 and not bo.idle()
        bo.write(4, struct.pack("<I", 1))
        program.ioctl("DRM_IOCTL_I915_GEM_WAIT", handle=tag, timeout=10**10)
