"""IGA's dialect against iga64: it reads our text, it prints our text, and both make the same bits of it.

Every difference stands in iga64_differences.txt with its reason, and none in vain.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from softgen.bits.layout import generations
from softgen.eu.encoding import program
from softgen.eu.encoding.encode import encode
from softgen.eu.isa.instruction import Instruction
from softgen.eu.text.iga import format as iga_format
from softgen.eu.text.iga.parse import parse
from tests.conftest import SHARED, needs_shared
from tests.oracles import iga

LIST = Path(__file__).parent / "iga64_differences.txt"
GENERATIONS = {"bdw": 8.0, "kbl": 9.0, "icllp": 11.0}
EACH = 25  # random instructions of every opcode
SIZE = 16

MISSING = iga.absent()
needs_iga64 = pytest.mark.skipif(bool(MISSING), reason=MISSING or "iga64 is there")

Difference = tuple[str, str, float, str]  # on what, what it does, generation, opcode


@dataclass(frozen=True)
class Listed:
    line: int
    mask: int


def listed(where: str) -> dict[Difference, Listed]:
    found: dict[Difference, Listed] = {}
    for number, line in enumerate(LIST.read_text().splitlines(), 1):
        words = line.partition("#")[0].split(None, 5)
        if not words:
            continue
        assert len(words) == 6, f"{LIST.name}:{number}: a line is on what, what it does, generations, opcodes, bits and a reason"
        on, does, gens, opcodes, mask, _ = words
        for gen in sorted(generations(gens)):
            for opcode in opcodes.split(","):
                assert (on, does, gen, opcode) not in found, f"{LIST.name}:{number}: {opcode} stands twice"
                found[on, does, gen, opcode] = Listed(number, 0 if mask == "-" else int(mask, 16))
    return {key: value for key, value in found.items() if key[0] == where}


class Findings:
    """Differences met, held against the list."""

    def __init__(self, where: str) -> None:
        self.where, self.known = where, listed(where)
        self.met: Counter[Difference] = Counter()
        self.wrong: list[str] = []

    def add(self, does: str, inst: Instruction, said: str, bits: int = 0) -> None:
        key = self.where, does, inst.gen, inst.opcode
        self.met[key] += 1
        if key not in self.known or bits & ~self.known[key].mask:
            self.wrong.append(f"gen {inst.gen:g}: iga64 {does.replace('_', ' ')} {bits:#x} {said}")

    def check(self) -> None:
        assert not self.wrong, f"{len(self.wrong)} differences are not listed:\n" + "\n".join(self.wrong[:20])
        unmet = [f"{LIST.name}:{found.line}: {key[1]} gen {key[2]:g} {key[3]}" for key, found in self.known.items() if not self.met[key]]
        assert not unmet, "listed, but not found:\n" + "\n".join(unmet)


def kernels() -> Iterator[tuple[str, float, bytes, list[program.ProgramLine]]]:
    for path in sorted((SHARED / "kernels").glob("*/*/*.asm")):
        gen, data = GENERATIONS[path.parent.name], path.with_suffix(".dat").read_bytes()
        yield path.stem, gen, data, list(program.instructions(data, gen))


@needs_iga64
@needs_shared("kernels")
def test_iga64_prints_what_we_print_of_kernels() -> None:
    count = 0
    for name, gen, data, items in kernels():
        theirs, refused = iga.disassemble(data, gen)
        labels = {offset: f"L{offset}" for offset, _, _ in items} | {len(data): f"L{len(data)}"}
        assert not refused, name
        assert theirs == [iga.plain(iga_format.text(inst, labels, offset)) for offset, _, inst in items], name
        count += len(items)
    assert count > 50_000


@needs_iga64
@needs_shared("kernels")
def test_iga64_reads_our_text_of_kernels() -> None:
    findings, same = Findings("kernels"), 0
    for name, gen, data, items in kernels():
        found, refused = iga.assemble("\n".join(iga_format.lines(items)) + "\n", gen)
        assert found is not None, f"{name}: iga64 refuses lines {refused[:5]}"
        theirs = list(program.instructions(found, gen))
        assert [item[:2] for item in theirs] == [item[:2] for item in items], f"{name}: other places or sizes"
        same += found == data[: len(found)]
        for (offset, _, item), (_, _, other) in zip(items, theirs, strict=True):
            if item != other:
                findings.add("encodes", item, f"{name}+{offset:#x} {iga_format.text(item)}", encode(item) ^ encode(other))
    findings.check()
    assert same >= 88  # all others have sends of gen 8, loops or calls


@needs_iga64
@pytest.mark.parametrize("gen", iga.PLATFORMS)
def test_random_instructions(gen: float) -> None:
    findings = Findings("random")
    findings.known = {key: value for key, value in findings.known.items() if key[2] == gen}
    items = [(SIZE * number, inst) for number, inst in enumerate(iga.legal(gen, EACH))]
    labels = {offset: f"L{offset}" for offset, _ in items}
    texts = [iga_format.text(inst, labels, offset) for offset, inst in items]
    assert not [text for text in texts if "/*" in text], "all of this has words"
    _compare_prints(findings, items, texts, gen)
    _compare_bits(findings, items, texts, gen)
    findings.check()


def _compare_prints(findings: Findings, items: list[tuple[int, Instruction]], texts: list[str], gen: float) -> None:
    theirs, refused = iga.disassemble(b"".join(encode(inst).to_bytes(SIZE, "little") for _, inst in items), gen)
    for (offset, item), ours, their in zip(items, texts, theirs, strict=True):
        if offset in refused:
            findings.add("refuses_bits", item, iga.plain(ours))
        elif iga.plain(ours) != their:
            findings.add("prints", item, f"{their}, we {iga.plain(ours)}")


def _compare_bits(findings: Findings, items: list[tuple[int, Instruction]], texts: list[str], gen: float) -> None:
    """It stops at a few lines that it refuses; these are taken out until it reads the rest. Our own reader reads it all."""
    lines = [f"L{offset}:\n{text}" for (offset, _), text in zip(items, texts, strict=True)]
    assert [encode(inst) for inst in parse("\n".join(lines), gen)] == [encode(inst) for _, inst in items]
    out: set[int] = set()
    while True:
        said = [f"L{items[number][0]}:\nnop" if number in out else line for number, line in enumerate(lines)]
        found, refused = iga.assemble("\n".join(said) + "\n", gen)
        if found is not None:
            break
        more = {(line - 1) // 2 for line in refused} - out
        assert more, "iga64 fails without saying where"
        for number in more:
            findings.add("refuses_text", items[number][1], iga.plain(texts[number]))
        out |= more
    for number, (offset, item) in enumerate(items):
        if number not in out and (bits := int.from_bytes(found[offset : offset + SIZE], "little") ^ encode(item)):
            findings.add("encodes", item, iga.plain(texts[number]), bits)


def test_list_is_readable() -> None:
    """Also where no witness is at hand."""
    assert listed("kernels") and listed("random")
