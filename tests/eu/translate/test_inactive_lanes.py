"""Lanes of channels that are elsewhere: which writes go without their mask, and that memory is the same whichever do.

Kernels that part at random (divergent.py) are dispatched on the reference and on t1. `SOFTGEN_KERNELS=300 pytest -m witness` on this file
runs so many of each generation, and sees that the same kernels notice when the analysis is wrong.
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from softgen.eu.isa.instruction import Instruction, Operand
from softgen.eu.translate import inactive_lanes
from softgen.eu.translate.engine import Translator
from softgen.eu.translate.entry_exit import Key
from softgen.eu.translate.kernel import KernelTranslator
from softgen.eu.translate.registers import TRUE, RegisterAccess, RegisterPartition
from softgen.eu.translate.state import TranslationState
from softgen.eu.translate.store import TranslationStore
from softgen.threads.dispatcher import EngineDispatcher
from tests.conftest import in_ci
from tests.eu.semantics.build import NULL, L, Listing, arf, branch, dst, imm, instr, reg, scalar
from tests.eu.translate import divergent
from tests.eu.translate.divergent import generate

GEN = 9.0
FEW = 12  # kernels of each generation, every time
MANY = int(os.environ.get("SOFTGEN_KERNELS", "60"))
WRITES, BLOCKS = 0x04026E01, 0x040A0201  # untyped, of eight lanes; two OWords
Item = Instruction | str


def send(payload: int, descriptor: int = WRITES, sfid: int = 0xC, **more: Any) -> Instruction:
    made = instr(GEN, "send", NULL, Operand("grf", "ud", payload, vertical=8, width=8, horizontal=1))
    return replace(made, sfid=sfid, descriptor=descriptor, **more)


END = send(127, 0x02000010, 7, no_mask=True, eot=True)


def mov(to: int, source: int, size: int = 8, **more: Any) -> Instruction:
    return instr(GEN, "mov", dst(to), reg(source), size=size, **more)


def fork(*inside: Item, width: int = 8) -> list[Item]:
    """Instructions for some of the channels."""
    compared = instr(GEN, "cmp", arf(0, "d"), reg(4), imm(3), condition=L, size=width)
    return [
        compared,
        branch(GEN, "if", "end", "end", predicate=1, size=width),
        *inside,
        "end",
        branch(GEN, "endif", "on", size=width),
        "on",
    ]


def masked(*items: Item, width: int = 8, channel: int | None = None) -> set[int]:
    """Registers whose writes keep a mask; of all writes, or of those for channels from one on."""
    made = KernelTranslator(Listing(GEN, *items, END), Key(0, width, full=True))
    assert not made.translate().escapes
    writes = [access for access in made.state.registers.accesses if access.place == "grf" and access.mask != TRUE]
    return {access.offsets[0] // 32 for access in writes if channel in (None, access.channel)}


# -- what goes without a mask ------------------------------------------------------------------------------------------


def test_what_nobody_elsewhere_reads_is_written_whole() -> None:
    """r20 is used where it is written, r31 by all behind the branch."""
    assert masked(*fork(mov(20, 5), mov(31, 20)), mov(30, 6), send(30)) == {31}


@pytest.mark.parametrize(
    "source, found",
    [
        (reg(20, "uw", "16;8,2"), {31}),
        (reg(20, "uw", "16;8,2", 2), {31}),
        (reg(20, "ub", "16;4,4", 3), {31}),
        (reg(20, "ud", sub=2), {20, 31}),
    ],
    ids=["low word", "high word", "highest byte", "across two"],
)
def test_a_channel_may_read_a_part_of_what_it_has(source: Operand, found: set[int]) -> None:
    assert masked(*fork(mov(20, 5), instr(GEN, "mov", dst(31), source)), mov(30, 6), send(30)) == found


def test_values_may_go_through_an_accumulator() -> None:
    """Of which no lane is looked at."""
    through = [instr(GEN, "mov", arf(0x20, "d"), reg(5)), instr(GEN, "mov", dst(20), arf(0x20, "d", region="8;8,1"))]
    assert masked(*fork(*through, mov(31, 20)), mov(30, 6), send(30)) == {31}


def test_what_is_written_again_before_it_is_read_is_dead() -> None:
    assert masked(*fork(mov(31, 5), send(30)), mov(31, 6), send(30)) == set()


def test_a_predicated_write_leaves_what_was_there() -> None:
    assert masked(*fork(mov(20, 5, predicate=1), mov(31, 20), send(30))) == {20}


@pytest.mark.parametrize(
    "reads",
    [
        mov(31, 20, no_mask=True),
        instr(GEN, "mov", dst(31), scalar(20)),
        instr(GEN, "mov", dst(31), reg(20, "d", "8;8,1", 4)),
        instr(GEN, "mov", dst(31, "w"), reg(20, "w")),
        instr(GEN, "mov", dst(31, "q"), scalar(20, "q"), size=1),
        instr(GEN, "dp4", dst(31, "f"), reg(20, "f"), reg(20, "f")),
    ],
    ids=["NoMask", "one for all", "neighbours", "in other pieces", "in larger pieces", "dot product"],
)
def test_lanes_that_others_read_are_kept(reads: Instruction) -> None:
    assert 20 in masked(*fork(mov(20, 5), reads, send(30)))


HIGH = {"quarter": 2}  # channels from 16 on


def test_a_register_may_be_used_for_other_channels_later() -> None:
    """r20 and r21 are of channels from 16 on, then of those from 0 on, or a scalar."""
    high, low = [mov(20, 5, 16, **HIGH), mov(40, 20, 16, **HIGH)], [mov(20, 7, 16), mov(42, 20, 16)]
    scalars = [mov(20, 9, 1, no_mask=True), instr(GEN, "mov", dst(44), scalar(20), size=16)]
    used = [mov(48, 40, 16, **HIGH), mov(50, 42, 16)]
    for before, inside in (([], [*high, *low]), ([], [*low, *high]), (scalars, [*high, *low])):
        assert 20 not in masked(*before, *fork(*inside, *used, width=32), width=32)


@pytest.mark.parametrize(
    "inside, after",
    [
        ([mov(42, 20, 16)], []),
        ([], [mov(42, 20, 16)]),
        ([instr(GEN, "mov", dst(44), scalar(20, "d", 4), size=16)], []),
        ([mov(20, 9, 1, no_mask=True), instr(GEN, "mov", dst(44), scalar(20, "d", 4), size=16)], []),
        ([mov(20, 9, 16), mov(42, 20, 16)], [mov(42, 20, 16)]),
    ],
    ids=["read there by others", "read behind by others", "read by all", "of which a lane is written", "read by those elsewhere"],
)
def test_lanes_that_others_read_by_another_map_are_kept(inside: list[Item], after: list[Item]) -> None:
    """What channels from 0 on have in r20 and r21, inactive ones from 16 on must not overwrite."""
    start: list[Item] = [mov(20, 7, 16, no_mask=True)]
    high = [mov(20, 5, 16, **HIGH), mov(40, 20, 16, **HIGH)]
    assert 20 in masked(*start, *fork(*high, *inside, width=32), *after, width=32, channel=16)


def test_a_write_that_leaves_something_reads_nothing() -> None:
    high = [mov(20, 5, 16, **HIGH), mov(40, 20, 16, **HIGH)]
    assert 20 not in masked(*fork(*high, mov(20, 9, 16, predicate=1), width=32), width=32, channel=16)


@pytest.mark.parametrize("descriptor, sfid, keeps", [(WRITES, 0xC, False), (BLOCKS, 0xA, True)], ids=["scattered", "block"])
def test_a_block_is_written_for_any_channel(descriptor: int, sfid: int, keeps: bool) -> None:
    assert (31 in masked(*fork(mov(31, 5), send(30, descriptor, sfid)))) is keeps


def test_a_write_of_several_parts_needs_all_of_them() -> None:
    """The registers from r20 on are used in ever other company; r21 is seen by all, r20 is not."""
    across = [mov(40, 21, 16, no_mask=True), mov(42, 23, 16, no_mask=True), mov(44, 22, 16)]
    assert 20 in masked(*fork(mov(20, 5, 16), mov(46, 20, 16), *across, width=16), width=16)
    assert 20 not in masked(*fork(mov(20, 5, 16), mov(46, 20, 16), width=16), width=16)


def test_a_write_of_half_a_part_does_not_replace_it() -> None:
    """Channels from 8 on come by it, and still read what they had."""
    half = [mov(20, 6), mov(31, 20, 16), send(30)]
    assert 20 in masked(*fork(mov(20, 5, 16), mov(46, 20, 16), width=16), *half, width=16)


def test_channels_that_leave_do_not_come_by_what_the_others_write() -> None:
    """Those at `else` may halt, and read at the end what all others have written again."""
    compared = instr(GEN, "cmp", arf(0, "d"), reg(4), imm(3), condition=L)
    for name, found in (("halt", {31}), ("nop", set())):
        leaves = branch(GEN, "halt", "end", "far", predicate=1) if name == "halt" else instr(GEN, "nop", size=1)
        items = [
            compared,
            branch(GEN, "if", "else", "end", predicate=1),
            mov(31, 5),
            mov(32, 31),
            branch(GEN, "else", "end", "end"),
            "else",
            leaves,
            "end",
            branch(GEN, "endif", "on"),
            "on",
            mov(31, 6, no_mask=True),
            "far",
            branch(GEN, "halt", "back", "back"),
            "back",
            send(30),
        ]
        assert masked(*items) == found, name


def test_registers_that_can_be_looked_at_keep_their_masks() -> None:
    code = Listing(GEN, *fork(mov(20, 5), mov(31, 20)), END)
    for observe in (False, True):
        made = KernelTranslator(code, Key(0, 8, True, observe))
        made.translate()
        assert any(access.mask != TRUE and access.offsets[0] == 20 * 32 for access in made.state.registers.accesses) is observe


# -- whole kernels -----------------------------------------------------------------------------------------------------


class Runs:
    """Kernels on both engines, and how many writes were freed of their masks."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder, self.freed, self.without, self.count = folder, 0, 0, 0
        spread = inactive_lanes.drop_write_masks

        def counted(graph: Any, segments: Any, registers: RegisterPartition) -> None:
            before = sum(access.mask == TRUE for access in registers.accesses)
            spread(graph, segments, registers)
            self.freed += sum(access.mask == TRUE for access in registers.accesses) - before

        monkeypatch.setattr(inactive_lanes, "drop_write_masks", counted)

    def agree(self, kernel: divergent.KernelTranslator) -> bool:
        before, self.count = self.freed, self.count + 1
        store = TranslationStore(self.folder / str(self.count))  # nothing that was translated before
        groups = EngineDispatcher("t1", 1, make=lambda name: Translator(store=store))
        found = [kernel.job().run(groups=item) for item in (EngineDispatcher("reference"), groups)]
        assert not groups.notes
        self.without += self.freed == before
        return all(found[0].buffer(number) == found[1].buffer(number) for number in range(2))


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Runs:
    return Runs(tmp_path, monkeypatch)


@pytest.mark.parametrize("gen", in_ci(divergent.GPUS, 8))
def test_memory_is_the_same(gen: float, runs: Runs) -> None:
    for number in range(FEW):
        assert runs.agree(generate(gen, number)), generate(gen, number).text()
    assert runs.freed > FEW and runs.without <= 0.7 * FEW


@pytest.mark.witness
@pytest.mark.parametrize("gen", divergent.GPUS)
def test_memory_is_the_same_for_many(gen: float, runs: Runs) -> None:
    different = [number for number in range(MANY) if not runs.agree(generate(gen, number))]
    assert not different and runs.without <= 0.7 * MANY


# -- the same kernels, and an analysis that is wrong ----------------------------------------------------------------------


def nobody_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    homes = inactive_lanes._homes
    drop = lambda *given: {ip: replace(home, pending=frozenset()) for ip, home in homes(*given).items()}  # noqa: E731
    monkeypatch.setattr(inactive_lanes, "_homes", drop)


def lanes_are_never_mixed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inactive_lanes, "lane_map", lambda access: (4, 4, 0))


def predicates_do_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    add = TranslationState._add

    def everyone(self: TranslationState, access: RegisterAccess) -> None:
        add(self, access)
        access.everyone = access.channel is not None and not access.result

    monkeypatch.setattr(TranslationState, "_add", everyone)


def blocks_are_lanes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("softgen.eu.translate.state.by_lane", lambda item: True)


@pytest.mark.witness
@pytest.mark.parametrize("wrong", [nobody_waits, lanes_are_never_mixed, predicates_do_not_matter, blocks_are_lanes])
def test_a_wrong_analysis_is_noticed(wrong: Any, runs: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    wrong(monkeypatch)
    assert not all(runs.agree(generate(GEN, number)) for number in range(60))
