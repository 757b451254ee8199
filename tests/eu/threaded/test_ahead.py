"""Handlers that are compiled before a kernel needs them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from softgen.cache import Cache
from softgen.eu.isa.instruction import Instruction
from softgen.eu.semantics.send import has_lane_program
from softgen.eu.text import dialect
from softgen.eu.threaded import ahead, library
from softgen.eu.threaded.handlers import HandlerKind
from softgen.eu.threaded.library import Library, name_of
from softgen.eu.threaded.shapes import computing
from tests.conftest import ROOT
from tests.eu.semantics.build import dst, imm, instr, reg

OPCODES = ("add", "and", "or", "xor", "shl")
KINDS = [HandlerKind("compute", computing(instr(9, opcode, dst(10), reg(2), imm(5))).shape) for opcode in OPCODES]
NAMES = {kind: name_of(kind) for kind in KINDS}


@pytest.fixture
def lots(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The opcodes of each lot that is compiled."""
    found: list[list[str]] = []
    compile = Library._compile

    def seen(self: Library, missing: dict[HandlerKind, str]) -> library.HandlerBatch:
        found.append([kind.shape.instruction.opcode for kind in missing])
        return compile(self, missing)

    monkeypatch.setattr(Library, "_compile", seen)
    return found


def test_handlers_are_compiled_in_lots_and_kept(lots: list[list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(library, "AHEAD", 2)
    first = Library(9, Cache(tmp_path))
    assert first.compile_next(NAMES) and lots == [["add", "and"]] and not first.is_complete()
    assert first.compile_next(NAMES) and first.compile_next(NAMES) and not first.is_complete()
    assert lots == [["add", "and"], ["or", "xor"], ["shl"]] and not first.compiling
    assert not first.compile_next(NAMES) and first.is_complete() and len(lots) == 3
    second = Library(9, Cache(tmp_path))
    assert second.is_complete()
    found = second.get(KINDS)
    assert len(lots) == 3 and all(found[kind].address and found[kind].reach == first.handlers[kind].reach for kind in KINDS)
    assert not Library(8, Cache(tmp_path)).is_complete()


def test_what_is_there_is_left_out(lots: list[list[str]], tmp_path: Path) -> None:
    """In the cache, in the process, or under way: a program may have asked for it before, and may while the rest is compiled."""
    Library(9, Cache(tmp_path)).get(KINDS[:1])
    second = Library(9, Cache(tmp_path))
    second.get(KINDS[1:2])
    second.compiling.add(KINDS[2])
    assert second.compile_next(NAMES) and not second.compile_next(NAMES)
    assert lots == [["add"], ["and"], ["xor", "shl"]] and second.compiling == {KINDS[2]}
    assert second.index is not None and name_of(KINDS[2]) not in second.index


def test_a_lot_that_two_host_threads_compiled_is_kept_once(tmp_path: Path) -> None:
    """A program may be linked to the first one's code, which must stay."""
    handlers = Library(9, Cache(tmp_path))
    handlers.open()
    first, second = handlers._compile(NAMES), handlers._compile(NAMES)
    assert first.code is not second.code
    handlers._enter(first)
    before = dict(handlers.handlers)
    handlers._enter(second)
    assert handlers.handlers == before and list(handlers.codes.values()) == [first.code]


@pytest.mark.parametrize("gen", [8, 9, 11])
def test_lists_of_common_instructions(gen: float) -> None:
    """Each line is another handler, and none is left to the interpreter; nearly all are of the mode that kernels change to at first."""
    kinds = ahead.common(gen)
    lines = [line for line in (ahead.FOLDER / f"{gen}.asm").read_text().splitlines() if not line.startswith("//") and line[-1] != ":"]
    no_instruction = [kind.what for kind in kinds if not kind.shape.instruction.opcode and kind.what not in ("mode", "wait")]
    assert no_instruction == ["gate", "start", "back", "label"]
    assert 0.95 * len(lines) < len(kinds) - len(no_instruction) <= len(lines) < 650
    insts: list[Instruction] = [kind.shape.instruction for kind in kinds]
    assert insts[len(ahead.AROUND)].opcode in ("mov", "and") and sum(inst.eot for inst in insts) == 1
    assert all(has_lane_program(inst) for kind, inst in zip(kinds, insts, strict=True) if kind.what == "send")
    assert {kind.what for kind in kinds} == {"compute", "send", "branch", "wait", "mode", *no_instruction}
    assert {"if", "else", "endif", "while", "break", "jmpi"} <= {inst.opcode for inst in insts}
    assert 1 <= sum(bool(kind.mode.flushes) for kind in kinds if kind.what == "compute") < 5


def test_a_list_has_what_compiled_programs_have_in_common(tmp_path: Path) -> None:
    """Two kernels have these five: one before cr0 changes, and the end of the thread last. All of what the runtime's own have is listed."""
    kernels = sorted(str(path) for path in (ROOT / "tests/data/kernels").glob("*.kbl*.bin"))

    def made(*more: str) -> list[str]:
        command = [sys.executable, str(ROOT / "tools/common_instructions.py"), "kbl", *kernels, *more]
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()

    first, *lines = made()
    assert first.startswith("// Instructions of 2 OpenCL kernels")
    assert [line.split("(")[1].split()[1] for line in lines] == ["mov", "or", "mul", "mov", "send"] and "cr0" in lines[1]
    own = tmp_path / "own.code"
    own.write_bytes(dialect.read(f"xor (8|M0) r2.0<1>:ud r3.0<8;8,1>:ud 7:ud\n{lines[-1]}", 9) + bytes(64))
    assert [line.split()[0] for line in made(str(own)) if "xor" in line] == ["xor"]


def test_a_generation_without_a_list() -> None:
    assert ahead.common(7.5) == [] and ahead.common(4.5) == []


def test_it_goes_on_until_it_is_done_or_stopped(lots: list[list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked, stops = list[float](), iter([False, True, True, False, False, False])
    monkeypatch.setattr(library, "AHEAD", 3)
    monkeypatch.setattr(ahead, "library", lambda gen: Library(gen, Cache(tmp_path)))
    monkeypatch.setattr(ahead, "common", lambda gen: (asked.append(gen), KINDS)[1])
    ahead.compile_ahead(9, stops.__next__)
    assert lots == [["add", "and", "or"]]
    ahead.compile_ahead(9, stops.__next__)
    assert len(lots) == 1
    ahead.compile_ahead(9, stops.__next__)
    assert lots[1:] == [["xor", "shl"]] and asked == [9, 9, 9]
    ahead.compile_ahead(9, stops.__next__)
    assert asked == [9, 9, 9]  # the list is not even read
