"""Pairs of bytes and text in IGA's dialect, both ways. `examples/`: one file for each generation, one instruction a line."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from softgen.eu.encoding import program
from softgen.eu.isa.instruction import Operand
from softgen.eu.text.iga import format as iga_format
from softgen.eu.text.iga import operand
from softgen.eu.text.iga.parse import parse

FOLDER = Path(__file__).parent / "examples"
GENERATIONS = (7.5, 8.0, 9.0, 11.0)


def examples() -> Iterator[tuple[float, bytes, str]]:
    for gen in GENERATIONS:
        for line in (FOLDER / f"gen{gen:g}.txt").read_text().splitlines():
            if line and not line.startswith("#"):
                code, said = line.split("  ", 1)
                yield gen, bytes.fromhex(code), said


EXAMPLES = list(examples())


@pytest.mark.parametrize(("gen", "code", "said"), EXAMPLES, ids=[f"gen{gen:g} {said}" for gen, _, said in EXAMPLES])
def test_text_is_bytes_is_text(gen: float, code: bytes, said: str) -> None:
    labels = {0: "L0", len(code): f"L{len(code)}"}
    assert program.assemble(parse(f"L0:\n{said}\nL{len(code)}:\n", gen)) == code
    ((_, size, inst),) = program.instructions(code, gen)
    assert size == len(code)
    assert " ".join(iga_format.text(inst, labels).split()) == said
    assert inst.form == "send" or (iga_format.normal(inst) == inst) is ("bits:" not in said)


def test_every_generation_has_examples_of_every_form() -> None:
    met = {(gen, inst.form) for gen, code, _ in EXAMPLES for _, _, inst in program.instructions(code, gen)}
    common = {"basic", "branch", "send"}
    assert all((gen, form) in met for gen in GENERATIONS for form in common)
    assert {(7.5, "three_source"), (9.0, "sends"), (11.0, "three_source_align1")} <= met


READ = [  # what iga64 reads, or prints with other options, and we write otherwise
    (9.0, "mov (8|M0) r1.0<1>:f 1.5:f", "mov (8|M0) r1.0<1>:f 0x3FC00000:f"),
    (9.0, "mov (8|M0) r1.0<1>:f -2.5e-3:f", "mov (8|M0) r1.0<1>:f 0xBB23D70A:f"),
    (9.0, "mov (8|M0) r1.0<1>:f inf:f", "mov (8|M0) r1.0<1>:f 0x7F800000:f"),
    (9.0, "mov (8|M0) r1.0<1>:f -qnan(0x1):f", "mov (8|M0) r1.0<1>:f 0xFFC00001:f"),
    (9.0, "mov (8|M0) r1.0<1>:f snan(0x1):f", "mov (8|M0) r1.0<1>:f 0x7F800001:f"),
    (9.0, "mov (8|M0) r1.0<1>:f nan:f", "mov (8|M0) r1.0<1>:f 0x7FC00000:f"),
    (9.0, "mov (8|M0) r1.0<1>:hf inf:hf", "mov (8|M0) r1.0<1>:hf 0x7C00:hf"),
    (9.0, "mov (8|M0) r1.0<1>:hf -inf:hf", "mov (8|M0) r1.0<1>:hf 0xFC00:hf"),
    (9.0, "mov (8|M0) r1.0<1>:hf nan:hf", "mov (8|M0) r1.0<1>:hf 0x7E00:hf"),
    (9.0, "mov (8|M0) r1.0<1>:hf -qnan(0x1):hf", "mov (8|M0) r1.0<1>:hf 0xFE01:hf"),
    (9.0, "mov (8|M0) r1.0<1>:hf snan(0x1):hf", "mov (8|M0) r1.0<1>:hf 0x7C01:hf"),
    (9.0, "mov (8|M0) r1.0<1>:df inf:df", "mov (8|M0) r1.0<1>:df 0x7FF0000000000000:df"),
    (9.0, "mov (8|M0) r1.0<1>:df -nan:df", "mov (8|M0) r1.0<1>:df 0xFFF8000000000000:df"),
    (9.0, "mov (8|M0) r1.0<1>:df snan(0x7):df", "mov (8|M0) r1.0<1>:df 0x7FF0000000000007:df"),
    (9.0, "mov (8|M0) r1.0<1>:hf -1.0:hf", "mov (8|M0) r1.0<1>:hf 0xBC00:hf"),
    (9.0, "mov (8|M0) r1.0<1>:df 1.0:df", "mov (8|M0) r1.0<1>:df 0x3FF0000000000000:df"),
    (9.0, "mov (8|M0) r1.0<1>:w 0xFFF0:w", "mov (8|M0) r1.0<1>:w -16:w"),
    (9.0, "mov (8|M0) r1.0<1>:w 0b101:w", "mov (8|M0) r1.0<1>:w 5:w"),
    (9.0, "mov (1|M0) r1.0<1>:ud ce0<0;1,0>:ud", "mov (1|M0) r1.0<1>:ud ce<0;1,0>:ud"),
    (9.0, "mad (8|M0) r1.0<1>:f r2.0<8;1>:f r3.0<4;1>:f r4.0<1>:f", "mad (8|M0) r1.0<1>:f r2.0<2;1>:f r3.0<2;1>:f r4.0<1>:f"),
    (9.0, "(W) send (1|M0) null r54 0x7 0x02000010 {EOT}", "(W) send (1|M0) null r54 0x27 0x02000010 {EOT}"),
    (8.0, "send (8|M0) r2:uw r10<8;8,1>:f 0xC 0x41401FF", "send (8|M0) r2:uw r10:f 0xC 0x041401FF /* bits: 0x8d00000000000000000000 */"),
    (7.5, "send (8|M0) r2:uw r10<8;8,1>:f 0xC 0x41401FF", "send (8|M0) r2:uw r10<8;8,1>:f 0xC 0x041401FF"),
    (7.5, "send (8|M0) r2:uw r10<1;1,0>:f 0xC 0x41401FF", "send (8|M0) r2:uw r10<1;1,0>:f 0xC 0x041401FF"),
    (7.5, "send (8|M0) r2:uw r10<0;1,0>:f 0xC 0x41401FF", "send (8|M0) r2:uw r10:f 0xC 0x041401FF"),
    (8.0, "send (8|M0) r2:uw r10<1;1,0>:f 0xC 0x41401FF", "send (8|M0) r2:uw r10:f 0xC 0x041401FF /* bits: 0x2000000000000000000000 */"),
    (9.0, "/* [0010] 0 */ not (8|M0) r1.0<1>:d /* b */ r2.0<8;8,1>:d // c", "not (8|M0) r1.0<1>:d r2.0<8;8,1>:d"),
    (9.0, "nop;", "nop"),
]  # fmt: skip


@pytest.mark.parametrize(("gen", "said", "written"), READ, ids=[said for _, said, _ in READ])
def test_other_spellings_are_read(gen: float, said: str, written: str) -> None:
    (inst,) = parse(said, gen)
    assert " ".join(iga_format.text(inst).split()) == written


@pytest.mark.parametrize("gen", GENERATIONS)
@pytest.mark.parametrize("said", ["r2.8:uw r10:f", "r2.3:d r10:f", "r[a0.1,32]:uw r10:f", "null:uw r10:f"])
def test_a_message_says_where_in_a_register_its_answer_begins(gen: float, said: str) -> None:
    (inst,) = parse(f"send (8|M0) {said} 0xC 0x041401FF", gen)
    assert iga_format.text(inst).split() == f"send (8|M0) {said} 0xC 0x041401FF".split()


def test_no_more_texts_of_operands_are_kept_than_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs without end have operands without end."""
    monkeypatch.setattr(operand, "LIMIT", 3)
    cache = operand.OperandTextCache(lambda given: (f"r{given.number}", given), 4)
    kept = [Operand("grf", "f", number) for number in range(10)]
    for given in (*kept, *kept):
        assert cache(given) == (given, f"r{given.number}   ", given) and len(cache.known) <= 3


def test_labels_stand_where_iga_puts_them() -> None:
    said = ["L0:", "(f0.0) if (8|M0) L24 L40", "add (16|M0) r4.0<1>:f r2.0<8;8,1>:f r3.0<8;8,1>:f {Compacted}", "L24:",
            "else (8|M0) L40 L40", "L40:", "while (8|M0) L0", "L56:", "halt (8|M0) L56 L72", "L72:"]  # fmt: skip
    code = program.assemble(parse("\n".join(said), 9.0))
    assert [" ".join(line.split()) for line in iga_format.lines(program.instructions(code, 9.0))] == said


def test_a_branch_to_nowhere_says_the_distance() -> None:
    (inst,) = parse("while (8|M0) .-1600", 9.0)
    assert inst.jip == -1600
    assert iga_format.text(inst, {}).split()[-1] == ".-1600"
    assert list(iga_format.lines([])) == []


@pytest.mark.parametrize("gen", GENERATIONS)
@pytest.mark.parametrize(("said", "places"), [("if (8|M0) L0{} L0", 1), ("while (8|M0) L0{}", 2), ("jmpi (1|M0) L0{}", 2),
                                              ("call (8|M0) r5.0 L0{}", 2)])  # fmt: skip
def test_a_label_may_have_a_type(gen: float, said: str, places: int) -> None:
    """That of the immediate it stands for, which has one where nothing is said."""
    plain, typed = (parse(f"L0:\n{said.format(more)}", gen)[0] for more in ("", ":uw"))
    assert plain.sources[places - 1].type == ("w" if gen == 7.5 and said.startswith("if") else "d")
    assert typed.sources[places - 1] == Operand("imm", "uw") and typed.sources[: places - 1] == plain.sources[: places - 1]
    assert (typed.dst, typed.jip, typed.uip) == (plain.dst, plain.jip, plain.uip)


@pytest.mark.parametrize(("gen", "said", "place"), [
    (8.0, "math.rsqtm (8|M0) (eo)f0.0 r4.mme2:f 0x3F800000:f", 0), (9.0, "math.invm (8|M0) (eo)f0.0 r4.mme2:f r5.mme3:f 0x3F800000:f", 1),
    (11.0, "madm (8|M0) r4.mme2:f 0x3F80:hf r5.mme3:f r6.mme3:f", 0), (11.0, "madm (8|M0) r4.mme2:f r5.mme3:f r6.mme3:f 0x3F80:hf", 2),
])  # fmt: skip
def test_a_macro_may_have_an_immediate(gen: float, said: str, place: int) -> None:
    """In place of a register with an accumulator."""
    code = program.assemble(parse(said, gen))
    ((_, _, inst),) = program.instructions(code, gen)
    value = int(said.split()[-1 if place else -1 - 2 * (gen == 11.0)].partition(":")[0], 16)
    assert inst.sources[place].file == "imm" and inst.sources[place].immediate & 0xFFFFFFFF in (value, value << 16 | value)
    assert " ".join(iga_format.text(inst, {}).split()) == said
