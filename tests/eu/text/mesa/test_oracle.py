"""Mesa's own pairs of text and bytes, both ways. Witness: the assembler tests of Mesa's elk and brw compilers."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from functools import cache

import pytest

from softgen.eu.encoding.decode import decode
from softgen.eu.encoding.encode import encode
from softgen.eu.isa.instruction import Instruction
from softgen.eu.text.mesa.format import program
from softgen.eu.text.mesa.parse import parse
from tests.conftest import SHARED, every, needs_shared

PAIRS = "oracles/asm"
FOLDERS = {"elk/tests/gen4.5": (4.5, 510), "elk/tests/gen7": (7.0, 1368), "elk/tests/gen7.5": (7.5, 1654), "elk/tests/gen8": (8.0, 2850),
           "brw/tests/gen9": (9.0, 2678), "brw/tests/gen11": (11.0, 9)}  # generation and number of instructions
REASSEMBLED = "gen11-from-gen9/all.txt"
OTHER_LABELS = {4.5: 0, 7.0: 7, 7.5: 4, 8.0: 4, 9.0: 4, 11.0: 0}  # statements whose labels are numbered in another order than ours
LABEL = re.compile(r"^\s*\w+:\s*$", re.MULTILINE)
COMMENT = re.compile(r"/\*.*?\*/")
MESSAGE = re.compile(r"MsgDesc:[^{]*")


def texts(folder: str) -> Iterator[tuple[str, str, list[int]]]:
    """Name, text and words of each pair."""
    for path in sorted((SHARED / PAIRS / folder).glob("*.asm")):
        lines = path.with_suffix(".expected").read_text().splitlines()
        yield path.name, path.read_text(), [int.from_bytes(bytes.fromhex(line), "little") for line in lines if line.strip()]


@cache
def reassembled() -> list[tuple[int, str]]:
    lines = [line.partition(" ; ") for line in (SHARED / PAIRS / REASSEMBLED).read_text().splitlines() if not line.startswith("#")]
    return [(int.from_bytes(bytes.fromhex(code), "little"), text) for code, _, text in lines]


def squeezed(text: str) -> list[str]:
    """Statements without blanks, comments and what the message descriptor is said to mean: neither assembler reads these."""
    bare = LABEL.sub("", MESSAGE.sub("", COMMENT.sub("", text)))
    return [re.sub(r"\s+", "", word) for word in bare.split(";") if word.strip()]


def placed(words: list[int], gen: float) -> list[tuple[int, int, Instruction]]:
    return [(16 * index, 16, decode(word, gen)) for index, word in enumerate(words)]


@needs_shared(PAIRS)
@pytest.mark.parametrize(("folder", "gen", "count"), every(5, [(folder, *rest) for folder, rest in FOLDERS.items()]))
def test_text_becomes_mesas_bytes(folder: str, gen: float, count: int) -> None:
    wrong, seen = [], 0
    for name, text, words in texts(folder):
        found = [encode(inst) for inst in parse(text, gen, name)]
        assert len(found) == len(words), name
        pairs = enumerate(zip(found, words, strict=True))
        wrong += [f"{name} instruction {index}: differs by {a ^ b:#x}" for index, (a, b) in pairs if a != b]
        seen += len(words)
    assert wrong == []
    assert seen == count


@needs_shared(PAIRS)
@pytest.mark.parametrize(("folder", "gen"), every(5, [(folder, gen) for folder, (gen, _) in FOLDERS.items()]))
def test_bytes_become_mesas_text_and_come_back(folder: str, gen: float) -> None:
    other: Counter[float] = Counter()
    for name, text, words in texts(folder):
        ours = program(placed(words, gen))
        assert "bits:" not in ours, name
        assert [encode(inst) for inst in parse(ours, gen)] == words
        pairs = list(zip(squeezed(text), squeezed(ours), strict=True))
        assert all(a == b or "IP:LABEL" in a for a, b in pairs), next(pair for pair in pairs if pair[0] != pair[1])
        other[gen] += sum(a != b for a, b in pairs)
    assert other[gen] == OTHER_LABELS[gen]


@needs_shared(PAIRS)
def test_gen_11_statements_that_mesa_reassembled() -> None:
    assert len(reassembled()) == 794
    for word, text in reassembled():
        (found,) = parse(text, 11.0)
        assert encode(found) == word, text
        ours = program([(0, 16, decode(word, 11.0))])
        assert [encode(inst) for inst in parse(ours, 11.0)] == [word]
        assert squeezed(ours) == squeezed(text)
