"""Worked examples: every opcode that computes has a file `tests/eu/semantics/examples/OPCODE.txt`, written from the manuals.

    # a comment, and where the manual says so
    add.sat.l  ub <- ub 200, ub 100 = 255        # operation[.sat][.condition], destination type, sources, result
    cmp.l      d  <- f nan, f 1 = 0 flag 0       # what else is to be seen: flag (bit per channel), acc
    mul        d  <- d 0x10001, d 0x10001 = 0x10001 gen 7..7.5 with acc

A value is a number, a float's bits in hexadecimal, or several for several channels. `neg`, `abs` and `negabs` before a type are source
modifiers. After the result: `flag BITS`, `acc VALUES`, `gen RANGE`, `cr0 BITS` (what the thread starts with), `pred BITS` (flag before, the
instruction predicated), `old VALUE` (what the destination held), `acc0 VALUES` (what the accumulator held), `accwr`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest

from softgen.bits.layout import GENERATIONS, generations
from softgen.eu.interpreter import Interpreter
from softgen.eu.isa import opcodes
from softgen.eu.isa.instruction import Instruction, Operand
from softgen.eu.semantics import OPS
from softgen.eu.thread.regions import LANES
from tests.eu.semantics.build import Listing, end, thread

FOLDER = Path(__file__).parent / "examples"
CONDITIONS = {"z": 1, "nz": 2, "g": 3, "ge": 4, "l": 5, "le": 6, "r": 7, "o": 8, "u": 9}
WORDS = ("flag", "acc", "acc0", "gen", "cr0", "pred", "old", "accwr")
FUNCTIONS = {function.name: number for (number, _), function in opcodes.table().functions.items()}


@dataclass
class Example:
    name: str
    opcode: str
    modifiers: list[str]
    target: str
    sources: list[tuple[str, str, list[str]]]  # modifier, type, values
    result: list[str]
    extra: dict[str, list[str]] = field(default_factory=dict)

    @property
    def generations(self) -> list[float]:
        named = generations(self.extra["gen"][0]) if "gen" in self.extra else set(GENERATIONS)
        return [gen for gen in GENERATIONS if gen in named and opcodes.opcode(self.opcode, gen)]


def parse(path: Path) -> list[Example]:
    found = []
    for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
        text = line.partition("#")[0].strip()
        if text:
            found.append(parse_line(f"{path.stem}:{number}", text))
    return found


def parse_line(name: str, text: str) -> Example:
    left, _, right = text.partition(" = ")
    head, _, operands = left.partition("<-")
    operation, target = head.split()
    opcode, *modifiers = operation.split(".")
    sources = []
    for part in operands.split(","):
        words = part.split()
        modifier = words.pop(0) if words[0] in ("neg", "abs", "negabs") else ""
        sources.append((modifier, words[0], words[1:]))
    result, extra = [], dict[str, list[str]]()
    current = result
    for word in right.split():
        if word in WORDS:
            current = extra.setdefault(word, [])
        else:
            current.append(word)
    assert result or "old" in extra, f"{name}: no result in {text!r}"
    return Example(name, opcode, modifiers, target, sources, result, extra)


def bits(kind: str, text: str) -> int:
    """A value as the bits of a type."""
    type = LANES[kind]
    if type.is_float and not text.startswith("0x"):
        return int(np.array(float(text), f"f{type.bytes}").view(f"u{type.bytes}"))
    return int(text, 0) & (1 << type.bits) - 1


def packed(kind: str, values: list[str], lanes: int) -> bytes:
    size = LANES[kind].bytes
    values = values * lanes if len(values) == 1 else values
    return b"".join(bits(kind, value).to_bytes(size, "little") for value in values)


def same(kind: str, got: int, want: str) -> bool:
    """Bit for bit, but any NaN is as good as another unless the bits are given."""
    type = LANES[kind]
    if type.is_float and want == "nan":
        return got & type.sign_mask - 1 > type.exponent_mask
    return got == bits(kind, want)


def build(example: Example, gen: float, lanes: int) -> Instruction:
    row = opcodes.opcode(example.opcode, gen)
    assert row is not None
    named = set(example.modifiers)
    condition = next((CONDITIONS[modifier] for modifier in example.modifiers if modifier in CONDITIONS), 0)
    function = next((FUNCTIONS[modifier] for modifier in example.modifiers if modifier in FUNCTIONS), 0)
    sources = tuple(operand(row.form, index, *source[:2]) for index, source in enumerate(example.sources))
    align16 = row.form == "three_source"
    special = 8 if function in opcodes.math_macros(gen) else None
    target = Operand("grf", example.target, 20, horizontal=1, write_mask=15 if align16 else None, special=special)
    return Instruction(gen, example.opcode, row.number, row.form, lanes, align16, saturate="sat" in named, condition=condition,
                       function=function, predicate=int("pred" in example.extra), acc_write="accwr" in example.extra, dst=target,
                       sources=sources)


def operand(form: str, index: int, modifier: str, kind: str) -> Operand:
    signs = {"negate": modifier.startswith("neg"), "absolute": modifier.endswith("abs")}
    number = 10 + 2 * index
    if form == "three_source":
        return Operand("grf", kind, number, swizzle=0b11100100, **signs)
    if form == "three_source_align1":
        return Operand("grf", kind, number, vertical=8, horizontal=1, **signs)
    return Operand("grf", kind, number, vertical=8, width=8, horizontal=1, **signs)


def execute(example: Example, gen: float) -> list[str]:
    """What is wrong; nothing is best."""
    lanes = max([len(example.result), *(len(values) for _, _, values in example.sources)])
    made = thread(gen, (1 << lanes) - 1)
    for index, (_, kind, values) in enumerate(example.sources):
        held = packed(kind, values, lanes)
        made.grf[(10 + 2 * index) * 32 :][: len(held)] = memoryview(held)
    if "old" in example.extra:
        made.grf[640 : 640 + lanes * LANES[example.target].bytes] = memoryview(packed(example.target, example.extra["old"], lanes))
    made.arf["cr"][:4] = memoryview(int(example.extra.get("cr0", ["0"])[0], 0).to_bytes(4, "little"))
    made.arf["f"][:2] = memoryview(int(example.extra.get("pred", ["0"])[0], 0).to_bytes(2, "little"))
    if "acc0" in example.extra:
        fill_accumulator(made, example, lanes)
    interpreter = Interpreter(made, Listing(gen, build(example, gen, lanes), end(gen)))
    interpreter.run()
    size, wrong = LANES[example.target].bytes, []
    for lane, want in enumerate(example.result):
        got = int.from_bytes(made.grf[640 + lane * size : 640 + (lane + 1) * size].tobytes(), "little")
        if want != "-" and not same(example.target, got, want):
            wrong.append(f"{example.name} gen {gen:g}: channel {lane} is {got:#x}, not {want}")
    if "flag" in example.extra and (flag := int(made.flags & 0xFFFF)) != int(example.extra["flag"][0], 0):
        wrong.append(f"{example.name} gen {gen:g}: flag is {flag:#x}, not {example.extra['flag'][0]}")
    return wrong + check_accumulator(made, example, gen)


def fill_accumulator(made, example: Example, lanes: int) -> None:
    kind = example.sources[0][1]
    if LANES[kind].is_float:
        made.arf["acc"][: lanes * LANES[kind].bytes] = memoryview(packed(kind, example.extra["acc0"], lanes))
    else:
        name = "acc_w" if LANES[kind].bits < 32 and LANES[example.target].bits < 32 else "acc_d"
        values = example.extra["acc0"] * (lanes if len(example.extra["acc0"]) == 1 else 1)
        made.arf[name].view(np.int64)[:lanes] = [int(value, 0) for value in values]


def check_accumulator(made, example: Example, gen: float) -> list[str]:
    if "acc" not in example.extra:
        return []
    kind = example.sources[0][1]
    if LANES[kind].is_float:
        held = [int(item) for item in made.arf["acc"].view(f"u{LANES[kind].bytes}")]
        return [f"{example.name} gen {gen:g}: acc is {got:#x}, not {want}"
                for got, want in zip(held, example.extra["acc"], strict=False) if not same(kind, got, want)]
    name = "acc_w" if LANES[kind].bits < 32 and LANES[example.target].bits < 32 else "acc_d"
    held = [int(item) for item in made.arf[name].view(np.int64)]
    return [f"{example.name} gen {gen:g}: acc is {got}, not {want}"
            for got, want in zip(held, example.extra["acc"], strict=False) if got != int(want, 0)]


EXAMPLES = {path.stem: parse(path) for path in sorted(FOLDER.glob("*.txt"))}


@pytest.mark.parametrize("name", [
    "mac", "mach", "mad", "madm", "rndd", "rnde", "rndu", "rndz", "rol", "ror", "sad2", "sada2", "shl", "shr",
    pytest.param("add", marks=pytest.mark.behaviour("BDW-EU-01", "EU-31", "EU-64", "EU-78", shows="action")),
    pytest.param("addc", marks=pytest.mark.behaviour("BDW-EU-02", shows="action")),
    pytest.param("and", marks=pytest.mark.behaviour("BDW-EU-18", shows="action")),
    pytest.param("asr", marks=pytest.mark.behaviour("BDW-EU-03", shows="action")),
    pytest.param("avg", marks=pytest.mark.behaviour("BDW-EU-04", shows="action")),
    pytest.param("bfe", marks=pytest.mark.behaviour("BDW-EU-05", shows="action")),
    pytest.param("bfi1", marks=pytest.mark.behaviour("BDW-EU-06", shows="action")),
    pytest.param("bfi2", marks=pytest.mark.behaviour("BDW-EU-06", shows="action")),
    pytest.param("bfrev", marks=pytest.mark.behaviour("BDW-EU-07", shows="action")),
    pytest.param("cbit", marks=pytest.mark.behaviour("BDW-EU-08", shows="action")),
    pytest.param("cmp", marks=pytest.mark.behaviour("BDW-EU-11", "EU-72", "EU-75", "EU-84", "EU-85", shows="action")),
    pytest.param("cmpn", marks=pytest.mark.behaviour("BDW-EU-12", "EU-73", "EU-74", shows="action")),
    pytest.param("csel", marks=pytest.mark.behaviour("BDW-EU-13", shows="action")),
    pytest.param("dp2", marks=pytest.mark.behaviour("BDW-EU-14", shows="action")),
    pytest.param("dp3", marks=pytest.mark.behaviour("BDW-EU-14", shows="action")),
    pytest.param("dp4", marks=pytest.mark.behaviour("BDW-EU-14", shows="action")),
    pytest.param("dph", marks=pytest.mark.behaviour("BDW-EU-14", shows="action")),
    pytest.param("f16to32", marks=pytest.mark.behaviour("EU-110", shows="action")),
    pytest.param("f32to16", marks=pytest.mark.behaviour("EU-110", shows="action")),
    pytest.param("fbh", marks=pytest.mark.behaviour("BDW-EU-09", shows="action")),
    pytest.param("fbl", marks=pytest.mark.behaviour("BDW-EU-09", shows="action")),
    pytest.param("frc", marks=pytest.mark.behaviour("BDW-EU-10", shows="action")),
    pytest.param("lrp", marks=pytest.mark.behaviour("BDW-EU-16", shows="action")),
    pytest.param("lzd", marks=pytest.mark.behaviour("BDW-EU-09", shows="action")),
    pytest.param("math", marks=pytest.mark.behaviour("EU-66", "EU-67", "EU-68", "EU-69", "EU-70", "EU-94", "BDW-EU-17", shows="action")),
    pytest.param("mov", marks=pytest.mark.behaviour("EU-25", "EU-26", "EU-27", "EU-96", "EU-97", "EU-98", "EU-99", "EU-100",
        "EU-101", "EU-102", "EU-103", "EU-104", "EU-105", "EU-106", "EU-107", "EU-109", shows="action")),
    pytest.param("mul", marks=pytest.mark.behaviour("EU-65", "EU-115", shows="action")),
    pytest.param("not", marks=pytest.mark.behaviour("BDW-EU-18", shows="action")),
    pytest.param("or", marks=pytest.mark.behaviour("BDW-EU-18", shows="action")),
    pytest.param("sel", marks=pytest.mark.behaviour("EU-86", "EU-87", "EU-178", shows="action")),
    pytest.param("subb", marks=pytest.mark.behaviour("BDW-EU-19", shows="action")),
    pytest.param("xor", marks=pytest.mark.behaviour("BDW-EU-18", shows="action")),
])
def test_examples(name: str) -> None:
    """All of a file; what is wrong is listed."""
    assert EXAMPLES[name]
    for example in EXAMPLES[name]:
        assert example.opcode == name and example.generations, f"{example.name}: no generation has it"
    assert [line for example in EXAMPLES[name] for gen in example.generations for line in execute(example, gen)] == []


def test_every_file_is_run() -> None:
    """Those named above are those there are."""
    mark = next(item for item in test_examples.pytestmark if item.name == "parametrize")  # type: ignore[attr-defined]
    named = [arg if isinstance(arg, str) else arg.values[0] for arg in mark.args[1]]
    assert sorted(named) == sorted(EXAMPLES)


def test_every_opcode_that_computes_has_examples() -> None:
    placed = {"movi", "smov", "line", "pln", "dim"}  # these need registers in their places: test_placed
    assert set(EXAMPLES) >= set(OPS) - placed


def test_a_wrong_example_is_noticed() -> None:
    assert execute(parse_line("x:1", "add d <- d 1, d 1 = 3"), 9) == ["x:1 gen 9: channel 0 is 0x2, not 3"]
    assert execute(parse_line("x:1", "cmp.z d <- d 1, d 1 = -1 flag 0"), 9) == ["x:1 gen 9: flag is 0x1, not 0"]


def test_every_file_cites_its_source() -> None:
    for path in FOLDER.glob("*.txt"):
        assert re.search(r"(BDW|KBL|IVB|ICL|G45) \d+|public", path.read_text("utf-8")), path.name
