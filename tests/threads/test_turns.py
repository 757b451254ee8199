"""Threads of a group that run one after another in compiled code: faults, barriers, escapes, and what each finds when it starts."""

from __future__ import annotations

import time

import pytest

from softgen.device.gpu import GpuDevice
from softgen.errors import SoftgenError
from softgen.threads.dispatcher import EngineDispatcher
from tests.gpgpu.job import END
from tests.gpgpu.shaped import ENGINES, FLAT, HEAD, HELD, PLACE, READS, SHOW, Shape, agree, outcome

NOWHERE = 0x7000000
ITEMS = (0, 0, 0, 0, 0, 0, 0, 48)  # of a group, where kernels show what they found
THREAD = "(W)  mov (1|M0) r5.0<1>:ud r3.0<0;1,0>:uw\n"  # the flat number of its first item


@pytest.mark.parametrize("who", [0, 16, 48])
def test_a_fault_of_a_thread_that_is_not_the_first(who: int) -> None:
    """One thread of the second group goes where nothing is; all that is said of it is the same."""
    where = f"""{THREAD}
(W)  cmp (1|M0) (eq)f0.0 null<1>:ud r5.0<0;1,0>:ud r4.2<0;1,0>:ud
(W)  cmp (1|M0) (eq)f0.1 null<1>:ud r0.1<0;1,0>:ud 1:ud
(W)  mov (1|M0) r7.0<1>:ud 0x100000:ud
(W&f0.0) mov (1|M0) r7.0<1>:ud r4.0<0;1,0>:ud
(W&~f0.1) mov (1|M0) r7.0<1>:ud 0x100000:ud
     add (16|M0) r10.0<1>:d r10.0<8;8,1>:d r7.0<0;1,0>:d
"""
    read = "     send (16|M0) r20:w r10 0xC 0x04205EFF\n"
    said = agree(Shape((64, 1)).job(HEAD + FLAT + where + read + SHOW, [HELD, bytes(512)], (NOWHERE, 0, who)))
    assert f"read at {NOWHERE + 4 * who:#x}" in said[0] and "(lane 0)" in said[0]


SHARE = """
     shl (16|M0) r50.0<1>:d r3.0<16;16,1>:uw 2:w
     add (16|M0) r52.0<1>:d r3.0<16;16,1>:uw r0.1<0;1,0>:d
     send (16|M0) null:w r50 0xC 0x08025EFE
"""
BARRIER = """
(W)  and (8|M0)  r15.0<1>:ud r0.2<0;1,0>:ud 0x8F000000:ud
(W)  send (8|M0) null r15 0x3 0x02008004
(W)  wait        n0.0<0;1,0>:ud
"""
ACROSS = "     xor (16|M0) r10.0<1>:d r10.0<8;8,1>:d 0x40:d\n"


@pytest.mark.parametrize("items, groups", [(64, 5), (72, 3), (16, 4)])
def test_barriers_of_several_threads(items: int, groups: int) -> None:
    shape = Shape((items, 1), groups=groups)
    rounds = "".join(BARRIER + FLAT + ACROSS + "     send (16|M0) r20:w r10 0xC 0x04205EFE\n" + BARRIER
                     + "     add (16|M0) r52.0<1>:d r20.0<8;8,1>:d 3:d\n     send (16|M0) null:w r50 0xC 0x08025EFE\n"
                     for _ in range(3))  # fmt: skip
    job = shape.job(HEAD + SHARE + rounds + SHOW, [bytes(4), bytes(4 * items * shape.groups)], (0, 0, 0, 0, 0, 0, 0, items),
                    descriptor={"barrier_enable": 1})  # fmt: skip
    said = agree(job)
    assert not said[0] and (any(said[1][1]) or items == 16)


@pytest.mark.parametrize("ends", [0, 16, 48])
def test_threads_that_end_before_the_others_come_to_a_barrier(ends: int) -> None:
    """Nobody will come any more: that is said, with who waits and how many are left."""
    early = f"{THREAD}(W)  cmp (1|M0) (eq)f0.0 null<1>:ud r5.0<0;1,0>:ud r4.2<0;1,0>:ud\n(W&~f0.0) jmpi on\n{END}\non:\n"
    kernel = HEAD + early + BARRIER + SHOW.replace("r20.0<8;8,1>:d", "r3.0<16;16,1>:uw")
    said = agree(Shape((64, 1)).job(kernel, [bytes(4), bytes(512)], (0, 0, ends), descriptor={"barrier_enable": 1}))
    assert "3 of 4 threads are left" in said[0]


def test_threads_that_end_at_other_times() -> None:
    """Each goes round as often as its number says; some not at all."""
    turns = f"""{THREAD}
(W)  mov (1|M0) r9.0<1>:ud 0:ud
     mov (16|M0) r20.0<1>:d 0:d
again:
(W)  cmp (1|M0) (ge)f0.0 null<1>:ud r9.0<0;1,0>:ud r5.0<0;1,0>:ud
(W&f0.0) jmpi done
     add (16|M0) r20.0<1>:d r20.0<8;8,1>:d r3.0<16;16,1>:uw
(W)  add (1|M0) r9.0<1>:ud r9.0<0;1,0>:ud 0x1:ud
(W)  jmpi again
done:
"""
    assert not agree(Shape((96, 1)).job(HEAD + turns + SHOW, [bytes(4), bytes(768)], (0, 0, 0, 0, 0, 0, 0, 96)))[0]
    slow = turns.replace(THREAD, THREAD + "(W)  shl (1|M0) r5.0<1>:ud r5.0<0;1,0>:ud 4:w\n")  # more than one turn
    assert not agree(Shape((48, 1), groups=1).job(HEAD + slow + SHOW, [bytes(4), bytes(192)], (0, 0, 0, 0, 0, 0, 0, 48)))[0]


ESCAPES = {
    "clock": "(W)  mov (1|M0) r70.0<1>:ud tm0.0<0;1,0>:ud\n",
    "mode": "(W)  or (1|M0) cr0.0<1>:ud cr0.0<0;1,0>:ud 0x10:ud\n",
}


@pytest.mark.covering(1)
@pytest.mark.parametrize("escape", ESCAPES)
@pytest.mark.parametrize("who", [0, 16, 48])
@pytest.mark.parametrize("barrier", ["", BARRIER], ids=["", "barrier"])
def test_one_thread_of_a_group_that_needs_the_reference(escape: str, who: int, barrier: str) -> None:
    """In the middle of the group, before or behind a barrier; it goes on with what it had."""
    if escape == "mode":  # is known at every place only if all go there
        detour = ESCAPES["mode"]
    else:
        detour = f"{THREAD}(W)  cmp (1|M0) (eq)f0.0 null<1>:ud r5.0<0;1,0>:ud r4.2<0;1,0>:ud\n(W&~f0.0) jmpi on\n{ESCAPES[escape]}on:\n"
    kernel = HEAD + FLAT + SHARE + barrier + detour + barrier + READS["surface"] + SHOW
    job = Shape((64, 1), groups=4).job(kernel, [HELD, bytes(1024)], (0, 0, who, 0, 0, 0, 0, 64), descriptor={"barrier_enable": 1})
    said = agree(job)
    assert not said[0] and any(said[1][1][768:])


@pytest.mark.parametrize("who", [0, 16, 48])
def test_a_thread_that_goes_round_for_ever(who: int) -> None:
    """The others end; time is up for the one that does not."""
    stays = f"{THREAD}again:\n(W)  cmp (1|M0) (eq)f0.0 null<1>:ud r5.0<0;1,0>:ud r4.2<0;1,0>:ud\n(W&f0.0) jmpi again\n"
    for engine in ("reference", *ENGINES):
        job, left = Shape((64, 1), groups=1).job(HEAD + FLAT + stays + SHOW, [bytes(4), bytes(512)], (0, 0, who)), iter(range(6))
        gpu = GpuDevice(job.device, timed_out=lambda left=left: next(left, None) is None, dispatcher=EngineDispatcher(engine, 1))
        with pytest.raises(SoftgenError, match=rf"time is up: thread {who // 16} of group \(0, 0, 0\)"):
            job.run(gpu)


# -- what threads find -------------------------------------------------------------------------------------------------


DIRTY = {
    "register": ("r100.0<8;8,1>:d", "     mov (16|M0) r100.0<1>:d 7:d\n"),
    "accumulator": ("acc0.0<8;8,1>:d", "     mov (16|M0) acc0.0<1>:d 3:d\n"),
    "address": ("a0.0<0;1,0>:uw", "(W)  mov (8|M0) a0.0<1>:uw 0x40:uw\n"),
    "flag": ("f1.1<0;1,0>:uw", "(W)  mov (1|M0) f1.1<1>:uw 0x5:uw\n"),
    "state": ("sr0.2<0;1,0>:ud", ""), "half of a register": ("r100.0<8;8,1>:d", "     mov (8|M0) r101.0<1>:d 7:d\n"),
    "payload": ("r3.0<16;16,1>:uw", "     mov (16|M0) r3.0<1>:uw 0x9:uw\n"),
}  # fmt: skip


@pytest.mark.covering(1)
@pytest.mark.parametrize("what", DIRTY)
@pytest.mark.parametrize("barrier", ["", BARRIER], ids=["", "barrier"])
@pytest.mark.parametrize("escape", ["", ESCAPES["clock"]], ids=["", "escape"])
def test_threads_find_nothing_of_those_before_them(what: str, barrier: str, escape: str) -> None:
    read, write = DIRTY[what]
    body = f"{PLACE}     mov (16|M0) r32.0<1>:d {read}\n{write}{barrier}{escape}"
    if what == "accumulator":
        body = body.replace("mov (16|M0) r32.0<1>:d acc0", "mov (8|M0) r32.0<1>:d acc0").replace("(16|M0) acc0", "(8|M0) acc0")
    if what not in ("state", "flag", "payload"):
        body += f"     add (8|M0) r32.0<1>:d r32.0<8;8,1>:d {read}\n"  # outlives the barrier
    kernel = HEAD + body + "     send (16|M0) null:w r30 0xC 0x08025E01\n" + END
    job = Shape((48, 1), groups=6).job(kernel, [bytes(4), bytes(1152)], (0, 0, 0, 0, 0, 0, 0, 48), descriptor={"barrier_enable": 1})
    assert not agree(job)[0]


def test_kernels_that_need_other_registers_find_them_empty() -> None:
    """On the same host thread, one kernel behind the other, as a driver sends them: one that leaves registers, one that changes none of
    them, and one that looks."""
    leaves = "     mov (16|M0) r32.0<1>:d r100.0<8;8,1>:d\n     mov (16|M0) r102.0<1>:d 7:d\n" + BARRIER
    leaves += "     add (16|M0) r32.0<1>:d r32.0<8;8,1>:d r102.0<8;8,1>:d\n"
    empty = "     mov (16|M0) r32.0<1>:d r104.0<8;8,1>:d\n"
    looks = "     mov (16|M0) r32.0<1>:d r102.0<8;8,1>:d\n"
    groups = EngineDispatcher("t1", 1)
    for kernel in (leaves, empty, looks, leaves, looks, looks + BARRIER):
        code = f"{HEAD}{PLACE}{kernel}     send (16|M0) null:w r30 0xC 0x08025E01\n{END}"
        job = Shape((48, 1), groups=3).job(code, [bytes(4), bytes(576)], ITEMS, descriptor={"barrier_enable": 1})
        ran = job.run(groups=groups)
        assert [ran.space.read(job.address(1), 576)] == outcome(job, "reference")[1][1:]


def test_what_is_kept_at_a_barrier_is_gone_when_the_next_thread_starts() -> None:
    """All that outlives the barrier is used in loops, and stands in the block only while the thread waits."""

    def turns(name: str) -> str:
        return f"""
(W)  mov (1|M0) r9.0<1>:ud 0:ud
{name}:
     add (16|M0) r100.0<1>:d r100.0<8;8,1>:d 1:d
(W)  add (1|M0) r9.0<1>:ud r9.0<0;1,0>:ud 0x1:ud
(W)  cmp (1|M0) (lt)f0.0 null<1>:ud r9.0<0;1,0>:ud 0x3:ud
(W&f0.0) jmpi {name}
"""

    kernel = turns("one") + BARRIER + turns("two") + PLACE + "     mov (16|M0) r32.0<1>:d r100.0<8;8,1>:d\n"
    kernel += f"     send (16|M0) null:w r30 0xC 0x08025E01\n{HEAD}{END}"
    said = agree(Shape((48, 1), groups=4).job(kernel, [bytes(4), bytes(768)], ITEMS, descriptor={"barrier_enable": 1}))
    assert set(said[1][1]) == {0, 6}


def test_what_only_the_reference_reads_is_as_a_thread_starts() -> None:
    """Instructions without a translation read and write a register that no other names."""
    moves = ((32, "100.0<8;8,1>"), (100, "4.7<0;1,0>"))
    body = "".join(f"(W)  or (8|M0) r{to}.0<1>:ud r{source}:ud tm0.4<0;1,0>:ud\n" for to, source in moves)
    kernel = f"{HEAD}{PLACE}{body}     send (16|M0) null:w r30 0xC 0x08025E01\n{END}"
    assert not agree(Shape((48, 1), groups=4).job(kernel, [bytes(4), bytes(768)], ITEMS, descriptor={"barrier_enable": 1}))[0]


@pytest.mark.parametrize("engine", ENGINES)
def test_a_thread_that_looks_until_another_has_written(engine: str) -> None:
    """The first goes round until the second, which comes after it, has put something into local memory."""
    looks = f"""{THREAD}
(W)  mov (8|M0) r10.0<1>:ud 0:ud
(W)  mov (8|M0) r11.0<1>:ud 0x9:ud
(W)  cmp (1|M0) (ne)f0.0 null<1>:ud r5.0<0;1,0>:ud 0x0:ud
(W&f0.0) jmpi writes
again:
(W)  send (1|M0) r20 r10 0xC 0x02106EFE
(W)  cmp (1|M0) (eq)f0.0 null<1>:ud r20.0<0;1,0>:ud 0x0:ud
(W&f0.0) jmpi again
(W)  jmpi done
writes:
(W)  send (1|M0) null r10 0xC 0x04026EFE
done:
"""
    job = Shape((32, 1), groups=1).job(HEAD + looks + END, [bytes(4)])
    end = time.monotonic() + 20
    ran = job.run(GpuDevice(job.device, timed_out=lambda: time.monotonic() > end, dispatcher=EngineDispatcher(engine, 1)))
    assert ran.gpu.counters.threads == 2


def test_flags_of_one_thread_are_not_the_next_ones() -> None:
    """Halves of a flag that are set in a loop, and one that only some threads set."""
    body = f"""{PLACE}{THREAD}
     cmp (8|M0) (gt)f0.0 null<1>:d r3.0<8;8,1>:uw 20:d
     mov (16|M0) r32.0<1>:d 1:d
(f0.0) mov (16|M0) r32.0<1>:d 2:d
     cmp (8|M8) (gt)f0.0 null<1>:d r3.0<8;8,1>:uw 4:d
{BARRIER}
(f0.0) add (16|M0) r32.0<1>:d r32.0<8;8,1>:d 4:d
(W)  cmp (1|M0) (eq)f1.0 null<1>:ud r5.0<0;1,0>:ud 16:ud
(W&f1.0) jmpi over
(W)  mov (1|M0) f0.1<1>:uw 0x5555:uw
over:
(f0.1) add (16|M0) r32.0<1>:d r32.0<8;8,1>:d 8:d
     send (16|M0) null:w r30 0xC 0x08025E01
"""
    job = Shape((48, 1), groups=4).job(HEAD + body + END, [bytes(4), bytes(768)], ITEMS, descriptor={"barrier_enable": 1})
    assert not agree(job)[0]
