"""Shapes and handlers: what shares one, what is kept on disk, and what happens when that is spoilt."""

from __future__ import annotations

import ctypes
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from softgen.bits.layout import GENERATIONS
from softgen.cache import Cache
from softgen.eu.interpreter import Interpreter, KernelProgram, RunOutcome
from softgen.eu.isa.instruction import Operand
from softgen.eu.thread.block import Context, ThreadStatus
from softgen.eu.threaded import library, run
from softgen.eu.threaded.engine import ThreadedPrograms
from softgen.eu.threaded.engine import _loop as loop
from softgen.eu.threaded.handlers import HandlerKind
from softgen.eu.threaded.library import Library, name_of
from softgen.eu.threaded.link import Linker, new_control
from softgen.eu.threaded.record import OP
from softgen.eu.threaded.shapes import FREE, computing
from softgen.eu.threaded.write import escape
from tests.eu.random_programs.cases import generate
from tests.eu.random_programs.engines import compare
from tests.eu.semantics.build import NULL, Listing, arf, dst, end, imm, instr, reg, scalar, thread

ADD = instr(9, "add", dst(10), reg(2), imm(5))


# -- shapes --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("other", [
    instr(9, "add", dst(11), reg(2), imm(5)),
    instr(9, "add", dst(10, sub=4), reg(7, sub=12), imm(-1)),
    instr(9, "add", dst(10), reg(2), imm(5), quarter=1),
    instr(9, "add", dst(10), reg(2), imm(0xFFFB, "w")),
    replace(ADD, compacted=True, no_dd_check=True, thread_control=2),
    instr(9, "add", dst(10), reg(2), imm(5), flag=1, flag_sub=1),
])  # fmt: skip
def test_what_a_record_holds_makes_no_shape(other) -> None:
    assert computing(other).shape == computing(ADD).shape
    assert computing(other) != computing(ADD) or other.compacted


@pytest.mark.parametrize("other", [
    instr(9, "add", dst(10), reg(2, region="8;4,2"), imm(5)),
    instr(9, "add", dst(10), reg(2), imm(5, "ud")),
    instr(9, "add", dst(10), reg(2, "w"), imm(5, "w")),
    instr(9, "add", dst(10), reg(2), reg(4)),
    instr(9, "add", dst(10), reg(2, negate=True), imm(5)),
    instr(9, "add", dst(10), reg(2), imm(5), size=16),
    instr(9, "add", dst(10), reg(2), imm(5), no_mask=True),
    instr(9, "add", dst(10), reg(2), imm(5), predicate=1),
    instr(8, "add", dst(10), reg(2), imm(5)),
    instr(9, "add", arf(0x20, "d"), reg(2), imm(5)),
])  # fmt: skip
def test_what_changes_the_code_makes_a_shape(other) -> None:
    assert computing(other).shape != computing(ADD).shape


def test_flags_of_groups_that_do_not_start_at_their_size_stay_in_the_shape() -> None:
    """any16h of channels 8 to 15 looks at flags from channel 0 on: no moving that."""
    moved, kept = (computing(instr(9, "mov", dst(4), reg(6), predicate=10, quarter=quarter)) for quarter in (2, 1))
    assert (moved.group, moved.flag, moved.shape.instruction.quarter) == (16, 16, 0)
    assert (kept.group, kept.flag, kept.shape.instruction.quarter) == (0, 0, 1)


def test_a_record_holds_two_immediates_or_a_wide_one() -> None:
    """A third stays in the shape."""
    three = computing(instr(11, "mad", dst(4), imm(1), imm(-2 & 0xFFFFFFFF), imm(3)))
    assert three.immediate == 1 | 0xFFFFFFFE << 32
    assert [(source.file, source.immediate) for source in three.shape.instruction.sources] == [("grf", 0), ("grf", 0), ("imm", 3)]
    assert computing(instr(9, "mov", dst(4, "q"), imm(0x123456789A, "q"))).immediate == 0x123456789A
    assert computing(instr(9, "add", dst(4), reg(2), imm(-1))).immediate == 0xFFFFFFFF


@pytest.mark.parametrize("kind, value, dword", [
    ("w", 0x3FFF, 0x3FFF), ("w", 0x4000, 0x4000), ("w", 0x7FFF, 0x7FFF), ("w", 0x8000, 0xFFFF8000), ("w", 0xFFFFFFFE, 0xFFFFFFFE),
    ("uw", 0x8000, 0x8000), ("uw", 0xFFFFFFFE, 0xFFFE)])  # fmt: skip
def test_a_word_beside_dwords_is_the_dword_that_it_becomes(kind: str, value: int, dword: int) -> None:
    """With its sign, and without what stands in the other half."""
    use = computing(instr(9, "add", dst(4), reg(2), imm(value, kind)))
    assert use.immediate == dword and use.shape.instruction.sources[1].type == "d"
    beside_words = computing(instr(9, "add", dst(4), reg(2, "w"), imm(value, kind)))
    assert beside_words.shape.instruction.sources[1].type == kind


@pytest.mark.parametrize("number, sub", [(4, 0), (4, 4), (4, 16), (4, 28), (127, 20), (0, 8)])
def test_line_takes_dwords_around_its_first_source_without_the_reference(number: int, sub: int) -> None:
    """Its q is the last of the four dwords that p is one of: a slot begins with them."""
    code = Listing(9, instr(9, "line", dst(20, "f"), scalar(number, "f", sub), reg(6, "f")), end(9))
    plane, given = np.arange(1, 9, dtype=np.float32), np.arange(8, dtype=np.float32) * 10
    made = [thread(9, **{f"r{number}": plane, "r6": given}) for _ in range(2)]
    assert ThreadedPrograms(9.0).link(code, messages=False).escapes == 2, "the message, and what would follow it"
    assert Interpreter(made[0], code).run() is run(made[1], code) is RunOutcome.ENDED
    for state in made:
        assert list(state.register(20).view(np.float32)) == list(plane[sub // 4] * given + plane[sub // 16 * 4 + 3])


def test_limits_say_how_much_of_the_file_is_left() -> None:
    assert computing(instr(9, "mov", dst(127), imm(1))).limits == (32, FREE, FREE, FREE)


# -- kept on disk --------------------------------------------------------------------------------------------------


def small(control: int = 0) -> Listing:
    return Listing(9, ADD, instr(9, "mul", dst(12, "f"), reg(2, "f"), scalar(3, "f")), end(9))


def address_of(kept: Library) -> int:
    return len([handler for handler in kept.handlers.values() if handler.address])


def test_handlers_come_from_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = Cache(tmp_path / "objects")
    first = Library(9.0, cache)
    ThreadedPrograms(9.0, first).link(small())
    again = Library(9.0, cache)
    monkeypatch.setattr(library, "write", lambda *given: pytest.fail("compiled again"))
    ThreadedPrograms(9.0, again).link(small())
    assert {name_of(kind) for kind in first.handlers} == {name_of(kind) for kind in again.handlers}
    assert address_of(first) == address_of(again) >= 2


def test_what_is_left_to_the_reference_is_known_from_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No handler can be written for a plane equation that is an immediate."""
    cache = Cache(tmp_path / "objects")
    code = Listing(9, ADD, instr(9, "line", dst(4, "f"), imm(0, "f"), reg(9, "f")), end(9))
    first, again = Library(9.0, cache), Library(9.0, cache)
    assert ThreadedPrograms(9.0, first).link(code, messages=False).escapes == 3, "with the message at the end and what follows it"
    monkeypatch.setattr(library, "write", lambda *given: pytest.fail("compiled again"))
    assert ThreadedPrograms(9.0, again).link(code, messages=False).escapes == 3
    assert address_of(first) == address_of(again) == len(first.handlers) - 1 == len(again.handlers) - 1


STRANGE = {"cut index": "[1, 2", "list for an index": "[1]", "number for an entry": '{"h": 5}',
           "text for a number": '{"h": ["", ["1"], []]}', "number for a lot": '{"h": [5, [1], []]}',
           "short entry": '{"h": ["", []]}'}  # fmt: skip


@pytest.mark.parametrize("what", ["index", "object", "no object", *STRANGE])
def test_a_spoilt_cache_costs_a_compilation_and_nothing_else(tmp_path: Path, what: str) -> None:
    cache = Cache(tmp_path / "objects")
    ThreadedPrograms(9.0, Library(9.0, cache)).link(small())
    index = Library(9.0, cache)._key
    (made,) = [path for path in cache.folder.iterdir() if path.name != index]
    if what == "index":
        (cache.folder / index).write_bytes(b"x" * 100)
    elif what in STRANGE:
        cache.save(index, STRANGE[what].encode())
    elif what == "no object":
        made.unlink()
    else:
        cache.save(made.name, b"no object at all")
    kept = Library(9.0, cache)
    ThreadedPrograms(9.0, kept).link(small())
    assert address_of(kept) >= 2


def kinds_of(code: KernelProgram, kept: Library) -> dict[HandlerKind, str]:
    """What a program would ask for, with names."""
    linker = Linker(code, 0, kept, messages=False)
    linker.explore_modes(frozenset({0}))
    return {op.kind: name_of(op.kind) for op in linker.ops() if op.kind is not None}


def test_what_programs_had_is_loaded_before_the_next_asks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of lots that are there and nobody asked for, none is. A list that is complete is not written again."""
    cache = Cache(tmp_path / "objects")
    first, second, third, fourth = (Library(9.0, cache) for _ in range(4))
    ahead = Listing(9, instr(9, "xor", dst(10), reg(2), imm(5)), end(9))
    while first.compile_next(kinds_of(ahead, first)):
        pass
    assert first.codes and not first.used
    ThreadedPrograms(9.0, first).link(small())
    first.keep_recent()
    second.load_recent()
    assert set(second.codes) == set(first.used) < set(first.codes)
    monkeypatch.setattr(cache, "save", lambda *given: pytest.fail("nothing is new"))
    monkeypatch.setattr(second, "_load", lambda *given: pytest.fail("it is loaded"))
    ThreadedPrograms(9.0, second).link(small())
    assert address_of(second) >= 2 and set(second.used) == set(first.used)
    second.keep_recent()
    third.keep_recent()  # of no program
    monkeypatch.undo()
    ThreadedPrograms(9.0, fourth).link(ahead)
    assert set(fourth.used) & set(first.codes) - set(first.used), "what was compiled ahead is asked for now"
    fourth.keep_recent()
    assert set(third._recent()) == set(first.codes)


def test_handlers_that_took_the_place_of_bytecode_were_asked_for(tmp_path: Path) -> None:
    kept = Library(9.0, Cache(tmp_path / "objects"))
    kinds = list(kinds_of(small(), kept))
    kept.open()
    kept._promote({kind: name_of(kind) for kind in kinds[:1]})
    assert not kept.used, "compiled ahead"
    kept._interpret({kind: name_of(kind) for kind in kinds[1:2]}, needed=True)
    kept._promote({kind: name_of(kind) for kind in kinds[1:2]})
    assert len(kept.used) == 1


def test_the_list_of_what_programs_had_is_short_and_the_last_program_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(library, "RECENT", 3)
    cache = Cache(tmp_path / "objects")
    for used, kept in (("abcd", "bcd"), ("b", "bcd"), ("ex", "exb"), ("", "exb")):
        run_ = Library(9.0, cache)
        run_.used = dict.fromkeys(used)
        run_.keep_recent()
        assert "".join(run_._recent()) == kept
    run_.load_recent()
    assert not run_.codes, "of lots that the cache has lost, nothing is loaded"


@pytest.mark.parametrize("spoilt", ["[1", "{}", "[1]", '["a", null]', '"abc"', "5"])
def test_a_spoilt_list_of_what_programs_had_is_none(spoilt: str, tmp_path: Path) -> None:
    kept = Library(9.0, Cache(tmp_path / "objects"))
    kept.cache.save(f"{kept._key}-recent", spoilt.encode())
    kept.load_recent()
    assert not kept.codes and not list(kept.cache.folder.iterdir())


def test_without_a_cache_all_is_compiled() -> None:
    kept = Library(9.0, Cache(None))
    ThreadedPrograms(9.0, kept).link(small())
    assert address_of(kept) >= 2


def test_many_new_handlers_are_made_some_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rest is the reference's until the program is linked again."""
    monkeypatch.setattr(library, "MOST", 2)
    code = Listing(9, *(instr(9, name, dst(10), reg(2), reg(4)) for name in ("add", "mul", "and", "or", "xor")), end(9))
    engine = ThreadedPrograms(9.0, Library(9.0, Cache(None)))
    linked = [engine.link(code, 0, messages=False) for _ in range(4)]
    assert [program.escapes for program in linked] == [5, 3, 2, 2] and [program.whole for program in linked] == [False, False, True, True]
    assert linked[3] is linked[2]
    made = thread(9, r2=np.full(8, 6, np.int32), r4=np.full(8, 3, np.int32))
    run(made, code)
    assert made.register(10)[0] == 5


# -- records -------------------------------------------------------------------------------------------------------


def test_records_are_as_the_loop_wants_them() -> None:
    linked = ThreadedPrograms(9.0).link(small(), messages=False)
    records = linked.ops.view(OP)
    assert linked.ops.ctypes.data % 64 == 0 and list(linked.index) == [0, 0xFFFFFFFF, 1, 0xFFFFFFFF, 2]
    assert [record != escape() for record in records["function"]] == [True, True, False, False]
    assert list(records["ip"]) == [0, 16, 32, 48]
    assert (records["dst"][0], records["src0"][0], records["immediate"][0]) == (320, 64, 5)


@pytest.mark.parametrize("item", [
    instr(9, "mov", dst(127), reg(4), size=16),
    instr(9, "mov", dst(4), reg(127), size=16),
    instr(9, "mov", dst(4, indirect=True, offset=-32), reg(4)),
    instr(9, "add", dst(4, "d"), reg(4, indirect=True, offset=-32), imm(1), condition=2),
    instr(9, "line", dst(4, "f"), imm(0, "f"), reg(9, "f")),
    instr(9, "mov", dst(4), reg(4, "")),
])  # fmt: skip
def test_what_is_wrong_is_told_by_the_reference(item) -> None:
    """In the same words, and with nothing changed before."""
    told, made = [], [thread(9, 0xFFFF) for _ in range(2)]
    code = Listing(9, item, end(9))
    for one_, go in zip(made, (lambda t: Interpreter(t, code).run(), lambda t: run(t, code)), strict=True):
        with pytest.raises(Exception) as caught:
            go(one_)
        told.append((caught.type, str(caught.value)))
    assert told[0] == told[1]
    assert made[0].compare(made[1].snapshot()) == ()


@pytest.mark.parametrize("register, sub, fits", [(0x20, 0, 16), (0x20, 4, 15), (0x20, 8, 14), (0x21, 0, 8), (0x21, 4, 7), (0x21, 28, 1)])
def test_what_does_not_fit_into_the_accumulators_is_written_nowhere(register: int, sub: int, fits: int) -> None:
    """acc1 follows acc0, and nothing follows acc1; as integers, they are what they were."""
    code = Listing(9, instr(9, "mov", arf(register, "f", sub), reg(4, "f"), size=16), instr(9, "mov", dst(20), arf(0x20, "d")), end(9))
    values = np.arange(1, 17, dtype=np.float32)
    made = [thread(9, 0xFFFF, r4=values) for _ in range(3)]
    made[2].arf["acc"].view(np.float32)[16 - fits :] = values[:fits]
    assert Interpreter(made[0], code).run() is run(made[1], code) is RunOutcome.ENDED
    assert made[0].compare(made[1].snapshot()) == () and made[1].arf["acc"].tobytes() == made[2].arf["acc"].tobytes()
    assert made[1].register(20).tobytes() == made[2].arf["acc"][:32].tobytes()


def test_a_changed_cr0_means_another_program() -> None:
    """Rounding up after the write, to nearest before it."""
    control = arf(0x80, "ud", region="0;1,0")
    add = instr(9, "add", dst(10, "f"), reg(2, "f"), imm(0x33800000, "f"))
    code = Listing(9, add, instr(9, "or", replace(control, horizontal=1), control, imm(0x10, "ud"), size=1, no_mask=True),
                   replace(add, dst=dst(11, "f")), end(9))  # fmt: skip
    made = thread(9, r2=np.ones(8, np.float32))
    assert run(made, code) is RunOutcome.ENDED
    assert (made.register(10)[0], made.register(11)[0]) == (0x3F800000, 0x3F800001)


def test_a_plain_change_of_mode_needs_no_reference(monkeypatch: pytest.MonkeyPatch) -> None:
    """What compilers write at the start of a kernel; a thread that comes back later is led to the mode it is in."""
    control = arf(0x80, "ud", region="0;1,0")
    add = instr(9, "add", dst(10, "f"), reg(2, "f"), imm(0x33800000, "f"))
    notification = arf(0x90, "ud", region="0;1,0")
    code = Listing(9, add, instr(9, "or", replace(control, horizontal=1), control, imm(0x10, "ud"), size=1, no_mask=True),
                   instr(9, "wait", notification, notification, size=1, no_mask=True), replace(add, dst=dst(11, "f")), end(9))  # fmt: skip
    steps = []
    before = Interpreter.step
    monkeypatch.setattr(Interpreter, "step", lambda self: steps.append(self.thread.ip) or before(self))
    made, linked = thread(9, r2=np.ones(8, np.float32)), ThreadedPrograms(9.0).link(code, 0, messages=False)
    context = Context(budget=100, program=linked.address)
    made.save()
    assert loop()(made.block.ctypes.data, ctypes.addressof(context)) == ThreadStatus.WAITING
    made.load()
    assert (made.cr0, made.ip, made.executed, made.register(10)[0]) == (0x10, 32, 2, 0x3F800000)
    made.dwords("n")[0] = 1
    assert loop()(made.block.ctypes.data, ctypes.addressof(context)) == ThreadStatus.ESCAPE
    made.load()
    assert (made.ip, made.executed, made.register(11)[0], steps) == (64, 4, 0x3F800001, [])
    made.dwords("cr")[0] = 0x20
    made.ip = 48
    made.save()
    assert loop()(made.block.ctypes.data, ctypes.addressof(context)) == ThreadStatus.CR0_CHANGED


@pytest.mark.parametrize("change, wanted", [
    ({}, 0x4C1), ({"sources": (arf(0x80, "ud"), imm(0x04C004C0, "uw"))}, 0x4C1),
    ({"predicate": 1}, None), ({"no_mask": False}, None), ({"exec_size": 8}, None), ({"opcode": "add"}, None),
    ({"dst": arf(0x80, "ud", sub=4)}, None), ({"sources": (arf(0x80, "ud", sub=4), imm(0x4C0, "ud"))}, None),
    ({"sources": (arf(0x80, "ud"), imm(1 << 31, "ud"))}, None), ({"sources": (arf(0x80, "ud"), imm(4, "ud"))}, None),
    ({"opcode": "and", "sources": (arf(0x80, "ud"), imm(0xFFFFFB3F, "ud"))}, 1), ({"opcode": "and"}, 0),
    ({"condition": 1}, None), ({"saturate": True}, None), ({"acc_write": True}, None), ({"align16": True}, None),
    ({"dst": arf(0x80, "d")}, None), ({"dst": arf(0x90, "ud")}, None), ({"dst": dst(128, "ud")}, None), ({"dst": None}, None),
    ({"dst": arf(0x80, "ud", indirect=True)}, None),
    *(({"sources": (source, imm(0x4C0, "ud"))}, None) for source in (
        arf(0x80, "d"), arf(0x90, "ud"), reg(128, "ud"), arf(0x80, "ud", indirect=True), arf(0x80, "ud", negate=True),
        arf(0x80, "ud", absolute=True))),
    ({"sources": (arf(0x80, "ud"), reg(2, "ud"))}, None), ({"sources": (arf(0x80, "ud"), imm(0x4C0, "d"))}, None),
])  # fmt: skip
def test_only_plain_changes_of_float_modes_are_foreseen(change, wanted) -> None:
    """Not those that change where channels are, nor exceptions; nor from what is no cr0, such as r128, which only the reference refuses."""
    plain = instr(9, "or", arf(0x80, "ud"), arf(0x80, "ud"), imm(0x4C0, "ud"), size=1, no_mask=True)
    assert new_control(replace(plain, **change), 1) == wanted


def test_code_that_nothing_reaches_is_not_linked() -> None:
    linker = Linker(Listing(9, end(9), instr(9, "illegal", NULL)), 0, Library(9.0, Cache(None)), messages=False)
    linker.explore(frozenset({0}))
    assert sorted(linker.lines) == [0]


A0 = Operand("arf", "ud", 0x10)


@pytest.mark.parametrize("messages, change, handled", [
    (True, {}, True), (True, {"extended": 0x40}, True), (True, {"extended": replace(A0, immediate=0x40)}, True),
    (True, {"descriptor": replace(A0, immediate=0x02420001)}, True), (False, {}, False),
    (True, {"descriptor": A0}, False), (True, {"extended": A0}, False),  # nothing is known of the message
    (True, {"dst": dst(4, indirect=True)}, False), (True, {"sources": (reg(2, indirect=True),)}, False),
    (True, {"dst": None}, True),
])  # fmt: skip
def test_messages_that_are_known_have_handlers(messages: bool, change, handled: bool) -> None:
    send = replace(end(9), sfid=2, eot=False, descriptor=0x02420001, dst=dst(4), sources=(reg(2),))
    code = Listing(9, replace(send, **change), end(9))
    linker = Linker(code, 0, Library(9.0, Cache(None)), messages)
    op = linker._send(code.lines[0])
    assert (op.ip, op.kind is not None and op.kind.what == "send") == (0, handled) and (op.kind is not None) == handled


@pytest.mark.parametrize("gen", GENERATIONS)
def test_random_programs(gen: float) -> None:
    assert compare("reference", run, generate(gen, 1000)) is None
