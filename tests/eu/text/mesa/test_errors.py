"""What the parser of Mesa's dialect refuses, and what it says: line, column, what it expected, what it found."""

from __future__ import annotations

import pytest

from softgen.errors import DecodeError, SpecError
from softgen.eu.text.mesa import names as mesa_names
from softgen.eu.text.mesa.parse import parse

ADD = "add(8) g4<1>F g5<8,8,1>F g6<8,8,1>F"

BAD = [
    ("bogus(8) g4<1>F;", "1:1: expected an instruction of gen 9, a predicate or a label, not 'bogus'"),
    ("f32to16(8) g4<1>W g3<8,8,1>F;", "1:1: expected an instruction of gen 9, a predicate or a label, not 'f32to16'"),
    ("(+f0.0) ;", "1:9: expected an instruction of gen 9, not ';'"),
    ("(+g0.0) mov", "1:3: expected a flag register, not 'g0'"),
    ("(f0.0.some) mov", "1:6: expected a predicate control or ')', not '.'"),
    ("(+f0.0 mov", "1:8: expected ')', not 'mov'"),
    ("add.foo(8)", "1:5: expected sat or a condition, not 'foo'"),
    ("add.z.nz(8)", "1:7: expected a flag, not 'nz'"),
    ("(+f0.1) cmp.z.f0.0(8)", "1:15: expected f0.1, the predicate's flag, not 'f0'"),
    ("send.z(8)", "1:6: expected sat, not 'z'"),
    ("math foo(8)", "1:6: expected a math function, not 'foo'"),
    ("math 16(8)", "1:6: expected a math function, not '16'"),
    ("add(3)", "1:5: expected an execution size of 1, 2, 4, 8, 16 or 32, not '3'"),
    ("add(x)", "1:5: expected an execution size, not 'x'"),
    ("add(8 g4", "1:7: expected ')', not 'g4'"),
    ("add(8) ;", "1:8: expected a destination, not ';'"),
    ("add(8) 5D g5<8,8,1>F g6<8,8,1>F;", "1:8: expected a destination, not '5D'"),
    ("add(8) g4<1>F", "1:14: expected a source, not the end"),
    ("add(8) g4<1>F\n  ;", "2:3: expected a source, not ';'"),
    ("add(8) g4<1> F g5F g6F;", "1:13: expected a type, not the end of the line"),
    ("add(8) g4<1>X g5F g6F;", "1:13: expected a type, not 'X'"),
    ("add(8) g256<1>F g5F g6F;", "1:8: expected a register number up to 255, not 'g256'"),
    ("add(8) g4<3>F g5F g6F;", "1:11: expected one of 0, 1, 2, 4, 8, 16, 32, not '3'"),
    ("add(8) g4<8>F g5F g6F;", "1:8: expected a destination with one stride: 0, 1, 2 or 4, not 'g4'"),
    ("add(8) g4<8,8,1>F g5F g6F;", "1:8: expected a destination with one stride: 0, 1, 2 or 4, not 'g4'"),
    ("add(8) -g4<1>F g5F g6F;", "1:8: expected a destination, not '-'"),
    ("add(8) g4<1>F g5<8,32,1>F g6F;", "1:15: expected a region with a width of 1, 2, 4, 8, 16, not 'g5'"),
    ("add(8) g4<1>F g5<8,8,8>F g6F;", "1:15: expected a region with a horizontal stride of 0, 1, 2, 4, not 'g5'"),
    ("add(8) g4<1>F g5<8,8 1>F g6F;", "1:22: expected ',' or '>', not '1'"),
    ("add(8) g4<1>F g5<8,8,1,1>F g6F;", "1:23: expected '>', not ','"),
    ("add(8) g4<1>F g5<8,VxH,1>F g6F;", "1:20: expected a width or stride, not 'VxH'"),
    ("add(8) g4<1>F g[b0]<0,1,0>F g6F;", "1:17: expected a0, not 'b0'"),
    ("add(8) g4<1>F g[a0 x]<0,1,0>F g6F;", "1:20: expected an offset or ']', not 'x'"),
    ("add(8) g4<1>F g[a0 4<0,1,0>F g6F;", "1:21: expected ']', not '<'"),
    ("add(8) g4<1>F foo0<0,1,0>F g6F;", "1:15: expected a source, not 'foo0'"),
    ("add(8) g4<1>F acc16<8,8,1>F g6F;", "1:15: expected a source, not 'acc16'"),
    ("add(8) g4<1>F acc<8,8,1>F g6F;", "1:15: expected a source, not 'acc'"),
    ("add(8) g4<1>F -foo0<0,1,0>F g6F;", "1:16: expected a register, not 'foo0'"),
    ("add(8) g4<1>F 5D g6F;", "1:15: expected a register: only the last source can be a number, not '5D'"),
    ("add(8) g4<1>F g5F 0x100000000UD;", "1:19: expected a number of 32 bits, not '0x100000000UD'"),
    ("add(8) g4<1>F g5F -40000W;", "1:19: expected a number of 16 bits, not '-'"),
    ("add(8) g4<1>F g5F [1, 2, 3]VF;", "1:27: expected ',', not ']'"),
    ("add(8) g4<1>F g5F 1.0F;", "1:20: expected a type, not '.'"),
    ("add(8) g4<1>.xyF g5F g6F { align1 };", "1:8: expected no channels in align1, not 'g4'"),
    ("add(8) g4<1>F g5.xF g6F { align1 };", "1:15: expected no channels in align1, not 'g5'"),
    ("add(8) g4<1>.yxF g5F g6F { align16 };", "1:8: expected a write mask out of xyzw, in this order, not 'g4'"),
    ("add(8) g4<1>F g5.xyF g6F { align16 };", "1:15: expected one channel or four, not 'g5'"),
    (f"{ADD}", "1:36: expected '{' or ';', not the end"),
    (f"{ADD} {{ align1 }}", "1:47: expected ';', not the end"),
    (f"{ADD} {{ align2 }};", "1:39: expected an option or '}', not 'align2'"),
    (f"{ADD} {{ 5Q }};", "1:39: expected an option or '}', not '5Q'"),
    (f"{ADD} {{ EOT }};", "1:39: expected an option or '}', not 'EOT'"),
    (f"{ADD} {{ sechalf }};", "1:39: expected an option or '}', not 'sechalf'"),
    (f"{ADD} {{ align1 ; }};", "1:46: expected an option or '}', not ';'"),
    (f"{ADD}; g4;", "1:38: expected an instruction of gen 9, a predicate or a label, not 'g4'"),
    (f"/* bits: 0x1 */ {ADD};", "1:1: expected an instruction of gen 9, a predicate or a label, not an annotation"),
    (f"{ADD}; /* bits: 0x{'1' * 33} */", "1:38: expected an instruction of gen 9, a predicate or a label, not a comment that does not end"),
    ("/* never\nends", "1:1: expected an instruction of gen 9, a predicate or a label, not a comment that does not end"),
    ("if(8) UIP: L;", "1:7: expected 'JIP:', not 'UIP'"),
    ("if(8) JIP: L;\nL:", "1:13: expected 'UIP:', not ';'"),
    ("if(8) JIP: ; ", "1:12: expected a label or a number, not ';'"),
    ("endif(8) JIP: NOWHERE;", "1:15: expected a label of this text, not 'NOWHERE'"),
    ("A: nop; A: nop;", "1:9: expected a label that does not stand above, not 'A'"),
    ("send(8) g4<1>UW g5<8,8,1>UD sampler;", "1:29: expected a descriptor, not 'sampler'"),
    ("send(8) g4<1>UW g5<8,8,1>UD 0x1 foo;", "1:33: expected a shared function, not 'foo'"),
    ("send(8) g4<1>UW g5<8,8,1>UD 0x123456789 sampler;", "1:29: expected a number of 32 bits, not '0x123456789'"),
    ("send(8) g4<1>UW 5D 0x1 sampler;", "1:17: expected a register, not '5D'"),
    ("sends(8) g4UW g5UD g6UD 0x1 urb;", "1:29: expected an extended descriptor, not 'urb'"),
    ("sends(8) g4<1>UW g5UD g6UD 0x1 0x1 urb;", "1:10: expected a register without region or modifiers, not 'g4'"),
    ("sends(8) g4UW g5UD g6UD 0x100000000 0x1 urb;", "1:25: expected a number of 32 bits, not '0x100000000'"),
    ("sends(8) g4UW g5UD g6UD 0x1 0x100000000 urb;", "1:29: expected a number of 32 bits, not '0x100000000'"),
    ("mov(8) ARF256<1>F g5<8,8,1>F;", "1:8: expected a destination, not 'ARF256'"),
    ("sends(8) g4UW g5UD g6UD a0.1<0>UD 0x1 urb;", "1:25: expected a0, not 'a0'"),
    ("sends(8) g4UW g5UD g6UD 0x1 g1<0>UD urb;", "1:29: expected a sub-register of a0, not 'g1'"),
    ("mad(8) g4<1>F 1F g5F g6F;", "1:15: expected a register g0 to g255, not '1F'"),
    ("mad(8) g4<2>F g1F g5F g6F;", "1:8: expected a destination with a stride of 1, not 'g4'"),
    ("mad(8) g4<1>F g1F g5D g6F;", "1:1: gen 9: src1 half must be one of f, hf, not d"),
    ("mov(8) g4<1>NF g5<8,8,1>F;", "1:1: gen 9 has no register of type nf"),
    ("nop;\nmov(8) m4<1>F g5<8,8,1>F;", "2:1: gen 9: file must be one of arf, grf, imm, not mrf"),
    ("// implied operands: gcc\nnop;", "1:22: expected mesa or iga or gen4asm, not 'gcc'"),
]


@pytest.mark.parametrize(("said", "complaint"), BAD, ids=range(len(BAD)))
def test_what_is_refused_and_why(said: str, complaint: str) -> None:
    with pytest.raises(DecodeError) as caught:
        parse(said, 9.0, "kernel.asm")
    assert str(caught.value) == f"kernel.asm:{complaint}"


@pytest.mark.parametrize("kind, bits", [("D", 32), ("UD", 32), ("F", 32), ("W", 16), ("UW", 16), ("HF", 16), ("Q", 64), ("UQ", 64),
                                        ("DF", 64)])  # fmt: skip
def test_numbers_fit_the_bits_of_their_type(kind: str, bits: int) -> None:
    """With or without a sign; those of 16 bits stand in both halves of a dword."""
    for value in (0, (1 << bits) - 1, -(1 << bits - 1)):
        (inst,) = parse(f"mov(1) g4<1>{kind} {value}{kind} {{ align1 }};", 9.0)
        held = value & (1 << bits) - 1
        assert inst.sources[0].immediate == (held | held << 16 if bits == 16 else held)
    for value in (1 << bits, -(1 << bits - 1) - 1):
        with pytest.raises(DecodeError, match=f"expected a number of {bits} bits"):
            parse(f"mov(1) g4<1>{kind} {value}{kind} {{ align1 }};", 9.0)


@pytest.mark.parametrize(("said", "complaint"), [
    ("send(8) g4<1>F g5<8,8,1>F 0x1 math;", "1:9: expected the number of the first message register, not 'g4'"),
    ("mov(8) g4<1>F g5<8,8,1>F { 1Q };", "1:28: expected an option or '}', not '1Q'"),
    ("if(8) JIP: L { align1 };\nnop;L:", None),
    ("if(8) Jump: 65536 { align1 };", "1:1: gen 4.5: EU_BRANCH.jip must fit 16 bits with its sign, not 65536"),
])  # fmt: skip
def test_the_oldest_generation(said: str, complaint: str | None) -> None:
    if complaint is None:
        assert parse(said, 4.5)[0].jip == 2
        return
    with pytest.raises(DecodeError) as caught:
        parse(said, 4.5)
    assert str(caught.value) == f"text:{complaint}"


def test_a_label_between_two_units_is_refused() -> None:
    """G45 counts in 16 bytes, and compact instructions have 8."""
    with pytest.raises(DecodeError, match=r"^text:1:16: expected a label a whole number of units away, not 'L'$"):
        parse("while(8) Jump: L; nenop { compacted };\nL: nop;", 4.5)


@pytest.mark.parametrize(("line", "complaint"), [
    ("colour 9 1 red", "t:1: a line is one of words, also, set, implied, rest, a kind, generations and words, not 'colour 9 1 red'"),
    ("words colour 9 1 red", "t:1: words gives pairs of a code and a word for one of condition,"),
    ("words thread 9 1", "t:1: words gives pairs"),
    ("words thread 9 1 atomic 1 other", "t:1: thread 1 or its word 'other' is given twice"),
    ("words thread nine 1 atomic", "t:1: no generations in 'nine'"),
    ("set colours 9 red", "t:1: a set is one of quiet,"),
    ("implied gcc 9 if align1 null<1>D", "t:1: a convention is mesa or iga or gen4asm and a mode align1 or align16, not gcc and align1"),
    ("implied mesa 9 if align2 null<1>D", "t:1: a convention is mesa or iga or gen4asm and a mode align1 or align16, not mesa and align2"),
    ("implied mesa 9 if,if align1 null<1>D", "t:1: the operands that mesa implies for if are given twice"),
    ("rest mesa 9 if ten", "t:1: a convention is mesa or iga or gen4asm and the residue a number, not mesa and 'ten'"),
])  # fmt: skip
def test_bad_tables_are_refused(line: str, complaint: str) -> None:
    with pytest.raises(SpecError) as caught:
        mesa_names.read("t", line)
    assert str(caught.value).startswith(complaint)
