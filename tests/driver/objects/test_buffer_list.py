"""Lists of buffers that are submitted again: what they wait for, and what keeps buffers busy."""

from __future__ import annotations

import gc
import random
import threading
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from softgen.driver.ioctl import execbuffer
from softgen.driver.objects import gem_object
from softgen.driver.objects.buffer_list import Bound, BufferList
from softgen.driver.objects.fence import Fence, Signals
from softgen.driver.objects.gem_object import GemObject, Piece
from softgen.driver.objects.submission import Submission
from softgen.driver.uapi import i915_drm as i915
from softgen.driver.uapi.uapi import DMABUF_SYNC_FILE
from softgen.memory.store import MemfdBuffer
from tests.driver.execbuffer import PINNED, buffer, row, submit
from tests.driver.program import Held, Program, served
from tests.driver.test_dma_buf import EXPORT, IMPORT, WRITE, argument, exported

SIGNALS = Signals()


def bos(count: int) -> list[GemObject]:
    return [GemObject(number, 1, [Piece(MemfdBuffer(4096, f"bo {number}"), 0, 4096)], 0) for number in range(count)]


def listed(*uses: tuple[GemObject, int]) -> BufferList:
    return BufferList(Bound(bo, 0x1000 * number, number, flags, 0) for number, (bo, flags) in enumerate(uses))


class Model:
    """All uses that ever were."""

    def __init__(self) -> None:
        self.uses: list[tuple[GemObject, Fence, str, bool]] = []

    def add(self, buffers: BufferList, fence: Fence, engine: str) -> None:
        self.uses += [(bound.bo, fence, engine, bool(bound.flags & i915.EXEC_OBJECT_WRITE)) for bound in buffers]

    def dependencies(self, buffers: BufferList) -> set[Fence]:
        flags = {bound.bo: bound.flags for bound in buffers if not bound.flags & i915.EXEC_OBJECT_ASYNC}
        return {fence for bo, fence, _, write in self.uses
                if bo in flags and not fence.done and (write or flags[bo] & i915.EXEC_OBJECT_WRITE)}  # fmt: skip

    def busy(self, bo: GemObject) -> set[tuple[Fence, str, bool]]:
        return {(fence, engine, write) for held, fence, engine, write in self.uses if held is bo and not fence.done}


@pytest.mark.parametrize("seed", range(20))
def test_dependencies_and_busy_buffers(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Random submissions of a few lists that share buffers, of new lists, and imported fences, which end in any order."""
    spared = 4 + seed
    monkeypatch.setattr(gem_object, "MOST_SPARED", spared)
    chance, model = random.Random(seed), Model()
    buffers = bos(6)
    flags = (0, i915.EXEC_OBJECT_WRITE, i915.EXEC_OBJECT_ASYNC, i915.EXEC_OBJECT_WRITE | i915.EXEC_OBJECT_ASYNC)

    def new() -> BufferList:
        return listed(*((bo, chance.choice(flags[: 1 + seed % 4])) for bo in chance.sample(buffers, chance.randint(1, 4))))

    lists, fences = [new() for _ in range(3 + seed % 12)], list[Fence]()
    for _ in range(400):
        step = chance.random()
        if step < 0.5:
            chosen, fence, engine = chance.choice(lists), Fence(SIGNALS), chance.choice(("rcs0", "rcs0", "bcs0"))
            assert set(chosen.submitted(fence, engine)) == model.dependencies(chosen)
            model.add(chosen, fence, engine)
            fences.append(fence)
        elif step < 0.9 and fences:
            fences.pop(chance.randrange(len(fences))).signal()
        elif step < 0.95:
            lists[chance.randrange(len(lists))] = new()
        else:
            fence, bo, write = Fence(SIGNALS), chance.choice(buffers), chance.random() < 0.5
            bo.use(fence, "rcs0", write)
            model.uses.append((bo, fence, "rcs0", write))
            fences.append(fence)
        for bo in buffers:
            assert {(use.fence, use.engine, use.write) for use in bo.busy()} == model.busy(bo)
            assert bo.idle() == (not model.busy(bo))
    for fence in fences:
        fence.signal()
    for bo in buffers:
        bo.use(Fence(SIGNALS), "rcs0", False)
        assert len(bo.uses) <= min(spared, len(lists)) + 1


def test_a_list_that_is_submitted_again_adds_no_uses() -> None:
    one, two, three = bos(3)
    lists = [listed((one, 0), (two, i915.EXEC_OBJECT_WRITE)), listed((one, 0), (three, 0))]
    for number in range(8):
        fence = Fence(SIGNALS)
        lists[number % 2].use(fence, "rcs0")
        if number == 1:
            before = [list(bo.uses) for bo in (one, two, three)]
        fence.signal()
    assert [bo.uses for bo in (one, two, three)] == before


def test_a_list_that_is_submitted_again_waits_for_others_that_were() -> None:
    """Neither adds uses; and it waits for none that is done, nor for itself."""
    (one,) = bos(1)
    writes, reads = listed((one, i915.EXEC_OBJECT_WRITE)), listed((one, 0))
    for _ in range(4):
        for bound in (writes, reads, writes):
            fence = Fence(SIGNALS)
            assert bound.submitted(fence, "rcs0") == []
            fence.signal()
    fence = Fence(SIGNALS)
    assert reads.submitted(fence, "rcs0") == [] and writes.submitted(Fence(SIGNALS), "rcs0") == [fence]


def test_uses_keep_no_list_alive() -> None:
    one, two = bos(2)
    held = listed((one, 0), (two, 0))
    held.use(Fence(SIGNALS), "rcs0")
    one.uses[0].fence.signal()
    gone = weakref.ref(two)
    del held, two
    gc.collect()
    assert gone() is None and one.idle()


def batch_of(program: Program) -> int:
    handle = int(program.ioctl("DRM_IOCTL_I915_GEM_CREATE", size=4096).handle)
    end = program.memory((0x05000000).to_bytes(8, "little"))
    program.ioctl("DRM_IOCTL_I915_GEM_PWRITE", handle=handle, size=8, data=end.address)
    return handle


def test_lists_in_turn_are_looked_up_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of two lists; and again after a buffer was closed, whose memory is then free."""
    from softgen.driver.ioctl import gem

    looked: list[int] = []
    lookup = gem.lookup
    with served("kbl") as gpu:
        program = gpu.program()
        handles = [batch_of(program) for _ in range(5)][:3]  # two are in no list
        rows = [program.memory(b"".join(handle.to_bytes(4, "little").ljust(56, b"\0") for handle in pair))
                for pair in ((handles[0], handles[1]), (handles[2], handles[1]))]  # fmt: skip

        def submit(number: int) -> None:
            program.ioctl("DRM_IOCTL_I915_GEM_EXECBUFFER2", buffers=rows[number].address, count=2)
            program.ioctl("DRM_IOCTL_I915_GEM_WAIT", handle=handles[1], timeout=10**10)

        for number in (0, 1, 0, 1):  # addresses are given out, and written back
            submit(number)
        monkeypatch.setattr(gem, "lookup", lambda node, handle: looked.append(handle) or lookup(node, handle))  # type: ignore[func-returns-value]
        for number in (0, 1, 0, 1):
            submit(number)
        assert set(looked) == {handles[1]}  # by the waits alone
        node = next(iter(gpu.server.nodes.values()))
        closed = weakref.ref(node.objects.get(handles[2]))
        program.ioctl("DRM_IOCTL_GEM_CLOSE", handle=handles[2])
        submit(0)
        gc.collect()
        assert closed() is None
        with pytest.raises(OSError, match="No such file"):
            submit(1)


def test_a_buffer_that_is_closed_is_freed_though_lists_with_it_were_kept() -> None:
    """At once: no other submission has to come. Lists of each context are let go of."""
    with served("kbl", Held()) as gpu:
        program = gpu.program()
        contexts = [0, program.ioctl("DRM_IOCTL_I915_GEM_CONTEXT_CREATE").context]
        batch, handle = batch_of(program), buffer(program)
        rows = [row(handle, offset=0x10000, flags=PINNED), row(batch, offset=0x20000, flags=PINNED)]
        (node,) = gpu.server.nodes.values()
        for context in contexts:
            submit(program, rows, context=context)
            assert len(node.contexts.get(context).listed) == 1
        runner: Any = gpu.shared.runner
        while runner.submissions:
            runner.finish()
        closed = weakref.ref(node.objects.get(handle))
        program.ioctl("DRM_IOCTL_GEM_CLOSE", handle=handle)
        gc.collect()
        assert closed() is None and not any(node.contexts.get(context).listed for context in contexts)


def test_few_lists_of_a_context_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of the same handles and addresses, so many lists and so many buffers in them; the oldest go first."""
    most = 6
    monkeypatch.setattr(execbuffer, "MOST_LISTS", most)
    with served("kbl") as gpu:
        program = gpu.program()
        handles = [batch_of(program) for _ in range(2 * most)]
        context = next(iter(gpu.server.nodes.values())).contexts.get(0)

        def submit(*handles: int) -> bytes:
            rows = program.memory(b"".join(handle.to_bytes(4, "little").ljust(56, b"\0") for handle in handles))
            for _ in range(2):  # the first time addresses are written back
                program.ioctl("DRM_IOCTL_I915_GEM_EXECBUFFER2", buffers=rows.address, count=len(handles))
                program.ioctl("DRM_IOCTL_I915_GEM_WAIT", handle=handles[-1], timeout=10**10)
            return bytes(rows)

        for handle in handles:
            submit(handle)
            assert len({id(listed.changes) for listed in context.listed.values()}) <= 1
        last = [submit(handle) for handle in handles][-most:]
        assert list(context.listed) == last
        monkeypatch.setattr(execbuffer, "MOST_LISTED", 5)
        assert [*last[-2:], submit(*handles[:3])] == list(context.listed)
        assert [submit(*handles[:6])] == list(context.listed)  # however many it has


def test_192_lists_of_a_context_are_kept() -> None:
    """Then the oldest goes."""
    with served("kbl", Held()) as gpu:
        program = gpu.program()
        batch, target = batch_of(program), buffer(program)
        (node,) = gpu.server.nodes.values()
        kept = node.contexts.get(0).listed
        pinned = [row(target, offset=0x10000, flags=PINNED)]
        for number in range(193):
            submit(program, [*pinned, row(batch, offset=0x20000, flags=PINNED, r1=number)])
            assert len(kept) == min(number + 1, 192)


# -- several threads of a program ------------------------------------------------------------------------------------------


def test_submissions_of_two_threads_at_once_wait_for_one_another(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both write a buffer, and neither finds a use of the other before it is queued itself."""
    held, both = Held(), threading.Barrier(2)

    def made(*arguments: Any) -> Submission:
        both.wait(20)
        return Submission(*arguments)

    monkeypatch.setattr(execbuffer, "Submission", made)
    with served("kbl", held) as gpu:
        program = gpu.program()
        shared, rows = buffer(program), [row(batch_of(program)) for _ in range(2)]
        contexts = [program.ioctl("DRM_IOCTL_I915_GEM_CONTEXT_CREATE").context for _ in range(2)]

        def one(number: int) -> None:
            submit(program.thread(), [row(shared, flags=i915.EXEC_OBJECT_WRITE), rows[number]], context=contexts[number])

        with ThreadPoolExecutor(2) as threads:
            list(threads.map(one, range(2)))
        first, second = held.submissions
        assert first.after == [] and second.after == [first.fence]


def test_a_list_is_not_kept_if_a_handle_was_closed_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another thread closes a buffer that has just been looked up, and its next one has the same handle."""
    held, relocate = Held(), execbuffer.relocate
    with served("kbl", held) as gpu:
        program = gpu.program()
        other = program.thread()
        batch, handle = batch_of(program), buffer(program)
        rows = [row(handle, offset=0x10000, flags=PINNED), row(batch, offset=0x20000, flags=PINNED)]

        def relocated(*arguments: Any) -> int:
            monkeypatch.setattr(execbuffer, "relocate", relocate)
            other.ioctl("DRM_IOCTL_GEM_CLOSE", handle=handle)
            assert buffer(other) == handle
            return relocate(*arguments)

        monkeypatch.setattr(execbuffer, "relocate", relocated)
        submit(program, rows)
        submit(program, rows)
        (node,) = gpu.server.nodes.values()
        before, after = (submission.bound[0].bo for submission in held.submissions)
        assert after is node.objects.get(handle) and before is not after


def test_lists_and_uses_change_under_the_lock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Under which handles are closed, and that clears lists; and under which submissions use buffers."""
    owned, keep, use = list[bool](), execbuffer._keep_list, GemObject.use
    with served("kbl", Held()) as gpu:

        def checked(function: Callable[..., None]) -> Callable[..., None]:
            return lambda *arguments: (owned.append(gpu.shared.lock._is_owned()), function(*arguments))[1]  # type: ignore[attr-defined]

        monkeypatch.setattr(execbuffer, "_keep_list", checked(keep))
        monkeypatch.setattr(GemObject, "use", checked(use))
        program = gpu.program()
        batch = batch_of(program)
        submit(program, [row(batch, offset=0x10000, flags=PINNED)])
        assert owned == [True]
        _, descriptor = exported(program)
        answer = program.foreign("dma-buf", EXPORT, descriptor, argument())
        assert answer is not None
        program.foreign("dma-buf", IMPORT, descriptor, argument(WRITE, DMABUF_SYNC_FILE.unpack(answer).fd))
        assert owned == [True, True]


class Owner:
    """A list that is told what becomes of its uses."""

    def __init__(self) -> None:
        self.told = list[str]()

    def uses_changed(self) -> None:
        self.told.append("changed")

    def forget_uses(self) -> None:
        self.told.append("forgotten")


@pytest.mark.parametrize("count, dropped", [(1, 0), (192, 0), (193, 1), (200, 8)])
def test_uses_that_are_over_are_kept_for_their_lists(count: int, dropped: int) -> None:
    """192 of them; of more the oldest go, and their lists learn of it. One that nobody owns goes at once."""
    [bo] = bos(1)
    owners = [Owner() for _ in range(count)]
    bo.uses = [gem_object.Use(Fence(SIGNALS, done=True), "rcs0", False, lambda owner=owner: owner) for owner in owners]  # type: ignore[misc]
    kept = bo.uses[dropped:]
    bo.uses.append(gem_object.Use(Fence(SIGNALS, done=True), "rcs0", True))
    new = gem_object.Use(Fence(SIGNALS), "rcs0", False)
    bo.add_use(new)
    assert bo.uses == [*kept, new] and bo.busy() == [new] and not bo.idle()
    assert [owner.told for owner in owners] == [["forgotten"]] * dropped + [[]] * (count - dropped)
    bo.add_use(gem_object.Use(Fence(SIGNALS, done=True), "rcs0", True))
    assert all(owner.told[-1] == "changed" for owner in owners[-100:]), "they wait for who writes"


@pytest.mark.parametrize("user", [None, False, True])
def test_a_buffer_is_known_by_its_memory_unless_that_is_the_programs(user: bool | None) -> None:
    memory = MemfdBuffer(4096, "bo")
    pieces = [Piece(memory, 0, 4096)]
    bo = GemObject(1, 1, pieces, 0) if user is None else GemObject(1, 1, pieces, 0, user=user)
    assert bo.user is bool(user) and bo.identity == (None if user else memory.identity)
    assert not (bo.claimed or bo.exported or bo.handles or bo.tiling or bo.stride or bo.name) and bo.idle()


@pytest.mark.parametrize("offset, size", [(0, 0), (0, 96), (5, 3), (30, 4), (31, 2), (32, 32), (40, 50), (63, 2), (64, 32), (90, 6)])
def test_memory_in_several_pieces_is_read_as_one(offset: int, size: int) -> None:
    """Three pieces of a buffer, in another order than there; a view of each that has a part of it."""
    memory = MemfdBuffer(4096, "pieces")
    memory.view[:96] = bytes(range(96))
    order = [64, 0, 32]
    whole = b"".join(bytes(range(at, at + 32)) for at in order)
    bo = GemObject(1, 1, [Piece(memory, at, 32) for at in order], 0, user=True)
    views = bo.views(offset, size)
    assert bo.size == 96 and bo.read(offset, size) == whole[offset : offset + size] and all(len(view) for view in views)
    for view in views:
        view[:] = b"x" * len(view)
    assert bo.read(0, 96) == whole[:offset] + b"x" * size + whole[offset + size :]
