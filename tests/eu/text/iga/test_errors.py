"""What the parser of IGA's dialect refuses, and what it says: line, column, what it expected, what it found."""

from __future__ import annotations

import pytest

from softgen.errors import DecodeError, SpecError
from softgen.eu.text.iga import names as iga_names
from softgen.eu.text.iga.parse import parse

ADD = "add (8|M0) r4.0<1>:f r5.0<8;8,1>:f r6.0<8;8,1>:f"
HALF = "add (8|M0) r4.0<1>:f r5.0<8;8,1>:f"
PREDICATE = "a predicate, as (W), (f0.0) or (W&~f0.1.any8h)"
CONDITION = "a condition, as (eq), (ne), (gt), (ge), (lt) or (le)"
LAST = "expected registers for all sources but the last, whose bits an immediate takes"

BAD = [
    ("bogus (8|M0) r4.0<1>:f", "1:1: expected an instruction of gen 9, not 'bogus'"),
    ("(W) bogus", "1:5: expected an instruction of gen 9, not 'bogus'"),
    ("f32to16 (8|M0) r4.0<1>:w r5.0<8;8,1>:f", "1:1: expected an instruction of gen 9, not 'f32to16'"),
    ("5", "1:1: expected an instruction, not '5'"),
    ("nop\n  nop x", "2:7: expected the end of the line, not 'x'"),
    ("(f0.0", f"1:1: expected {PREDICATE}, not '('"),
    ("(X) add", f"1:1: expected {PREDICATE}, not '('"),
    ("(~) mov", f"1:1: expected {PREDICATE}, not '('"),
    ("()", f"1:1: expected {PREDICATE}, not '('"),
    ("(f0.0.some) mov (8|M0)", "1:7: expected a predicate's word, as any8h, not 'some'"),
    ("(f0.0.16) mov (8|M0)", "1:7: expected a predicate's word, as any8h, not '16'"),
    ("add", "1:4: expected the execution size, as (16|M0), not the end"),
    ("add (8) r4", "1:5: expected the execution size, as (16|M0), not '('"),
    ("add (3|M0) r4", "1:6: expected an execution size of 1, 2, 4, 8, 16, 32, not '3'"),
    ("add (8|M3) r4", "1:8: expected a first channel, as M0, M4 to M28, not 'M3'"),
    ("add (8|M32) r4", "1:8: expected a first channel, as M0, M4 to M28, not 'M32'"),
    ("add.sat (8|M0)", "1:4: expected the execution size, not '.'"),
    ("endif.b (8|M0)", "1:6: expected the execution size, not '.'"),
    ("math (8|M0)", "1:6: expected '.' and a math function, not '('"),
    ("math.foo (8|M0)", "1:6: expected a math function, not 'foo'"),
    ("math.16 (8|M0)", "1:6: expected a math function, not '16'"),
    ("add (8|M0) (xx)f0.0 r4.0<1>:f", f"1:13: expected {CONDITION}, not 'xx'"),
    ("add (8|M0) (eo)f0.0 r4.0<1>:f", f"1:13: expected {CONDITION}, not 'eo'"),
    ("add (8|M0)", "1:11: expected a destination, not the end"),
    ("add (8|M0) 5:d", "1:12: expected a destination, not '5'"),
    ("add (8|M0) r256.0<1>:f", "1:12: expected a destination, not 'r256'"),
    ("add (8|M0) acc2.0<1>:f", "1:12: expected a destination, not 'acc2'"),
    ("add (8|M0) foo.0<1>:f", "1:12: expected a destination, not 'foo'"),
    ("add (8|M0) r4.0:f r5", "1:18: expected a destination's region, as <1>, not the end of the line"),
    ("add (8|M0) r4.0<8;8,1>:f", "1:16: expected a destination's region, as <1>, not '<'"),
    ("add (8|M0) r4.0<3>:f", "1:16: expected a region with a stride of 0, 1, 2, 4, 8, 16, 32, not '<'"),
    ("add (8|M0) r4.0<1>:x", "1:20: expected a type of gen 9, not 'x'"),
    ("add (8|M0) r4.0<1>:nf", "1:20: expected a type of gen 9, not 'nf'"),
    ("add (8|M0) r4.8<1>:f", "1:15: expected a sub-register up to 7, not '8'"),
    ("add (8|M0) r4.0<1>:f\n", "1:21: expected a source, not the end of the line"),
    ("add (8|M0) r4.0<1>:f r5.0:f", "1:28: expected a region, as <8;8,1>, not the end"),
    ("add (8|M0) r4.0<1>:f r5.0<1>:f", "1:26: expected a region, as <8;8,1>, not '<'"),
    ("add (8|M0) r4.0<1>:f r5.0<8;32,1>:f", "1:26: expected a region with a width of 1, 2, 4, 8, 16, not '<'"),
    ("add (8|M0) r4.0<1>:f r5.0<3;8,1>:f", "1:26: expected a region with a stride of 0, 1, 2, 4, 8, 16, 32, not '<'"),
    ("add (8|M0) r4.0<1>:f r5.0<8;8,8>:f", "1:26: expected a region with a stride of 0, 1, 2, 4, not '<'"),
    ("add (8|M0) r4.0<1>:f r[a1.0]<8;8,1>:f", "1:22: expected a source, not 'r'"),
    ("add (8|M0) r4.0<1>:f r[a0.0,600]<8;8,1>:f", "1:29: expected an offset of -512 to 511, not '600'"),
    (HALF, "1:35: expected a source, not the end"),
    ("add (8|M0) r4.0<1>:f 0x3F800000:f r5.0<8;8,1>:f", f"1:1: {LAST}"),
    ("nop\nadd (8|M0) r4.0<1>:d 0xFFFFFFFF:d r5.0<8;8,1>:d", f"2:1: {LAST}"),
    ("math.pow (8|M0) r4.0<1>:f 0x3F800000:f r5.0<8;8,1>:f", f"1:1: {LAST}"),
    ("math.invm (8|M0) r4.mme2:f 0x3F800000:f r5.mme3:f", f"1:1: {LAST}"),
    ("madm (8|M0) r4.mme2:f 0x3F80:f r6.mme3:f r6.mme3:f", f"1:1: {LAST}"),
    (f"{HALF} 1.5:d", "1:36: expected a whole number, not '1'"),
    (f"{HALF} 0x100000000:ud", "1:36: expected a number of 32 bits, not '0x100000000'"),
    (f"{HALF} -40000:w", "1:36: expected a number of 16 bits, not '-'"),
    (f"{HALF} 1e999:f", "1:36: expected a number that f can hold, not '1e999'"),
    (f"{HALF} 70000.0:hf", "1:36: expected a number that hf can hold, not '70000'"),
    (f"{ADD} x", "1:50: expected the end of the line, not 'x'"),
    (f"{ADD} r7.0<8;8,1>:f", "1:50: expected the end of the line, not 'r7'"),
    (f"{ADD} {{Foo}}", "1:51: expected an option of the instruction, not 'Foo'"),
    (f"{ADD} {{NoPreempt}}", "1:51: expected an option of the instruction, not 'NoPreempt'"),
    (f"{ADD} {{}}", "1:51: expected an option, not '}'"),
    (f"{ADD} {{Compacted", "1:60: expected ',' or '}', not the end"),
    (f"{ADD} {{Compacted /* bits: 0x1 */", "1:61: expected ',' or '}', not an annotation"),
    (f"{ADD} /* x", "1:50: expected the end of the line, not a comment that does not end"),
    ("/* bits: 0x1 */", "1:1: expected an instruction, not an annotation"),
    ("L0:\nL0:\n", "2:1: expected a label that is not yet used, not 'L0'"),
    ("if (8|M0) L0 L0", "1:11: expected a label of the program, not 'L0'"),
    ("L0:\nif (8|M0) L0", "2:13: expected a label, not the end"),
    ("L0:\nif (8|M0) L0 L0 L0", "2:17: expected the end of the line, not 'L0'"),
    ("L0:\nif (8|M0) 5", "2:11: expected a label, not '5'"),
    ("if (8|M0)", "1:10: expected a label, not the end"),
    ("endif (8|M0) r3.0", "1:14: expected a label, not 'r3'"),
    ("ret (8|M0)", "1:11: expected a register, not the end"),
    ("L0:\nret (8|M0) L0", "2:12: expected a register, not 'L0'"),
    ("ret (8|M0) r3.0 r4.0", "1:17: expected the end of the line, not 'r4'"),
    ("ret (8|M0) null<1>:ud", "1:22: expected a source, not the end"),
    ("ret (8|M0) null<1>:ud r3.0<0;1,0>:ud", "1:37: expected a source, not the end"),
    ("ret (8|M0) null<1>:ud 0:d", "1:26: expected a source, not the end"),
    ("if (8|M0) null<1>:d", "1:20: expected a source, not the end"),
    ("while (8|M0) null<1>:d r3.0<0;1,0>:d", "1:37: expected a source, not the end"),
    ("call (8|M0) L0\nL0:", "1:15: expected a register, not the end of the line"),
    ("jmpi .+7x", "1:6: expected a label or a register, not '.'"),
    ("L0:\nif (8|M0) null<1>:d null<0;1,0>:d L0:w L0", "2:1: expected one label beside a register, not two"),
    ("send (8|M0) r2", "1:15: expected a payload, not the end"),
    ("send (8|M0) r2 r10", "1:19: expected an extended message descriptor, not the end"),
    ("send (8|M0) r2 r10 0xC", "1:23: expected a message descriptor, not the end"),
    ("send (8|M0) r2 r10 a0.0 0x1", "1:20: expected an extended message descriptor, not 'a0'"),
    ("send (8|M0) r2 r10 0x1C 0x1", "1:20: expected an extended message descriptor with nothing in its unused bits, not '0x1C'"),
    ("send (8|M0) r2 r10<8;8,1> 0xC 0x1", "1:16: expected a payload without a region, not 'r10'"),
    ("sends (8|M0) r2 r4 0xC 0x1", "1:20: expected a payload, not '0xC'"),
    ("sends (8|M0) r2 r4 r5 0xFFFFFFFFF 0x1", "1:23: expected an extended message descriptor, not '0xFFFFFFFFF'"),
    ("mad (8|M0) r1.0<1>:f r2.0<8;8,1>:f", "1:26: expected a region, as <2;1> or <0;0>, not '<'"),
    ("mad (8|M0) r1.0<2>:f", "1:16: expected the region <1>, not '<'"),
    ("mad (8|M0) r1.0<1>:f r2.0<4;0>:f", "1:26: expected a packed region or a scalar one, not '<'"),
    ("mad (8|M0) r1.0.xyzw:f r2.0.xy:f", "1:28: expected four channels, not '.'"),
    ("madm (8|M0) r1.0:f", "1:19: expected an accumulator, as .mme0 or .nomme, not the end"),
    ("math.invm (8|M0) r1.mme1:f r2.0:f", "1:34: expected an accumulator, as .mme0 or .nomme, not the end"),
    (f"{ADD} {{Align16}}", "1:1: expected channels on each register beside Align16, not a region alone"),
    ("mov (8|M0) r4.0<1>.xyzw:f 1.0:f", "1:1: expected the option Align16 beside channels, not align1"),
    ("mov (8|M0) r4.0<1>:f r5.0<4>.xyzw:f", "1:1: expected the option Align16 beside channels, not align1"),
    ("mov (8|M0) r4.mme0<1>:f", "1:14: expected a register without an accumulator, not '.'"),
    (".inline_inst 0x1", "1:17: expected a dword, as 0x0000007E, not the end"),
    (".inline_inst 0x1 0x2 0x3", "1:25: expected a dword, as 0x0000007E, not the end"),
    ("while (8|M0) .+100000000000", "1:1: gen 9: EU_BRANCH.jip must fit 32 bits with its sign, not 100000000000"),
]  # fmt: skip


@pytest.mark.parametrize(("said", "complaint"), BAD, ids=[said for said, _ in BAD])
def test_refused(said: str, complaint: str) -> None:
    with pytest.raises(DecodeError) as caught:
        parse(said, 9.0, "bad.asm")
    assert str(caught.value) == f"bad.asm:{complaint}"


def test_words_of_other_generations_are_refused() -> None:
    for gen, said, complaint in (
        (7.5, "L0:\ngoto (8|M0) L0 L0", "text:2:1: expected an instruction of gen 7.5, not 'goto'"),
        (7.5, "mov (8|M0) r1.0<1>:hf r2.0<8;8,1>:hf", "text:1:20: expected a type of gen 7.5, not 'hf'"),
        (7.5, "while (8|M0) .+4", "text:1:14: expected a place whole steps of 8 bytes away, not '.'"),
        (8.0, "send (8|M0) r2 r10 0x12345678 0x1", "text:1:20: expected a shared function, 0x0 to 0xF, not '0x12345678'"),
        (11.0, "lrp (8|M0)", "text:1:1: expected an instruction of gen 11, not 'lrp'"),
        (11.0, f"{ADD} {{Align16}}", "text:1:51: expected an option of the instruction, not 'Align16'"),
    ):
        with pytest.raises(DecodeError) as caught:
            parse(said, gen)
        assert str(caught.value).startswith(complaint)


TABLES = [
    ("source public x\nwords bogus 9 1 eq", "page:2: words are pairs of a code and a word for one of "),
    ("source public x\nwords condition 9 1", "page:2: words are pairs of a code and a word for one of "),
    ("source public x\nwords condition 9 1 eq 1 ne", "page:2: condition 1 or its word 'ne' is given twice"),
    ("source public x\nset bogus 9 add", "page:2: a set is one of "),
    ("source public x\nimplied bogus 9 if imm:d", "page:2: operands are implied by one of label, register, copied, not 'bogus'"),
    ("source public x\nimplied label 9 if r4<1>:d", "page:2: an operand is a name, a region and a type, not 'r4<1>:d'"),
    ("source public x\nimplied label 9 if,if imm:d", "page:2: the operands that if omits with a label are given twice"),
    ("source public x\nbogus condition 9 1 eq", "page:2: a line is one of words, set, implied, "),
]  # fmt: skip


@pytest.mark.parametrize(("page", "complaint"), TABLES, ids=[page.split("\n")[1] for page, _ in TABLES])
def test_bad_tables_are_refused(page: str, complaint: str) -> None:
    with pytest.raises(SpecError) as caught:
        iga_names.read("page", page)
    assert str(caught.value).startswith(complaint)
