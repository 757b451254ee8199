"""IGA's dialect on real code: kernels that ocloc made and their listings by iga64, Mesa's assembler examples."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from softgen.eu.encoding import program
from softgen.eu.encoding.decode import decode
from softgen.eu.encoding.encode import encode
from softgen.eu.isa.labels import COMPACT
from softgen.eu.text.iga import format as iga_format
from softgen.eu.text.iga.parse import parse
from tests.conftest import SHARED, needs_shared, witness
from tests.oracles.iga import plain

GENERATIONS = {"bdw": 8.0, "kbl": 9.0, "icllp": 11.0}
STEPS = [12, witness(1)]  # one kernel in so many
FLOAT = re.compile(r"\S+:(?:f|hf|df)$")  # iga64 rounds floats in its listings
LABEL_LINE = re.compile(r"L\w*:$")


def kernels(step: int, *gpus: str) -> Iterator[tuple[Path, float, bytes]]:
    """The code of every `step`-th kernel, and of some of the builds for a width that was asked for; constants stand beside them."""
    for gpu in gpus or GENERATIONS:
        for number, path in enumerate(sorted((SHARED / "kernels").glob(f"*/{gpu}/*.dat"))[::step]):
            build = path.name.split(".")[1:-1]
            if not build or build in (["simd8"], ["simd16"]) and number % 8 == 0:
                yield path, GENERATIONS[gpu], path.read_bytes()


@needs_shared("kernels")
@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("gpu", GENERATIONS)
def test_kernels_come_back_and_few_need_annotations(gpu: str, step: int) -> None:
    """Sends of gen 8 keep a region that nothing reads and IGA does not show; they are not counted."""
    count, annotated = 0, Counter[str]()
    for path, gen, data in kernels(step, gpu):
        items = list(program.instructions(data, gen))
        said = "\n".join(iga_format.lines(items))
        assert program.assemble(parse(said, gen, path.name)) == data[: program.decodable_bytes(data, gen)]
        count += len(items)
        annotated.update(inst.opcode for _, _, inst in items if "/* bits" in iga_format.text(inst))
    others = sum(annotated.values()) - (annotated["send"] if gpu == "bdw" else 0)
    assert count > 10_000 / step and others < count / 100, (count, annotated)


@needs_shared("kernels")
@pytest.mark.parametrize("step", STEPS)
def test_our_text_is_that_of_the_listings(step: int) -> None:
    count = 0
    for path, gen, data in kernels(step):
        listing = path.with_suffix(".asm")
        if not listing.exists():
            continue
        theirs = [stripped for line in listing.read_text().splitlines() if (stripped := plain(line)) and not LABEL_LINE.match(stripped)]
        items = list(program.instructions(data, gen))
        labels = iga_format.labels(items)
        ours = [plain(iga_format.text(inst, labels, offset)) for offset, _, inst in items]
        assert len(ours) == len(theirs)
        for our, their in zip(ours, theirs, strict=True):
            if our != their:
                assert [FLOAT.sub("float", word) for word in our.split()] == [FLOAT.sub("float", word) for word in their.split()]
        count += len(ours)
    assert count > 40_000 / step


@needs_shared("kernels")
@pytest.mark.parametrize("step", STEPS)
def test_listings_assemble_to_the_code(step: int) -> None:
    """But for the bits that iga64's listings leave out; tests/oracles/iga64_differences.txt has the reasons."""
    left_out = {"send": 0x1FF << 80, "while": 1 << 28, "call": 0x1FF << 80, "ret": 0x1FF << 80}
    for path, gen, data in kernels(step):
        listing = path.with_suffix(".asm")
        if not listing.exists():
            continue
        found = parse(listing.read_text(), gen, listing.name)
        items = list(program.instructions(data, gen))
        assert len(found) == len(items)
        for inst, (offset, size, expected) in zip(found, items, strict=True):
            difference = encode(inst) ^ encode(expected)
            assert not difference & ~left_out.get(expected.opcode, 0), (path.name, offset, hex(difference))
            assert inst.compacted == (size == COMPACT)


@needs_shared("oracles/asm")
@pytest.mark.parametrize("gen", [7.5, 8.0, 9.0, 11.0])
def test_what_mesa_writes_has_words(gen: float) -> None:
    """Mesa leaves other bits in operands that nothing reads: branches, the second source of a move. All of it can be said."""
    count = 0
    for path in sorted((SHARED / "oracles" / "asm").glob(f"*/tests/gen{gen:g}/*.expected")):
        for line in path.read_text().splitlines():
            inst = decode(int.from_bytes(bytes.fromhex(line), "little"), gen)
            said = iga_format.text(inst)
            assert parse(said, gen) == [inst]
            assert "/*" not in said or (gen, inst.form) == (8.0, "send"), said
            count += 1
    assert count
