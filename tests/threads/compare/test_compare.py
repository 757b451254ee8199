"""Two engines on the same work: what is compared, what is left in memory, and how a difference is named."""

from __future__ import annotations

import ctypes
import shutil
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from softgen.errors import GpuFault, Unsupported
from softgen.eu.native import address
from softgen.memory.address_space import AddressSpace
from softgen.memory.space import MappedRegion
from softgen.memory.store import MemfdBuffer
from softgen.threads.compare import snapshot
from softgen.threads.compare.compare import ComparingDispatcher
from softgen.threads.compare.compare_work import WorkComparison
from softgen.threads.compare.selection import PixelPlace
from softgen.threads.compare.snapshot import EngineDifference, MemorySnapshot
from softgen.threads.dispatch import DispatchContext, Finished, ThreadDispatch, TimedOut, never
from softgen.threads.dispatcher import EngineDispatcher
from softgen.threads.payload import LoopPayload
from softgen.threads.workers.kept_loop import KeptLoop, LoopLease
from tests.gpgpu.job import ADD, END, Job, vector_add
from tests.threads.native_loops import NativeLoop, run_loops
from tests.threads.test_loops import CONSTANT, LANES, Loop, Memory, library
from tests.threads.test_reference import NEIGHBOUR
from tests.threads.workers.test_pool import COUNT, job

__all__ = ["library"]  # a fixture

# -- dispatches --------------------------------------------------------------------------------------------------------


class Wrong(EngineDispatcher):
    """A reference with a fault planted: one dword is wrong after a certain group."""

    def __init__(self, group: int, address: int) -> None:
        super().__init__("reference")
        self.name, self.group, self.address = "wrong", group, address

    def run(self, context: DispatchContext, dispatch: ThreadDispatch, timed_out: TimedOut = never) -> Iterator[Finished]:
        right = EngineDispatcher("reference")
        yield from right.run(context, dispatch, timed_out)
        assert dispatch.patch is not None
        if self.group in [dispatch.patch.values(group)[0] for group in range(dispatch.groups)]:
            context.space.write32(self.address, context.space.read32(self.address) ^ 0x100)


@pytest.mark.parametrize("engine", ["t0", "t1"])
def test_engines_that_agree_say_nothing(engine: str) -> None:
    ran = vector_add("skl").run(groups=ComparingDispatcher(EngineDispatcher("reference"), EngineDispatcher(engine, 1)))
    assert ran.buffer(1) == tuple(range(1000, 1064)) and ran.gpu.counters.threads == 4
    neighbours = Job(NEIGHBOUR, [bytes(16)], simd=8, shape=(4, 1, 1), local=1024, descriptor={"barrier_enable": 1})
    assert neighbours.run(groups=ComparingDispatcher(EngineDispatcher(engine, 1), EngineDispatcher("reference"))).buffer(0) == (2, 1, 4, 3)


def test_a_difference_is_named_with_group_address_values_and_instruction() -> None:
    made = vector_add("skl")
    said = (r"reference and wrong differ: kernel 0x40000, group \(2, 0, 0\): at 0x110084 reference has 0x00000409, wrong has 0x00000509; "
            r"stored by thread 0 of group \(2, 0, 0\), kernel 0x40000\+0x60: send")  # fmt: skip
    with pytest.raises(EngineDifference, match=said):
        made.run(groups=ComparingDispatcher(EngineDispatcher("reference"), Wrong(2, made.address(1) + 33 * 4)))


@pytest.mark.parametrize("engine", ["t0", "t1"])
def test_a_group_alone_is_another_dispatch_than_all_of_them(engine: str) -> None:
    """Workers that a compiled engine keeps of the whole dispatch are not for it."""
    made = vector_add("skl")
    with pytest.raises(EngineDifference, match=rf"{engine} and wrong differ: kernel 0x40000, group \(2, 0, 0\): at 0x110084"):
        made.run(groups=ComparingDispatcher(EngineDispatcher(engine, 1), Wrong(2, made.address(1) + 33 * 4)))


@pytest.mark.parametrize("first", [True, False])
def test_memory_that_one_engine_does_not_write_is_a_difference(first: bool) -> None:
    """The engine that writes nothing is either of the two."""
    class Idle(Wrong):
        def run(self, context: DispatchContext, dispatch: ThreadDispatch, timed_out: TimedOut = never) -> Iterator[Finished]:
            yield Finished(dispatch.threads, 0)

    made, idle, reference = vector_add("skl"), Idle(0, 0), EngineDispatcher("reference")
    values = ("wrong has 0x00000000, reference has 0x000003e8", "reference has 0x000003e8, wrong has 0x00000000")[not first]
    with pytest.raises(EngineDifference, match=rf"group \(0, 0, 0\): at 0x110000 {values}; stored by thread 0 of group \(0, 0, 0\)"):
        made.run(groups=ComparingDispatcher(idle, reference) if first else ComparingDispatcher(reference, idle))


def test_a_fault_of_one_engine_only_is_a_difference() -> None:
    class Faulting(Wrong):
        def run(self, context: DispatchContext, dispatch: ThreadDispatch, timed_out: TimedOut = never) -> Iterator[Finished]:
            yield from EngineDispatcher("reference").run(context, dispatch, timed_out)
            raise GpuFault(0x77000, "read", "job")

    with pytest.raises(EngineDifference, match="reference says 'no error', wrong says 'read at 0x77000'"):
        vector_add("skl").run(groups=ComparingDispatcher(EngineDispatcher("reference"), Faulting(0, 0)))


def test_a_fault_that_both_meet_is_told_as_it_is() -> None:
    kernel = ADD.replace("0x04205E00", "0x04205EFF")
    with pytest.raises(GpuFault, match=r"read at 0x0 in job by .*\(lane 0\)"):
        job(kernel, 2).run(groups=ComparingDispatcher(EngineDispatcher("reference"), EngineDispatcher("t1", 1)))


def test_memory_is_left_as_by_the_first_engine() -> None:
    """Atomics show that each engine starts from the same memory: they would count twice."""
    made = Job(COUNT, [bytes(64)], simd=8, ends=(5, 1, 1))
    assert made.run(groups=ComparingDispatcher(EngineDispatcher("t1", 1), EngineDispatcher("reference"))).buffer(0)[0] == 40


def test_groups_before_the_difference_are_not_named() -> None:
    """The kernel counts groups: each group alone starts from what those before it left, and the instruction is found from there."""
    kernel = f"""
(W)  mov (8|M0)  r127.0<1>:ud r0.0<8;8,1>:ud
(W)  mov (8|M0)  r10.0<1>:ud 0x0:ud
(W)  mov (8|M0)  r11.0<1>:ud 0x1:ud
(W)  send (1|M0) r12 r10 0xC 0x0410B700
{END}
"""
    made = Job(kernel, [bytes(64)], simd=8, ends=(5, 1, 1))
    said = (r"group \(3, 0, 0\): at 0x100000 reference has 0x00000004, wrong has 0x00000104; "
            r"stored by thread 0 of group \(3, 0, 0\), kernel 0x40000\+0x30: .*send")  # fmt: skip
    with pytest.raises(EngineDifference, match=said):
        made.run(groups=ComparingDispatcher(EngineDispatcher("reference"), Wrong(3, made.address(0))))


def test_the_instruction_is_found_though_threads_wait_for_each_other() -> None:
    """Thread 0 reads a dword in a loop until thread 1 has written it, then both show their numbers."""
    kernel = f"""
(W)  mov (8|M0)  r127.0<1>:ud r0.0<8;8,1>:ud
(W)  and (1|M0)  r5.0<1>:ud r0.5<0;1,0>:ud 0x3FF:ud
(W)  mov (8|M0)  r10.0<1>:ud 0x0:ud
(W)  mov (8|M0)  r11.0<1>:ud 0x7:ud
(W)  cmp (1|M0)  (eq)f0.0 null<1>:ud r5.0<0;1,0>:ud 0x0:ud
(W&f0.0) jmpi again
(W)  send (1|M0) null r10 0xC 0x04026E00
(W)  jmpi done
again:
(W)  send (1|M0) r20 r10 0xC 0x02106E00
(W)  cmp (1|M0)  (eq)f0.0 null<1>:ud r20.0<0;1,0>:ud 0x0:ud
(W&f0.0) jmpi again
done:
(W)  add (8|M0)  r10.0<1>:ud r5.0<0;1,0>:ud 1:ud
(W)  shl (8|M0)  r10.0<1>:ud r10.0<8;8,1>:ud 2:w
(W)  send (1|M0) null r10 0xC 0x04026E00
{END}
"""
    made = Job(kernel, [bytes(64)], simd=8, shape=(2, 1, 1))
    assert made.run().buffer(0)[:3] == (7, 7, 7)
    with pytest.raises(EngineDifference, match=r"at 0x100004 .*; stored by thread 0 of group \(0, 0, 0\), .*: .*send"):
        made.run(groups=ComparingDispatcher(EngineDispatcher("reference"), Wrong(0, made.address(0) + 4)))


def test_the_instruction_is_found_from_memory_as_it_was_before_the_group() -> None:
    """The kernel stores only where a zero is."""
    kernel = f"""
(W)  mov (8|M0)  r127.0<1>:ud r0.0<8;8,1>:ud
(W)  mov (8|M0)  r10.0<1>:ud 0x0:ud
(W)  mov (8|M0)  r11.0<1>:ud 0x7:ud
(W)  send (1|M0) r20 r10 0xC 0x02106E00
(W)  cmp (1|M0)  (ne)f0.0 null<1>:ud r20.0<0;1,0>:ud 0x0:ud
(W&f0.0) jmpi done
(W)  send (1|M0) null r10 0xC 0x04026E00
done:
{END}
"""
    made = Job(kernel, [bytes(64)], simd=8)
    with pytest.raises(EngineDifference, match=r"reference has 0x00000007, wrong has 0x00000107; stored by thread 0 .*\+0x60: .*send"):
        made.run(groups=ComparingDispatcher(EngineDispatcher("reference"), Wrong(0, made.address(0))))


# -- snapshots ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dword, said", [
    (1, "reference has 0x0a000000, wrong has 0x0a000100; stored by thread 0 of group (0, 0, 0), kernel 0x40000+0x30"),
    (2, "reference has 0x00000006, wrong has 0x00000106; stored by thread 0 of group (0, 0, 0), kernel 0x40000+0x60"),
    (3, "reference has 0x00000000, wrong has 0x00000100"),
])  # fmt: skip
def test_the_instruction_is_the_last_that_changes_the_dword(dword: int, said: str) -> None:
    """One changes its highest byte, another the dword after it; where none changes it, none is named."""
    kernel = f"""
(W)  mov (8|M0)  r127.0<1>:ud r0.0<8;8,1>:ud
(W)  mov (8|M0)  r10.0<1>:ud 0x4:ud
(W)  mov (8|M0)  r11.0<1>:ud 0x0A000000:ud
(W)  send (1|M0) null r10 0xC 0x04026E00
(W)  mov (8|M0)  r10.0<1>:ud 0x8:ud
(W)  mov (8|M0)  r11.0<1>:ud 0x6:ud
(W)  send (1|M0) null r10 0xC 0x04026E00
{END}
"""
    made = Job(kernel, [bytes(64)], simd=8)
    with pytest.raises(EngineDifference) as caught:
        made.run(groups=ComparingDispatcher(EngineDispatcher("reference"), Wrong(0, made.address(0) + 4 * dword)))
    assert str(caught.value).rpartition(": at ")[2].partition(": ")[0] == f"{made.address(0) + 4 * dword:#x} {said}"


def test_memory_that_is_too_large_is_not_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    """All regions together count: a page for each of six."""
    space, pages = vector_add("skl").memory(), 7
    assert len(list(space.regions())) == pages
    monkeypatch.setattr(snapshot, "MAX_SNAPSHOT", 4096 * pages)
    MemorySnapshot(space)
    monkeypatch.setattr(snapshot, "MAX_SNAPSHOT", 4096 * pages - 1)
    with pytest.raises(Unsupported, match="too much to compare engines on"):
        MemorySnapshot(space)


def test_memory_of_2_gib_is_compared() -> None:
    """Of which none can be read here."""
    space = AddressSpace("large")
    space.regions = lambda: iter([MappedRegion(0x1000, size, "")])  # type: ignore[method-assign]
    size = 2 << 30
    assert not MemorySnapshot(space).pieces
    size += 1
    with pytest.raises(Unsupported, match="large has more than 2 GiB: too much to compare engines on"):
        MemorySnapshot(space)


# -- draws -------------------------------------------------------------------------------------------------------------

OBJECTS, TILE = 20, 3  # of a draw that is one tile; each object is one thread


class Drawing:
    """Objects of a tile, drawn by the loop of batches.c, as a dispatcher selects them; each writes 16 pixels."""

    title = "draw 4"

    def __init__(self, library: ctypes.CDLL, dispatcher: ComparingDispatcher, memory: Memory) -> None:
        self.library, self.dispatcher, self.memory = library, dispatcher, memory
        self.record, self.selections = memory.record(LoopPayload(3), 1, 0), list[tuple[int, int] | None]()

    def pixel(self, address: int) -> PixelPlace | None:
        number = (address - self.memory.job.address(1)) // 4
        return PixelPlace(f"pixel {number}", TILE) if 0 <= number < OBJECTS * LANES else None

    def draw(self) -> int:
        selection, objects = self.dispatcher.selection, OBJECTS
        self.selections.append(None if selection is None else (selection.count, selection.seed))
        if selection is not None and selection.tile is not None:
            objects, selection.objects_seen = min(selection.objects or OBJECTS, OBJECTS), OBJECTS
        loop = Loop(end=objects, batch=1, constant=CONSTANT)
        native = [NativeLoop(address(self.library.run_batches), loop.bind)]
        return run_loops(self.dispatcher, self.dispatcher.watched(self.memory.context), self.record, native).threads


class WrongObject(EngineDispatcher):
    """An engine with a fault planted: a dword is wrong after a draw that has changed another one; it may do that on its own, too."""

    def __init__(self, address: int, watched: int) -> None:
        super().__init__("t1", 1)
        self.name, self.address, self.watched, self._right = "wrong", address, watched, EngineDispatcher("t1", 1)
        self.times = 1000  # that it will be wrong

    def lease(self) -> LoopLease:
        return WrongLease(self, self._right.lease())


class WrongLease(LoopLease):
    """Loops of one draw, at whose end the dword is wrong."""

    def __init__(self, dispatcher: WrongObject, right: LoopLease) -> None:
        self.dispatcher, self.right = dispatcher, right

    def loop(self, context: DispatchContext, dispatch: ThreadDispatch) -> KeptLoop:
        self.space, self.held = context.space, context.space.read32(self.dispatcher.watched)
        return self.right.loop(context, dispatch)

    def end(self, fine: bool) -> None:
        self.right.end(fine)
        if self.space.read32(self.dispatcher.watched) != self.held and self.dispatcher.times:
            self.dispatcher.times -= 1
            self.space.write32(self.dispatcher.address, self.space.read32(self.dispatcher.address) ^ 0x100)


def compared(library: ctypes.CDLL, wrong: int | None = None, watched: int | None = None, tiles: int = 0) -> Drawing:
    """A draw on two engines. `wrong`: the dword of the result that the second one has wrong, if it draws that one, or another."""
    memory = Memory()
    first = memory.job.address(1)
    second = EngineDispatcher("t1", 1)
    if wrong is not None:
        second = WrongObject(first + 4 * wrong, first + 4 * (wrong if watched is None else watched))
    return Drawing(library, ComparingDispatcher(EngineDispatcher("reference"), second, tiles), memory)


def run(drawing: Drawing) -> int:
    return drawing.dispatcher.whole(drawing.memory.space, drawing.draw, drawing)


needs_compiler = pytest.mark.skipif(not shutil.which("gcc"), reason="gcc is absent")


@needs_compiler
def test_draws_that_agree_are_left_as_by_the_first_engine(library: ctypes.CDLL) -> None:
    drawing = compared(library)
    assert run(drawing) == OBJECTS and drawing.dispatcher.selection is None
    assert (drawing.memory.result()[: OBJECTS * LANES] > CONSTANT).all() and not drawing.memory.result()[OBJECTS * LANES :].any()
    assert drawing.selections == [None] * 3


@needs_compiler
def test_each_draw_has_other_tiles_and_both_engines_have_the_same(library: ctypes.CDLL) -> None:
    drawing = compared(library, tiles=2)
    run(drawing)
    run(drawing)
    assert drawing.selections == [(2, 1), (2, 1), None, (2, 2), (2, 2), None]


@needs_compiler
@pytest.mark.parametrize("thread", [0, 1, 7, 12, OBJECTS - 1])
def test_a_difference_in_a_draw_names_pixel_object_and_instruction(thread: int, library: ctypes.CDLL) -> None:
    number = thread * LANES + 5
    value = 5 + number + CONSTANT
    said = (rf"reference and wrong differ: draw 4, pixel {number}, object {thread} of its tile, stored by kernel 0x40000\+0x\d+: send.*: "
            rf"at {0x110000 + 4 * number:#x} reference has {value:#010x}, wrong has {value ^ 0x100:#010x}")  # fmt: skip
    with pytest.raises(EngineDifference, match=said):
        run(compared(library, number))


@needs_compiler
def test_a_difference_that_no_instruction_of_the_tile_stores(library: ctypes.CDLL) -> None:
    """The wrong engine changes a dword that nobody draws, and one of its tile that the object drawn does not write."""
    with pytest.raises(EngineDifference, match=r"differ: draw 4: at 0x1105dc reference has 0x00000000, wrong has 0x00000100"):
        run(compared(library, 375, watched=40))
    with pytest.raises(EngineDifference, match=r"pixel 319, object 2 of its tile: at 0x1104fc"):
        run(compared(library, 319, watched=40))


@needs_compiler
def test_a_difference_that_the_tile_alone_does_not_show(library: ctypes.CDLL) -> None:
    """The engine is wrong once: in the whole draw, and not in those that look for the object."""
    drawing = compared(library, 5)
    assert isinstance(drawing.dispatcher.second, WrongObject)
    drawing.dispatcher.second.times = 1
    with pytest.raises(EngineDifference, match=r"differ: draw 4, pixel 5: at 0x110014 reference has 0x000003f2, wrong has 0x000002f2"):
        run(drawing)


@pytest.mark.parametrize("culprit", [0, 3, 9])
@pytest.mark.parametrize("before", [0, 2, 8])
def test_only_the_dword_that_differs_decides_on_object_and_instruction(culprit: int, before: int) -> None:
    """Its highest byte differs; the dwords next to it do because of another object, which stores after it, or before."""
    space, at = AddressSpace("work", 48), 0x1010
    space.map(0x1000, MemfdBuffer(0x1000))
    wrong: Any = SimpleNamespace(name="wrong")

    def store(address: int, value: int, name: str) -> None:
        space.write32(address, value)
        if comparison._stepped is not None:
            comparison._stepped(lambda: name)

    def work() -> bool:
        selection, mistake = comparison.selection, 0x0100_0000 if comparison.current is wrong else 0
        if selection is not None:
            selection.objects_seen = 10
        for number in range(selection.objects or 10 if selection is not None else 10):
            if number == culprit:
                store(at, 0x0A00_0000 + mistake, "the store")
                store(at - 4, 5, "the dword before")
                store(at + 4, 6, "the dword after")
            if number == before:
                store(at + 4, 7 + mistake // 0x100_0000, "another dword")
        return True

    names: Any = SimpleNamespace(title="draw 4", pixel=lambda address: PixelPlace(f"pixel {address:#x}", TILE))
    comparison = WorkComparison((EngineDispatcher("reference"), wrong), space, work, names)
    said = (f"reference and wrong differ: draw 4, pixel 0x1010, object {culprit} of its tile, stored by the store: "
            "at 0x1010 reference has 0x0a000000, wrong has 0x0b000000")  # fmt: skip
    with pytest.raises(EngineDifference, match=said):
        comparison.run(None)
