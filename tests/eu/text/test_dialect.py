"""Text and back, byte for byte, in every dialect that covers a generation."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

import hypothesis.strategies as st
import pytest
from hypothesis import given

from softgen.bits.layout import GENERATIONS
from softgen.errors import DecodeError
from softgen.eu.encoding import program
from softgen.eu.text import dialect
from tests.conftest import needs_shared, witness
from tests.eu.corpus import Code, bundled, captured, compiled

ANNOTATION = re.compile(r"/\* bits: 0x[0-9a-f]+ \*/")
SMALL = 1024  # bytes of the kernels every run tries; `make witness` tries all


def differences(codes: Iterable[Code]) -> tuple[list[str], Counter[tuple[str, float]], Counter[tuple[str, float]]]:
    """What did not come back; instructions and annotations by dialect and generation, without padding and Gen8 sends."""
    wrong: list[str] = []
    lines: Counter[tuple[str, float]] = Counter()
    annotated: Counter[tuple[str, float]] = Counter()
    for name, gen, data in codes:
        for syntax in dialect.dialects_of(gen):
            text = dialect.text(data, gen, syntax)
            if dialect.read(text, gen, syntax) != data:
                wrong.append(f"{name} in {syntax}")
            counted = [line for line in text.splitlines() if not re.match(r"\s*(//|\w+:)", line) and not (gen == 8.0 and "send" in line)]
            lines[syntax, gen] += len(counted)
            annotated[syntax, gen] += sum(bool(ANNOTATION.search(line)) for line in counted)
    return wrong, lines, annotated


def few(lines: Counter[tuple[str, float]], annotated: Counter[tuple[str, float]]) -> list[str]:
    """Where one instruction in a hundred or more needs an annotation."""
    many = {key: count for key, count in lines.items() if annotated[key] * 100 >= count}
    return [f"{syntax} gen {gen:g}: {annotated[syntax, gen]} of {count}" for (syntax, gen), count in many.items()]


def test_which_dialects_there_are() -> None:
    assert {gen: dialect.dialects_of(gen) for gen in GENERATIONS} == {
        4: ("mesa",), 4.5: ("mesa",), 7: ("mesa",),
        7.5: ("iga", "mesa"), 8: ("iga", "mesa"), 9: ("iga", "mesa"), 11: ("iga", "mesa")}  # fmt: skip
    assert (
        dialect.select_dialect(None, 9.0) == "iga"
        and dialect.select_dialect("mesa", 9.0) == "mesa"
        and dialect.select_dialect(None, 7.0) == "mesa"
    )
    with pytest.raises(DecodeError, match="iga does not cover gen 7; mesa does"):
        dialect.select_dialect("iga", 7.0)


def test_bundled_kernels_come_back() -> None:
    wrong, lines, _ = differences(bundled())
    assert wrong == []
    assert set(lines) == {(syntax, gen) for gen in GENERATIONS if gen != 4 for syntax in dialect.dialects_of(gen)}


@pytest.mark.parametrize("code", [pytest.param(code, id=code[0]) for code in bundled()])
def test_the_dialect_of_a_text_is_seen(code: Code) -> None:
    _, gen, data = code
    for syntax in dialect.dialects_of(gen):
        assert dialect.detect(dialect.text(data, gen, syntax), gen) == syntax
        assert dialect.read(dialect.text(data, gen, syntax), gen) == data


def test_bytes_behind_the_last_instruction_come_back() -> None:
    name, gen, data = next(code for code in bundled() if "padded" in code[0])
    for behind in (b"\0" * 8, b"\x01", b"\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f"):
        for syntax in dialect.dialects_of(gen):
            text = dialect.text(data + behind, gen, syntax)
            assert f"// rest: {behind.hex()}" in text and dialect.read(text, gen, syntax) == data + behind, name


@given(data=st.binary(min_size=1, max_size=120), gen=st.sampled_from(GENERATIONS))
def test_any_bytes_come_back(data: bytes, gen: float) -> None:
    for syntax in dialect.dialects_of(gen):
        text = dialect.text(data, gen, syntax)
        assert dialect.read(text, gen, syntax) == data, text


def test_no_compact_form_is_said_with_its_place() -> None:
    text = "nop;\n  mov(8) g2<1>F 0x12345678F { align1 1Q compacted };\n"
    with pytest.raises(DecodeError, match=r"^a\.asm:2:3: this mov has no compact form$"):
        dialect.read(text, 9.0, "mesa", "a.asm")
    with pytest.raises(DecodeError, match=r"^a\.asm:2:1: this mov has no compact form$"):
        dialect.read("nop\nmov (8|M0) r2.0<1>:f 0x12345678:f {Compacted}\n", 9.0, "iga", "a.asm")


def test_programs_of_one_text_stand_one_behind_the_other() -> None:
    codes = [code for code in bundled() if code[1] == 9.0 and not len(code[2]) % 8][:3]
    for syntax in dialect.dialects_of(9.0):
        items = [list(program.instructions(data, gen)) for _, gen, data in codes]
        writer = dialect.ListingWriter(syntax, 9.0, (item for lines in items for _, _, item in lines))
        text = writer.head()
        for lines in items:
            last = writer.end(lines)
            for row in writer.rows(lines):
                text += "".join(f"{name}:\n" for name in row.labels) + f"{row.text}\n"
            text += f"{last}:\n" if last else ""
        assert dialect.read(text, 9.0, syntax) == b"".join(data for _, _, data in codes)


@pytest.mark.parametrize("syntax, said", [
    ("iga", "nop\nnop\nif (8|M0) L48 L48\nL48:\n"), ("mesa", "nop;\nnop;\nif(8) JIP: LABEL0 UIP: LABEL0 { align1 1Q };\nLABEL0:\n"),
])  # fmt: skip
def test_a_branch_to_the_end_has_a_label_there(syntax: str, said: str) -> None:
    data = dialect.read(said, 9.0, syntax)
    text = dialect.text(data, 9.0, syntax)
    assert text.splitlines()[-1] == said.splitlines()[-1] and dialect.read(text, 9.0, syntax) == data
    items = list(program.instructions(data, 9.0))
    writer = dialect.ListingWriter(syntax, 9.0)
    first = writer.end(items)
    list(writer.rows(items))
    assert first == said.splitlines()[-1][:-1] and writer.end(items) not in ("", first), "in the next program it has another name"
    assert writer.end([]) == writer.end(items[:2]) == ""


@needs_shared("kernels")
@pytest.mark.parametrize("step", [8, witness(1)])
def test_small_compiled_kernels_come_back(step: int) -> None:
    codes = [code for code in compiled() if len(code[2]) <= SMALL]
    wrong, lines, _ = differences(codes[::step])
    assert wrong == [] and sum(lines.values()) > 4000 / step


@pytest.mark.witness
@needs_shared("traces")
def test_captured_kernels_come_back() -> None:
    wrong, lines, annotated = differences(captured())
    assert wrong == [] and few(lines, annotated) == [] and sum(lines.values()) > 10000


@pytest.mark.witness
@needs_shared("kernels")
@pytest.mark.parametrize("gpu", ["bdw", "kbl", "icllp"])
def test_every_compiled_kernel_comes_back(gpu: str) -> None:
    codes = [code for code in compiled() if code[0].startswith(gpu)]
    wrong, lines, annotated = differences(codes)
    print(f"{gpu}: {len(codes)} distinct programs, lines {dict(lines)}, annotations {dict(annotated)}")
    assert len(codes) > 100 and wrong == [] and few(lines, annotated) == []
