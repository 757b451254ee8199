"""`softgen decode` and `softgen replay` of error states: registers by their pages, the place where the engine stopped."""

from __future__ import annotations

import json
import struct
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Literal

import pytest

from softgen.bits.generation import device
from softgen.inspect.cli.main import main
from softgen.inspect.decode.stopped import stopped
from softgen.memory.address_space import AddressSpace
from softgen.memory.store import MemfdBuffer
from softgen.trace.work import Mark, Stop, Work
from tests.trace import error_bytes
from tests.trace.error_bytes import KERNELS, Hang, Kernel
from tests.trace.test_error_state import RING, compute, dwords
from tests.trace.test_hang_dump import buffer, execute, header


def saved(tmp_path: Path, hang: Hang | None = None, kernel: Kernel = KERNELS["6.12"]) -> str:
    path = tmp_path / "error.txt"
    path.write_text(error_bytes.state(kernel, hang or compute()[1]))
    return str(path)


def softgen(*arguments: str) -> tuple[int, str, str]:
    with redirect_stdout(StringIO()) as out, redirect_stderr(StringIO()) as err:
        code = main(list(arguments))
    return code, out.getvalue(), err.getvalue()


@pytest.mark.parametrize("name", KERNELS)
def test_the_command_that_hung_is_marked(tmp_path: Path, name: str) -> None:
    hang = compute()[1]
    code, out, _ = softgen("decode", saved(tmp_path, kernel=KERNELS[name]))
    assert code == 0
    lines = out.splitlines()
    assert any(line.startswith("   stopped in GPGPU_WALKER at 0xfffeffff7180") for line in lines)
    named = [line.split()[1] for line in lines[: next(i for i, line in enumerate(lines) if "<== IPEHR" in line)] if line.startswith("0x")]
    assert named[-1] == "GPGPU_WALKER"
    read = [line.split()[0] for line in lines[: next(i for i, line in enumerate(lines) if "<== ACTHD" in line)] if line.startswith("0x")]
    assert int(read[-1], 16) == hang.acthd


@pytest.mark.parametrize("name", ["a\0b", "\x1b[2J", "\x9b2J", "x" * 2000])
def test_no_name_is_obeyed_by_a_terminal(tmp_path: Path, name: str) -> None:
    path = Path(saved(tmp_path))
    text = path.read_text()
    path.write_text(text.replace("triangle[", f"{name}[").replace("rcs0 ---", f"{name} ---"))
    assert name in path.read_text()
    for verb in (["decode"], ["decode", "--json"], ["replay"]):
        code, out, err = softgen(*verb, str(path))
        assert code in (0, 1) and "Traceback" not in err and not set(out + err) & {"\0", "\x1b", "\x9b"}


def test_registers_by_name_and_field(tmp_path: Path) -> None:
    hang = replace(compute()[1], instdone=0xFFFFFFFF & ~(1 << 1), fault=0x7FFF12345000)
    _, out, _ = softgen("decode", saved(tmp_path, hang))
    assert out.startswith("GPU HANG: ecode 9:1:")
    for expected in (
        "  START                    0x00100000  RING_BUFFER_START\n    starting_address                         0x100000\n",
        "  INSTDONE                 0xfffffffd  INSTDONE_1\n    not done: vfg\n",
        "  SC_INSTDONE              0xffffffff\n    everything is done\n",
        "  GTIER[0]                 0x01010101  (no page)\n",
        "fault at 0x7fff12345000 in the ppgtt\n",
        "0x000000100000  rcs0   ring        deflated, base 85",
        "  Active context           triangle[4711]",
        "  fence[1]                 0x9c5307707440001\n",
    ):
        assert expected in out, expected


def test_json(tmp_path: Path) -> None:
    hang = compute()[1]
    code, out, _ = softgen("decode", saved(tmp_path), "--json")
    lines = [json.loads(line) for line in out.splitlines()]
    assert code == 0 and lines[0]["gpu"] == "kbl" and lines[0]["facts"]["PCI ID"] == "0x5916"
    head = next(line for line in lines if line.get("label") == "HEAD")
    assert head["register"] == "RING_BUFFER_HEAD" and head["engine"] == "rcs0" and head["fields"] == {"wrap_count": 0, "head_offset": 0x114}
    assert (head["value"], head["dwords"]) == (0x114, [0x114])
    marked = {line["name"]: line["marks"] for line in lines if "marks" in line}
    assert marked == {"GPGPU_WALKER": ["IPEHR"], "MEDIA_STATE_FLUSH": ["BBADDR"], "PIPE_CONTROL": ["ACTHD"], "MI_USER_INTERRUPT": ["HEAD"]}
    assert [line["address"] for line in lines if line.get("memory") == "batch"] == [hang.batch[0]]


def test_places_that_are_not_in_the_file_are_said(tmp_path: Path) -> None:
    _, out, _ = softgen("decode", saved(tmp_path, replace(compute()[1], acthd=0x123456000, bbaddr=0, ipehr=0x7B000005)))
    assert "ACTHD points to 0x123456000, which is not on this road" in out
    assert "IPEHR is 0x7b000005, which heads no command before that place" in out


@pytest.mark.parametrize("kind, ring, lost", [("batch", False, True), ("batch", True, False), ("ring", False, True), ("ring", True, True)])
def test_a_place_in_a_ring_is_not_looked_for_in_a_batch(kind: Literal["batch", "ring"], ring: bool, lost: bool) -> None:
    """A batch without its ring: that HEAD is not in it says nothing."""
    space, memory = AddressSpace("own"), MemfdBuffer(0x1000)
    space.map(0, memory)
    memory.view[:4] = struct.pack("<I", 0x05000000)
    work = Work("render", space, 0, kind, tail=4, size=0x1000, stop=Stop((Mark("HEAD", 0x800, ring), Mark("ACTHD", 0, kind == "ring"))))
    found = stopped(work, device("kbl").generation)
    assert found.lost == (("HEAD points to 0x800, which is not on this road",) if lost else ())
    assert list(found.marks.values()) == [["ACTHD: the engine had read up to here"]]


@pytest.mark.parametrize("order", [("ACTHD", "BBADDR"), ("BBADDR", "ACTHD")])
@pytest.mark.parametrize("read, other, executing", [(8, 4, 8), (4, 8, 4), (12, 4, 8), (None, 4, 8)])
def test_of_commands_that_are_alike_the_last_one_that_was_read_was_executing(read: int | None, other: int, executing: int,
                                                                             order: tuple[str, str]) -> None:
    """Three of the same header and an end: ACTHD says how far the streamer had read, and no other register does."""
    space, memory = AddressSpace("own"), MemfdBuffer(0x1000)
    space.map(0, memory)
    memory.view[:16] = struct.pack("<4I", 0x01000000, 0x01000000, 0x01000000, 0x05000000)
    places = {"ACTHD": read, "BBADDR": other}
    marks = tuple(Mark(label, at, False) for label in order if (at := places[label]) is not None)
    found = stopped(Work("render", space, 0, "batch", stop=Stop(marks, header=0x01000000)), device("kbl").generation)
    assert found.command is not None and found.command.address == executing and not found.lost


def test_an_engine_that_waits_in_its_ring(tmp_path: Path) -> None:
    hang = compute()[1]
    waiting = replace(hang, head=0x00200114, acthd=0x00200114, bbaddr=0, ipehr=0x01000000)
    _, out, _ = softgen("decode", "--brief", saved(tmp_path, waiting))
    assert f"stopped in MI_USER_INTERRUPT at {RING + 0x114:#x}" in out
    after = out[out.index("MI_USER_INTERRUPT  (1 dword)") :].splitlines()[1:4]
    assert [line.strip().split(":")[0] for line in after] == ["<== HEAD", "<== ACTHD", "<== IPEHR"]


def test_replay_does_what_the_file_allows_and_says_what_that_is(tmp_path: Path) -> None:
    """With every buffer saved the job runs; with the batch alone it comes to the first memory that is missing."""
    code, out, _ = softgen("replay", saved(tmp_path))
    assert code == 0 and "1 dispatch, 4 threads" in out and "note: an error state holds the ring, the batch and those buffers" in out
    code, out, _ = softgen("replay", saved(tmp_path, kernel=KERNELS["4.10"]))
    assert code == 1 and "fault" in out and "not mapped" in out and "other memory is missing" in out


def test_the_kernels_of_a_hang(tmp_path: Path) -> None:
    code, out, _ = softgen("disasm", saved(tmp_path))
    assert code == 0 and "kernel of" in out and "send" in out


def test_what_is_damaged_ends_in_one_line(tmp_path: Path) -> None:
    path = Path(saved(tmp_path))
    path.write_text(path.read_text()[:-200])
    for verb in ("decode", "replay"):
        code, _, err = softgen(verb, str(path))
        assert code == 1 and err.count("\n") == 1 and "error.txt:" in err and "cut off" in err


def test_a_hang_dump(tmp_path: Path) -> None:
    path = tmp_path / "hang.dmp"
    path.write_bytes(header() + buffer(0x1000, dwords(0, 0x05000000)) + execute(0x1000))
    code, out, _ = softgen("decode", str(path), "--gpu", "kbl", "--brief")
    assert code == 0 and "MI_BATCH_BUFFER_END" in out
    assert softgen("replay", str(path), "--gpu", "kbl")[0] == 0
    assert softgen("decode", str(path))[2].startswith("softgen: ")
