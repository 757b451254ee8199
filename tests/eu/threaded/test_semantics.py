"""The reference's own tests, on handlers: worked examples of every opcode that computes, registers in their places, modes, exceptions.

Tests of branches and masks run on every engine where they stand."""

from __future__ import annotations

import pytest

from softgen.bits.layout import GENERATIONS
from softgen.eu.interpreter import KernelProgram
from softgen.eu.threaded.engine import threaded as engine_of
from softgen.eu.threaded.link import Linker
from tests.eu.semantics.build import Listing, end
from tests.eu.semantics.test_examples import EXAMPLES, build, execute
from tests.eu.semantics.test_exceptions import *  # noqa: F403
from tests.eu.semantics.test_float_modes import *  # noqa: F403
from tests.eu.semantics.test_placed import *  # noqa: F403

pytestmark = pytest.mark.usefixtures("threaded")


def compile_together(gen: float) -> None:
    """The handlers of all examples in one go: one at a time takes three times as long."""
    listings: dict[int, list] = {}
    for example in (example for found in EXAMPLES.values() for example in found if gen in example.generations):
        lanes = max([len(example.result), *(len(values) for _, _, values in example.sources)])
        control = int(example.extra.get("cr0", ["0"])[0], 0)
        listings.setdefault(control, []).append(build(example, gen, lanes))
    library, kinds = engine_of(gen).library, []
    for control, items in listings.items():
        linker = Linker(Listing(gen, *items, end(gen)), control, library, messages=False)
        linker.explore(frozenset({0}))
        kinds += [op.kind for op in linker.ops() if op.kind is not None]
    found = library.get(kinds)
    assert all(found[kind].address for kind in kinds), "an opcode that has examples has no handler"


@pytest.mark.parametrize("gen", GENERATIONS)
def test_examples_run_threaded(gen: float) -> None:
    compile_together(gen)
    wrong = [line for found in EXAMPLES.values() for example in found if gen in example.generations for line in execute(example, gen)]
    assert wrong == []


def test_the_examples_really_run_threaded(monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that links to nothing is noticed."""
    called = []
    monkeypatch.setattr(Linker, "link", lambda self, entries: called.append(self.code) or 1 / 0)
    with pytest.raises(ZeroDivisionError):
        execute(next(example for example in EXAMPLES["add"] if 9 in example.generations), 9)
    assert isinstance(called[0], KernelProgram)
