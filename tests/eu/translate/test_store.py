"""Kernels on disk: found by their code, however much stands behind it; and promotion from one engine to the other."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from softgen.eu import engine
from softgen.eu.encoding import program
from softgen.eu.interpreter import KernelProgram
from softgen.eu.promotion import Promoting
from softgen.eu.thread.block import Context, ThreadStatus
from softgen.eu.thread.state import ThreadState
from softgen.eu.translate import engine as translation
from softgen.eu.translate.engine import Translator
from softgen.eu.translate.store import Store
from tests.eu.semantics.build import dst, end, imm, one, reg

GEN = 9


def code(amount: int, tail: bytes = b"") -> KernelProgram:
    made = program.assemble([one(GEN, "add", dst(20), reg(20), imm(amount)), end(GEN)])
    return KernelProgram(GEN, made + tail)


def result(function: engine.Function, made: KernelProgram) -> int:
    thread = ThreadState(GEN, dispatch_mask=0xFF)
    assert engine.call(function, thread, Context(budget=10)) in (ThreadStatus.ENDED, ThreadStatus.ESCAPE)
    return int(thread.register(20).view(np.int32)[0])


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "objects")


def translator(store: Store) -> Translator:
    return Translator(observe=True, messages=False, store=store)


def test_a_kernel_is_translated_once(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    translator(store).function(code(5), 0, 8)
    monkeypatch.setattr(translation, "translate", None)  # whoever calls it now fails
    again = code(5, tail=b"something else follows")
    assert result(translator(store).function(again, 0, 8), again) == 5


def test_other_code_and_other_options_are_other_kernels(store: Store) -> None:
    translator(store).function(code(5), 0, 8)
    other = code(6)
    assert result(translator(store).function(other, 0, 8), other) == 6
    known = translator(store)
    assert known.at_hand(code(5), 0, 8, True) and known.at_hand(other, 0, 8, True)
    assert not known.at_hand(code(5), 0, 16, True) and not known.at_hand(code(7), 0, 8, True)


def test_an_object_that_was_spoilt_is_made_again(store: Store) -> None:
    translator(store).function(code(5), 0, 8)
    for path in (store.cache.folder or Path()).iterdir():
        path.write_bytes(path.read_bytes()[:-1])
    assert result(translator(store).function(code(5), 0, 8), code(5)) == 5


def test_a_hot_kernel_goes_on_faster(store: Store) -> None:
    made, promoting = code(5), Promoting(hot=10)
    promoting.slow, promoting.fast = engine.Threaded(messages=False), translator(store)
    first = promoting.function(made, 0, 8)
    assert first.program and result(first, made) == 5  # only t0 has a program of its own
    promoting.ran(made, 5)
    assert promoting.function(made, 0, 8).program
    promoting.ran(made, 1000)
    assert promoting.function(made, 0, 8).program
    for worker in promoting.workers:
        worker.join()
    last = promoting.function(made, 0, 8)
    assert not last.program and result(last, made) == 5
