"""open_trace: what is recognised, and how everything else is refused."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from softgen.errors import DecodeError, GpuFault, SoftgenError, Unsupported
from softgen.trace import error_text, raw
from softgen.trace.aub import AubTrace
from softgen.trace.capture import CaptureTrace
from softgen.trace.error_state import ErrorStateTrace
from softgen.trace.file import open_trace
from softgen.trace.hang_dump import HangDumpTrace
from softgen.trace.raw import ADDRESS, RawTrace
from tests.conftest import SHARED, needs_shared
from tests.trace import aub_bytes as a
from tests.trace.aub_bytes import dwords
from tests.trace.test_capture import SOFTPIN

BATCH = dwords(0x05000000, 0)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "file"


def test_each_kind_is_recognised_by_its_content(file: Path) -> None:
    assert isinstance(open_trace(SOFTPIN), CaptureTrace)
    file.write_bytes(a.machine())
    assert isinstance(open_trace(file), AubTrace)
    file.write_bytes(a.header())
    assert isinstance(open_trace(str(file)), AubTrace)
    file.write_bytes(BATCH)
    assert isinstance(open_trace(file, "skl"), RawTrace)


def test_a_raw_batch(file: Path) -> None:
    file.write_bytes(BATCH)
    (work,) = open_trace(file, "ivb", engine="blitter").work()
    assert (work.batch, work.end, work.engine, work.kind, work.context) == (ADDRESS, ADDRESS + 8, "blitter", "batch", 0)
    assert work.space.read(ADDRESS, 8) == BATCH and work.space.extent(ADDRESS, 1 << 20) == 8
    assert work.space.read_mapped(ADDRESS, 4096) == BATCH, "what is read ahead ends with the file"
    assert [work.space.extent(ADDRESS + at, 4) for at in (4, 6, 8, 100, 4096)] == [4, 2, 0, 0, 0]
    with pytest.raises(GpuFault, match="read-only"):
        work.space.write(ADDRESS, b"1234")
    assert next(RawTrace(file, "ivb", address=0x4000).work()).batch == 0x4000
    with pytest.raises(DecodeError, match=r"a batch at 0xfffff000 must be at most 0x1000 bytes, not 0x2000"):
        file.write_bytes(BATCH * 1024)
        RawTrace(file, "ivb", address=0xFFFFF000)


@pytest.mark.parametrize("opened", [lambda path: RawTrace(path, "skl"), ErrorStateTrace], ids=["raw batch", "error state"])
def test_a_pipe_is_no_file_and_does_not_hang(file: Path, opened: Callable[[Path], object]) -> None:
    """Also one that took the place of a file after that was looked at."""
    os.mkfifo(file)
    with pytest.raises(DecodeError, match="file: is no file"):
        opened(file)


def test_a_raw_batch_ends_within_its_space_and_is_not_too_large(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file.write_bytes(BATCH * 512)
    assert next(RawTrace(file, "ivb", address=0xFFFFF000).work()).end == 1 << 32
    monkeypatch.setattr(raw, "MAX_BYTES", 4096)
    assert next(RawTrace(file, "ivb").work()).end == ADDRESS + 4096
    file.write_bytes(BATCH * 512 + BATCH[:4])
    with pytest.raises(DecodeError, match=r"a batch at 0x10000000 must be at most 0x1000 bytes, not 0x1004"):
        RawTrace(file, "ivb")


def test_a_large_raw_batch_is_whole(file: Path) -> None:
    content = os.urandom(3 << 20) + BATCH
    file.write_bytes(content)
    (work,) = open_trace(file, "skl").work()
    assert work.space.read(ADDRESS, len(content)) == content and work.end == ADDRESS + len(content)


RAW = "is neither a capture directory nor an AUB file; for a raw batch, name its GPU with --gpu"
BAD = {
    "empty": (b"", "is empty"),
    "text": (b"hello, world\n" * 100, "is text; a trace is a capture directory, an AUB file, an error state, a hang dump or a raw batch"),
    "one submission": (b'{"seq": 1, "pid": 2', "is one submission of a capture; open its directory"),
    "ELF": (b"\x7fELF\2\1\1", "is an ELF file"),
    "gzip": (b"\x1f\x8b\x08\0", "is compressed with gzip; unpack it first"),
    "xz": (b"\xfd7zXZ\0\0", "is compressed with xz; unpack it first"),
    "zstd": (b"\x28\xb5\x2f\xfd", "is compressed with zstd; a capture is opened by its directory"),
    "zip": (b"PK\3\4", "is a zip archive; unpack it first"),
    "no error": (b"No error state collected\n", "is an error state of a kernel that had collected none"),
    "xe": (b"**** Xe Device Coredump ****\n", "is a core dump of the xe driver, which drives none of the GPUs softgen has"),
    "picture": (b"\x89PNG\r\n", "is a picture"),
    "dwords": (dwords(0x7A000004, 0), RAW),
    "AUB of no known record": (dwords(0xE0000000), RAW),
}  # fmt: skip


@pytest.mark.parametrize(("content", "why"), BAD.values(), ids=BAD)
def test_other_files_are_refused(file: Path, content: bytes, why: str) -> None:
    file.write_bytes(content)
    with pytest.raises(DecodeError) as error:
        open_trace(file)
    assert str(error.value) == f"{file}: {why}"


@pytest.mark.parametrize("byte, is_text", [*((byte, True) for byte in b"\t\n\r\f\x1b ~aZ"),
                                           *((byte, False) for byte in b"\0\x08\x0b\x1f\x7f\x80\xff")])  # fmt: skip
def test_text_is_printable_ascii_and_white_space(file: Path, byte: int, is_text: bool) -> None:
    """A batch of any use has a byte above 0x7f or a zero."""
    file.write_bytes(b"word" + bytes([byte]))
    with pytest.raises(DecodeError, match="is text; a trace is" if is_text else "is neither a capture directory nor an AUB file"):
        open_trace(file)


@pytest.mark.parametrize("letters, is_text", [(4095, False), (4096, True)])
def test_the_first_4096_bytes_decide_what_is_text(file: Path, letters: int, is_text: bool) -> None:
    file.write_bytes(b"a" * letters + bytes(4))
    with pytest.raises(DecodeError, match="is text; a trace is" if is_text else "is neither a capture directory nor an AUB file"):
        open_trace(file)


def test_an_error_state_has_a_gibibyte_at_most(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that is longer is not read; sysfs does not say how long a file is before it is read."""
    with file.open("wb") as long:
        long.write(b"GPU HANG: ecode 9:1:0x85dffffb\n")
        long.truncate((1 << 30) + 1)
    with pytest.raises(DecodeError, match="an error state has at most 0x40000000 bytes"):
        open_trace(file)
    for path, size in ((file, 8), (Path("/proc/self/status"), 0)):
        file.write_bytes(b"GPU HANG")
        assert path.stat().st_size == size
        monkeypatch.setattr(error_text, "MOST_BYTES", 8)
        assert size == 0 or error_text._bytes(path) == b"GPU HANG"
        monkeypatch.setattr(error_text, "MOST_BYTES", 7)
        with pytest.raises(DecodeError, match="an error state has at most 0x7 bytes"):
            error_text._bytes(path)


def test_error_states_and_hang_dumps_are_recognised(file: Path) -> None:
    for content in (
        b"GPU HANG: ecode 9:1:0x85dffffb, in glxgears [1234]\nKernel: 5.10\nPCI ID: 0x5916\n",
        b"Kernel: 6.12.1 x86_64\nTime: 1700000000 s 1 us\nPCI ID: 0x5916\n",
        b"Kernel: 5.4.1 x86_64\nDriver: 20200114\nTime: 1700000000 s 1 us\nPCI ID: 0x5916\n",
        b"Time: 1400000000 s 123456 us\nKernel: 3.14\nPCI ID: 0x0166\n",
    ):
        file.write_bytes(content)
        assert isinstance(open_trace(file), ErrorStateTrace)
        assert open_trace(file, "skl").device.name == "skl"
    file.write_bytes(dwords(1, 0) + (0x4245012345676463).to_bytes(8, "little") + dwords(1, 0))
    assert isinstance(open_trace(file, "skl"), HangDumpTrace)
    with pytest.raises(DecodeError, match="does not say for which GPU it is; name one with --gpu"):
        open_trace(file)


def test_places_that_hold_no_trace(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    for name, why in (
        ("none", "No such file"),
        ("pipe", "neither a file nor a directory"),
        ("folder", "holds no exec-"),
        ("loop", "symbolic links"),
        ("a\0b", "null"),
    ):
        with pytest.raises(DecodeError, match=why):
            open_trace(tmp_path / name)
    with pytest.raises(DecodeError, match="neither a file nor a directory"):
        open_trace("/dev/zero")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_what_may_not_be_read(file: Path) -> None:
    file.write_bytes(BATCH)
    file.chmod(0)
    with pytest.raises(DecodeError, match="Permission denied"):
        open_trace(file)


def test_bad_raw_batches(file: Path) -> None:
    file.write_bytes(b"\0\1\2\3\4")
    with pytest.raises(DecodeError, match="whole dwords, not 5 bytes"):
        open_trace(file, "skl")
    with pytest.raises(SoftgenError, match="no GPU is called 'voodoo'"):
        open_trace(file, "voodoo")


@given(st.binary(max_size=512) | st.binary(max_size=60).map(lambda b: b + b"\xf7"), st.sampled_from([None, "skl", "g45"]))
def test_any_bytes(tmp_path_factory: pytest.TempPathFactory, content: bytes, gpu: str | None) -> None:
    path = tmp_path_factory.getbasetemp() / "any"
    path.write_bytes(content)
    try:
        for event in open_trace(path, gpu).events():
            assert event is not None
    except (DecodeError, Unsupported) as error:
        assert str(path) in str(error)


@needs_shared()
def test_everything_at_hand_opens() -> None:
    """Captures one by one are in test_capture; here through the front door, the first work of each."""
    count = 0
    for path in [*sorted((SHARED / "traces").glob("*/")), *sorted((SHARED / "aub").glob("*.aub"))]:
        work = next(open_trace(path).work())
        assert work.space.extent(work.batch, 4) == 4 or work.ring_space.extent(work.batch, 4) == 4
        count += 1
    assert count >= 124
