"""Kernels on disk: found by their code, however much comes after it; and promotion from one engine to the other."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from softgen.eu import engine, promotion
from softgen.eu.encoding import program
from softgen.eu.interpreter import KernelProgram
from softgen.eu.promotion import PromotingEngine
from softgen.eu.thread.block import Context, ThreadStatus
from softgen.eu.thread.state import ThreadState
from softgen.eu.threaded.engine import ThreadedEngine
from softgen.eu.translate import kernel as translation
from softgen.eu.translate.engine import Translator
from softgen.eu.translate.store import TranslationStore
from tests.eu.semantics.build import dst, end, imm, instr, reg

GEN = 9


def code(amount: int, tail: bytes = b"") -> KernelProgram:
    made = program.assemble([instr(GEN, "add", dst(20), reg(20), imm(amount)), end(GEN)])
    return KernelProgram(GEN, made + tail)


def result(function: engine.Function, made: KernelProgram) -> int:
    thread = ThreadState(GEN, dispatch_mask=0xFF)
    assert engine.call(function, thread, Context(budget=10)) in (ThreadStatus.ENDED, ThreadStatus.ESCAPE)
    return int(thread.register(20).view(np.int32)[0])


@pytest.fixture
def store(tmp_path: Path) -> TranslationStore:
    return TranslationStore(tmp_path / "objects")


def translator(store: TranslationStore) -> Translator:
    return Translator(observe=True, messages=False, store=store)


def test_a_kernel_is_translated_once(store: TranslationStore, monkeypatch: pytest.MonkeyPatch) -> None:
    translator(store).function(code(5), 0, 8)
    monkeypatch.setattr(translation, "translate", None)  # calls fail from here on
    again = code(5, tail=b"something else follows")
    assert result(translator(store).function(again, 0, 8), again) == 5


def test_other_code_and_other_options_are_other_kernels(store: TranslationStore) -> None:
    translator(store).function(code(5), 0, 8)
    other = code(6)
    assert result(translator(store).function(other, 0, 8), other) == 6
    known = translator(store)
    assert known.lookup_cached(code(5), 0, 8, True) and known.lookup_cached(other, 0, 8, True)
    assert not known.lookup_cached(code(5), 0, 16, True) and not known.lookup_cached(code(7), 0, 8, True)


def test_an_object_that_was_spoilt_is_made_again(store: TranslationStore) -> None:
    translator(store).function(code(5), 0, 8)
    for path in (store.cache.folder or Path()).iterdir():
        path.write_bytes(path.read_bytes()[:-1])
    assert result(translator(store).function(code(5), 0, 8), code(5)) == 5


FACTS = {"object": "0" * 64, "clean": True, "needs": None, "indices": [], "in_order": True}
WRONG = {"no JSON": b"{", "bytes": b"\xff\xfe", "a number": 7, "text": "abc", "an object": {"a": 1}, "short entries": [[1, "x"]],
         "no facts": [[16, "x", []]], "facts missing": [[16, "x", {}]], "size": [["16", "x", FACTS]], "sum": [[16, 5, FACTS]],
         "object": [[16, "x", FACTS | {"object": None}]], "clean": [[16, "x", FACTS | {"clean": 2}]],
         "in_order": [[16, "x", FACTS | {"in_order": 1}]],
         "needs": [[16, "x", FACTS | {"needs": [1]}]], "indices": [[16, "x", FACTS | {"indices": ["1"]}]]}  # fmt: skip


@pytest.mark.parametrize("what", WRONG)
def test_a_list_of_another_shape_is_written_again(store: TranslationStore, what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its checksum is right and its contents are not."""
    translator(store).function(code(5), 0, 8)
    known = {path.name: path.read_bytes()[32:] for path in (store.cache.folder or Path()).iterdir()}
    (name,) = (name for name, data in known.items() if data.startswith(b"[["))
    wrong = WRONG[what]
    store.cache.save(name, wrong if isinstance(wrong, bytes) else json.dumps(wrong).encode())
    assert result(translator(store).function(code(5), 0, 8), code(5)) == 5
    monkeypatch.setattr(translation, "translate", None)  # a further translation fails
    assert result(translator(store).function(code(5), 0, 8), code(5)) == 5


CHANGES: list[dict[str, object]] = [
    {"object": "../../x"}, {"object": ""}, {"indices": 3}, {"clean": None}, {"in_order": 0}, {"needs": [[1]]}]  # fmt: skip


@pytest.mark.parametrize("change", CHANGES)
def test_facts_of_another_shape_are_written_again(store: TranslationStore, change: dict[str, object]) -> None:
    translator(store).function(code(5), 0, 8)
    for path in list((store.cache.folder or Path()).iterdir()):
        if (data := path.read_bytes()[32:]).startswith(b"[["):
            ((size, total, facts),) = json.loads(data)
            store.cache.save(path.name, json.dumps([[size, total, facts | change]]).encode())
    assert result(translator(store).function(code(5), 0, 8), code(5)) == 5


def test_a_hot_kernel_goes_on_faster(store: TranslationStore) -> None:
    made, promoting = code(5), PromotingEngine(hot=10)
    promoting.slow, promoting.fast = ThreadedEngine(messages=False), translator(store)
    first = promoting.function(made, 0, 8)
    assert first.program and result(first, made) == 5  # only t0 has a program of its own
    promoting.ran(made, 5)
    assert promoting.function(made, 0, 8).program
    promoting.ran(made, 2000)
    assert promoting.function(made, 0, 8).program
    for worker in promoting.workers:
        worker.join()
    last = promoting.function(made, 0, 8)
    assert not last.program and result(last, made) == 5


def test_each_translation_is_begun_once_and_the_process_may_end_meanwhile() -> None:
    made, promoting, may_end, begun = code(5), PromotingEngine(hot=10), threading.Event(), list[tuple[object, ...]]()

    def translated(*key: object) -> None:
        begun.append(key)
        may_end.wait(20)

    promoting.slow = ThreadedEngine(messages=False)
    promoting.fast = SimpleNamespace(lookup_cached=lambda *key: None, translated=translated)  # type: ignore[assignment]
    promoting.ran(made, 2000)
    for simd, entry in (8, None), (8, None), (16, made.start), (32, 16):  # one that goes on in the middle waits for no translation
        assert promoting.function(made, 0, simd, entry=entry).program
    workers = promoting.workers
    assert len(workers) == 2 and all(worker.is_alive() and worker.daemon for worker in workers)
    may_end.set()
    for worker in workers:
        worker.join()
    assert len(begun) == 2 and {*begun} == {(made, 0, 8, True, ()), (made, 0, 16, True, ())}
    promoting.function(made, 1, 8)
    assert len(promoting.workers) == 1 and promoting.workers[0] not in workers


def test_a_kernel_whose_instructions_take_long_is_hot_sooner(store: TranslationStore) -> None:
    made, promoting = code(5), PromotingEngine(hot=200_000)
    promoting.slow, promoting.fast = ThreadedEngine(messages=False), translator(store)
    promoting.ran(made, 100)
    assert promoting.function(made, 0, 8).program
    made.spent = 0.0009 * (len(made.lines) + 100)  # seconds
    assert promoting.function(made, 0, 8).program and not promoting.workers
    made.spent = 0.0011 * (len(made.lines) + 100)
    promoting.function(made, 0, 8)
    for worker in promoting.workers:
        worker.join()
    assert not promoting.function(made, 0, 8).program


def standing_in(**values: object) -> Any:
    """An engine that has nothing at hand and translates nothing."""
    return SimpleNamespace(lookup_cached=lambda *key: None, translated=lambda *key: None, function=lambda *key: None, **values)


@pytest.mark.parametrize("lines, executed, spent, fallbacks, hot", [
    (2, 0, 0.0, 0, False), (2, 408_000, 0.0, 0, False), (2, 408_001, 0.0, 0, True),  # 4,000 times each, and a hundred more
    (2, 0, 0.00203, 0, False), (2, 0, 0.00205, 0, True),  # in 5 ns
    (2, 348_000, 0.0, 1, False), (2, 348_001, 0.0, 1, True), (2, 168_000, 0.00083, 4, False), (2, 168_001, 0.0, 4, True),
    (2, 168_000, 0.00085, 4, True), (0, 400_000, 0.0, 0, False), (0, 400_001, 0.0, 0, True),
])  # fmt: skip
def test_hot_kernels_are_translated_and_not_held(lines: int, executed: int, spent: float, fallbacks: int, hot: bool,
                                                 monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    """Those that have executed, or taken as long as, so many instructions for each that was decoded; a fallback counts as 60,000."""
    monkeypatch.setattr(promotion, "WARM", 1)  # none is warm before it is hot
    made, promoting, found = code(5), PromotingEngine(hot=4000), list[bool]()
    if lines:
        ThreadedEngine(messages=False).function(made, 0, 8)
    assert len(made.lines) == lines
    promoting.ran(made, executed)
    made.spent = spent
    made.fallbacks[0] += fallbacks
    for held in True, False:
        promoting.slow = promoting.fast = standing_in(holds=lambda program, chosen, held=held: held)
        found += [promoting.holds(made, SimpleNamespace(program=program)) for program in (0, 1)]  # type: ignore[arg-type]
    assert found == [True, not hot, True, False]  # what is translated is held in any case
    promoting.function(made, 0, 8)
    assert bool(promoting.workers) == hot


def test_kernels_are_translated_later_where_that_takes_a_processor_away(monkeypatch: pytest.MonkeyPatch) -> None:
    for processors, hot in (1, 600_000), (2, 300_000), (16, 37_500), (64, 37_500):
        monkeypatch.setattr("os.sched_getaffinity", lambda process, count=processors: set(range(count)))
        assert PromotingEngine().hot == hot


def test_a_dispatch_waits_a_while_for_the_last_translation() -> None:
    promoting, waits = PromotingEngine(), list[tuple[int, float]]()
    promoting.yield_to_foreground()
    promoting.workers = [SimpleNamespace(join=lambda seconds, number=number: waits.append((number, seconds))) for number in range(3)]
    promoting.yield_to_foreground()
    assert waits == [(2, 0.02)]


def test_a_kernel_with_fallbacks_is_hot_sooner(store: TranslationStore) -> None:
    made, promoting = code(5), PromotingEngine(hot=1000)
    promoting.slow, promoting.fast = ThreadedEngine(messages=False), translator(store)
    promoting.ran(made, 100)
    assert promoting.function(made, 0, 8).program and not promoting.workers
    made.fallbacks[0] += 2  # each takes as long as very many instructions
    promoting.function(made, 0, 8)
    for worker in promoting.workers:
        worker.join()
    assert not promoting.function(made, 0, 8).program
