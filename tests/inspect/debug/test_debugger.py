"""The debugger: breakpoints, watches, steps both ways, over dispatches and draws; its terminal, as a user types."""

import json
import random
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from softgen.errors import UsageError
from softgen.eu.interpreter import KernelProgram
from softgen.inspect.cli.main import main
from softgen.inspect.debug.debugger import Debugger
from softgen.inspect.debug.dwarf import line_tables
from softgen.inspect.debug.named_variables import NamedVariable, values, variable_tables
from softgen.inspect.debug.sources import KernelSources
from softgen.inspect.debug.variables import Variables
from softgen.inspect.session import Session
from tests.conftest import ROOT

COMPUTE, TRIANGLE, OLD = (ROOT / "tests/data" / name for name in ("kbl-vk-compute", "kbl-vk-tri", "g45-gles-tri"))


def test_an_instruction_of_every_thread_is_a_breakpoint() -> None:
    debugger = Debugger(Session(COMPUTE))
    debugger.add("/cs+0x98")
    stops = [debugger.cont() for _ in range(5)]
    assert [str(stop.position) for stop in stops[:4]] == [f"2:17/cs/g{group}.t0+0x98#12" for group in range(4)]
    assert stops[0].reason == "breakpoint 1" and stops[0].text.startswith("sends")
    assert (stops[4].reason, stops[4].position) == ("end of capture", None)


def test_a_pixel_is_a_condition() -> None:
    debugger = Debugger(Session(TRIANGLE))
    debugger.add("ps if pixel == (32, 20)")
    first, second = debugger.cont(), None
    assert debugger.cursor is not None and (32, 20) in debugger.cursor.pixels()
    assert first.position is not None and (first.position.submission, first.position.command) == (2, 124)
    second = debugger.cont()
    assert second.position is not None and second.position.command == 245
    back = debugger.cont_back()
    assert back.position == first.position


def test_a_register_value_is_a_condition() -> None:
    debugger = Debugger(Session(COMPUTE))
    debugger.add("/cs+0x98 if r22:d == 35035")
    stop = debugger.cont()
    assert stop.position is not None and stop.position.group == 2 and debugger.cursor is not None
    assert 35035 in debugger.cursor.lanes("r22:d")


def test_watches_stop_after_the_instruction_that_writes() -> None:
    debugger = Debugger(Session(COMPUTE))
    debugger.add("2:17/cs/g2.t0")
    debugger.cont()
    debugger.watch("r22:d")
    stop = debugger.cont()
    assert stop.reason == "watch 2" and stop.position is not None and stop.position.offset == 0x98
    assert debugger.cursor is not None
    address = debugger.cursor.step().writes[0].address
    other = Debugger(Session(COMPUTE))
    other.watch(f"mem {address + 4:#x} 4")
    stop = other.cont()
    assert stop.reason == "watch 1" and str(stop.position) == "2:17/cs/g2.t0+0xa8#13"


def test_back_comes_to_the_breakpoint_before_in_this_thread_and_in_others() -> None:
    debugger = Debugger(Session(COMPUTE))
    for place in ("/cs+0x28", "/cs+0x90"):
        debugger.add(place)
    seen = [str(debugger.cont().position) for _ in range(6)]
    assert seen[-1] == "2:17/cs/g2.t0+0x90#11"
    for expected in reversed(seen[:-1]):
        assert str(debugger.cont_back().position) == expected


def test_steps_show_what_changed_and_back_undoes_it() -> None:
    debugger = Debugger(Session(OLD))
    debugger.go_to("3:25/ps/g0.t7")
    before = debugger.cursor.snapshot() if debugger.cursor else {}
    stops = [debugger.step() for _ in range(8)]
    assert all(stop.step is not None for stop in stops)
    walk = random.Random(3)
    for _ in range(20):
        debugger.step(walk.randint(1, 3))
        debugger.back(walk.randint(1, 3))
    debugger.back(100)
    assert debugger.cursor is not None and debugger.cursor.snapshot() == before


def assembly(capsys: pytest.CaptureFixture[str], into: Path) -> tuple[Path, int]:
    """The compute kernel as a file, and the line of its store."""
    assert main(["disasm", str(COMPUTE)]) == 0
    path = into / "kernel.asm"
    path.write_text(capsys.readouterr().out)
    return path, next(number for number, line in enumerate(path.read_text().splitlines(), 1) if "sends" in line)


def test_lines_of_assembly_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, line = assembly(capsys, tmp_path)
    debugger = Debugger(Session(COMPUTE), [str(path)])
    debugger.add(f"kernel.asm:{line}")
    stop = debugger.cont()
    assert stop.position is not None and stop.position.offset == 0x98 and debugger.where() == (str(path), line)
    assert debugger.line_back().position is not None and debugger.where()[1] == line - 1
    debugger.line()
    assert debugger.where()[1] == line and debugger.source().name == "kernel"
    assert debugger.sources.text_of(*debugger.where()).startswith("sends (16|M0)")
    nowhere = (str(path), 0), (str(path), 10_000), ("absent.cl", 1), (str(tmp_path), 1)
    assert [debugger.sources.text_of(*place) for place in nowhere] == [""] * len(nowhere)


def test_lines_of_opencl_source(tmp_path: Path) -> None:
    if shutil.which("ocloc") is None:
        pytest.skip("no ocloc (Debian: intel-opencl-icd): OpenCL with debug information is not compiled")
    source = ["__kernel void twice(__global float *x) {", "    int i = get_global_id(0);", "    float t = x[i];", "    x[i] = t + t;", "}"]
    (tmp_path / "twice.cl").write_text("\n".join(source))
    subprocess.run(["ocloc", "compile", "-file", "twice.cl", "-device", "kbl", "-options", "-g", "--format", "zebin", "-output", "twice"],
                   cwd=tmp_path, check=True, capture_output=True, timeout=120)  # fmt: skip
    (file,) = tmp_path.glob("twice*.bin")
    table = line_tables(file.read_bytes())["twice"]
    assert {Path(name).name for name, _ in table.values()} == {"twice.cl"}
    assert {2, 3, 4} <= {line for _, line in table.values()} <= set(range(1, 6))
    assert line_tables(b"\x7fELF" + bytes(200)) == {} and line_tables(file.read_bytes()[:300]) == {}
    (t,) = variable_tables(file.read_bytes())["twice"]["t"]
    registers, (begin, end, _) = np.arange(1024, dtype=np.float32), t.places[-1]
    lanes = values(t, registers.view(np.uint8), begin, 16)
    assert t.kind == "f4" and lanes == tuple(lanes[0] + lane for lane in range(16)) and lanes[0] % 8 == 0
    lanes = values(t, registers.view(np.uint8), begin, 32)  # the upper lanes have registers of their own
    assert lanes[16:] == tuple(lanes[16] + lane for lane in range(16)) and lanes[16] % 8 == 0
    with pytest.raises(UsageError, match="it is in instructions"):
        values(t, registers.view(np.uint8), end, 16)
    assert variable_tables(b"\x7fELF" + bytes(200)) == {} and variable_tables(file.read_bytes()[:300]) == {}


LANES = bytes.fromhex("ed3325238701ebed371a08201e0820ec9f")  # register 119 + lane / 8, 32 bits from bit 32 * (lane % 8) on


@pytest.mark.parametrize(("kind", "code", "found"), [
    ("i4", LANES, (1000952, 1000953, 1000966, 1000967)), ("u2", bytes.fromhex("659d20a001"), (17005,) * 4),
    ("i4", b"\x9e\x08\xfe\xff\xff\xff" + bytes(4), (-2,) * 4), ("u8", b"\x34\x32\x24\x9f", (16,) * 4)])  # fmt: skip
def test_values_are_where_debug_information_says(kind: str, code: bytes, found: tuple[int, ...]) -> None:
    """In each lane's part of registers, in a part of one for all lanes, or constant."""
    registers = (1_000_000 + np.arange(1024, dtype=np.int32)).view(np.uint8)
    lanes = values(NamedVariable("v", kind, ((0x10, 0x20, code),)), registers, 0x18, 16)
    assert (lanes[0], lanes[1], lanes[14], lanes[15]) == found


@pytest.mark.parametrize(("kind", "code", "says"), [
    ("f4", b"\x91\x00", "is not in registers"), ("f4", b"\xeb", "is damaged"), ("f4", b"\x90\xff", "is damaged"), ("f4", b"", "is damaged"),
    ("f4", b"\x2f\xfd\xff", "is damaged"),
    ("f4", b"\x50", "where no such value is"), ("f4", b"\x90\xff\x01", "where no such value is"), ("", LANES, "is a structure"),
    ("f4", None, "the compiler removed it")])  # fmt: skip
def test_variables_that_cannot_be_shown_say_why(kind: str, code: bytes | None, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        values(NamedVariable("v", kind, ((0, 8, code),) if code is not None else ()), np.zeros(4096, np.uint8), 0, 16)


def test_variables_are_printed_by_name() -> None:
    debugger = Debugger(Session(COMPUTE))
    debugger.add("/cs+0x98")
    debugger.cont()
    with pytest.raises(UsageError, match=r"no binary of it with debug information \(-g\) is known"):
        debugger.values("gain")
    debugger.source().variables["gain"] = [NamedVariable("gain", "i4", ((0, 0x100, b"\x66\x9d\x20\x00"),))]  # r6
    debugger.source().variables["other"] = [NamedVariable("other", "i4")]
    assert set(debugger.values("gain")) == {debugger.values("r6:d")[0]} and debugger.named_values() == {"gain": debugger.values("gain")}
    with pytest.raises(UsageError, match=r"variables of .* are gain, other"):
        debugger.values("gian")
    assert debugger.cursor is not None and Variables(debugger.cursor, debugger.named_values()).scopes()[0]["name"] == "Variables"


def test_the_file_of_a_text_without_a_name_is_the_one_that_the_user_names(tmp_path: Path) -> None:
    """Runtimes compile texts: their line tables name no file."""
    (tmp_path / "mine.cl").write_text("kernel void twice() {}\n")
    sources, table = KernelSources(9.0, [str(tmp_path / "mine.cl")]), {0: ("twice.cl", 1), 8: ("other.h", 2)}
    assert sources._of_text("twice", table) == {0: (str(tmp_path / "mine.cl"), 1), 8: ("other.h", 2)}
    assert KernelSources(9.0, [], [str(tmp_path / "mine.cl"), str(tmp_path / "absent.bin"), str(ROOT / "README.md")]).files == []
    assert KernelSources(9.0)._of_text("twice", table) == table


def test_the_terminal_takes_commands(capsys: pytest.CaptureFixture[str]) -> None:
    commands = ["break /cs+0x98", "continue", "print r22:d", "step", "back", "where", "registers", "list 1", "state", "info", "delete 1",
                "help", "quit", "never reached"]  # fmt: skip
    assert main(["debug", str(COMPUTE), *(word for command in commands for word in ("-c", command))]) == 0
    out = capsys.readouterr().out
    assert "breakpoint 1: 2:17/cs/g0.t0+0x98#12  sends (16|M0)" in out
    assert "r22:d = 0 1001 2002 3003 4004 5005 6006 7007" in out
    assert re.search(r"0x[0-9a-f]+: addeadde|0x[0-9a-f]+: \w+ \w+ \w+ \w+ -> 00000000 e9030000 d2070000 bb0b0000", out)
    assert out.count("2:17/cs/g0.t0+0x98#12") == 3 and "=>" in out and "GPGPU_WALKER" in out and "saxpy.cl:6" in out


@pytest.mark.parametrize(("command", "says"), [
    ("fly", "no command"), ("break nowhere", "no place to stop at"), ("break ps if moon == full", "is no condition"),
    ("print r9", "in no thread"),
    ("at 2:17/cs/g77.t0", "it starts 4 of cs"),
    ("step", "in no thread"),
    ("delete 7", "there is no breakpoint 7"), ("watch mem x", "are numbers"), ("pixel 1", "which pixel")])  # fmt: skip
def test_mistakes_in_the_terminal_are_named(command: str, says: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["debug", str(COMPUTE), "-c", command]) in (1, 2)
    assert says in capsys.readouterr().err


def test_stops_are_json_for_scripts(capsys: pytest.CaptureFixture[str]) -> None:
    commands = ["break /cs+0x98", "continue", "step", "print r22:d"]
    assert main(["debug", str(COMPUTE), "--json", *(word for command in commands for word in ("-c", command))]) == 0
    _, stop, step, lanes = capsys.readouterr().out.splitlines()
    assert json.loads(stop)["position"] == "2:17/cs/g0.t0+0x98#12" and json.loads(step)["writes"][0]["after"].startswith("00000000e9030000")
    assert json.loads(lanes)["lanes"][1] == 1001


def test_typed_lines_are_read_from_standard_input() -> None:
    ran = subprocess.run([sys.executable, "-m", "softgen", "debug", str(COMPUTE), "--at", "2:17/cs/g3.t0"], cwd=ROOT, text=True,
                         input="step 2\n\nfly\nquit\n", capture_output=True, check=False, timeout=120)  # fmt: skip
    assert ran.returncode == 0 and "start: 2:17/cs/g3.t0+0x0#0" in ran.stdout and "+0x30#4" in ran.stdout
    assert "no command" in ran.stderr


def test_of_several_texts_that_with_the_kernel_stands_for_one_without_a_name(tmp_path: Path) -> None:
    for name in ("once", "twice"):
        (tmp_path / f"{name}_file.cl").write_text(f"// calls once() and twice()\nkernel void {name} (global int *out)\n")
    files = [str(tmp_path / f"{name}_file.cl") for name in ("once", "twice")]
    sources = KernelSources(9.0, files)
    assert sources._of_text("twice", {0: ("twice.cl", 2)}) == {0: (files[1], 2)}
    assert sources._of_text("once", {0: ("once.cl", 2), 8: ("other.h", 2)}) == {0: (files[0], 2), 8: ("other.h", 2)}
    assert sources._of_text("thrice", {0: ("thrice.cl", 2)}) == {0: ("thrice.cl", 2)}


def test_code_that_begins_as_a_shorter_kernel_has_its_own_source(tmp_path: Path) -> None:
    first = "mov (8|M0) r10.0<1>:d r2.0<8;8,1>:d\n"
    for name, text in (("short", first), ("long", f"{first}\nadd (8|M0) r11.0<1>:d r10.0<8;8,1>:d 7:w\n")):
        (tmp_path / f"{name}.asm").write_text(text)
    files = [str(tmp_path / f"{name}.asm") for name in ("short", "long")]
    sources = KernelSources(9.0, files)
    code = sources.files[1].code
    assert len(code) == 32 and sources.of_code(code, "kernel").name == "long"
    assert sources.places(KernelProgram(9.0, code, 0, "kernel")) == {0: f"{files[1]}:1", 16: f"{files[1]}:3"}


def test_threads_of_other_pixels_stop_once_there_is_a_breakpoint_for_them() -> None:
    """A breakpoint for a pixel leaves other threads to compiled code, and they are counted all the same."""
    debugger = Debugger(Session(ROOT / "tests/data/kbl-vk-tri"))
    debugger.add("ps if pixel == (32, 20)")
    first = debugger.cont().position
    assert first is not None and debugger.step().position is not None
    debugger.add("ps")
    following = debugger.cont().position
    assert first.thread and following is not None and (following.command, following.thread) == (first.command, first.thread + 1)
