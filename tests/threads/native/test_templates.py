"""Templates: blocks of threads as they start, which templates are kept, and the memory they are in."""

from __future__ import annotations

import ctypes
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from softgen.eu.thread import block
from softgen.eu.thread.block import ControlBlock
from softgen.threads import reference
from softgen.threads.dispatch import ThreadDispatch
from softgen.threads.native.templates import LINE, MAX_KEPT, AlignedMemory, TemplateCache, ThreadTemplates
from softgen.threads.payload import Counter, HeaderPatch, Payload, PayloadList, PayloadWriter, SlotField, TemplatePayload, ThreadMasks

HEADER = bytes(range(1, 33))
SLOTS = (SlotField(8, 0xFFC00, 0x5400, 0x400), SlotField(20, 0x1FF, 0, 1))


@pytest.mark.parametrize("size", [1, 63, 64, 65, 4000, 1 << 16])
def test_memory_begins_at_a_cache_line(size: int) -> None:
    made = [AlignedMemory() for _ in range(16)]  # the allocator may give one of them an address that happens to be right
    for memory in made:
        held = memory.fit(size)
        assert len(held) == size and memory.address % LINE == 0 and held.ctypes.data == memory.address and not held.any()
        held[:] = 7


def test_memory_is_kept_while_it_is_large_enough() -> None:
    memory = AlignedMemory()
    memory.fit(100)[:] = 7
    first = memory.address
    assert memory.fit(100).tolist() == [7] * 100 and memory.fit(60).tolist() == [7] * 60 and memory.address == first
    assert len(memory.bytes) == 100 and len(memory.fit(0)) == 0
    larger = memory.fit(101)
    assert len(larger) == 101 and not larger.any() and larger.ctypes.data == memory.address


def made_dispatch(payload: Payload, threads: int = 3, **values: Any) -> ThreadDispatch:
    given = {"kernel": 0x1240, "control": (0x8000, 0x30, 7), "simd": 16, "groups": 1, **values}
    return ThreadDispatch(payload=payload, threads=threads, **given)


def shared(dispatch: ThreadDispatch, gen: float = 9) -> Any:
    return SimpleNamespace(dispatch=dispatch, gen=gen, full=dispatch.full)


def started(dispatch: ThreadDispatch, number: int, first_slot: int, gen: float = 9) -> bytes:
    """A block as the reference engine starts a thread."""
    thread = reference.start_thread(gen, dispatch, 0, number)
    if not isinstance(dispatch.payload, PayloadWriter):
        payload = dispatch.start_registers(0, number, first_slot)
        thread.grf[: len(payload)] = np.frombuffer(payload, np.uint8)
    thread.save()
    held = bytearray(thread.block.tobytes())
    at = block.BLOCK_OFFSETS["control"] + ControlBlock.number.offset
    held[at : at + 4] = number.to_bytes(4, "little")
    return bytes(held)


def blocks(templates: ThreadTemplates, count: int) -> list[bytes]:
    """As a worker reads them: by address and stride."""
    stride = templates.stride
    return [ctypes.string_at(templates.address + number * stride, block.BLOCK_SIZE) for number in range(count)]


def data(common: bytes, *own: bytes) -> bytes:
    return 32 * common + b"".join(64 * part for part in own)


MASKS = ThreadMasks((0xFFFF, 0x0F0F, 0x1))
TEMPLATE = TemplatePayload(HEADER, 32, 64, False, data(b"c", b"0", b"1", b"2"))


@pytest.mark.covering(2)
@pytest.mark.parametrize("first_slot", [0, 6])
@pytest.mark.parametrize("gen", [7, 9, 11])
@pytest.mark.parametrize("dispatch", [
    made_dispatch(TEMPLATE), made_dispatch(replace(TEMPLATE, own_first=True)), made_dispatch(replace(TEMPLATE, slots=SLOTS)),
    made_dispatch(TEMPLATE, masks=MASKS), made_dispatch(replace(TEMPLATE, slots=SLOTS), threads=1, simd=8, control=(0,)),
    made_dispatch(TemplatePayload(HEADER)), made_dispatch(TemplatePayload(HEADER, slots=SLOTS), masks=MASKS),
    made_dispatch(PayloadList((HEADER * 3, HEADER, HEADER * 2))),
    made_dispatch(PayloadList((HEADER, HEADER * 2, HEADER), SLOTS), masks=MASKS),
], ids=["template", "own first", "slots", "masks", "one thread", "header", "all of a header", "list", "all of a list"])  # fmt: skip
def test_blocks_are_those_of_threads_that_start(dispatch: ThreadDispatch, gen: float, first_slot: int) -> None:
    templates = ThreadTemplates()
    assert templates.make(shared(dispatch, gen), first_slot)
    assert templates.stride == block.BLOCK_SIZE and templates.control == dispatch.control[0]
    count = dispatch.threads
    assert blocks(templates, count) == [started(dispatch, number, first_slot, gen) for number in range(count)]
    assert not templates.make(shared(dispatch, gen), first_slot)


@pytest.mark.parametrize("masks", [None, MASKS])
def test_payloads_that_are_written_later_need_one_block(masks: ThreadMasks | None) -> None:
    """Or one for each mask."""
    dispatch = made_dispatch(PayloadWriter(0x1000, 0x2000, 3), **({"masks": masks} if masks else {}))
    templates = ThreadTemplates()
    assert templates.make(shared(dispatch), 5) and not templates.make(shared(dispatch), 5)
    assert templates.stride == (block.BLOCK_SIZE if masks else 0) and len(templates.bytes) == block.BLOCK_SIZE * (3 if masks else 1)
    assert blocks(templates, 3) == [started(dispatch, number if masks else 0, 0) for number in range(3)]


@pytest.mark.parametrize("before, after", [
    (replace(TEMPLATE, slots=SLOTS), replace(TEMPLATE, slots=SLOTS, data=data(b"d", b"3", b"4", b"5"))),
    (PayloadList((HEADER * 3, HEADER, HEADER * 2), SLOTS), PayloadList((HEADER, HEADER * 2, HEADER), SLOTS)),
], ids=["template", "list"])  # fmt: skip
def test_other_data_is_written_over_what_was_there(before: Payload, after: Payload) -> None:
    """Bytes after a shorter payload are zero again. What threads wrote into a block is not looked for: templates are only read."""
    templates = ThreadTemplates()
    first, second = made_dispatch(before, masks=MASKS), made_dispatch(after, masks=MASKS)
    for dispatch in (first, second, first):
        assert templates.make(shared(dispatch), 2) and not templates.make(shared(dispatch), 2)
        assert blocks(templates, 3) == [started(dispatch, number, 2) for number in range(3)]


def test_blocks_that_were_not_completed_are_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    templates, dispatch = ThreadTemplates(), made_dispatch(replace(TEMPLATE, slots=SLOTS))
    other = made_dispatch(replace(TEMPLATE, slots=SLOTS, data=data(b"d", b"3", b"4", b"5")))
    templates.make(shared(dispatch), 0)

    def interrupted(*given: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as broken:
        broken.setattr(ThreadTemplates, "_fill", interrupted)
        with pytest.raises(KeyboardInterrupt):
            templates.make(shared(other), 0)
    templates.bytes[:] = 0xEE
    assert templates.make(shared(dispatch), 0) and blocks(templates, 3) == [started(dispatch, number, 0) for number in range(3)]


PATCH = HeaderPatch((Counter(5, 2, 4), Counter(0, 3, 24)))
KINDS = [made_dispatch(TEMPLATE, patch=PATCH)]
KINDS += [replace(KINDS[0], **changed) for changed in (
    {"kernel": 0x1280}, {"control": (0x8000, 0x30, 8)}, {"control": (0, 0x30, 7)}, {"simd": 8}, {"threads": 2}, {"masks": MASKS},
    {"patch": None}, {"patch": HeaderPatch((Counter(5, 2, 4), Counter(0, 3, 28)))}, {"payload": replace(TEMPLATE, header=HEADER[::-1])},
    {"payload": replace(TEMPLATE, own_first=True)}, {"payload": replace(TEMPLATE, slots=SLOTS)},
    {"payload": replace(TEMPLATE, common=64, own=32)}, {"payload": PayloadList((HEADER,) * 3)},
    {"payload": PayloadList((HEADER,) * 3, SLOTS)}, {"payload": PayloadWriter(0x1000, 0x2000, 3)})]  # fmt: skip


def test_templates_are_kept_for_each_kind_of_dispatch() -> None:
    """Kinds differ in all that blocks are made of; of the same kind are those that differ in their data, and in where counters start."""
    cache = TemplateCache()
    assert len(KINDS) == MAX_KEPT
    found = [cache.choose(shared(dispatch), 0) for dispatch in KINDS]
    assert len({id(templates) for templates, _ in found}) == MAX_KEPT and all(differ for _, differ in found)
    for (templates, _), dispatch in zip(found, KINDS, strict=True):
        assert cache.choose(shared(dispatch), 0) == (templates, True), "other ones were chosen last"
        assert cache.choose(shared(dispatch), 0) == (templates, False)
    first = found[0][0]
    assert cache.choose(shared(replace(KINDS[0], patch=HeaderPatch((Counter(9, 7, 4), Counter(1, 1, 24))))), 0) == (first, True)
    assert cache.choose(shared(replace(KINDS[0], payload=replace(TEMPLATE, data=data(b"d", b"3", b"4", b"5")))), 0) == (first, True)
    for changed in ((shared(KINDS[0], 11), 0), (shared(KINDS[0]), 3)):
        assert cache.choose(*changed)[0] not in [templates for templates, _ in found]


def test_the_kind_that_was_used_longest_ago_is_dropped() -> None:
    cache = TemplateCache()
    kinds = [shared(made_dispatch(TEMPLATE, kernel=0x40 * number)) for number in range(MAX_KEPT + 1)]
    found = [cache.choose(kind, 0)[0] for kind in kinds[:MAX_KEPT]]
    assert cache.choose(kinds[0], 0)[0] is found[0], "so that the second is the oldest"
    cache.choose(kinds[MAX_KEPT], 0)
    assert [cache.choose(kind, 0)[0] is held for kind, held in zip(kinds[2:MAX_KEPT], found[2:], strict=True)] == [True] * (MAX_KEPT - 2)
    assert cache.choose(kinds[0], 0)[0] is found[0] and cache.choose(kinds[1], 0)[0] is not found[1]
    assert len(cache._kept) == MAX_KEPT
