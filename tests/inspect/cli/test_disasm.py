"""`softgen disasm`: every kind of file, both dialects, what can be asked for, and the text assembled again."""

from __future__ import annotations

import io
import json
import struct
import sys
from pathlib import Path

import pytest

from softgen.bits.generation import device
from softgen.eu.text import dialect
from softgen.inspect.cli import main as cli
from softgen.trace.aub_write import AubWriter, Mapped
from tests.conftest import ROOT, SHARED, needs_shared
from tests.eu.test_binary import archive

DATA = ROOT / "tests" / "data"
KERNELS = DATA / "kernels"
BIN, RAW = KERNELS / "cf_collatz.kbl.bin", KERNELS / "app_nqueens.icl.dat"

Capture = pytest.CaptureFixture[str]


def disasm(capsys: Capture, *arguments: object, code: int = 0) -> str:
    assert cli.main(["disasm", *map(str, arguments)]) == code, capsys.readouterr().err
    return capsys.readouterr().out


def refused(capsys: Capture, *arguments: object, code: int) -> str:
    assert cli.main(["disasm", *map(str, arguments)]) == code
    captured = capsys.readouterr()
    assert captured.out == "" and captured.err.count("\n") == 1
    return captured.err


def test_raw_code_comes_back(capsys: Capture) -> None:
    for syntax in ("iga", "mesa"):
        text = disasm(capsys, "--gpu", "icl", RAW, "--syntax", syntax)
        assert dialect.read(text, 11.0, syntax) == RAW.read_bytes()


def test_the_usual_dialect_is_iga_where_it_covers_the_gpu(capsys: Capture) -> None:
    assert "(16|M0)" in disasm(capsys, "--gpu", "icl", RAW)
    assert "{ align1 1H compacted };" in disasm(capsys, "--gpu", "ivb", KERNELS / "shading.ivb.dat")
    assert "iga does not cover gen 7" in refused(capsys, "--gpu", "ivb", KERNELS / "shading.ivb.dat", "--syntax", "iga", code=1)


def test_addresses_bytes_and_restrictions_are_comments(capsys: Capture) -> None:
    for syntax in ("iga", "mesa"):
        text = disasm(capsys, "--gpu", "icl", RAW, "--address", "--hex", "--check", "--syntax", syntax)
        first = RAW.read_bytes()[:16].hex(" ", 4)
        assert f"/* 0x0000  {first} */" in text and text.endswith("// no restrictions broken\n")
        assert dialect.read(text, 11.0, syntax) == RAW.read_bytes()


def test_labels_and_message_names(capsys: Capture) -> None:
    text = disasm(capsys, BIN)
    assert text.startswith("// kernel cf_collatz, SIMD16, gen 9, 416 bytes\n")
    assert "// data_cache_1: untyped_surface_read simd16" in text and "\nL168:\n" in text and "L168" in text.partition("\nL168:\n")[0]
    assert "JIP: LABEL0" in disasm(capsys, BIN, "--syntax", "mesa")


def test_padding_and_a_rest(capsys: Capture, tmp_path: Path) -> None:
    data = (KERNELS / "cf_calls.bdw.padded.dat").read_bytes() + bytes(8)
    (tmp_path / "a.dat").write_bytes(data)
    text = disasm(capsys, "--gpu", "bdw", tmp_path / "a.dat")
    assert text.endswith("// rest: 0000000000000000\n") and "illegal" in text and dialect.read(text, 8.0) == data


def test_compiled_programs_need_no_gpu(capsys: Capture) -> None:
    for path in sorted(KERNELS.glob("*.bin")):
        text = disasm(capsys, path)
        assert f"// kernel {path.name.split('.')[0]}" in text


def test_archives_hold_several_generations(capsys: Capture, tmp_path: Path) -> None:
    members = [(name.encode(), (KERNELS / f"cf_collatz.{name}.bin").read_bytes()) for name in ("bdw", "kbl", "icl")]
    (tmp_path / "fat").write_bytes(archive(*members))
    text = disasm(capsys, tmp_path / "fat")
    expected = (("bdw", 8, 520), ("kbl", 9, 416), ("icl", 11, 432))
    titles = [f"// kernel cf_collatz, SIMD16, gen {gen}, {size} bytes, member {name}" for name, gen, size in expected]
    assert [line for line in text.splitlines() if line.startswith("// kernel")] == titles


def test_one_kernel(capsys: Capture) -> None:
    assert disasm(capsys, BIN, "--kernel", "cf_collatz") == disasm(capsys, BIN)
    assert "no kernel is called 'other'; there are cf_collatz" in refused(capsys, BIN, "--kernel", "other", code=2)
    assert "// kernel of cs at 0x200000000" in disasm(capsys, DATA / "kbl-vk-compute", "--kernel", "0x200000000")


def test_captures_show_each_kernel_once(capsys: Capture) -> None:
    text = disasm(capsys, DATA / "g45-gles-tri", "--address")
    titles = [line for line in text.splitlines() if line.startswith("// kernel of")]
    assert len(titles) == len(set(titles)) == 6 and {title.split()[3] for title in titles} == {"vs", "clip", "sf", "ps"}
    code = dialect.read(text, 4.5)
    assert len(code) == sum(int(title.split(", ")[2].split()[0]) for title in titles)


def test_only_a_trace_without_kernels_is_said_to_have_none(capsys: Capture, tmp_path: Path) -> None:
    assert cli.main(["disasm", str(DATA / "kbl-vk-compute")]) == 0
    assert not capsys.readouterr().err
    with AubWriter(tmp_path / "empty.aub", device("kbl")) as writer:
        end = struct.pack("<I", 0x05000000).ljust(4096, b"\0")
        writer.submit("render", 0, 0x1000, [Mapped(0x1000, "batch", memoryview(end))])
    assert "empty.aub: no kernel is pointed to" in refused(capsys, tmp_path / "empty.aub", code=1)


def test_json(capsys: Capture) -> None:
    found = [json.loads(line) for line in disasm(capsys, BIN, "--json").splitlines()]
    assert "".join(inst["bytes"] for inst in found) == dialect.read(disasm(capsys, BIN), 9.0).hex()
    first = found[0]
    assert first["kernel"] == "cf_collatz" and first["offset"] == 0 and first["opcode"] == "mov" and first["text"].startswith("(W)")
    assert first["fields"]["exec_size"] == 8 and first["fields"]["dst"] == {"file": "grf", "type": "ud", "number": 2, "horizontal": 1}
    assert [inst["offset"] for inst in found] == [sum(len(o["bytes"]) // 2 for o in found[:i]) for i in range(len(found))]
    assert any(inst.get("message", "").startswith("data_cache_1: untyped_surface_read") for inst in found)
    address = json.loads(disasm(capsys, DATA / "kbl-vk-compute", "--json").splitlines()[1])
    assert address["address"] == 0x200000010 and address["offset"] == 16


def test_json_of_what_is_no_instruction(capsys: Capture, tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"\x7f" + bytes(15) + b"\x01\x02\x03")
    found = [json.loads(line) for line in disasm(capsys, "--gpu", "kbl", tmp_path / "a", "--json").splitlines()]
    assert [inst["opcode"] for inst in found] == [None, None]
    assert found[0]["fields"]["opcode_number"] == 0x7F and found[1]["bytes"] == "010203"


def test_check_fails_where_something_is_broken(capsys: Capture, tmp_path: Path) -> None:
    code = dialect.read("mov(4) g4<1>F g2<8,8,1>F { align1 1N };\n", 9.0, "mesa")
    (tmp_path / "a").write_bytes(code)
    text = disasm(capsys, "--gpu", "kbl", tmp_path / "a", "--check", code=1)
    assert "// ^ restriction 2 width_fits: The width of a source region" in text and text.endswith("// 1 restriction broken\n")
    found = json.loads(disasm(capsys, "--gpu", "kbl", tmp_path / "a", "--check", "--json", code=1))
    assert [inst["name"] for inst in found["restrictions"]] == ["width_fits"]
    disasm(capsys, "--gpu", "kbl", tmp_path / "a")


def test_standard_input(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    for data, arguments in ((RAW.read_bytes(), ("--gpu", "icl")), (BIN.read_bytes(), ())):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
        assert "(16|M0)" in disasm(capsys, "-", *arguments)


def test_what_is_refused(capsys: Capture, tmp_path: Path) -> None:
    assert "for raw code, name its GPU with --gpu" in refused(capsys, RAW, code=2)
    assert "no GPU is called 'vax'" in refused(capsys, RAW, "--gpu", "vax", code=2)
    assert "No such file" in refused(capsys, tmp_path / "missing", "--gpu", "kbl", code=1)
    (tmp_path / "empty").write_bytes(b"")
    assert "is empty" in refused(capsys, tmp_path / "empty", "--gpu", "kbl", code=1)
    (tmp_path / "cut.bin").write_bytes(BIN.read_bytes()[:2000])
    assert "cut.bin: at 0x" in refused(capsys, tmp_path / "cut.bin", code=1)
    (tmp_path / "folder").mkdir()
    assert "folder" in refused(capsys, tmp_path / "folder", code=1)


@needs_shared("aub")
def test_aub_files(capsys: Capture) -> None:
    text = disasm(capsys, SHARED / "aub" / "vadd_selfcheck_bdw.aub", "--check")
    assert "// kernel of cs at" in text and "{EOT}" in text


def test_a_gpu_may_be_forced(capsys: Capture) -> None:
    assert "gen 8, 416 bytes" in disasm(capsys, BIN, "--gpu", "bdw")
