"""The state of a thread, and its exchange with compiled code through the block."""

from __future__ import annotations

import pytest

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
