"""Programs: bytes and instructions, both ways; where kernels end; compaction that keeps jumps right."""

from __future__ import annotations

from dataclasses import replace

import hypothesis.strategies as st
import pytest
from hypothesis import given

from softgen.bits.layout import GENERATIONS
from softgen.errors import DecodeError
from softgen.eu.encoding import program
from softgen.eu.encoding.compact import relax
from softgen.eu.encoding.encode import encode
from softgen.eu.isa import labels
from softgen.eu.isa.instruction import Instruction
from softgen.eu.text.mesa import parse as mesa_parse
from tests.conftest import needs_shared
from tests.eu.corpus import Code, bundled, captured, compiled

CODES = [pytest.param(code, id=code[0]) for code in bundled()]
COMPACTING = [
    pytest.param(code, id=code[0]) for code in bundled() if any(size == 8 for _, size, _ in program.instructions(code[2], code[1]))
]


def parsed(text: str, gen: float) -> list[Instruction]:
    return mesa_parse.parse(text, gen)


def only(code: bytes, gen: float) -> list[Instruction]:
    return [inst for _, _, inst in program.instructions(code, gen)]


def aims(found: list[Instruction]) -> list[tuple[int, str, int]]:
    """Where branches lead, as numbers of instructions."""
    offsets, offset = [], 0
    for inst in found:
        offsets.append(offset)
        offset += labels.size(inst)
    numbers = {place: number for number, place in enumerate([*offsets, offset])}
    return [(number, name, numbers[labels.target(inst, offsets[number], getattr(inst, name))])
            for number, inst in enumerate(found) for name in ("jip", "uip") if getattr(inst, name) is not None]  # fmt: skip


@pytest.mark.parametrize("code", CODES)
def test_bytes_come_back(code: Code) -> None:
    _, gen, data = code
    end = program.decodable_bytes(data, gen)
    assert program.assemble(only(data, gen)) == data[:end] and len(data) - end < 16


def test_offsets_and_sizes_follow_each_other() -> None:
    for _, gen, data in bundled():
        offset = 0
        for start, size, inst in program.instructions(data, gen):
            assert start == offset and size == (8 if inst.compacted else 16)
            offset += size


def test_opcodes_alone() -> None:
    for _, gen, data in bundled():
        found = list(program.opcode_numbers(data[: program.decodable_bytes(data, gen)], gen))
        assert found == [(start, inst.opcode_number) for start, _, inst in program.instructions(data, gen)]


def test_reading_may_start_anywhere() -> None:
    name, gen, data = next(code for code in bundled() if code[0].startswith("app_nqueens"))
    lines = list(program.instructions(data, gen))
    assert list(program.instructions(data, gen, lines[5][0])) == lines[5:], name


@pytest.mark.behaviour("EU-01", shows="action")
@pytest.mark.parametrize("code", COMPACTING)
def test_compact_and_native_say_the_same(code: Code) -> None:
    _, gen, data = code
    short, long = only(data, gen), program.expanded(only(data, gen))
    assert not any(inst.compacted for inst in long if inst.opcode)
    plain = [replace(inst, compacted=False, jip=None, uip=None, sources=()) for inst in short]
    assert plain == [replace(inst, compacted=False, jip=None, uip=None, sources=()) for inst in long]
    assert aims(short) == aims(long)


def shortest(gen: float, data: bytes) -> bytes:
    """Expands, then compacts: the meaning stays, and nothing grows. Returns the result."""
    code = only(data[: program.kernel_end(data, gen)[0]], gen)
    again = program.compacted(program.expanded(code))
    assert aims(again) == aims(code)
    for inst, other in zip(code, again, strict=True):
        assert other.compacted or not inst.compacted
        known = {encode(replace(inst, jip=other.jip, uip=other.uip))}
        assert encode(other) in known | {relax(word, gen) for word in known}
    return program.assemble(again)


@pytest.mark.parametrize("code", [pytest.param(code, id=code[0]) for code in bundled() if not code[0].startswith("g45")])
def test_what_compilers_made_compact_becomes_compact_again(code: Code) -> None:
    """Mesa makes compact whatever can be; IGC leaves a few moves of zero, and `ret`."""
    name, gen, data = code
    found = shortest(gen, data)
    assert found == data or not name.startswith(("shading", "kbl-vk")) and len(found) <= len(data)


def test_g45_pairs() -> None:
    """What is not compact, and what is jumped to, stands on 16 bytes."""
    short = 0
    for name, gen, data in bundled():
        if not name.startswith("g45"):
            continue
        again = program.assemble(program.expanded(only(data, gen)), compact=True)
        lines = list(program.instructions(again, gen))
        short += sum(inst.compacted for _, _, inst in lines)
        assert len(again) % 16 == 0 and all(offset % 16 == 0 for offset, _, inst in lines if not inst.compacted)
    assert short > 10


@pytest.mark.parametrize("target", ["L0", "L1"])
def test_g45_jumps_lead_to_pairs(target: str) -> None:
    moves = [f"{label}mov(8) g2<1>F g4<8,8,1>F {{ align1 }};" for label in ("L0: ", "L1: ", "", "")]
    branch = "add(1) ip<1>UD ip<0,1,0>UD {}D { align1 nomask };".replace("{}", str(16 + 16 * int(target[1])))
    short = program.compacted(parsed("\n".join([branch, *(move.partition(": ")[2] or move for move in moves)]), 4.5))
    assert [inst.compacted for inst in short] == [False] + [True] * (len(short) - 1)
    assert [inst.opcode for inst in short].count("nenop") == (2 if target == "L1" else 0)
    assert short[0].sources[1].immediate % 16 == 0


LOOP = """
    add(8) g2<1>D g2<8,8,1>D g3<8,8,1>D { align1 1Q };
AGAIN:
    add(8) g4<1>D g4<8,8,1>D g3<8,8,1>D { align1 1Q };
    cmp.l.f0.0(8) null<1>D g4<8,8,1>D g2<8,8,1>D { align1 1Q };
    (+f0.0) break(8) JIP: OUT UIP: OUT { align1 1Q };
    add(8) g5<1>D g5<8,8,1>D g3<8,8,1>D { align1 1Q };
OUT:
    while(8) JIP: AGAIN { align1 1Q };
    add(8) g6<1>D g6<8,8,1>D g3<8,8,1>D { align1 1Q };
"""


@pytest.mark.behaviour("EU-12", shows="action")
@pytest.mark.behaviour("BDW-EU-29", shows="layout")
@pytest.mark.parametrize("gen, unit", [(7.0, 8), (7.5, 8), (8.0, 1), (9.0, 1), (11.0, 1)])
def test_jumps_move_with_their_targets(gen: float, unit: int) -> None:
    long = parsed(LOOP, gen)
    short = program.compacted(long)
    assert sum(inst.compacted for inst in short) >= 4 and aims(short) == aims(long)
    branch = next(inst for inst in short if inst.opcode == "break")
    distance = labels.size(branch) + labels.size(short[short.index(branch) + 1])
    assert branch.jip == distance // unit and long[3].jip == 32 // unit


@pytest.mark.parametrize("gen, unit", [(4.5, 16), (7.0, 8), (7.5, 1), (8.0, 1)])
@pytest.mark.behaviour("BDW-EU-27", shows="action")
def test_an_indexed_jump_counts_from_the_next_instruction(gen: float, unit: int) -> None:
    inst = parsed("jmpi(1) 0D { align1 WE_all };" if gen == 4.5 else "jmpi(1) 0D { align1 WE_all 1N };", gen)[0]
    assert labels.target(replace(inst, jip=32 // unit), 64, 32 // unit) == 64 + 16 + 32


def test_adding_to_ip_is_a_jump() -> None:
    text = "\n".join(["add(1) ip<1>UD ip<0,1,0>UD 48D { align1 nomask };", *["mov(8) g2<1>F g4<8,8,1>F { align1 };"] * 2,
                      "mov(8) m1<1>F g4<8,8,1>F { align1 };", "mov(8) m2<1>F g4<8,8,1>F { align1 };"])  # fmt: skip
    short = program.compacted(parsed(text, 4.5))
    assert [inst.opcode for inst in short[:3]] == ["add", "mov", "mov"] and short[1].compacted and short[2].compacted
    assert short[0].sources[1].immediate == 16 + 8 + 8


@pytest.mark.parametrize("gen", [7.0, 7.5, 8.0, 9.0, 11.0])
@pytest.mark.parametrize("moves, said, expected", [
    (508, False, [True, True]), (509, False, [False, True]), (510, False, [False, False]), (600, True, [False, False])])  # fmt: skip
def test_a_jump_becomes_compact_when_what_it_jumps_over_does(gen: float, moves: int, said: bool, expected: list[bool]) -> None:
    """A compact immediate has 13 bits, with its sign. Of two jumps over the same moves the first fits only once the second is compact.
    A jump that is said to be compact, though it leads too far, becomes native."""

    def jump(distance: int) -> Instruction:
        return replace(parsed(f"add(1) ip<1>D ip<0,1,0>D {distance}D {{ align1 WE_all 1N }};", gen)[0], compacted=said)

    size, (move, nop) = labels.size(jump(0)), parsed("mov(8) g2<1>F g4<8,8,1>F { align1 1Q };\nnop;", gen)
    short = program.compacted([jump(2 * size + 16 * moves), jump(size + 16 * moves), *[move] * moves, nop])
    assert [inst.compacted for inst in short[:2]] == expected
    sizes = [labels.size(inst) for inst in short]
    assert [inst.sources[1].immediate for inst in short[:2]] == [sum(sizes[:-1]), sum(sizes[1:-1])]
    assert len(program.assemble(short)) == sum(sizes)


@pytest.mark.parametrize("text, gen, message", [
    ("jmpi(1) g2<0,1,0>D { align1 WE_all 1N };", 9.0, "jmpi at 0x0 jumps by a register.s value"),
    ("mov(1) ip<1>UD g2<0,1,0>UD { align1 WE_all 1N };", 9.0, "mov at 0x0 computes with ip"),
    ("endif(8) JIP: 24 { align1 1Q };\nnop;\nnop;", 9.0, "endif at 0x0 jumps to 0x18, which is not the start of an instruction"),
])  # fmt: skip
def test_what_cannot_be_moved(text: str, gen: float, message: str) -> None:
    with pytest.raises(DecodeError, match=message):
        program.assemble(parsed(text, gen), compact=True)
    program.assemble(parsed(text, gen))


def test_no_compact_form_is_an_error() -> None:
    inst = parsed("mov(8) g2<1>F 0x12345678F { align1 1Q };", 9.0)[0]
    with pytest.raises(DecodeError, match="mov has no compact form"):
        program.assemble([replace(inst, compacted=True)])
    assert program.encoded(replace(inst, compacted=True)) is None


# -- where kernels end ---------------------------------------------------------------------------------------------

EOT = "send(8) null<1>UD g127<8,8,1>UD 0x82000010 thread_spawner MsgDesc: x { align1 WE_all 1Q EOT };\n"
MOVE = "mov(8) g2<1>F g4<8,8,1>F { align1 1Q };\n"


def test_a_kernel_ends_with_its_thread() -> None:
    for name, gen, data in bundled():
        end, ends = program.kernel_end(data + bytes(64) + b"\xff" * 64, gen)
        assert ends and not data[end:].strip(b"\0"), name


def test_a_branch_over_the_end_goes_on() -> None:
    branch, target = "(+f0.0) if(8) JIP: L UIP: L { align1 1Q };\n", "L: endif(8) JIP: 16 { align1 1Q };\n"
    code = program.assemble(parsed(branch + EOT + MOVE + target + EOT, 9.0))
    assert program.kernel_end(code + code, 9.0) == (len(code), True)


@pytest.mark.parametrize("beyond", [0, 16])
def test_a_branch_out_of_the_bytes_is_none_over_the_end(beyond: int) -> None:
    """Nothing stands there that it could go on with; nor at the end of the bytes themselves."""
    code = program.assemble(parsed(f"(+f0.0) if(8) JIP: {64 + beyond} UIP: {64 + beyond} {{ align1 1Q }};\n" + EOT + MOVE + MOVE, 9.0))
    assert program.kernel_end(code, 9.0) == (32, True)
    assert program.kernel_end(code + bytes(beyond + 16), 9.0) == (64, True), "there is something"


def test_a_kernel_without_end_stops_at_what_is_no_instruction() -> None:
    code = program.assemble(parsed(MOVE * 3, 9.0))
    assert program.kernel_end(code, 9.0) == (48, False)
    assert program.kernel_end(code + bytes(32), 9.0) == (48, False)
    assert program.kernel_end(b"", 9.0) == (0, False)


def test_the_search_for_an_end_is_bounded() -> None:
    code = program.assemble(parsed("mov(8) g2<1>F g4<8,8,1>F { align1 1Q };", 9.0))
    assert program.kernel_end(code * (program.LONGEST // 16 + 99), 9.0) == (program.LONGEST, False)


# -- anything at all -----------------------------------------------------------------------------------------------


@given(data=st.binary(max_size=200), gen=st.sampled_from(GENERATIONS))
def test_any_bytes_are_read_and_written_again(data: bytes, gen: float) -> None:
    end = program.decodable_bytes(data, gen)
    assert program.assemble(only(data, gen)) == data[:end]
    assert program.kernel_end(data, gen)[0] <= end


@given(half=st.integers(0, 2**64 - 1), gen=st.sampled_from(GENERATIONS))
def test_eight_marked_bytes_are_read_and_written_again(half: int, gen: float) -> None:
    data = (half | program.compact_bit(gen)).to_bytes(8, "little")
    (line,) = program.instructions(data, gen)
    assert line[:2] == (0, 8) and line[2].compacted and program.assemble([line[2]]) == data


def test_a_compact_form_nobody_would_choose_is_shown_as_no_instruction() -> None:
    """Beside an immediate, bits of the sub-register index count for nothing: several indices expand to one word, and one is written."""
    others = 0
    for index in range(32):
        half = int.from_bytes(program.assemble(program.compacted(parsed("add(8) g2<1>D g34<8,8,1>D -1023D { align1 1Q };", 8.0))), "little")
        half = half & ~(0x1F << 18) | index << 18
        (line,) = program.instructions(half.to_bytes(8, "little"), 8.0)
        others += not line[2].opcode
        assert program.assemble([line[2]]) == half.to_bytes(8, "little")
    assert 0 < others < 32


@needs_shared("kernels")
def test_every_compiled_kernel_comes_back() -> None:
    codes = compiled()
    assert len(codes) > 400
    for name, gen, data in codes[::8]:
        assert program.assemble(only(data, gen)) == data[: program.decodable_bytes(data, gen)], name


@pytest.mark.witness
@needs_shared("kernels")
@pytest.mark.parametrize("gpu", ["bdw", "kbl", "icllp"])
def test_every_compiled_kernel_becomes_compact_again(gpu: str) -> None:
    for name, gen, data in compiled():
        if name.startswith(gpu):
            assert len(shortest(gen, data)) <= len(data), name


@needs_shared("traces")
def test_every_captured_kernel_comes_back() -> None:
    codes = captured()
    assert len(codes) > 150 and {gen for _, gen, _ in codes} == set(GENERATIONS) - {4.0}
    for name, gen, data in codes:
        assert program.assemble(only(data, gen)) == data, name
