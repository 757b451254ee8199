"""`softgen eu`: snippets run and show what they changed; settings and failures take one line."""

from __future__ import annotations

import io
import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from softgen.inspect.cli import eu
from softgen.inspect.cli import main as cli
from tests.conftest import ROOT, in_ci

Capture = pytest.CaptureFixture[str]
COLLATZ = str(ROOT / "examples" / "collatz.asm")
ADD = "add (8|M0) r4.0<1>:d r2.0<8;8,1>:d r3.0<8;8,1>:d\n"
MESA_ADD = "add(8) g4<1>D g2<8,8,1>D g3<8,8,1>D { align1 1Q };\n"
G45_ADD = MESA_ADD.replace(" 1Q", "")
LOOP = "AGAIN:\nadd (1|M0) r2.0<1>:d r2.0<0;1,0>:d 1:w\njmpi AGAIN\n"
SEND = "mov (8|M0) r4.0<1>:f 1.5:f\n\n  send (8|M0) r5 r4 0xC 0x02106E01\nmov (8|M0) r6.0<1>:d 1:w\n"


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return Path("a.asm")


def ran(file: Path | str, text: str, *arguments: str, gpu: str = "kbl", code: int = 0) -> None:
    if isinstance(file, Path):
        file.write_text(text)
    assert cli.main(["eu", str(file), "--gpu", gpu, *arguments]) == code


def as_json(capsys: Capture) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def changed(capsys: Capture) -> dict[str, list[Any]]:
    """What changed, by register and first element."""
    return {f"{item['register']}.{item['sub']}:{item['type']}": item["after"] for item in as_json(capsys)["changed"]}


@pytest.mark.parametrize("gpu", in_ci(["hsw", "bdw", "skl", "kbl", "icl"], "hsw", "icl"))
def test_the_example_counts_right_on_every_gpu_whose_dialect_it_is(gpu: str, capsys: Capture) -> None:
    """1, 2, 3, 6, 7, 9, 18 and 27 take these numbers of steps (well known), so channels must leave the loop one by one."""
    ran(COLLATZ, "", "--set", "r2:d=1,2,3,6,7,9,18,27", "--json", gpu=gpu)
    assert changed(capsys)["r3.0:d"] == [0, 1, 7, 8, 16, 19, 20, 111]


@pytest.mark.parametrize("gpu", ["gm965", "g45", "ivb", "hsw", "bdw", "kbl", "icl"])
def test_text_in_both_dialects(gpu: str, file: Path, capsys: Capture) -> None:
    settings = ("--set", "r2:d=1,2,3,4,5,6,7,8", "--set", "r3:d=-10*8")
    for text in {"gm965": [G45_ADD], "g45": [G45_ADD], "ivb": [MESA_ADD]}.get(gpu, [MESA_ADD, ADD]):
        ran(file, text, *settings, gpu=gpu)
        lines = [line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines()]
        assert lines[0] == ["a.asm:", f"{gpu}, 1 instruction, end of code"]
        written = ["r4:d", "acc0:d"] if gpu in ("gm965", "g45") else ["r4:d"]  # there arithmetic also writes the accumulator
        assert lines[1:] == [[name, "-9 -8 -7 -6 -5 -4 -3 -2"] for name in written]


def test_syntax_can_be_told_and_refused(file: Path, capsys: Capture) -> None:
    ran(file, ADD, "--syntax", "mesa", code=1)
    ran(file, MESA_ADD, "--syntax", "iga", gpu="ivb", code=1)
    assert "iga does not cover gen 7" in capsys.readouterr().err


def test_types_are_those_of_the_instructions(file: Path, capsys: Capture) -> None:
    """A register with floats in one half and integers in the other, and a word written over one of the floats through a0."""
    text = ("mov (4|M0) r5.0<1>:f 1.5:f\nmov (4|M0) r5.4<1>:d -7:w\nmov (1|M0) a0.0<1>:uw 0xA0:uw\n"
            "mov (1|M0) r[a0.0,4]<1>:w 9:w\nmov (8|M0) r9.0<1>:ud 0x12345:ud\n")  # fmt: skip
    ran(file, text)
    lines = capsys.readouterr().out.splitlines()[1:]
    assert [line.split(maxsplit=1) for line in lines] == [
        ["r5.0:f", "1.5"], ["r5.2:w", "9 16320"], ["r5.2:f", "1.5 1.5"], ["r5.4:d", "-7 -7 -7 -7"],
        ["r9:ud", " ".join(["0x12345"] * 8)], ["a0:uw", "160" + " 0" * 15],
    ]  # fmt: skip


@pytest.mark.parametrize("engine", ["reference", "t0"])
def test_a_value_written_again_has_the_type_it_was_written_with_last(file: Path, capsys: Capture, engine: str) -> None:
    """Lane 2 of r3 has the same bits as float and as integer."""
    ran(file, "mov (8|M0) r3.0<1>:f r2.0<8;8,1>:f\nmov (8|M0) r3.0<1>:d r4.0<8;8,1>:d\n", "--set", "r2:f=1.0*8", "--set",
        "r4:d=1,2,1065353216,0,5,6,7,8", "--json", "--trace", "--engine", engine)  # fmt: skip
    assert changed(capsys)["r3.0:d"] == [1, 2, 1065353216, 0, 5, 6, 7, 8]
    text = "mov (8|M0) r3.0<1>:f r2.0<8;8,1>:f\nmov (4|M4) r3.4<1>:d r4.4<4;4,1>:d\n(f0.0) mov (4|M0) r3.0<1>:d 1065353216:d\n"
    ran(file, text, "--set", "r2:f=1.0*8", "--set", "r4:d=1065353216*8", "--json", "--engine", engine)
    assert changed(capsys) in ({"r3.0:f": [1.0] * 4, "r3.4:d": [1065353216] * 4}, {"r3.0:d": [1065353216] * 8})


@pytest.mark.parametrize("engine", ["reference", "t0", "t1"])
def test_a_value_whose_first_byte_did_not_change_has_its_type(file: Path, capsys: Capture, engine: str) -> None:
    ran(file, "mov (8|M0) r3.0<1>:f r2.0<8;8,1>:f\n", "--set", "r2:f=1.0*8", "--json", "--engine", engine)
    assert changed(capsys) == {"r3.0:f": [1.0] * 8}


def test_accumulators_show_whole_numbers(file: Path, capsys: Capture) -> None:
    ran(file, "mul (8|M0) acc0.0<1>:d r2.0<8;8,1>:d r3.0<8;8,1>:d\n", "--set", "r2:d=100000*8", "--set", "r3:d=-100000*8", "--json")
    assert changed(capsys) == {"acc0.0:d": [-10_000_000_000] * 8}


def test_an_accumulator_written_in_passing(file: Path, capsys: Capture) -> None:
    ran(file, "add (8|M0) r4.0<1>:f r2.0<8;8,1>:f 0.5:f {AccWrEn}\n", "--set", "r2:f=1.5*8", "--json")
    assert changed(capsys) == {"r4.0:f": [2.0] * 8, "acc0.0:f": [2.0] * 8}


def test_flags_by_words_and_in_hexadecimal(file: Path, capsys: Capture) -> None:
    ran(file, "cmp (8|M0) (gt)f0.1 null<1>:d r2.0<8;8,1>:d 3:w\n", "--set", "r2:d=1,2,3,4,5,6,7,8")
    assert capsys.readouterr().out.splitlines()[1:] == ["f0.1  0x00f8"]


@pytest.mark.parametrize("kind, values, shown", [
    ("ud", "1,65535,3,4,5,6,7,8", "1 65535 3 4 5 6 7 8"), ("ud", "1,65536,3,4,5,6,7,10", "0x1 0x10000 0x3 0x4 0x5 0x6 0x7 0xa"),
    ("d", "1,65536,3,4,5,6,7,-1", "1 65536 3 4 5 6 7 -1"),
])  # fmt: skip
def test_unsigned_numbers_are_hexadecimal_where_one_is_large(kind: str, values: str, shown: str, file: Path, capsys: Capture) -> None:
    ran(file, f"mov (8|M0) r4.0<1>:{kind} r2.0<8;8,1>:{kind}\n", "--set", f"r2:{kind}={values}")
    assert capsys.readouterr().out.splitlines()[1:] == [f"r4:{kind}  {shown}"]


@pytest.mark.parametrize("setting, text, want", [
    ("r2.3:ud=7", "mov (8|M0) r4.0<1>:ud r2.0<8;8,1>:ud", [0, 0, 0, 7, 0, 0, 0, 0]),
    ("r2:f=1.5,-2.5,inf,0x40490fdb", "mov (8|M0) r4.0<1>:f r2.0<8;8,1>:f", [1.5, -2.5, "inf", 3.1415927, 0, 0, 0, 0]),
    ("r2.1:hf=0.1", "mov (8|M0) r4.0<1>:hf r2.0<8;8,1>:hf", [0, 0.1] + [0] * 14),
    ("g1:d=0*8,9", "mov (8|M0) r4.0<1>:d r2.0<8;8,1>:d", [9] + [0] * 7),
    ("f0.0=0x05", "(f0.0) mov (8|M0) r4.0<1>:d 6:w", [6, 0, 6, 0, 0, 0, 0, 0]),
    ("a0.0=64", "mov (8|M0) r4.0<1>:d r[a0.0,0]<8;8,1>:d", [5, 5, 5, 5, 5, 5, 5, 5]),
    ("acc0:d=0x80000000*8", "mov (8|M0) r4.0<1>:d acc0.0<8;8,1>:d", [-(1 << 31)] * 8),
    ("acc0:f=0.25*8", "add (8|M0) r4.0<1>:f acc0.0<8;8,1>:f 1.0:f", [1.25] * 8),
])  # fmt: skip
def test_settings(setting: str, text: str, want: list[Any], file: Path, capsys: Capture) -> None:
    ran(file, text, *(["--set", "r2:d=5*8"] if setting.startswith("a0") else []), "--set", setting, "--json")
    assert list(changed(capsys).values()) == [want]


@pytest.mark.parametrize("setting, message", [
    ("r1", "expected REGISTER[.ELEMENT][:TYPE]=VALUE"), ("=3", "expected REGISTER"), ("r1=", "expected an integer for type ud, not ''"),
    ("r128=1", "has no register r128 to set; expected r0 to r127"), ("r=1", "has no register r to set"), ("m1=1", "no register m1"),
    ("x0=1", "or a number after one of a acc cr"), ("ip=1", "no register ip"), ("r1=1.5", "floats need a type, such as :f"),
    ("r1:f=one", "expected a float for type f, or its bits as 0x…, not 'one'"), ("r1:vf=1", "no type 'vf'; expected one of ud d"),
    ("r1:w=40000", "40000 is outside type w; expected -32768 to 32767"), ("r1=-1", "outside type ud; expected 0 to 4294967295"),
    ("r1.8=1", "r1 has 8 elements of type ud; expected a number below that, not 8"), ("r1=1*x", "lanes after the '*', not 'x'"),
    ("r127:d=1*9", "9 values of type d are too many; expected 8 or fewer"), ("r1=1*999999999999", "expected a number of lanes"),
    ("r1:ub=0x100", "0x100 is outside type ub; expected 0 to 255"),
    ("r1=٣", "expected an integer for type ud, not '٣'"), ("r١=3", "expected REGISTER"), ("r1.٣=3", "expected REGISTER"),
    ("r1:f=٣.5", "expected a float for type f"), ("r1=3*٣", "lanes after the '*', not '٣'"),  # digits, but not of numbers in programs
    (f"r1={'9' * 5000}", "expected an integer"), (f"r1=1*{'9' * 5000}", "lanes after the '*'"),  # more than int() takes
    (f"r{'1' * 5000}=1", "expected REGISTER"), (f"r1.{'1' * 5000}=1", "expected REGISTER"),
])  # fmt: skip
def test_wrong_settings_say_what_was_expected(setting: str, message: str, file: Path, capsys: Capture) -> None:
    ran(file, ADD, "--set", setting, code=2)
    said = capsys.readouterr()
    assert said.err.startswith(f"softgen: --set {setting}: ") and message in said.err and said.err.count("\n") == 1 and not said.out


def test_old_gpus_have_message_registers_and_fewer_types(file: Path, capsys: Capture) -> None:
    ran(file, G45_ADD, "--set", "m1:f=1.0", gpu="g45")
    ran(file, MESA_ADD, "--set", "r1:hf=1.0", gpu="ivb", code=2)
    assert "gen 7 has no type 'hf'" in capsys.readouterr().err


def test_a_trace_shows_each_instruction_and_who_took_part(capsys: Capture) -> None:
    ran(COLLATZ, "", "--set", "r2:d=1,2,4", "--trace")
    shown = capsys.readouterr().out
    steps = re.findall(r"^0x\w+  .*$", shown, re.MULTILINE)
    assert steps[0] == "0x0000  mov (8|M0) r3.0<1>:d 0:w"
    assert sum("and (8|M0)" in line for line in steps) == 2
    assert [line.split("channels ")[1] for line in steps if "and (8|M0)" in line] == ["0x6", "0x4"]
    assert "          r3:d  0 1 1 0 0 0 0 0\n" in shown and "          r3:d  0 1 2 0 0 0 0 0\n" in shown
    assert f"{len(steps)} instructions, end of code" in shown


def test_a_trace_as_json(file: Path, capsys: Capture) -> None:
    ran(file, "mov (8|M0) r4.0<1>:f 1.5:f\nnop\n", "--trace", "--json")
    found = as_json(capsys)
    assert [inst["offset"] for inst in found["trace"]] == [0, 16] and found["trace"][1]["changed"] == []
    assert found["trace"][0]["changed"] == found["changed"] and found["trace"][0]["place"] == "a.asm:1:1"
    assert found["changed"][0]["before"] == [0.0] * 8


def test_threads_end_at_their_last_message(file: Path, capsys: Capture) -> None:
    ran(file, "send (8|M0) null r127 0x27 0x02000010 {EOT}\nmov (8|M0) r4.0<1>:d 1:w\n", "--json")
    found = as_json(capsys)
    assert (found["end"], found["instructions"], found["changed"]) == ("end of thread", 1, [])


def test_an_empty_text_changes_nothing(file: Path, capsys: Capture) -> None:
    ran(file, "// nothing\n")
    assert capsys.readouterr().out == "a.asm: kbl, 0 instructions, end of code\nno register changed\n"


@pytest.mark.parametrize("text, arguments, message", [
    (SEND, (), "a.asm:3:3: send (8|M0) r5 r4 0xC 0x02106E01: there is no data_cache_1 here to answer messages"),
    (LOOP, ("--limit", "1000"), "a.asm:2:1: add (1|M0) r2.0<1>:d r2.0<0;1,0>:d 1:w: stopped after 1,000 instructions"),
    (LOOP, ("--time-limit", "0.2"), "a.asm:2:1: add (1|M0) r2.0<1>:d r2.0<0;1,0>:d 1:w: stopped after 0.2 s and "),
    ("mov (16|M0) r127.0<1>:d 1:w\n", (), "a.asm:1:1: mov (16|M0) r127.0<1>:d 1:w: write at 0x1000 in grf"),
    ("nop\n" + 65 * "illegal\n", (), "a.asm:2:1: illegal: opcode 0 is not an instruction of gen 9"),
    *(("nop\nwait n0.0<0;1,0>:ud\n", ("--engine", engine, "--time-limit", "20"),
       "a.asm:2:1: wait n0.0<0;1,0>:ud: waits for a notification that no other thread can send") for engine in ("reference", "t0", "t1")),
    ("mov (1|M0) ip<1>:ud 0x100:ud\n", (), "a.asm:1:1: mov (1|M0) ip<1>:ud 0x100:ud: leads to 0x100, where no instruction"),
])  # fmt: skip
def test_failures_name_the_instruction(text: str, arguments: tuple[str, ...], message: str, file: Path, capsys: Capture) -> None:
    ran(file, text, *arguments, code=1)
    said = capsys.readouterr()
    assert said.err.startswith(f"softgen: {message}") and said.err.count("\n") == 1
    assert ", stopped\n" in said.out


def test_what_changed_before_a_failure_is_shown(file: Path, capsys: Capture) -> None:
    ran(file, SEND, "--json", code=1)
    found = as_json(capsys)
    assert found["end"] is None and found["problem"].startswith("a.asm:3:3: send")
    assert [inst["register"] for inst in found["changed"]] == ["r4"] and found["instructions"] == 1


def test_the_width_of_a_thread(file: Path, capsys: Capture) -> None:
    """Channels that the thread does not have write nothing; by default, the widest instruction has them all."""
    text = "mov (16|M0) r4.0<1>:d 1:w\n"
    ran(file, text, "--json")
    assert len(changed(capsys)) == 2
    ran(file, text, "--simd", "4", "--json")
    assert changed(capsys) == {"r4.0:d": [1] * 4 + [0] * 4}
    ran(file, text, "--simd", "5", code=2)
    for width in (1, 2, 8, 16, 32):
        ran(file, text, "--simd", str(width))


@pytest.mark.covering(1)
@pytest.mark.parametrize("trace", [[], ["--trace"]])
@pytest.mark.parametrize("engine", ["t0", "t1"])
def test_engines_show_the_same(engine: str, trace: list[str], capsys: Capture) -> None:
    settings = ["--set", "r2:d=1,2,3,6,7,9,18,27", *trace, "--json"]
    ran(COLLATZ, "", *settings)
    expected = as_json(capsys)
    ran(COLLATZ, "", *settings, "--engine", engine)
    assert as_json(capsys) == expected


@pytest.mark.parametrize("trace", [[], ["--trace"]])
@pytest.mark.parametrize("engine", ["reference", "t0", "t1"])
def test_channels_that_a_thread_was_not_dispatched_with_are_off(engine: str, trace: list[str], file: Path, capsys: Capture) -> None:
    """Four of eight. An instruction that asks for no mask writes them nevertheless."""
    text = ("mov (8|M0) r4.0<1>:d 7:w\n(W) mov (8|M0) r5.0<1>:d 8:w\nAGAIN:\nadd (8|M0) r6.0<1>:d r6.0<8;8,1>:d 1:w\n"
            "cmp (8|M0) (lt)f0.0 null<1>:d r6.0<8;8,1>:d 3:w\n(f0.0) while (8|M0) AGAIN\n")  # fmt: skip
    ran(file, text, "--simd", "4", "--engine", engine, *trace, "--json")
    lines = capsys.readouterr().out.splitlines()
    after = {item["register"]: item["after"] for item in json.loads(lines[-1])["changed"] if item["register"].startswith("r")}
    assert after == {"r4": [7] * 4 + [0] * 4, "r5": [8] * 8, "r6": [3] * 4 + [0] * 4}


@pytest.mark.parametrize("engine", ["t0", "t1"])
def test_engines_pass_over_what_writes_nothing(engine: str, file: Path, capsys: Capture) -> None:
    """Instructions without a destination among those that write."""
    ran(file, "mov (8|M0) r5.0<1>:d 3:w\nnop\nmov (8|M0) r6.0<1>:f 1.5:f\n", "--engine", engine, "--json")
    assert changed(capsys) == {"r5.0:d": [3] * 8, "r6.0:f": [1.5] * 8}


@pytest.mark.parametrize("engine", ["t0", "t1"])
def test_engines_stop_and_complain_alike(engine: str, file: Path, capsys: Capture) -> None:
    """Messages that nobody answers name the same place; an endless loop ends, if not at the same instruction."""
    ran(file, SEND, code=1)
    expected = capsys.readouterr().err
    ran(file, SEND, "--engine", engine, code=1)
    assert capsys.readouterr().err == expected
    ran(file, LOOP, "--engine", engine, "--limit", "5000", code=1)
    assert "if it is not endless, --limit allows more" in capsys.readouterr().err


def test_limits_are_above_zero(file: Path) -> None:
    ran(file, ADD, "--limit", "0", code=2)
    ran(file, ADD, "--time-limit", "nan", code=2)


def test_a_text_may_run_for_a_minute_and_a_million_instructions_by_default(capsys: Capture) -> None:
    assert cli.main(["eu", "--help"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "stop after so many seconds (default 60)" in said and "(default 1000000)" in said


def test_mistakes_in_the_text(file: Path, capsys: Capture) -> None:
    ran(file, "nop\nfrobnicate\n", code=1)
    assert capsys.readouterr().err.startswith("softgen: a.asm:2:1: ")
    file.write_bytes(b"nop\xff")
    assert cli.main(["eu", "a.asm", "--gpu", "kbl"]) == 1
    assert "is not text: byte 3 is 0xff" in capsys.readouterr().err


@pytest.mark.parametrize("page", [eu.EXAMPLE, (ROOT / "docs" / "accuracy.md").read_text("utf-8")], ids=["help", "accuracy"])
def test_what_the_pages_pipe_in_runs(page: str, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    found = re.search(r"echo '(.*)' \| softgen eu (.*)", page)
    assert found is not None
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(found[1].encode())))
    assert cli.main(["eu", *found[2].split(), "--json"]) == 0
    value = as_json(capsys)["changed"][0]["after"][0]
    assert value in (2.0, 1.4142135)
