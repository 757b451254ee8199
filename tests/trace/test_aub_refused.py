"""AUB files that are wrong: every record that is refused, and any bytes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from softgen.errors import DecodeError, GpuFault, SoftgenError
from softgen.trace import aub
from softgen.trace.aub import AubTrace
from softgen.trace.aub_records import encode, page
from softgen.trace.work import Expectation
from tests.conftest import SHARED, needs_shared
from tests.trace import aub_bytes as a
from tests.trace.aub_bytes import BATCH, dwords
from tests.trace.aub_files import Open, complaint

# -- what is refused -----------------------------------------------------------------------------------------------


M = a.machine()
END = len(M)
BAD = {
    "no record": (dwords(0x12345678), "no AUB record starts with 0x12345678"),
    "other opcode": (dwords(7 << 29 | 0x11 << 23), "no AUB record starts with 0xe8800000"),
    "three bytes": (b"\1\2\3", "3 bytes are left, too few for a record"),
    "cut": (a.memory_write(0, b"12345678")[:-1], "AUB_MEMORY_WRITE of 0x1c bytes, but the file ends 0x1b bytes on"),
    "block cut": (a.block(a.DATA, 0, bytes(64))[:-4], "AUB_BLOCK of 0x54 bytes, but the file ends 0x50 bytes on"),
    "short record": (a.trace(0x06, 0, 0), "AUB_MEMORY_WRITE must have at least 5 dwords, not 3"),
    "short data": (a.memory_write(0, b"1234", size=5), "AUB_MEMORY_WRITE states 0x5 bytes but holds 0x4"),
    "no data to repeat": (a.memory_write(0, b"", flags=2, size=5), "AUB_MEMORY_WRITE repeats data it does not have"),
    "too many pieces": (a.memory_write_pieces([], count=64), "AUB_MEMORY_WRITE_DISCONTIGUOUS has at most 63 pieces, not 64"),
    "pieces without data": (a.trace(0x0B, 2 << 28 | 1 << 4, 0, 0, 4, *[0] * 186),
                            "AUB_MEMORY_WRITE_DISCONTIGUOUS has 0x0 bytes of data, too few for its pieces"),
    "space": (a.memory_write(0, b"1234", space=3), "AUB_MEMORY_WRITE names address space 3, which is unknown"),
    "compare space": (a.memory_compare(0, b"1234", space=12), "AUB_MEMORY_COMPARE names address space 12, which is unknown"),
    "block space": (a.block(a.DATA, 0, b"1234", space=9), "AUB_BLOCK names address space 9, which is unknown"),
    "operation": (a.block(7, 0, b"1234"), "AUB_BLOCK names operation 7, which is unknown"),
    "ring": (a.block(a.COMMAND, 0, b"12345678", kind=77), "AUB_BLOCK feeds ring 77, which is unknown"),
    "physical address": (a.memory_write(1 << 60, b"1234"),
        "AUB_MEMORY_WRITE: write at 0x1000000000000000 in physical memory: beyond the 46-bit space"),
    "context address": (a.memory_write((1 << 48) - 2, b"1234", space=5),
        "AUB_MEMORY_WRITE: write at 0x1000000000000 in context memory: beyond the 48-bit space"),
    "table": (a.memory_write(1 << 23, b"1234", space=4), "AUB_MEMORY_WRITE: write at 0x800000 in global table: beyond the 23-bit space"),
    "register": (a.register_write(1 << 23, 0), "AUB_REGISTER_WRITE names register 0x800000; registers end at 0x800000"),
    "register size": (a.register_write(0, 0, size=2).replace(dwords(2 << 16), dwords(9 << 16)),
        "AUB_REGISTER_WRITE holds no register of size 9"),
    "no context": (a.submit_ports(0x900119),
        "AUB_REGISTER_WRITE: read at 0x901000 in global table: not mapped: global table entry at global table 0x4808 was never written"),
    "ring too long": (a.memory_write(0x701C, dwords(0x4000)) + a.submit_ports(),
        "AUB_REGISTER_WRITE starts a ring of 0x4000 bytes with head 0x0 and tail 0x4000"),
}  # fmt: skip


@pytest.mark.parametrize(("content", "expected"), BAD.values(), ids=BAD)
def test_bad_records_are_refused(opened: Open, content: bytes, expected: str) -> None:
    message = complaint(opened, M + content)
    place, _, why = message.removeprefix(" at ").partition(": ")
    assert why == expected
    assert END <= int(place, 16) < END + len(content)


def test_memory_has_an_end(opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    """Small records may not make large memory without end."""
    monkeypatch.setattr(aub, "LEAST_MEMORY", 1 << 16)
    for space in (a.PHYSICAL, a.CONTEXT):
        content = a.version() + b"".join(a.memory_write(i << 13, b"x" * 12, space) for i in range(1 << 6))
        assert "bytes written (at 0x" in complaint(opened, content)


def test_no_file_at_all(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path, why in ((tmp_path / "none", "No such file"), (tmp_path / "pipe", "is no file"), (tmp_path, "is no file|Is a directory")):
        with pytest.raises(DecodeError, match=why):
            AubTrace(path)


# -- any bytes -----------------------------------------------------------------------------------------------------


def survive(path: Path, gpu: str | None = None) -> int:
    """Everything a decoder would do first, on whatever this is; only our own errors may come out, with file and place."""
    count = 0
    try:
        for event in AubTrace(path, gpu).events():
            count += 1
            if isinstance(event, Expectation):
                event.check()
                continue
            try:
                event.ring()
                event.space.extent(event.batch, 4096)
                event.space.read32(BATCH)
            except GpuFault:
                pass
    except DecodeError as error:
        assert str(path) in str(error)
    return count


SMALL = a.machine() + a.submit_ports() + a.memory_compare(0x50000, b"x" * 64) + a.memory_write(0x7014, dwords(0)) + a.submit_ports()
CLASSIC = (
    a.header()
    + a.block(a.DATA, 0, dwords(*[0x200003 + 4096 * i for i in range(64)]), space=4)
    + a.block(a.COMMAND, 0x3000, bytes(16), kind=2) * 3
)


@pytest.mark.parametrize("whole", [SMALL, CLASSIC], ids=["memory trace", "classic"])
@given(data=st.data())
def test_cut_and_flipped_traces(tmp_path_factory: pytest.TempPathFactory, whole: bytes, data: st.DataObject) -> None:
    content = bytearray(whole[: data.draw(st.integers(0, len(whole)))])
    for at, bit in data.draw(st.lists(st.tuples(st.integers(0, len(whole) - 1), st.integers(0, 7)), max_size=8)):
        if at < len(content):
            content[at] ^= 1 << bit
    path = tmp_path_factory.getbasetemp() / "flip.aub"
    path.write_bytes(content)
    survive(path)
    survive(path, "skl")


RECORDS = (
    "AUB_VERSION", "AUB_HEADER", "AUB_BLOCK", "AUB_BLOCK_64", "AUB_REGISTER_WRITE", "AUB_REGISTER_COMPARE", "AUB_MEMORY_WRITE",
    "AUB_MEMORY_WRITE_DISCONTIGUOUS", "AUB_MEMORY_COMPARE", "AUB_PREDICATE",
)  # fmt: skip


@st.composite
def nonsense(draw: st.DrawFn) -> bytes:
    """Records with sound headers and anything inside."""
    name = draw(st.sampled_from(RECORDS))
    fields = {
        f.name: draw(st.integers(0, min(40, f.mask >> f.low)) | st.integers(0, f.mask >> f.low))
        for f in page(name).fields
        if f.name != "record" and len(f.pieces) == 1
    }
    if name.startswith("AUB_BLOCK"):
        fields["bytes"] = draw(st.integers(0, 64))
    content = encode(name, draw(st.binary(max_size=64)), **fields)
    return content[: len(content) // 4 * 4]


@given(st.lists(nonsense(), max_size=12))
def test_nonsense_in_sound_records(tmp_path_factory: pytest.TempPathFactory, records: list[bytes]) -> None:
    path = tmp_path_factory.getbasetemp() / "nonsense.aub"
    path.write_bytes(a.machine() + b"".join(records) + a.submit_ports())
    survive(path, "skl")


@given(st.binary(max_size=4096))
def test_random_bytes(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / "random.aub"
    path.write_bytes(content)
    assert survive(path, "skl") == 0 or content[2:4] != b"\0\0"


@needs_shared("aub")
@given(data=st.data())
def test_real_files_cut_and_flipped(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    whole = data.draw(st.sampled_from(sorted((SHARED / "aub").glob("*.aub")))).read_bytes()
    content = bytearray(whole[: data.draw(st.integers(0, len(whole)) | st.just(len(whole)))])
    for at, bit in data.draw(st.lists(st.tuples(st.integers(0, len(whole) - 1) | st.integers(0, 2000), st.integers(0, 7)), max_size=5)):
        if at < len(content):
            content[at] ^= 1 << bit
    path = tmp_path_factory.getbasetemp() / "real.aub"
    path.write_bytes(content)
    survive(path)


def test_errors_of_ours_are_all_softgen_errors() -> None:
    assert issubclass(DecodeError, SoftgenError) and issubclass(GpuFault, SoftgenError)
