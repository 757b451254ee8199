"""The JSON of a capture, one object per submission: read strictly into records, and written back.

A complaint names the file, the key and what was expected: `exec-000003.json: bos[2].gpu_addr must be …`.
"""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from softgen.bits.units import PAGE_SIZE
from softgen.errors import DecodeError

MAX_JSON_BYTES = 64 << 20  # one submission with 300,000 buffers
MAX_BUFFER_BYTES = 16 << 30  # more than any Gen11 machine could map; keeps a lie in the JSON from eating the host
MAX_EXEC_BYTES = 64 << 30
ZERO = "zero"  # the blob of a buffer that is all zero; it has no file
BLOB = re.compile(r"[0-9a-f]{8,64}")
HEX = re.compile(r"0[xX][0-9a-fA-F]{1,16}")
TILINGS = ("none", "X", "Y")
ENGINES = {"rcs": "render", "bcs": "blitter", "vcs": "video", "vecs": "video_enhance"}  # the kernel's names
ENGINE = re.compile(r"(rcs|bcs|vcs|vecs)(\d)")


@dataclass(frozen=True)
class BufferObject:
    """A buffer of one submission; names and meaning are the kernel's."""

    gpu_addr: int
    size: int
    blob: str
    handle: int = 0
    uid: int = 0
    nonzero: int = 0
    tiling: str = "none"
    stride: int = 0
    pinned: bool = False
    write: bool = False
    userptr: bool = False
    flags: int = 0
    relocs: int = 0
    after: str | None = None  # the blob it held after execution, when that was recorded


@dataclass(frozen=True)
class Batch:
    bo: int
    handle: int
    gpu_addr: int
    start: int
    len: int


@dataclass(frozen=True)
class Exec:
    """One submission."""

    seq: int
    device: str
    pci_id: int
    gen: int  # times ten
    engine: str  # rcs0 …
    batch: Batch
    bos: tuple[BufferObject, ...]
    pid: int = 0
    ctx: int = 0
    vm: int = 0
    flags: int = 0
    relocs: int = 0
    total_bytes: int = 0

    @property
    def engine_name(self) -> str:
        return ENGINES[self.engine.rstrip("0123456789")]


@dataclass(frozen=True)
class JsonValue:
    """A JSON value with its file and key, for error messages."""

    file: str
    key: str
    value: Any

    def wrong(self, expected: str) -> DecodeError:
        shown = repr(self.value)
        shown = shown if len(shown) < 60 else f"{shown[:57]}..."
        return DecodeError(f"{self.file}: {self.key or 'the file'} must be {expected}, not {shown}")

    def __getitem__(self, name: str) -> JsonValue:
        if not isinstance(self.value, dict):
            raise self.wrong("an object")
        if name not in self.value:
            raise DecodeError(f"{self.file}: {f'{self.key}.' if self.key else ''}{name} is missing")
        return JsonValue(self.file, f"{self.key}.{name}" if self.key else name, self.value[name])

    def has(self, name: str) -> bool:
        return isinstance(self.value, dict) and name in self.value

    def items(self) -> Iterator[JsonValue]:
        if not isinstance(self.value, list):
            raise self.wrong("a list")
        return (JsonValue(self.file, f"{self.key}[{i}]", value) for i, value in enumerate(self.value))

    def integer(self, limit: int = 1 << 64) -> int:
        if type(self.value) is not int or not 0 <= self.value < limit:
            raise self.wrong(f"a whole number from 0 to {limit - 1}")
        return self.value

    def hexadecimal(self, bits: int = 64) -> int:
        if not isinstance(self.value, str) or not HEX.fullmatch(self.value):
            raise self.wrong("a hexadecimal string such as '0x1000'")
        if int(self.value, 16) >> bits:
            raise self.wrong(f"at most {bits} bits wide")
        return int(self.value, 16)

    def boolean(self) -> bool:
        if not isinstance(self.value, bool):
            raise self.wrong("true or false")
        return self.value

    def text(self, pattern: re.Pattern[str], expected: str) -> str:
        if not isinstance(self.value, str) or not pattern.fullmatch(self.value):
            raise self.wrong(expected)
        return self.value


def load(path: Path) -> JsonValue:
    """Load a JSON file as a Value."""
    try:
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK), "rb") as file:  # a pipe must not block
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise DecodeError(f"{path}: is no file")
            data = file.read(MAX_JSON_BYTES + 1)
    except OSError as error:
        raise DecodeError(f"{path}: cannot be read: {error.strerror}") from None
    if len(data) > MAX_JSON_BYTES:
        raise DecodeError(f"{path}: a submission's JSON must be at most {MAX_JSON_BYTES} bytes")
    try:
        return JsonValue(str(path), "", json.loads(data, parse_constant=_no_constant))
    except (ValueError, RecursionError) as error:
        raise DecodeError(f"{path}: is no JSON: {error}") from None


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is no number")


def read_exec(path: Path, address_bits: int | None = None) -> Exec:
    """One submission, checked; addresses may have `address_bits` bits, any number while the GPU is not known."""
    j = load(path)
    bits = address_bits or 64
    bos = tuple(_buffer(value, bits) for value in j["bos"].items())
    exec_ = Exec(
        seq=j["seq"].integer(), pid=j["pid"].integer(), device=j["device"].text(re.compile(r"\w{1,16}"), "a GPU's name"),
        pci_id=j["pci_id"].hexadecimal(16), gen=j["gen"].integer(1000), engine=j["engine"].text(ENGINE, "rcs0, bcs0, vcs0 or vecs0"),
        ctx=j["ctx"].integer(), vm=j["vm"].integer(), flags=j["flags"].hexadecimal(), batch=_batch(j["batch"], bos), bos=bos,
        relocs=j["relocs"].integer(), total_bytes=j["total_bytes"].integer(),
    )  # fmt: skip
    _check_layout(path, bos)
    return exec_


def _buffer(j: JsonValue, bits: int) -> BufferObject:
    size = j["size"].integer(MAX_BUFFER_BYTES + 1)
    if size == 0 or size % PAGE_SIZE:
        raise j["size"].wrong(f"a multiple of {PAGE_SIZE} bytes")
    address = j["gpu_addr"].hexadecimal(bits)
    if address % PAGE_SIZE:
        raise j["gpu_addr"].wrong(f"a multiple of {PAGE_SIZE}")
    if address + size > 1 << bits:
        raise j["gpu_addr"].wrong(f"such that {size:#x} bytes fit {bits} address bits")
    if (tiling := j["tiling"]).value not in TILINGS:
        raise tiling.wrong(" or ".join(TILINGS))
    return BufferObject(
        gpu_addr=address, size=size, blob=_blob(j["blob"]), handle=j["handle"].integer(), uid=j["uid"].integer(),
        nonzero=j["nonzero"].integer(size + 1), tiling=tiling.value, stride=j["stride"].integer(), pinned=j["pinned"].boolean(),
        write=j["write"].boolean(), userptr=j["userptr"].boolean(), flags=j["flags"].hexadecimal(), relocs=j["relocs"].integer(),
        after=_blob(j["after"]) if j.has("after") else None,
    )  # fmt: skip


def _blob(j: JsonValue) -> str:
    """A blob's name. Only hexadecimal digits, so that no name leads out of the directory."""
    return ZERO if j.value == ZERO else j.text(BLOB, f"hexadecimal digits or {ZERO!r}")


def _batch(j: JsonValue, bos: tuple[BufferObject, ...]) -> Batch:
    if not bos:
        raise DecodeError(f"{j.file}: bos is empty; the batch needs a buffer")
    bo = bos[j["bo"].integer(len(bos))]
    start, length = j["start"].integer(bo.size), j["len"].integer(bo.size + 1)
    if start % 4:
        raise j["start"].wrong("a multiple of 4")
    if start + length > bo.size:
        raise j["len"].wrong(f"at most {bo.size - start}, the rest of its buffer")
    address = j["gpu_addr"].hexadecimal()
    if address != bo.gpu_addr + start:
        raise j["gpu_addr"].wrong(f"{bo.gpu_addr + start:#x}, the buffer's address and start")
    return Batch(j["bo"].value, j["handle"].integer(), address, start, length)


def _check_layout(path: Path, bos: tuple[BufferObject, ...]) -> None:
    """Check that buffers do not overlap and that their total size is within MAX_EXEC_BYTES."""
    total, end, last = 0, 0, -1
    for index, bo in sorted(enumerate(bos), key=lambda item: item[1].gpu_addr):
        if bo.gpu_addr < end:
            raise DecodeError(f"{path}: bos[{index}] at {bo.gpu_addr:#x} overlaps bos[{last}], which ends at {end:#x}")
        end, last, total = bo.gpu_addr + bo.size, index, total + bo.size
    if total > MAX_EXEC_BYTES:
        raise DecodeError(f"{path}: bos have {total:#x} bytes together; at most {MAX_EXEC_BYTES:#x} are read")


# -- writing ----------------------------------------------------------------------------------------------------


def write_exec(exec_: Exec) -> str:
    """The text of exec-NNNNNN.json, one line per buffer."""
    batch = {**asdict(exec_.batch), "gpu_addr": hex(exec_.batch.gpu_addr)}
    lines = [
        {"seq": exec_.seq, "pid": exec_.pid, "device": exec_.device, "pci_id": f"{exec_.pci_id:#06x}", "gen": exec_.gen},
        {"engine": exec_.engine, "ctx": exec_.ctx, "vm": exec_.vm, "flags": hex(exec_.flags)},
        {"batch": batch, "relocs": exec_.relocs, "total_bytes": exec_.total_bytes},
    ]
    head = ",\n ".join(json.dumps(line)[1:-1] for line in lines)
    bos = ",\n".join(f"  {json.dumps(_buffer_json(bo))}" for bo in exec_.bos)
    return f'{{{head},\n "bos": [\n{bos}\n ]}}\n'


def _buffer_json(bo: BufferObject) -> dict[str, Any]:
    keys = ("handle", "uid", "gpu_addr", "size", "nonzero", "tiling", "stride", "pinned", "write", "userptr", "flags", "relocs", "blob")
    out = {key: getattr(bo, key) for key in keys}
    out.update(gpu_addr=hex(bo.gpu_addr), flags=hex(bo.flags))
    if bo.after is not None:
        out["after"] = bo.after
    return out
