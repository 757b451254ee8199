"""Opened nodes: handles, the kind of a node, and what is charged for."""

from __future__ import annotations

import errno
import os

import pytest

from softgen.bits.generation import device
from softgen.driver.errors import Errno
from softgen.driver.objects.fence import Fence, Syncobj
from softgen.driver.objects.gem_context import GemContext
from softgen.driver.objects.node import FEW_ORPHANS, GpuState, Node, Table
from softgen.memory.store import MemfdBuffer
from tests.driver.program import Held, served


@pytest.fixture
def shared() -> GpuState:
    log = list[str]()
    made = GpuState(device("kbl"), Held(), log.append, 1 << 30)
    made.log_lines = log  # type: ignore[attr-defined]
    return made


@pytest.mark.parametrize("minor, render", [(0, False), (63, False), (127, False), (128, True), (191, True)])
def test_render_nodes_begin_at_minor_128(shared: GpuState, minor: int, render: bool) -> None:
    """DRM: 64 minors each for primary, control and render nodes."""
    assert Node(shared, minor).render is render


def test_handles_are_the_lowest_free_numbers() -> None:
    table, charged = Table[str](3, 4), list[int]()
    table.charge = charged.append
    assert [table.add(name) for name in "abcd"] == [3, 4, 5, 6]
    with pytest.raises(Errno) as refused:
        table.add("e")
    assert refused.value.number == errno.ENOMEM and str(refused.value) == "4 handles are in use"
    assert table.remove(5) == "c" and table.remove(4) == "b" and table.remove(4) is None and table.get(4) is None
    assert table.add("f") == 4 and dict(table) == {3: "a", 4: "f", 6: "d"} and table.get(4) == "f"
    assert sorted(table.clear()) == ["a", "d", "f"] and not dict(table)
    assert charged == [1, 1, 1, 1, -1, -1, 1, -3]


def test_changes_of_a_table_are_noticed() -> None:
    """Lists of buffers that are kept hold while no handle may mean something else."""
    table, seen = Table[str](), set[int]()
    for change in (lambda: table.add("a"), lambda: table.remove(1), lambda: table.add("b"), table.clear):
        seen.add(table.changes)
        change()
    assert len(seen | {table.changes}) == 5
    now = table.changes
    assert table.get(1) is None and table.remove(9) is None and table.changes == now


@pytest.mark.parametrize("name, most", [("contexts", 16384), ("vms", 16384), ("objects", 1 << 20), ("syncobjs", 1 << 20)])
def test_handles_that_a_node_has_at_most(shared: GpuState, name: str, most: int) -> None:
    """A context of each program is there from the start. Programs with thousands of them exist, and a loop that leaks them ends."""
    table = getattr(Node(shared, 128), name)
    table.charge = lambda count: None
    table.items.update(dict.fromkeys(range(10**7, 10**7 + most - len(table.items) - 1)))
    table.add(None)
    with pytest.raises(Errno, match=f"{most} handles are in use"):
        table.add(None)
    table.items.clear()


def test_contexts_and_sync_objects_count_for_who_opened_the_node(shared: GpuState) -> None:
    node, budget = Node(shared, 128, 55), shared.budget

    def taken() -> int:
        budget.check(55, 1, "settled")
        return budget.other[55]

    tables = {node.contexts: 4096, node.vms: 4096, node.syncobjs: 512}
    for table, size in tables.items():
        number = table.add(object())  # type: ignore[arg-type]
        assert taken() == size
        table.remove(number)
        assert taken() == 0
        table.add(object())  # type: ignore[arg-type]
        table.clear()
        assert taken() == 0
    assert node.contexts.add(object()) == 1 and Node(shared, 128).contexts.add(object()) == 0  # type: ignore[arg-type]


def test_a_text_is_logged_once_and_not_any_number_of_them(shared: GpuState) -> None:
    lines: list[str] = shared.log_lines  # type: ignore[attr-defined]
    for number in range(1005):
        shared.log_once(f"text {number}")
        shared.log_once("text 0")
    assert lines == [f"text {number}" for number in range(1000)]


def test_lists_of_buffers_are_forgotten(shared: GpuState) -> None:
    node = Node(shared, 128)
    context = GemContext.__new__(GemContext)
    context.listed = {b"list": object()}  # type: ignore[dict-item]
    node.lists.add(context)
    node.forget_lists()
    assert not context.listed and not node.lists


@pytest.mark.parametrize("orphans, swept", [(FEW_ORPHANS, True), (FEW_ORPHANS + 1, False)])
def test_many_exported_buffers_are_not_looked_at_every_time(shared: GpuState, orphans: int, swept: bool,
                                                            monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    looked = list[object]()
    monkeypatch.setattr(MemfdBuffer, "open_elsewhere", lambda buffer: looked.append(buffer) or True)
    shared.orphans = {Orphan() for _ in range(orphans)}  # type: ignore[misc]
    shared.sweep()
    assert len(looked) == orphans and shared.sweep_at == 2 * orphans  # the first time
    shared.sweep()
    assert len(looked) == orphans + orphans * swept
    shared.sweep(everything=True)
    assert len(looked) == 2 * orphans + orphans * swept
    shared.orphans |= {Orphan() for _ in range(orphans)}  # type: ignore[misc]
    looked.clear()
    shared.sweep()
    assert len(looked) == 2 * orphans  # there are twice as many


def test_all_that_nobody_has_open_any_more_is_reclaimed(shared: GpuState, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sync files, sync objects with descriptors, and exported buffers, however many there are."""
    kept = [shared.sync_files.make(Fence(shared.signals)), shared.syncobjs.new(Syncobj(shared.signals))[0]]
    closed = [shared.sync_files.make(Fence(shared.signals)), shared.syncobjs.new(Syncobj(shared.signals))[0]]
    for descriptor in closed:
        os.close(descriptor)
    shared.orphans, shared.sweep_at = {Orphan() for _ in range(FEW_ORPHANS + 1)}, 1000  # type: ignore[misc]
    monkeypatch.setattr(MemfdBuffer, "open_elsewhere", lambda buffer: False)
    shared.reclaim()
    assert (len(shared.sync_files.items), len(shared.syncobjs.items), len(shared.orphans)) == (1, 1, 0)
    for descriptor in kept:
        os.close(descriptor)


def test_a_buffer_with_two_handles_has_its_name_until_both_are_closed() -> None:
    with served("kbl", Held()) as gpu:
        first, second = gpu.program("card0"), gpu.program("card0")
        handle = first.ioctl("DRM_IOCTL_I915_GEM_CREATE", size=4096).handle
        name = first.ioctl("DRM_IOCTL_GEM_FLINK", handle=handle).name
        opened = second.ioctl("DRM_IOCTL_GEM_OPEN", name=name)
        assert opened.size == 4096 and second.ioctl("DRM_IOCTL_GEM_OPEN", name=name).handle == opened.handle, "one handle on a node"
        first.ioctl("DRM_IOCTL_GEM_CLOSE", handle=handle)
        again = first.ioctl("DRM_IOCTL_GEM_OPEN", name=name).handle
        assert second.ioctl("DRM_IOCTL_GEM_FLINK", handle=opened.handle).name == name
        for program, number in ((first, again), (second, opened.handle)):
            program.ioctl("DRM_IOCTL_GEM_CLOSE", handle=number)
        assert first.refused("DRM_IOCTL_GEM_OPEN", name=name)[0] == errno.ENOENT and not gpu.shared.objects


class Orphan:
    """An exported buffer without a handle."""

    def __init__(self) -> None:
        from softgen.driver.objects.gem_object import Piece

        self.pieces, self.identity = [Piece(MemfdBuffer(4096, "orphan"), 0, 4096)], None
