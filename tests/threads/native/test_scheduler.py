"""The scheduler: groups in turns, their barrier, and header patches, with small compiled threads of our own."""

from __future__ import annotations

import ctypes
import time
from functools import cache

import numpy as np
import pytest

from softgen.errors import GpuFault
from softgen.eu import native
from softgen.eu.thread.block import BLOCK_OFFSETS, BLOCK_SIZE, Context, ControlBlock, ThreadStatus
from softgen.lanes.compile import jit
from softgen.memory.address_space import AddressSpace
from softgen.memory.store import MemfdBuffer
from softgen.threads.native import scheduler
from softgen.threads.native.scheduler import BlockRange, FallbackAnswer, GroupMember, GroupShare, ReturnReason, SchedulerState
from softgen.threads.workers.worker import WorkerState

CONTROL, N0 = BLOCK_OFFSETS["control"], BLOCK_OFFSETS["n"]
EXECUTED = CONTROL + ControlBlock.executed.offset
FAR = 1 << 62  # a deadline nobody lives to see

# Threads as compiled code has them. r1.0 counts calls; r0.1 is the group's number.
THREADS = f"""
declare void @native_barrier(ptr)
define void @count(ptr %block) {{
  %place = getelementptr i8, ptr %block, i64 {EXECUTED}
  %old = load i64, ptr %place
  %new = add i64 %old, 1
  store i64 %new, ptr %place
  ret void
}}
define i64 @ends(ptr %block, ptr %context) {{
  call void @count(ptr %block)
  %calls = getelementptr i8, ptr %block, i64 32
  %old = load i32, ptr %calls
  %new = add i32 %old, 1
  store i32 %new, ptr %calls
  ret i64 {ThreadStatus.ENDED}
}}
define i64 @strange(ptr %block, ptr %context) {{
  ret i64 77
}}
define i64 @spins(ptr %block, ptr %context) {{
  ret i64 {ThreadStatus.OUT_OF_BUDGET}
}}
define i64 @waits(ptr %block, ptr %context) {{
  ret i64 {ThreadStatus.WAITING}
}}
define i64 @escapes(ptr %block, ptr %context) {{
  ret i64 {ThreadStatus.ESCAPE}
}}
define i64 @meets(ptr %block, ptr %context) {{
  %calls = getelementptr i8, ptr %block, i64 32
  %old = load i32, ptr %calls
  %first = icmp eq i32 %old, 0
  br i1 %first, label %come, label %look
come:
  call void @count(ptr %block)
  store i32 1, ptr %calls
  call void @native_barrier(ptr %context)
  br label %look
look:
  %n = getelementptr i8, ptr %block, i64 {N0}
  %told = load i32, ptr %n
  %none = icmp eq i32 %told, 0
  br i1 %none, label %wait, label %end
wait:
  ret i64 {ThreadStatus.WAITING}
end:
  %one = sub i32 %told, 1
  store i32 %one, ptr %n
  call void @count(ptr %block)
  ret i64 {ThreadStatus.ENDED}
}}
define i64 @stores(ptr %block, ptr %context) {{
  %tables = load ptr, ptr %context
  %record_at = getelementptr i8, ptr %context, i64 {Context.record.offset}
  %record = load ptr, ptr %record_at
  store i64 64, ptr %record
  %base = load i64, ptr %tables
  %group_at = getelementptr i8, ptr %block, i64 4
  %group = load i32, ptr %group_at
  %wide = zext i32 %group to i64
  %by = mul i64 %wide, 4096
  %place = add i64 %base, %by
  %to = inttoptr i64 %place to ptr
  store i32 7, ptr %to
  ret i64 {ThreadStatus.ENDED}
}}
define i64 @in_order(ptr %first, ptr %context) {{
  %turns_at = getelementptr i8, ptr %context, i64 {Context.turns.offset}
  %executed_at = getelementptr i8, ptr %context, i64 {Context.executed.offset}
  %given = load i64, ptr %turns_at
  br label %thread
thread:
  %block = phi ptr [%first, %0], [%following, %next]
  %turns = phi i64 [%given, %0], [%fewer, %next]
  store i64 %turns, ptr %turns_at
  %status_at = getelementptr i8, ptr %block, i64 {CONTROL + ControlBlock.status.offset}
  %status = load i32, ptr %status_at
  %over = icmp eq i32 %status, {ThreadStatus.ENDED}
  br i1 %over, label %next, label %take
take:
  %leaves_at = getelementptr i8, ptr %block, i64 64
  %leaves = load i32, ptr %leaves_at
  %group_at = getelementptr i8, ptr %block, i64 4
  %group = load i32, ptr %group_at
  %stays = icmp ne i32 %leaves, %group
  br i1 %stays, label %end, label %leave
leave:
  ret i64 {ThreadStatus.ESCAPE}
end:
  %calls_at = getelementptr i8, ptr %block, i64 32
  %old = load i32, ptr %calls_at
  %new = add i32 %old, 1
  store i32 %new, ptr %calls_at
  %row_at = getelementptr i8, ptr %block, i64 24
  %row = load i32, ptr %row_at
  %wide = zext i32 %row to i64
  %total = load i64, ptr %executed_at
  %ten = mul i64 %wide, 10
  %column = zext i32 %group to i64
  %more = add i64 %ten, %column
  %sum = add i64 %total, %more
  store i64 %sum, ptr %executed_at
  br label %next
next:
  %following = getelementptr i8, ptr %block, i64 {BLOCK_SIZE}
  %fewer = sub i64 %turns, 1
  %left = icmp sgt i64 %fewer, 0
  br i1 %left, label %thread, label %done
done:
  ret i64 {ThreadStatus.ENDED}
}}
"""
NAMES = ("strange", "ends", "spins", "waits", "escapes", "meets", "stores", "in_order")


@cache
def code() -> jit.LoadedCode:
    names = {"native_barrier": native.imports()["native_barrier"]}
    return jit.load(THREADS, NAMES, imports=names)


class Run:
    """Groups of threads in memory of their own."""

    def __init__(self, name: str, threads: int = 2, groups: tuple[int, int, int] = (3, 1, 1), local: int = 0, clean: bool = False) -> None:
        self.blocks, self.templates = np.zeros(threads * BLOCK_SIZE, np.uint8), np.zeros(threads * BLOCK_SIZE, np.uint8)
        self.members = (GroupMember * threads)()
        for member in self.members:
            member.dirty = 1
        self.ranges = (BlockRange * 2)(BlockRange(0, 4096), BlockRange(N0, BLOCK_SIZE - N0))
        self.local = np.full(local + 64, 0xFF, np.uint8)
        self.context = Context(blocks=self.blocks.ctypes.data, threads=threads, local=self.local.ctypes.data, local_size=local)
        self.dispatch = SchedulerState(
            context=ctypes.addressof(self.context), templates=self.templates.ctypes.data, template_stride=BLOCK_SIZE,
            members=ctypes.addressof(self.members),
            ranges=ctypes.addressof(self.ranges), range_count=2, function=code().address(name), clean=clean, turn=100, size=threads,
            axes=3, extent=groups, patch_offset=(4, 24, 28), last=groups[0] * groups[1] * groups[2], deadline=FAR,
        )  # fmt: skip
        self.call = scheduler.groups_call()

    def __call__(self) -> int | None:
        return self.call(self.dispatch)

    def control(self, thread: int) -> ControlBlock:
        return ControlBlock.from_buffer(self.blocks, thread * BLOCK_SIZE + BLOCK_OFFSETS["control"])  # type: ignore[arg-type]

    def dwords(self, thread: int) -> list[int]:
        return self.blocks[thread * BLOCK_SIZE : (thread + 1) * BLOCK_SIZE].view(np.uint32).tolist()


def test_threads_that_end_do_so_in_every_group() -> None:
    run = Run("ends", groups=(3, 2, 2))
    assert run() == ReturnReason.DONE
    assert (run.dispatch.threads_done, run.dispatch.instructions) == (24, 24)
    assert [run.dwords(1)[i] for i in (1, 6, 7)] == [2, 1, 1]  # the last group's number in r0
    assert run.dwords(1)[8] == 1  # registers were made anew each time


def test_blocks_of_clean_functions_keep_what_they_hold() -> None:
    run = Run("ends", clean=True)
    assert run() == ReturnReason.DONE
    assert run.dwords(0)[8] == 3 and run.dwords(0)[1] == 2  # its promise was not kept, and nobody made up for it


def test_local_memory_is_cleared_for_each_group() -> None:
    run = Run("ends", local=128)
    assert run() == ReturnReason.DONE
    assert not run.local[:128].any() and run.local[128:].all()


def test_a_barrier_lets_all_go_on_when_the_last_has_come() -> None:
    run = Run("meets", threads=5)
    assert run() == ReturnReason.DONE
    assert (run.dispatch.threads_done, run.dispatch.instructions) == (15, 30)
    assert run.context.arrived == 0 and run.dwords(4)[N0 // 4] == 0


def test_a_barrier_that_one_never_reaches_is_stuck() -> None:
    run = Run("meets", threads=3, groups=(1, 1, 1))
    run.context.arrived = 0
    run.templates[BLOCK_SIZE + 32] = 1  # the second thread thinks it has been there
    assert run() == ReturnReason.DEADLOCK
    assert run.dispatch.left == 3 and run.dispatch.first == 0
    assert [run.control(thread).status for thread in range(3)] == [ThreadStatus.WAITING] * 3


def test_threads_that_all_wait_are_stuck_at_once() -> None:
    run = Run("waits")
    assert run() == ReturnReason.DEADLOCK and run.dispatch.left == 2


def test_spinning_ends_at_the_deadline_and_can_be_taken_up_again() -> None:
    run = Run("spins")
    for _ in range(3):
        run.dispatch.deadline = time.monotonic_ns() + 1_000_000
        assert run() == ReturnReason.DEADLINE
    assert run.dispatch.left == 2 and run.context.budget == 100


def test_an_escape_names_its_thread_and_goes_on_there() -> None:
    run = Run("escapes", groups=(1, 1, 1))
    for thread in range(2):
        assert run() == ReturnReason.ESCAPED and run.dispatch.current == thread
        assert run() == ReturnReason.ESCAPED and run.dispatch.current == thread  # nobody did anything about it
        run.control(thread).status = ThreadStatus.ENDED
        run.dispatch.left -= 1
        run.dispatch.current += 1
    assert run() == ReturnReason.DONE and run.dispatch.threads_done == 2


def test_what_was_answered_once_is_not_asked_again() -> None:
    """An escape at 0x10 with cr0.0 = 5 becomes 9 at 0x20, in code that ends; with another cr0.0 it is asked about."""
    run = Run("escapes", threads=2, groups=(2, 1, 1))
    for thread, control in enumerate((5, 6)):
        run.templates[thread * BLOCK_SIZE + BLOCK_OFFSETS["cr"]] = control
        run.templates[thread * BLOCK_SIZE + CONTROL] = 0x10
    run.ranges[1] = BlockRange(BLOCK_OFFSETS["sr"], BLOCK_SIZE - BLOCK_OFFSETS["sr"], 0)
    answers = (FallbackAnswer * 1)(FallbackAnswer(ThreadStatus.ESCAPE, 5, 0x10, 9, 0x20, 1, code().address("ends"), 0))
    run.dispatch.answers, run.dispatch.answer_count = ctypes.addressof(answers), 1
    assert run() == ReturnReason.ESCAPED and run.dispatch.current == 1
    assert run.control(0).status == ThreadStatus.ENDED
    first = run.dwords(0)
    assert first[BLOCK_OFFSETS["cr"] // 4] == 9 and first[CONTROL // 4] == 0x20 and first[EXECUTED // 4] == 2


def test_an_answer_that_changes_nothing_is_no_answer() -> None:
    run = Run("escapes", threads=1, groups=(1, 1, 1))
    answers = (FallbackAnswer * 1)(FallbackAnswer(ThreadStatus.ESCAPE, 0, 0, 0, 0, 0, code().address("escapes"), 0))
    run.dispatch.answers, run.dispatch.answer_count = ctypes.addressof(answers), 1
    assert run() == ReturnReason.ESCAPED


def test_a_status_nobody_knows_is_not_taken_for_another() -> None:
    assert Run("strange", groups=(1, 1, 1))() == ReturnReason.UNKNOWN_STATUS


def test_a_touch_of_nothing_comes_back_with_group_and_ip() -> None:
    space = AddressSpace("job")
    space.map(0, MemfdBuffer(2 * 4096, "data"))
    run = Run("stores", threads=1)
    run.context.table = ctypes.addressof(space.table)
    assert run() is None
    assert space.read32(0x1000) == 7 and run.dispatch.first == 2
    with pytest.raises(GpuFault, match="write at 0x2000 in job by ip 0x40: not mapped"):
        raise run.call.fault(space, "ip {:#x}".format)


# Threads in order: each says that it executed 10 times its row of groups, and its column; r1.0 counts the calls, r2.0 is the column in
# which a thread leaves.


def in_order(threads: int, groups: tuple[int, int, int], leaves: dict[int, int], local: int = 0) -> Run:
    run = Run("in_order", threads, groups, local, clean=True)
    run.dispatch.joint = run.dispatch.in_order = 1
    for thread in range(threads):
        run.templates[thread * BLOCK_SIZE + 64] = leaves.get(thread, 99)
    return run


def test_threads_in_order_find_their_counters_and_leave_their_blocks_alone() -> None:
    run = in_order(3, (4, 2, 1), {})
    assert run() == ReturnReason.DONE
    assert run.dispatch.instructions == 3 * (sum(range(4)) * 2 + 10 * 4) and run.dispatch.threads_done == 24
    assert [run.dwords(thread)[8] for thread in range(3)] == [8, 8, 8]
    assert [(run.control(thread).status, run.control(thread).executed) for thread in range(3)] == [(ThreadStatus.RUNNING, 0)] * 3


def test_local_memory_is_cleared_for_groups_of_threads_in_order() -> None:
    run = in_order(3, (4, 1, 1), {}, local=128)
    for last in (2, 3, 4):
        run.local[:] = 0xFF
        run.dispatch.last = last
        assert run() == ReturnReason.DONE
        assert not run.local[:128].any() and run.local[128:].all()


def test_notifications_of_threads_in_order_are_gone_in_the_next_group() -> None:
    run = in_order(3, (4, 1, 1), {})
    for last in (2, 3, 4):
        run.blocks[N0] = run.blocks[BLOCK_SIZE + N0] = run.context.notified = last > 2
        run.dispatch.last = last
        assert run() == ReturnReason.DONE and not run.blocks[N0] and not run.blocks[BLOCK_SIZE + N0] and not run.context.notified
    assert [run.dwords(thread)[8] for thread in range(3)] == [4, 4, 4]


@pytest.mark.parametrize("who", range(3))
def test_a_thread_in_order_that_leaves_is_the_only_one_left(who: int) -> None:
    """Those before it have ended, those after it end afterwards; the next group starts anew."""
    run = in_order(3, (4, 2, 1), {who: 2})
    for group in (2, 6):
        assert run() == ReturnReason.ESCAPED and (run.dispatch.current, run.dispatch.first) == (who, group)
        ended = [run.control(thread).status == ThreadStatus.ENDED for thread in range(3)]
        assert ended == [thread < who for thread in range(3)]
        run.control(who).status, run.control(who).executed = ThreadStatus.ENDED, 1000
        run.dispatch.current += 1
        run.dispatch.left -= 1
    assert run() == ReturnReason.DONE and run.dispatch.threads_done == 24
    assert run.dispatch.instructions == 3 * (sum(range(4)) * 2 + 10 * 4) - 2 - 12 + 2000
    assert [run.dwords(thread)[8] for thread in range(who)] == [8] * who  # each group once, of a block that promised to be clean
    assert run.dwords(who)[8] == 1  # made anew after it had left
    assert all(run.control(thread).executed == 0 for thread in range(3))


@pytest.mark.parametrize("name", ["ends", "in_order"])
def test_groups_are_taken_in_pieces(name: str) -> None:
    """Five threads in three pieces, each of which is a chunk; counters are those of the group."""
    run, sizes = in_order(5, (4, 2, 1), {}) if name == "in_order" else Run(name, 5, (4, 2, 1), clean=True), list[tuple[int, int]]()
    share = GroupShare(end=3 * 8, pieces=3, workers=1)
    run.dispatch.share, run.dispatch.last, run.dispatch.chunk = ctypes.addressof(share), 0, 100
    for piece in range(3 * 8):
        share.end = piece + 1
        assert run() == ReturnReason.DONE and (run.dispatch.first, run.dispatch.last) == (piece + 1, piece + 1)
        sizes.append((run.dispatch.begin, run.context.threads))
        assert [run.dwords(run.dispatch.begin)[at] for at in (1, 6)] == [piece // 3 % 4, piece // 12]
    assert sizes == [(0, 1), (1, 3), (3, 5)] * 8 and run.dispatch.threads_done == 40
    assert [run.dwords(thread)[8] for thread in range(5)] == [8] * 5
    assert run.dispatch.instructions == (5 * (sum(range(4)) * 2 + 10 * 4) if name == "in_order" else 40)


def test_whole_groups_after_pieces_have_the_code_of_the_dispatch() -> None:
    """A thread of the first piece went on with other code; the second piece did not."""
    run, share = in_order(4, (2, 1, 1), {1: 0}), GroupShare(end=2, pieces=2, workers=1)
    run.dispatch.share, run.dispatch.last, run.dispatch.chunk = ctypes.addressof(share), 0, 1
    assert run() == ReturnReason.ESCAPED and run.dispatch.current == 1
    run.members[1].function, run.dispatch.apart, run.control(1).status = code().address("ends"), 1, ThreadStatus.ENDED
    run.dispatch.current, run.dispatch.left, share.halted = 2, run.dispatch.left - 1, 0
    assert run() == ReturnReason.DONE and run.dispatch.threads_done == 4
    share.next, share.end, share.pieces = 1, 2, 1
    assert run() == ReturnReason.DONE and run.dispatch.threads_done == 8
    assert {member.function for member in run.members} == {run.dispatch.function}


@pytest.mark.parametrize("pieces, taken", [(1, 8), (2, 1)])
def test_pieces_are_taken_one_by_one(pieces: int, taken: int) -> None:
    run, share = Run("escapes", 2, (8, 1, 1)), GroupShare(end=8 * pieces, pieces=pieces, workers=1)
    run.dispatch.share, run.dispatch.last, run.dispatch.chunk = ctypes.addressof(share), 0, 100
    assert run() == ReturnReason.ESCAPED and (run.dispatch.first, run.dispatch.last, share.next) == (0, taken, taken)


def test_threads_in_order_that_are_asked_about_twice() -> None:
    run = in_order(4, (1, 1, 1), {1: 0, 3: 0})
    for thread in (1, 3):
        assert run() == ReturnReason.ESCAPED and run.dispatch.current == thread
        assert run() == ReturnReason.ESCAPED and run.dispatch.current == thread  # nobody did anything about it
        run.control(thread).status = ThreadStatus.ENDED
        run.dispatch.current += 1
        run.dispatch.left -= 1
    assert run() == ReturnReason.DONE and [run.dwords(thread)[8] for thread in range(4)] == [1, 0, 1, 0]


def test_host_threads_write_to_cache_lines_of_their_own() -> None:
    """What a worker writes for each message and group; the structures of another one, or any object of Python, might be beside it."""
    states = [WorkerState() for _ in range(20)]
    hot = [structure for state in states for structure in (state.call.record, state.context, state.dispatch)]
    lines = [set(range(start // native.LINES, (start + ctypes.sizeof(structure) - 1) // native.LINES + 1))
             for structure in hot for start in (ctypes.addressof(structure),)]  # fmt: skip
    assert len(set().union(*lines)) == sum(map(len, lines))
    assert all(ctypes.addressof(structure) % native.LINES == 0 for structure in hot)
