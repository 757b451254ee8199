"""Opened nodes: handles, the kind of a node, and what is charged for."""

from __future__ import annotations

import errno

import pytest

from softgen.bits.generation import device
from softgen.driver.errors import Errno
from softgen.driver.gem_context import GemContext
from softgen.driver.node import FEW_ORPHANS, MOST_LOGGED, Node, Shared, Table
from softgen.memory.store import MemfdBuffer
from tests.driver.program import Held


@pytest.fixture
def shared() -> Shared:
    log = list[str]()
    made = Shared(device("kbl"), Held(), log.append, 1 << 30)
    made.log_lines = log  # type: ignore[attr-defined]
    return made


@pytest.mark.parametrize("minor, render", [(0, False), (63, False), (127, False), (128, True), (191, True)])
def test_render_nodes_begin_at_minor_128(shared: Shared, minor: int, render: bool) -> None:
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


@pytest.mark.parametrize("name, most", [("contexts", 16384), ("vms", 16384)])
def test_handles_that_a_node_has_at_most(shared: Shared, name: str, most: int) -> None:
    """A context of each program is there from the start. Programs with thousands of them exist, and a loop that leaks them ends."""
    table = getattr(Node(shared, 128), name)
    table.charge = lambda count: None
    table.items.update(dict.fromkeys(range(10**6, 10**6 + most - len(table.items) - 1)))
    table.add(None)
    with pytest.raises(Errno, match=f"{most} handles are in use"):
        table.add(None)
    table.items.clear()


def test_contexts_and_sync_objects_count_for_who_opened_the_node(shared: Shared) -> None:
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


def test_a_text_is_logged_once_and_not_any_number_of_them(shared: Shared) -> None:
    lines: list[str] = shared.log_lines  # type: ignore[attr-defined]
    for number in range(MOST_LOGGED + 5):
        shared.log_once(f"text {number}")
        shared.log_once("text 0")
    assert lines == [f"text {number}" for number in range(MOST_LOGGED)]


def test_lists_of_buffers_are_forgotten(shared: Shared) -> None:
    node = Node(shared, 128)
    context = GemContext.__new__(GemContext)
    context.listed = {b"list": object()}  # type: ignore[dict-item]
    node.lists.add(context)
    node.forget_lists()
    assert not context.listed and not node.lists


@pytest.mark.parametrize("orphans, swept", [(FEW_ORPHANS, True), (FEW_ORPHANS + 1, False)])
def test_many_exported_buffers_are_not_looked_at_every_time(shared: Shared, orphans: int, swept: bool,
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


class Orphan:
    """An exported buffer without a handle."""

    def __init__(self) -> None:
        from softgen.driver.gem_object import Piece

        self.pieces, self.identity = [Piece(MemfdBuffer(4096, "orphan"), 0, 4096)], None
