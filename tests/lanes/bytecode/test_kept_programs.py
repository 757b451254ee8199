"""Bytecode programs in the cache: the same results, host functions where they are in this process, and what is not a program."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from softgen.cache import Cache
from softgen.lanes.bytecode import kept_programs
from softgen.lanes.bytecode.machine import BytecodeMachine
from softgen.lanes.bytecode.program import BytecodeProgram
from softgen.lanes.host_function import HostFunction
from softgen.lanes.types import u32

Function = ctypes.CFUNCTYPE(None, ctypes.POINTER(ctypes.c_uint32), ctypes.POINTER(ctypes.c_uint32), ctypes.c_uint32)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(kept_programs, "default_folder", lambda: tmp_path)
    tmp_path.chmod(0o700)
    return tmp_path


def call(program: BytecodeProgram, number: int) -> int:
    context = np.zeros(8, np.uint64)
    return int(ctypes.CFUNCTYPE(ctypes.c_uint32, ctypes.c_uint64, ctypes.c_uint32)(program.address)(context.ctypes.data, number))


def arithmetic() -> BytecodeProgram:
    m = BytecodeMachine(36)
    number = m.argument(1, u32)
    return m.program(24, 32, m.select(number > 10, number * 7 + 3, number - 5))


def test_a_program_is_read_as_it_was_written() -> None:
    written = arithmetic()
    kept_programs.save("arithmetic", written)
    read = kept_programs.load("arithmetic")
    assert read is not None and read.text == written.text and read.address != written.address
    assert (read.record.table_at, read.record.note_at, read.record.address_mask) == (24, 32, (1 << 36) - 1)
    assert [call(read, number) for number in (4, 10, 11, 1 << 31)] == [call(written, number) for number in (4, 10, 11, 1 << 31)]
    assert call(read, 11) == 80 and call(read, 10) == 5


def test_other_names_have_other_programs() -> None:
    kept_programs.save("arithmetic", arithmetic())
    assert kept_programs.load("other") is None


def host(name: str, does: Callable[[int], int]) -> tuple[HostFunction, object]:
    def function(given: object, found: object, lanes: int) -> None:
        for lane in range(lanes):
            found[lane] = does(given[lane])  # type: ignore[index]

    held = Function(function)
    return HostFunction(name, lambda: ctypes.cast(held, ctypes.c_void_p).value or 0), held


def test_host_functions_are_called_where_they_are_now(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process has them elsewhere."""
    before, _first = host("test_kept_host", lambda value: value + 100)
    m = BytecodeMachine()
    program = m.program(0, 0, m.host(before, [m.argument(1, u32)], 1)[0])
    assert call(program, 5) == 105
    kept_programs.save("host", program)
    _, _second = host("test_kept_host", lambda value: value * 3)  # takes the name
    read = kept_programs.load("host")
    assert read is not None and call(read, 5) == 15 and call(program, 5) == 105


def test_a_function_without_a_name_is_not_kept(folder: Path) -> None:
    known, _held = host("test_kept_lost", lambda value: value)
    m = BytecodeMachine()
    program = m.program(0, 0, m.host(known, [m.argument(1, u32)], 1)[0])
    host("test_kept_lost", lambda value: value)  # no longer at that address
    kept_programs.save("lost", program)
    assert not list(folder.iterdir()) and kept_programs.load("lost") is None


@pytest.mark.parametrize("damage", [
    lambda data: b"", lambda data: b"\xff" * 40, lambda data: data[:60], lambda data: data[: len(data) // 2],
    lambda data: data.replace(b'"frame"', b'"flame"'), lambda data: data.replace(b'"calls": []', b'"calls": [[0, "no such function"]]'),
])  # fmt: skip
def test_what_is_no_program_is_removed(damage: Callable[[bytes], bytes], folder: Path) -> None:
    data = kept_programs.data_of(arithmetic().text)
    assert data is not None
    Cache(folder).save(kept_programs._key("damaged"), damage(data))
    assert kept_programs.load("damaged") is None
    assert not list(folder.iterdir())


def test_sources_that_changed_have_other_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    kept_programs.save("arithmetic", arithmetic())
    monkeypatch.setattr(kept_programs, "_stamp", lambda: "other sources")
    assert kept_programs.load("arithmetic") is None
