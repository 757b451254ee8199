"""Capture directories: what is read, what is refused and how, and that writing gives back what was read."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from softgen.bits.generation import device
from softgen.errors import DecodeError, GpuFault, SoftgenError, Unsupported
from softgen.memory.address_space import AddressSpace
from softgen.memory.store import MemfdBuffer
from softgen.trace import capture
from softgen.trace.capture import Blobs, CaptureTrace
from softgen.trace.capture_json import ZERO, Batch, BufferObject, Exec, read_exec, write_exec
from softgen.trace.capture_write import CaptureWriter, nonzero, write_capture
from softgen.trace.work import Events, Work
from tests.conftest import ROOT, SHARED, needs_shared

DATA = ROOT / "tests" / "data"
SOFTPIN, RELOCATED = DATA / "kbl-vk-compute", DATA / "g45-gles-tri"


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A capture to spoil."""
    shutil.copytree(SOFTPIN, tmp_path / "copy")
    return tmp_path / "copy"


# -- reading -----------------------------------------------------------------------------------------------------


def test_a_softpinned_capture_gives_its_work() -> None:
    trace = CaptureTrace(SOFTPIN)
    assert trace.device is device("kbl")
    works = list(trace.work())
    assert [w.sequence for w in works] == [1, 2, 3]
    assert {(w.kind, w.engine, w.privileged) for w in works} == {("batch", "render", False)}  # a program's, not the kernel driver's
    first = works[0]
    assert first.batch == 0xFFFEFFFFD000 and first.end == first.batch + 152
    assert first.space.extent(first.batch, 1 << 20) == 4096
    assert first.space.read32(first.batch) >> 29 in (0, 3)
    assert not trace.notes


def test_a_relocated_capture_gives_its_work() -> None:
    trace = CaptureTrace(RELOCATED)
    first = next(trace.work())
    assert trace.device.name == "g45" and first.batch == 0x100000
    assert [r.start for r in first.space.regions()][:3] == [0x100000, 0x107000, 0x109000]
    assert first.space.read(0x113000, 16) == bytes(16)  # a zero blob has no file
    with pytest.raises(GpuFault):
        first.space.read(0x106000, 4)


def test_each_slot_of_a_contexts_engine_map_has_hardware_state_of_its_own(copy: Path) -> None:
    """The slot is in the low six bits of the submission's flags; other flags leave the context what it is."""
    found = []
    for context, flags in (1, 0), (1, 0x81800), (1, 1), (1, 0x20), (1, 0x3F), (2, 0), (2, 0x40):
        file = copy / "exec-000001.json"
        file.write_text(write_exec(replace(read_exec(file), ctx=context, flags=flags)))
        found.append(next(CaptureTrace(copy).work()).context)
    assert found == [0x40, 0x40, 0x41, 0x60, 0x7F, 0x80, 0x80]


def test_contents_are_decompressed_once_and_not_writable() -> None:
    trace = CaptureTrace(RELOCATED)
    list(trace.work())
    list(trace.work())
    used = {bo.blob for exec_ in trace.execs() for bo in exec_.bos} - {ZERO}
    assert trace.blobs.decompressed == len(used)
    work = next(trace.work())
    with pytest.raises(GpuFault, match="read-only"):
        work.space.write(work.batch, b"....")


@needs_shared("traces")
def test_every_capture_at_hand_opens_and_gives_its_work() -> None:
    folders = sorted(p for p in (SHARED / "traces").iterdir() if p.is_dir())
    count = 0
    for folder in folders:
        trace = CaptureTrace(folder)
        for work in trace.work():
            assert work.space.extent(work.batch, 8) == 8, folder
            count += 1
        assert not trace.notes and trace.device.name == folder.name.split("-")[0]
    assert len(folders) >= 121 and count >= 499


# -- what is refused ---------------------------------------------------------------------------------------------


def set_(*keys: Any) -> Callable[[Any], None]:
    """A change of one value: set_("bos", 0, "size", 5)."""

    def change(j: Any) -> None:
        for key in keys[:-2]:
            j = j[key]
        j[keys[-2]] = keys[-1]

    return change


def drop(*keys: Any) -> Callable[[Any], None]:
    def change(j: Any) -> None:
        for key in keys[:-1]:
            j = j[key]
        del j[keys[-1]]

    return change


BAD: dict[str, tuple[Callable[[Any], None], str]] = {
    "missing key": (drop("ctx"), "ctx is missing"),
    "missing buffer key": (drop("bos", 1, "uid"), "bos[1].uid is missing"),
    "text for a number": (set_("seq", "1"), "seq must be a whole number from 0 to 18446744073709551615, not '1'"),
    "negative": (set_("pid", -1), "pid must be a whole number from 0 to 18446744073709551615, not -1"),
    "true is no number": (set_("pid", True), "pid must be a whole number from 0 to 18446744073709551615, not True"),
    "fraction": (set_("bos", 0, "size", 4096.0), "bos[0].size must be a whole number from 0 to 17179869184, not 4096.0"),
    "number for hex": (set_("flags", 12), "flags must be a hexadecimal string such as '0x1000', not 12"),
    "bad hex": (set_("flags", "0x12g"), "flags must be a hexadecimal string such as '0x1000', not '0x12g'"),
    "wide pci id": (set_("pci_id", "0x15916"), "pci_id must be at most 16 bits wide, not '0x15916'"),
    "number for bool": (set_("bos", 0, "write", 0), "bos[0].write must be true or false, not 0"),
    "engine": (set_("engine", "rcs"), "engine must be rcs0, bcs0, vcs0 or vecs0, not 'rcs'"),
    "gen": (set_("gen", 80), "gen must be 90 for kbl, not 80"),
    "bos no list": (set_("bos", {}), "bos must be a list, not {}"),
    "bos empty": (set_("bos", []), "bos is empty; the batch needs a buffer"),
    "bo no object": (set_("bos", 0, 7), "bos[0] must be an object, not 7"),
    "batch no object": (set_("batch", []), "batch must be an object, not []"),
    "batch.bo": (set_("batch", "bo", 99), "batch.bo must be a whole number from 0 to 12, not 99"),
    "batch address": (set_("batch", "gpu_addr", "0x4"), "batch.gpu_addr must be 0xfffeffff7000, the buffer's address and start, not '0x4'"),
    "batch length": (set_("batch", "len", 1 << 20), "batch.len must be a whole number from 0 to 8192, not 1048576"),
    "batch start": (set_("batch", "start", 2), "batch.start must be a multiple of 4, not 2"),
    "size of no page": (set_("bos", 0, "size", 100), "bos[0].size must be a multiple of 4096 bytes, not 100"),
    "size zero": (set_("bos", 0, "size", 0), "bos[0].size must be a multiple of 4096 bytes, not 0"),
    "size absurd": (set_("bos", 0, "size", 1 << 60), "bos[0].size must be a whole number from 0 to 17179869184, not 1152921504606846976"),
    "address of no page": (set_("bos", 0, "gpu_addr", "0x1001"), "bos[0].gpu_addr must be a multiple of 4096, not '0x1001'"),
    "address too wide": (set_("bos", 1, "gpu_addr", "0xfffffffeffffa000"),
                         "bos[1].gpu_addr must be at most 48 bits wide, not '0xfffffffeffffa000'"),
    "end too wide": (set_("bos", 3, "gpu_addr", "0xfffffffff000"),
                     "bos[3].gpu_addr must be such that 0x40000 bytes fit 48 address bits, not '0xfffffffff000'"),
    "nonzero": (set_("bos", 1, "nonzero", 1 << 40), "bos[1].nonzero must be a whole number from 0 to 4096, not 1099511627776"),
    "tiling": (set_("bos", 1, "tiling", "Z"), "bos[1].tiling must be none or X or Y, not 'Z'"),
    "traversal": (set_("bos", 1, "blob", "../../dead/beef"), "bos[1].blob must be hexadecimal digits or 'zero', not '../../dead/beef'"),
    "traversal in after": (set_("bos", 1, "after", "/etc/passwd"), "bos[1].after must be hexadecimal digits or 'zero', not '/etc/passwd'"),
}  # fmt: skip


@pytest.mark.parametrize(("change", "complaint"), BAD.values(), ids=BAD)
def test_bad_json_is_refused(copy: Path, change: Callable[[Any], None], complaint: str) -> None:
    file = copy / "exec-000002.json"
    j = json.loads(file.read_text())
    change(j)
    file.write_text(json.dumps(j))
    with pytest.raises(DecodeError) as error:
        list(CaptureTrace(copy).work())
    assert str(error.value) == f"{file}: {complaint}"


def test_overlap_is_refused(copy: Path) -> None:
    file = copy / "exec-000002.json"
    j = json.loads(file.read_text())
    j["bos"][8]["gpu_addr"] = "0xc003f000"  # one page into its neighbour
    file.write_text(json.dumps(j))
    with pytest.raises(DecodeError) as error:
        list(CaptureTrace(copy).work())
    assert str(error.value) == f"{file}: bos[8] at 0xc003f000 overlaps bos[3], which ends at 0xc0040000"


@pytest.mark.parametrize("text", ["", "{", "[1]", "null", "\xff\xfe", "[" * 100000, '{"seq": ' + "9" * 5000 + "}", '{"seq": NaN}', "7"])
def test_no_json_is_refused(copy: Path, text: str) -> None:
    (copy / "exec-000001.json").write_bytes(text.encode("latin-1"))
    with pytest.raises(DecodeError, match=r"exec-000001\.json: "):
        CaptureTrace(copy)


def test_blobs_that_are_no_blobs_are_refused(copy: Path) -> None:
    exec_ = read_exec(copy / "exec-000001.json")
    path = copy / "bo" / f"{exec_.bos[0].blob}.zst"
    compress = zstandard.ZstdCompressor().compress
    for content, complaint in (
        (compress(bytes(4095)), "must hold 0x1000 bytes, as its submission says, not 0xfff"),
        (compress(bytes(4097)), "must hold 0x1000 bytes, as its submission says, not more"),
        (compress(b"bomb" * (64 << 20)), "must hold 0x1000 bytes, as its submission says, not more"),
        (compress(os.urandom(4096))[:-9], "must hold 0x1000 bytes|cannot be decompressed"),
        (b"nonsense", "cannot be decompressed after 0x0 bytes"),
        (b"", "must hold 0x1000 bytes, as its submission says, not 0x0"),
    ):
        path.write_bytes(content)
        with pytest.raises(DecodeError, match=complaint):
            next(CaptureTrace(copy).work())
    path.unlink()
    with pytest.raises(DecodeError, match="cannot be read: No such file"):
        next(CaptureTrace(copy).work())
    os.mkfifo(path)  # opening it for real would wait for ever
    with pytest.raises(DecodeError, match="is no file"):
        next(CaptureTrace(copy).work())


@pytest.mark.parametrize("more, says", [(-1, "not 0x100fff"), (0, ""), (1, "not more"), (4096, "not more"), (1 << 20, "not more")])
@pytest.mark.parametrize("byte", [b"\0", b"x"])
def test_contents_longer_than_a_part_have_exactly_the_stated_size(tmp_path: Path, more: int, says: str, byte: bytes) -> None:
    """They are decompressed a mebibyte at a time."""
    size = (1 << 20) + 4096
    (tmp_path / "12345678.zst").write_bytes(zstandard.ZstdCompressor().compress(byte * (size + more)))
    blobs = Blobs(tmp_path)
    if says:
        with pytest.raises(DecodeError, match=f"12345678.zst: must hold 0x101000 bytes, as its submission says, {says}"):
            blobs.copy("12345678", size)
    else:
        assert bytes(blobs.copy("12345678", size).view) == byte * size


def test_a_large_stated_size_costs_no_memory(copy: Path) -> None:
    """A sparse buffer of 8 GiB takes an instant; a blob that does not fill it is refused at its end."""
    file = copy / "exec-000001.json"
    j = json.loads(file.read_text())
    j["bos"].append({**j["bos"][0], "gpu_addr": "0x100000000000", "size": 8 << 30, "blob": ZERO})
    file.write_text(json.dumps(j))
    work = next(CaptureTrace(copy).work())
    assert work.space.read((0x100000000000) + (8 << 30) - 8, 8) == bytes(8)


def test_contents_that_inflate_beyond_measure_are_refused(copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(capture, "MAX_HELD_BYTES", 1 << 12)
    with pytest.raises(DecodeError, match=r"\.zst: the buffers of its submission hold more than 0x1000 bytes that are not zero"):
        list(CaptureTrace(copy).work())


def test_a_submission_that_is_a_pipe_does_not_hang(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "exec-000000.json")
    with pytest.raises(DecodeError, match=r"exec-000000\.json: is no file"):
        CaptureTrace(tmp_path)


def test_a_capture_for_two_gpus_is_refused_and_the_user_may_overrule(copy: Path) -> None:
    shutil.copy(RELOCATED / "exec-000001.json", copy / "exec-000009.json")
    with pytest.raises(DecodeError, match="is for g45, the submissions before it for kbl"):
        list(CaptureTrace(copy).execs())
    assert CaptureTrace(SOFTPIN, "skl").device.name == "skl"
    with pytest.raises(SoftgenError, match="no GPU is called 'voodoo'"):
        CaptureTrace(SOFTPIN, "voodoo")


def test_a_misnumbered_submission_is_noted(copy: Path) -> None:
    (copy / "exec-000003.json").rename(copy / "exec-000007.json")
    trace = CaptureTrace(copy)
    list(trace.work())
    assert trace.notes == ["exec-000007.json says it is submission 3"]


@given(st.integers(0, 10_000), st.integers(0, 7), st.booleans())
def test_flipped_bits_never_surprise(tmp_path_factory: pytest.TempPathFactory, at: int, bit: int, cut: bool) -> None:
    """Whatever bit of whatever file is wrong: work, or a DecodeError."""
    folder = tmp_path_factory.mktemp("flip") / "c"
    shutil.copytree(SOFTPIN, folder)
    files = sorted(p for p in folder.rglob("*") if p.is_file())
    file = files[at % len(files)]
    data = bytearray(file.read_bytes())
    spot = at * 7919 % len(data)
    data[spot] ^= 1 << bit
    file.write_bytes(data[:spot] if cut else data)
    try:
        for work in CaptureTrace(folder).work():
            work.space.extent(work.batch, 64)
    except DecodeError as error:
        assert str(folder) in str(error)
    shutil.rmtree(folder.parent)


# -- writing -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("folder", [SOFTPIN, RELOCATED], ids=lambda p: p.name)
def test_what_was_read_is_written_back(folder: Path, tmp_path: Path) -> None:
    old = CaptureTrace(folder)
    write_capture(tmp_path / "new", old)
    new = CaptureTrace(tmp_path / "new")
    assert [p.name for p in old.files] == [p.name for p in new.files]
    for a, b in zip(old.execs(), new.execs(), strict=True):
        assert [old.contents(bo).array.tobytes() for bo in a.bos] == [new.contents(bo).array.tobytes() for bo in b.bos]
        assert a.batch == b.batch
        nameless = lambda e: (e.seq, e.flags, e.engine, [(bo.gpu_addr, bo.size, bo.flags, bo.tiling, bo.nonzero) for bo in e.bos])  # noqa: E731
        assert nameless(a) == nameless(b)
    assert len(list((tmp_path / "new" / "bo").iterdir())) == len(list((folder / "bo").iterdir()))
    assert {len(path.stem) for path in (tmp_path / "new" / "bo").iterdir()} == {32}, "128 bits, of which no two contents have the same"


pages = st.binary(min_size=0, max_size=9000).map(lambda b: b + bytes(-len(b) % 4096 or (4096 if not b else 0)))
numbers = st.integers(0, (1 << 63) - 1)


@st.composite
def execs(draw: st.DrawFn) -> tuple[Exec, list[bytes]]:
    contents = draw(st.lists(pages, min_size=1, max_size=5))
    address, bos = 0, []
    for data in contents:
        address += draw(st.integers(0, 1 << 33)) * 4096
        tiling, flags = draw(st.sampled_from(["none", "X", "Y"])), [draw(st.booleans()) for _ in range(3)]
        bos.append(BufferObject(address, len(data), ZERO, draw(numbers), draw(numbers), nonzero(memoryview(data)), tiling,
                                draw(numbers), *flags, draw(numbers), draw(numbers)))  # fmt: skip
        address += len(data)
    index = draw(st.integers(0, len(bos) - 1))
    start = draw(st.integers(0, bos[index].size // 4 - 1)) * 4
    batch = Batch(index, draw(numbers), bos[index].gpu_addr + start, start, draw(st.integers(0, bos[index].size - start)))
    engine = draw(st.sampled_from(["rcs0", "vcs1", "bcs0", "vecs0"]))
    return Exec(draw(st.integers(0, 999999)), "kbl", device("kbl").pci_id, 90, engine, batch, tuple(bos),
                *[draw(numbers) for _ in range(6)]), contents  # fmt: skip


@given(execs())
def test_any_capture_survives_writing_and_reading(tmp_path_factory: pytest.TempPathFactory, made: tuple[Exec, list[bytes]]) -> None:
    exec_, contents = made
    path = tmp_path_factory.mktemp("any") / "c"
    with CaptureWriter(path) as writer:
        written = writer.add(exec_, dict(zip(exec_.bos, contents, strict=True)).__getitem__)
    trace = CaptureTrace(path)
    assert list(trace.execs()) == [written]
    (work,) = trace.work()
    assert [work.space.read(bo.gpu_addr, bo.size) for bo in written.bos] == contents
    assert (work.batch, work.engine, work.sequence) == (exec_.batch.gpu_addr, exec_.engine_name, exec_.seq)
    file = path / f"exec-{exec_.seq:06d}.json"
    assert file.read_text() == write_exec(read_exec(file))
    shutil.rmtree(path.parent)


def test_a_capture_written_in_place_is_marked_until_its_end(tmp_path: Path) -> None:
    """The mark says in words what it means."""
    old, path = CaptureTrace(SOFTPIN), tmp_path / "new"
    with CaptureWriter(path, in_place=True) as writer:
        for exec_ in old.execs():
            writer.add(exec_, lambda bo: old.contents(bo).view)
        assert "is still being written, or was cut short" in (path / capture.INCOMPLETE).read_text()
        assert len(CaptureTrace(path).notes) == 1
    assert not CaptureTrace(path).notes and not (path / capture.INCOMPLETE).exists()
    with CaptureWriter(tmp_path / "bare", in_place=True):
        (tmp_path / "bare" / capture.INCOMPLETE).unlink()  # by somebody else: that is what the end would do
    with pytest.raises(KeyError), CaptureWriter(tmp_path / "other", in_place=True) as writer:
        raise KeyError
    assert (tmp_path / "other" / capture.INCOMPLETE).exists()


@pytest.mark.parametrize("in_place", [False, True])
@pytest.mark.parametrize("options, private", [({}, False), ({"private": False}, False), ({"private": True}, True)])
def test_a_private_capture_keeps_others_out(tmp_path: Path, in_place: bool, options: dict[str, bool], private: bool) -> None:
    before = os.umask(0o022)
    try:
        with CaptureWriter(tmp_path / "new", in_place=in_place, **options) as writer:
            assert writer.folder.stat().st_mode & 0o777 == (0o755 if in_place and not private else 0o700)
        assert (tmp_path / "new").stat().st_mode & 0o777 == (0o700 if private else 0o755)
    finally:
        assert os.umask(before) == 0o022, "the process has the mask that it had"


def test_writing_never_destroys(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("important")
    (tmp_path / "file").write_text("important")
    for path in (tmp_path / "mine", tmp_path / "file"):
        with pytest.raises(SoftgenError, match="already exists"):
            write_capture(path, CaptureTrace(SOFTPIN))
    assert (tmp_path / "mine" / "thesis.txt").read_text() == "important"
    (tmp_path / "empty").mkdir()
    write_capture(tmp_path / "empty", CaptureTrace(SOFTPIN))
    assert capture.is_capture(tmp_path / "empty")


@pytest.mark.parametrize("in_place", [False, True])
def test_directories_above_a_capture_are_made(tmp_path: Path, in_place: bool) -> None:
    with CaptureWriter(tmp_path / "some" / "where" / "new", in_place=in_place):
        pass
    with CaptureWriter(tmp_path / "some" / "where" / "other", in_place=in_place):
        pass
    assert sorted(os.listdir(tmp_path / "some" / "where")) == ["new", "other"]


def test_a_directory_filled_meanwhile_is_left_alone(tmp_path: Path) -> None:
    with pytest.raises(SoftgenError, match="cannot be written"), CaptureWriter(tmp_path / "new"):
        (tmp_path / "new").mkdir()
        (tmp_path / "new" / "thesis.txt").write_text("important")
    assert (tmp_path / "new" / "thesis.txt").read_text() == "important"
    assert os.listdir(tmp_path) == ["new"]


def test_a_failed_capture_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(KeyError), CaptureWriter(tmp_path / "new"):
        raise KeyError
    assert not list(tmp_path.iterdir())


class Made(Events):
    """A trace that is no capture."""

    def __init__(self, *works: Work) -> None:
        super().__init__("made", device("kbl"))
        self.works = works

    def events(self) -> Any:
        return iter(self.works)


def test_batches_of_any_trace_become_a_capture(tmp_path: Path) -> None:
    space, buffer = AddressSpace("made"), MemfdBuffer(8192, "b")
    buffer.view[:4] = b"abcd"
    space.map(0x10000, buffer)
    write_capture(tmp_path / "c", Made(Work("blitter", space, 0x10008, sequence=4, end=0x10010, context=3)))
    (exec_,) = CaptureTrace(tmp_path / "c").execs()
    assert (exec_.engine, exec_.batch, exec_.ctx, exec_.flags) == ("bcs0", Batch(0, 1, 0x10008, 8, 8), 3, 0)
    assert (exec_.seq, exec_.pid, exec_.vm, exec_.relocs, exec_.total_bytes) == (4, 0, 0, 0, 8192)
    assert exec_.bos == (BufferObject(0x10000, 8192, exec_.bos[0].blob, 1, 1, 4096, "none", 0, True, False, False, 0, 0),)
    (work,) = CaptureTrace(tmp_path / "c").work()
    assert work.space.read(0x10000, 4) == b"abcd"
    with pytest.raises(Unsupported, match="comes from a ring"):
        write_capture(tmp_path / "d", Made(Work("render", space, 0x10000, "ring")))
    with pytest.raises(SoftgenError, match="no memory at its batch"):
        write_capture(tmp_path / "e", Made(Work("render", space, 0x90000)))
