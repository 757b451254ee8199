"""EXECBUFFER2: addresses and relocations."""

import errno
import itertools
import struct
import threading
import time
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest

from softgen.driver.errors import Errno
from softgen.driver.ioctl import execbuffer, gem
from softgen.driver.ioctl.execbuffer import check_row
from softgen.driver.uapi.uapi import RELOCATION
from tests.driver.execbuffer import FIRST, HIGH, LUT, NO_RELOC, PINNED, buffer, refused, relocations, row, submit
from tests.driver.program import Gpu, Held, Program, served

# -- addresses


def test_addresses_are_given_out_apart_and_kept(gpu: Gpu) -> None:
    program = gpu.program()
    handles = [buffer(program, size=size) for size in (4096, 65536, 4096)]
    first = [object_.offset for object_ in submit(program, [row(handle, alignment=65536 * (handle == 2)) for handle in handles])]
    assert len(set(first)) == 3 and min(first) >= 0x100000 and first[1] % 65536 == 0
    ranges = sorted(zip(first, (4096, 65536, 4096), strict=True))
    assert all(start + size < after for (start, size), (after, _) in itertools.pairwise(ranges))
    for _ in range(3):  # also where the program does not look at them
        assert [object_.offset for object_ in submit(program, [row(handle) for handle in handles])] == first


def test_pinned_addresses_are_taken_as_they_are_and_others_make_room(gpu: Gpu, held: Held) -> None:
    program = gpu.program()
    loose, pinned = buffer(program), buffer(program)
    address = submit(program, [row(loose)])[0].offset
    found = submit(program, [row(pinned, offset=address, flags=PINNED), row(loose)])
    assert found[0].offset == address and found[1].offset != address
    high = 0xFFFF_8000_0000_0000 | 0x1234000  # canonical: bit 47 repeated
    [found] = submit(program, [row(pinned, offset=high, flags=PINNED | HIGH)])
    assert held.submissions[-1].bound[0].address == 0x8000_0123_4000 and found.offset == high


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


def test_sixteen_arguments_of_a_context_are_remembered() -> None:
    """Whatever their buffers and the start of the batch; then all are forgotten."""
    context: Any = SimpleNamespace(accepted={}, engine=lambda flags: f"engine {flags & 63}", slot=lambda flags: flags)

    class Argument(NamedTuple):
        buffers: int
        count: int
        start: int
        size: int
        dr1: int = 0
        dr4: int = 0
        fences_at: int = 0
        fences: int = 0
        flags: int = 0

    found = [execbuffer.accept(context, Argument(number, 1, 8 * number, 8 * number, flags=1 << 18)) for number in range(16)]
    assert list(context.accepted.values()) == found and {made.batch_first for made in found} == {True}
    last = execbuffer.accept(context, Argument(0, 1, 0, 128, flags=2))
    assert list(context.accepted.items()) == [((128, 0, 0, 0, 0, 2), last)]
    assert (last.engine, last.slot, last.batch_first, last.fenced, last.fence_out) == ("engine 2", 2, False, False, False)


def test_the_same_list_again_means_what_its_handles_mean_now(gpu: Gpu, held: Held, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is looked up once, and again when a handle or an address has changed meanwhile."""
    looked: list[int] = []
    lookup = gem.lookup
    monkeypatch.setattr(gem, "lookup", lambda node, handle: (looked.append(handle), lookup(node, handle))[1])
    program = gpu.program()
    first, other = buffer(program), buffer(program)
    for _ in range(3):
        submit(program, [row(first), row(other)])
    assert looked.count(first) == 3, "their addresses are written to it each time"
    known = [row(handle, offset=bound.address) for handle, bound in zip((first, other), held.submissions[-1].bound, strict=True)]
    looked.clear()
    for _ in range(3):
        submit(program, known)
    assert looked == [first, other]
    looked.clear()
    held.submissions.clear()
    rows = [row(first, offset=0x200000, flags=PINNED), row(other, offset=0x300000, flags=PINNED)]
    for _ in range(3):
        submit(program, rows)
    assert looked.count(first) == 1 and [submission.relocations for submission in held.submissions] == [0] * 3
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


UPPER = 0xFFFF_FFFF_FFFF_0000
PAD = 1 << 5


@pytest.mark.parametrize("fields, complaint", [
    ({"offset": 0x123}, ""),  # where a buffer was last, as far as the driver knows
    ({"offset": 1 << 47}, ""), ({"offset": 0x5_0000_0000}, ""), ({"offset": 0x10000, "alignment": 0x20000}, ""), ({"r1": 100}, ""),
    *(({"alignment": alignment}, "") for alignment in (0, 1, 2, 4096, 1 << 63)),
    *(({"alignment": alignment}, "is no power of two") for alignment in (3, 4097, 3 << 12, (1 << 64) - 1)),
    ({"flags": PAD, "r1": 0}, ""), ({"flags": PAD, "r1": 8192}, ""), ({"flags": PAD, "r1": 4097}, "padded to 0x1001 bytes"),
    ({"flags": 0xEF}, ""), ({"flags": 0x100}, "flags 0x100"), ({"flags": 1 << 63}, "flags 0x8000000000000000"),
    ({"flags": PINNED, "offset": 0}, ""), ({"flags": PINNED, "offset": 0x10000}, ""),
    ({"flags": PINNED, "offset": 0x10800}, "not a page in canonical form"),
    ({"flags": PINNED | HIGH, "offset": UPPER}, ""), ({"flags": PINNED | HIGH, "offset": UPPER & (1 << 48) - 1}, "not a page in canonical"),
    ({"flags": PINNED | HIGH, "offset": 0x7FFF_FFFF_0000}, ""), ({"flags": PINNED | HIGH, "offset": 1 << 48}, "not a page in canonical"),
    ({"flags": PINNED, "offset": 0x10000, "alignment": 0x10000}, ""),
    ({"flags": PINNED, "offset": 0x10000, "alignment": 0x20000}, "against its alignment of 0x20000"),
    ({"flags": PINNED, "offset": 0xFFFF_D000}, ""), ({"flags": PINNED, "offset": 0xFFFF_E000}, "pinned above 4 GiB, at 0xffffe000"),
    ({"flags": PINNED | HIGH, "offset": 0xFFFF_E000}, ""), ({"flags": PINNED, "offset": UPPER}, "pinned above 4 GiB"),
])  # fmt: skip
def test_what_may_be_said_of_a_buffer(fields: dict[str, int], complaint: str) -> None:
    """Of two pages. Only where it is pinned must its address be right."""
    said = SimpleNamespace(**{"handle": 1, "flags": 0, "alignment": 0, "offset": 0, "r1": 0} | fields)
    if not complaint:
        check_row(said, 8192)
        return
    with pytest.raises(Errno, match=complaint) as found:
        check_row(said, 8192)
    assert found.value.number == errno.EINVAL


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
    for dr4 in (1, 0xFFFFFFFE):
        refused(errno.EINVAL, program, [row(handle)], dr4=dr4)
    refused(errno.EINVAL, program, [row(handle)], dr1=1)
    submit(program, [row(handle)], dr4=0xFFFFFFFF)  # as UXA leaves it
    refused(errno.EINVAL, program, [row(handle)], start=4096, size=8)
    refused(errno.ENOENT, program, [row(handle)], context=77)
    refused(errno.EINVAL, program, [row(handle)], flags=9)
    refused(errno.EPERM, program, [row(handle)], flags=1 << 9)
    with pytest.raises(OSError) as found:
        program.ioctl("DRM_IOCTL_I915_GEM_EXECBUFFER2", buffers=8, count=1)
    assert found.value.errno == errno.EFAULT
    with pytest.raises(OSError, match="Invalid"):
        program.ioctl("DRM_IOCTL_I915_GEM_EXECBUFFER2", buffers=8, count=0)


@pytest.mark.parametrize("start, size, fits", [
    (0, 0, True), (0, 4096, True), (4088, 0, True), (4088, 8, True),
    (4088, 16, False), (0, 4104, False), (4096, 0, False), (4096, 8, False),
])  # fmt: skip
def test_a_batch_is_inside_of_its_buffer(gpu: Gpu, held: Held, start: int, size: int, fits: bool) -> None:
    """Where it has no size, up to the buffer's end: some of it must be left."""
    program = gpu.program()
    handle = buffer(program)
    if fits:
        submit(program, [row(handle)], start=start, size=size)
        assert (held.submissions[-1].batch_start, held.submissions[-1].batch_size) == (start, size)
    else:
        refused(errno.EINVAL, program, [row(handle)], start=start, size=size)


@pytest.mark.parametrize("flags, place", [(0, 2), (FIRST, 0)])
def test_the_batch_is_the_last_buffer_or_the_first(gpu: Gpu, held: Held, flags: int, place: int) -> None:
    program = gpu.program()
    handles = [buffer(program, size=size) for size in (8192, 4096, 8192)]
    rows = [row(handle, offset=0x10000 * (1 + number), flags=PINNED) for number, handle in enumerate(handles)]
    submit(program, rows, flags=flags, start=4096)
    [found] = held.submissions
    assert (found.batch_index, found.batch, found.bound[place].handle) == (place, 0x10000 * (1 + place) + 4096, handles[place])


def test_a_submission_is_that_of_its_context(gpu: Gpu, held: Held) -> None:
    """Whatever is in the upper half of its field."""
    program = gpu.program()
    handle, (node,) = buffer(program), gpu.server.nodes.values()
    for number in (0, *(program.ioctl("DRM_IOCTL_I915_GEM_CONTEXT_CREATE").context for _ in range(3))):
        for upper in (0, 1, 0xFFFFFFFF):
            submit(program, [row(handle)], context=number | upper << 32)
            assert held.submissions[-1].context is node.contexts.get(number)


def test_batches_start_at_multiples_of_8_also_where_the_rest_was_fine_before(gpu: Gpu, held: Held) -> None:
    program = gpu.program()
    handle = buffer(program)
    for start in (0, 8, 64):
        submit(program, [row(handle)], start=start)
        for odd in (1, 4, 7, 9, 18, 36, start + 4):
            refused(errno.EINVAL, program, [row(handle)], start=odd)
    assert [submission.batch_start for submission in held.submissions] == [0, 8, 64]


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


def test_the_same_list_again_has_its_relocations_applied_again(gpu: Gpu) -> None:
    """The program has changed what they say meanwhile."""
    program = gpu.program()
    target, batch = buffer(program), buffer(program)
    entries = relocations(program, {"target": target, "offset": 0})
    entry = program.kept[-1]
    rows = [row(target, offset=0x20000, flags=PINNED), row(batch, offset=0x10000, flags=PINNED, **entries)]
    for delta in (16, 32, 48):
        entry.buffer.raw = RELOCATION.pack(SimpleNamespace(**{**dict.fromkeys(RELOCATION.names, 0), "target": target, "delta": delta}))
        submit(program, rows)
        assert content_now(gpu, program, batch, 8) == struct.pack("<Q", 0x20000 + delta)
        gpu.shared.runner.finish()  # type: ignore[attr-defined]


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


@pytest.mark.parametrize("count, number", [
    (0, errno.EINVAL), (1, errno.EFAULT), (1 << 17, errno.EFAULT), ((1 << 17) + 1, errno.EINVAL), ((1 << 32) - 1, errno.EINVAL),
])  # fmt: skip
def test_a_list_has_one_buffer_and_131072_at_most(gpu: Gpu, count: int, number: int) -> None:
    """Where the list is, the program has no memory."""
    with pytest.raises(OSError) as found:
        gpu.program().ioctl("DRM_IOCTL_I915_GEM_EXECBUFFER2", buffers=0x10000, count=count)
    assert found.value.errno == number


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


def test_two_threads_relocate_a_buffer_one_after_the_other(gpu: Gpu, held: Held, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two address spaces with other addresses. The second comes when the first has written its address, and is not yet submitted."""
    first = gpu.program()
    second, target, batch, began = first.thread(), buffer(first), buffer(first), threading.Event()
    places, contexts = (0x5_0000_0000, 0x6_0000_0000), [first.ioctl("DRM_IOCTL_I915_GEM_CONTEXT_CREATE").context for _ in range(2)]
    relocate, written = execbuffer.relocate, list[int]()

    def late(*arguments: Any) -> int:
        count = relocate(*arguments)
        written.append(count)
        began.set()
        while len(written) == 1 and not gpu.shared.signals.waiting:
            time.sleep(0.001)
        return count

    def send(program: Program, number: int) -> None:
        entries = relocations(program, {"target": target, "offset": 0})
        submit(program, [row(target, offset=places[number], flags=PINNED | HIGH), row(batch, **entries)], context=contexts[number])

    monkeypatch.setattr(execbuffer, "relocate", late)
    threads = [threading.Thread(target=send, args=(program, number)) for number, program in enumerate((first, second))]
    threads[0].start()
    assert began.wait(60)
    threads[1].start()
    threads[0].join(60)
    assert content_now(gpu, first, batch, 8) == struct.pack("<Q", places[0])
    held.finish()
    threads[1].join(60)
    assert content_now(gpu, first, batch, 8) == struct.pack("<Q", places[1])


def test_work_on_the_same_buffer_keeps_its_order(gpu: Gpu, held: Held) -> None:
    """Readers wait for writers, writers for readers and writers, nobody for readers alone; not where the driver says it knows better."""
    program = gpu.program()
    shared, writes, asynchronous = buffer(program), 1 << 2, 1 << 6
    for flags in (0, 0, writes, 0, writes | asynchronous):
        submit(program, [row(shared, flags=flags), row(buffer(program))])
    fences = [submission.fence for submission in held.submissions]
    assert [submission.after for submission in held.submissions] == [[], [], fences[:2], [fences[2]], []]
