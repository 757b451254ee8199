"""The state of a thread, and its exchange with compiled code through the block."""

from __future__ import annotations

import re

import pytest

from softgen.errors import GpuFault
from softgen.eu.thread.block import ThreadStatus
from softgen.eu.thread.state import MaskStacks, ThreadState


@pytest.mark.parametrize("waiting, number", [(None, 0), (0, 1), (2, 3)])
@pytest.mark.parametrize("ended", [False, True])
def test_what_is_saved_is_loaded(waiting: int | None, number: int, ended: bool) -> None:
    """Channels that wait elsewhere keep their ips; the ips of those that were not dispatched are the thread's."""
    made = ThreadState(9.0, kernel=64, dispatch_mask=0xFF)
    made.ip, made.executed, made.waiting, made.ended = 96, 1 << 33, waiting, ended
    made.channel_ip = [96, 160, 96, 192, *[96] * 28]
    made.save()
    block = made.control_block
    assert (block.ip, block.executed, block.waiting, block.active) == (96, 1 << 33, number, 0b11110101)
    assert block.status == (ThreadStatus.ENDED if ended else ThreadStatus.RUNNING)
    made.channel_ip[20] = 7
    other = ThreadState(9.0, block=made.block)
    assert (other.ip, other.executed, other.waiting, other.ended) == (96, 1 << 33, waiting, ended)
    assert other.channel_ip == [96, 160, 96, 192, *[96] * 28] and other.dispatch_mask == 0xFF


def test_masks_and_their_stacks_are_saved_and_loaded() -> None:
    made = ThreadState(4.5, dispatch_mask=0xFFFF)
    made.masks = MaskStacks(0xFFF0, 0x0FFF, 0x7FFF, [0xFFFF, 0xFFF1, 3], [(0xFFFF, 0xFF), (0x0F, 0x07)])
    made.save()
    block = made.control_block
    assert (block.imask, block.lmask, block.cmask, block.imask_depth, block.loop_depth) == (0xFFF0, 0x0FFF, 0x7FFF, 3, 2)
    assert list(block.imask_stack[:3]) == [0xFFFF, 0xFFF1, 3] and list(block.loop_stack[:4]) == [0xFFFF, 0xFF, 0x0F, 0x07]
    made.masks.imask_stack.pop()
    made.masks.loop_stack.clear()
    made.save_masks()
    other = ThreadState(4.5, block=made.block)
    assert other.masks == MaskStacks(0xFFF0, 0x0FFF, 0x7FFF, [0xFFFF, 0xFFF1], []) and other.active == 0x0FF0


@pytest.mark.parametrize("mask, vector", [(0, 0), (1, 0xF), (0x80, 0xF0), (0x00010010, 0x000F00F0), (0xFFFFFFFF, 0xFFFFFFFF)])
def test_the_vector_mask_has_whole_groups_of_four(mask: int, vector: int) -> None:
    """IVB 2220-2230."""
    made = ThreadState(9.0, dispatch_mask=mask)
    assert made.dispatch_mask == mask and list(made.dwords("sr")[2:4]) == [mask, vector]
    made.dwords("cr")[0] |= 8  # vector_mask_enable
    assert made.dispatch_mask == vector == made.active


@pytest.mark.parametrize("mask", [-1, 0x1_0000_0001, 0xFFFF_0000_0000])
def test_channels_that_no_thread_has_are_not_dispatched(mask: int) -> None:
    made = ThreadState(9.0, dispatch_mask=mask)
    assert made.dispatch_mask == mask & 0xFFFFFFFF
    assert list(made.dwords("sr")[2:4]) == {-1: [0xFFFFFFFF] * 2, 0x1_0000_0001: [1, 0xF]}.get(mask, [0, 0])


@pytest.mark.parametrize("gen, messages", [(4.5, 16), (7.0, 0), (11.0, 0)])
def test_a_snapshot_has_every_register_by_its_name(gen: float, messages: int) -> None:
    made = ThreadState(gen)
    found = made.snapshot()
    expected = {f"r{number}" for number in range(128)} | {f"m{number}" for number in range(messages)}
    assert {name for name in found if re.fullmatch(r"[rm]\d+", name)} == expected
    assert {"a0", "acc0", "acc1", "f0", "sr0", "cr0"} <= set(found) and ("f1" in found) is (gen >= 7)
    assert all(len(found[name]) == 32 for name in ("r0", "r127", "acc0", "acc1")) and len(found["f0"]) == 4
    assert not {"null", "null0", "ip", "ip0", "tm0", "ce", "ce0"} & set(found), "what is no state, or changes by itself"


@pytest.mark.parametrize("name, register, byte", [("grf", "r3", 3 * 32 + 5), ("grf", "r127", 4095), ("acc", "acc1", 32), ("f", "f1", 7),
                                                  ("cr", "cr0", 0), ("a", "a0", 31)])  # fmt: skip
def test_a_register_that_changed_is_named_with_its_bytes(name: str, register: str, byte: int) -> None:
    made = ThreadState(9.0)
    before = made.snapshot()
    assert made.compare(before) == ()
    (made.grf if name == "grf" else made.arf[name])[byte] = 0x5A
    (change,) = made.compare(before)
    assert (change.name, change.before, change.after) == (register, before[register], made.snapshot()[register])


@pytest.mark.parametrize("name, size", [("grf", 4096), ("mrf", 0), ("acc", 64), ("sr", 32), ("f", 8)])
def test_a_dword_is_read_inside_a_register_alone(name: str, size: int) -> None:
    made = ThreadState(9.0)
    held = made.dwords(name)
    assert held.nbytes == size
    held[:] = range(1, size // 4 + 1)
    assert [made.dword_at(name, start) for start in range(0, size, 4)] == list(range(1, size // 4 + 1))
    for start in (-4, -1, size, size + 4):
        with pytest.raises(GpuFault, match=f"outside its {size:#x} bytes"):
            made.dword_at(name, start)
