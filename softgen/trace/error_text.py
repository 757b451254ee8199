"""Parser of the text of an i915 error state: values, engines with their registers, blocks of memory.

Memory is not decoded here: a block keeps its text and its line number. Labels the driver uses are in
spec/trace/error_state.toml; lines of no known pattern are counted and otherwise ignored.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from softgen.errors import DecodeError
from softgen.trace import tables
from softgen.trace.error_data import DEFLATED, PLAIN, Listed, Room, unfold

MOST_BYTES = 1 << 30  # of a file; real ones have up to some hundred megabytes
MOST_BLOCKS = 4096  # of memory; real ones have some hundred
MOST_VALUES = 1 << 16
MOST_TEXT = 4096  # characters of a line that is no memory

STREAM = re.compile(r"(\S.*) command stream:$")
BLOCK = re.compile(r"(?P<owner>\S.*?)(?: \(submitted by (?P<who>.*?) \[-?\d+\](?:, (?:ctx|bans) -?\d[^()]*(?:\(unbannable\))?)?\))? --- "
                   r"(?P<name>.+?) = 0x(?P<high>[0-9a-f]{1,16})(?:[ _](?P<low>[0-9a-f]{8}))?$")  # fmt: skip
ADDRESS = re.compile(r" = 0x[0-9a-f]{1,16}(?:[ _][0-9a-f]{8})?$")  # asked for first: a line without it costs BLOCK a long search
FIRMWARE = re.compile(r"global --- GuC Error Capture on (\S+) command stream:$")  # 5.19 and later, where the firmware schedules
NOWHERE = (1 << 64) - 1  # the address of what stands in no table, which only the driver has: the context new ones start from
LIST = re.compile(r"(\S.*) --- (?:\d+|\?) (requests|waiters)\b")
REQUEST = re.compile(r" +(?:pid|seqno) .*\btail (?:0x)?([0-9a-f]{8})$")
SEMAPHORES = re.compile(r"(?P<name>Semaphore page) = 0x(?P<high>[0-9a-f]{1,16})$")
TABLE = re.compile(r"(Active|Pinned) .*\[\d+\]:$")
VALUE = re.compile(r"( *)([A-Za-z][\w .?>()\-]*?)((?:\[\d+\])*)(?::| ?=) *(.*)$")
NUMBER = re.compile(r"0x([0-9a-f]{1,16})(?:[ _](?:0x)?([0-9a-f]{8}))?((?: \[.*\])?)$")
BUFFER = re.compile(r" +[0-9a-f]{8}(?:_[0-9a-f]{8})? +\d+ ")  # a row of the tables of buffers: address, size, domains
KNOWN = ("    ", "\t", " pid ", " seqno ", "  seqno 0x", "  pid ", "  context timeline ", "Overlay, status: ", " Register file at ",
         "Unavailable", "Has logical contexts? ", "  No matching ee-node", "  Missing GuC capture node for ",
         )  # rows of tables, and what says nothing of the hardware  # fmt: skip
HEX = re.compile(r"0x([0-9a-f]{1,16})\b")
CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f-\x9f]")  # names of processes are anything: none of these may reach a terminal


@dataclass(frozen=True)
class LabelledValue:
    """`label: text`, and the number in it where it is one: two halves are one number, the upper first."""

    line: int
    label: str  # without what counts: SAMPLER_INSTDONE
    index: str  # what counts: [0][2]
    text: str
    number: int | None = None
    others: tuple[int, ...] = ()  # those behind it, in brackets

    @property
    def title(self) -> str:
        return self.label + self.index


@dataclass
class Engine:
    """Registers of one command streamer. `kind` is '' for an unknown engine."""

    name: str
    kind: str
    instance: int
    line: int
    values: list[LabelledValue] = field(default_factory=list)

    def get(self, label: str) -> LabelledValue | None:
        return next((value for value in self.values if value.label == label and value.number is not None), None)

    def number(self, label: str) -> int | None:
        found = self.get(label)
        return found.number if found else None


@dataclass(frozen=True)
class Block:
    """A block of saved memory: owner, name and GPU address."""

    line: int
    owner: str
    name: str
    address: int
    by: str = ""
    text: bytes | Listed = b""  # a whole `:` or `~` line, or what lines of dwords came to

    def unfold(self, room: Room, path: Path) -> list[bytes]:
        if isinstance(self.text, Listed):
            room.take(len(self.text.data), lambda why: wrong(path, self.line, why))
            return [bytes(self.text.data)]
        return unfold(self.text, room, lambda why: wrong(path, self.line + 1, f"{self.owner} {self.name}: {why}"))

    @property
    def nowhere(self) -> bool:
        return self.address == NOWHERE

    @property
    def encoding(self) -> str:
        if isinstance(self.text, Listed):
            return "dwords"
        return "deflated, base 85" if self.text.startswith(DEFLATED) else "base 85"


@dataclass
class ErrorText:
    path: Path
    heading: str = ""  # GPU HANG: …
    values: list[LabelledValue] = field(default_factory=list)  # of the whole GPU and the driver
    engines: list[Engine] = field(default_factory=list)
    blocks: list[Block] = field(default_factory=list)
    tails: dict[str, int] = field(default_factory=dict)  # owner -> where the first request of its ring ends
    strange: list[int] = field(default_factory=list)  # lines that follow no pattern
    whole: bool = True  # the last line has its end

    def value(self, label: str) -> LabelledValue | None:
        return next((value for value in self.values if value.label == label), None)


def wrong(path: Path, line: int, why: str) -> DecodeError:
    return DecodeError(f"{path}:{line}: {why}")


def engine_of(name: str) -> tuple[str, int]:
    """Kind and instance of an engine by its name: ('video', 1) for vcs1 and bsd2, ('', 0) if unknown."""
    known = tables.error_state()["engine"]
    if name in known:
        kind, instance = known[name]
        return kind, instance
    m = re.match(r"([a-z]+)(\d{1,2})$", name)
    return (known[m[1]][0], int(m[2])) if m and m[1] in known else ("", 0)


def read_text(path: Path) -> ErrorText:
    reader = Reader(path)
    data = _bytes(path)
    for number, start, end in _lines(data):
        reader.line(number, data, start, end)
    reader.finish(data)
    return reader.found


def _bytes(path: Path) -> bytes:
    try:
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK), "rb") as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise DecodeError(f"{path}: is no file")
            known = status.st_size <= MOST_BYTES  # that of a file in sysfs is 0
            data = file.read(MOST_BYTES + 1) if known else b""
    except (OSError, MemoryError) as error:
        raise DecodeError(f"{path}: cannot be read: {getattr(error, 'strerror', None) or 'no memory'}") from None
    if not known or len(data) > MOST_BYTES:
        raise DecodeError(f"{path}: an error state has at most {MOST_BYTES:#x} bytes")
    return data


def _lines(data: bytes) -> Iterator[tuple[int, int, int]]:
    """(number, start, end) of every line, counted from 1."""
    start = number = 0
    while start < len(data):
        end = data.find(b"\n", start)
        end = len(data) if end < 0 else end
        number += 1
        yield number, start, end
        start = end + 1


class Reader:
    """State machine over the lines of an error state."""

    def __init__(self, path: Path) -> None:
        self.path, self.found = path, ErrorText(path)
        self.engine: Engine | None = None
        self.block: Block | None = None  # whose memory the next lines hold
        self.listed: Listed | None = None
        self.asking = ""  # whose requests the next lines list
        self.firmware: Engine | None = None  # whose registers the next lines list, as the firmware read them

    def line(self, number: int, data: bytes, start: int, end: int) -> None:
        first = data[start : start + 1]
        if first in (DEFLATED, PLAIN):
            self.memory(number, data[start:end])
            return
        if end - start > MOST_TEXT:
            raise wrong(self.path, number, f"a line of {end - start} characters that is no memory")
        raw = data[start:end].rstrip()
        if self.block and self.dwords(number, raw):
            return
        text = CONTROL.sub("\ufffd", raw.decode("utf-8", "replace"))
        if ADDRESS.search(text, max(0, len(text) - 40)) and (m := BLOCK.match(text) or SEMAPHORES.match(text)):
            self.open_block(number, m)
        elif m := FIRMWARE.match(text) or STREAM.match(text):
            self.close_block()
            kind, instance = engine_of(m[1])
            self.engine = Engine(m[1], kind, instance, number)
            self.firmware = self.engine if m.re is FIRMWARE else None
            self.found.engines.append(self.engine)
        elif text and not (self.firmware and self.reported(number, text)):
            self.words(number, text)

    # -- memory --------------------------------------------------------------------------------------------------------

    def open_block(self, number: int, m: re.Match[str]) -> None:
        self.close_block()
        groups = m.groupdict()
        low = groups.get("low")
        address = int(groups["high"], 16) << 32 | int(low, 16) if low else int(groups["high"], 16)
        if address >> 48 and address != NOWHERE:
            raise wrong(self.path, number, f"{address:#x} is no address of a GPU")
        if len(self.found.blocks) >= MOST_BLOCKS:
            raise wrong(self.path, number, f"more than {MOST_BLOCKS} blocks of memory")
        self.block = Block(number, groups.get("owner") or "global", groups["name"], address, groups.get("who") or "")

    def memory(self, number: int, text: bytes) -> None:
        if self.block is None or self.listed:
            raise wrong(self.path, number, "memory without a line before it that says whose it is")
        self.found.blocks.append(Block(number - 1, self.block.owner, self.block.name, self.block.address, self.block.by, text))
        self.block = None

    def dwords(self, number: int, text: bytes) -> bool:
        listed = self.listed or Listed()
        if not listed.add(text, lambda why: wrong(self.path, number, why)):
            return False
        self.listed = listed
        return True

    def close_block(self) -> None:
        block, self.block = self.block, None
        if block is None:
            return
        if self.listed is None:
            raise wrong(self.path, block.line, f"no memory follows {block.owner} --- {block.name}; the file may be cut off")
        self.found.blocks.append(Block(block.line, block.owner, block.name, block.address, block.by, self.listed))
        self.listed = None

    # -- everything else -----------------------------------------------------------------------------------------------

    def words(self, number: int, text: str) -> None:
        if text.startswith("gtt_page_sizes = "):
            return  # stands between a block's name and its memory
        self.close_block()
        if text.startswith("GPU HANG") and not self.found.heading:
            self.found.heading = text
        elif m := LIST.match(text):
            self.engine, self.asking = None, m[1] if m[2] == "requests" else ""
        elif (m := REQUEST.match(text)) and self.engine is None and self.asking:
            self.found.tails.setdefault(self.asking, int(m[1], 16))
        elif TABLE.match(text) or BUFFER.match(text) or text.startswith(KNOWN):
            self.engine = None if not text.startswith(" ") else self.engine
        elif m := VALUE.match(text):
            self.value(number, *m.groups())
        else:
            self.found.strange.append(number)

    def reported(self, number: int, text: str) -> bool:
        """Parse a line of the GuC's error capture; False where it is none. Halves of a register have a line each."""
        if text.startswith(("Coverage:", "  RegListType:")):
            self.engine = self.firmware if not text.endswith(" Global") else None  # the list of the whole GPU comes first
        elif text.startswith("      ") and (m := VALUE.match(text)):
            self.reported_value(number, *m.groups())
        else:
            return False
        return True

    def reported_value(self, number: int, indent: str, label: str, index: str, rest: str) -> None:
        names = tables.error_state()["firmware"]
        if (whole := names["upper"].get(label)) and self.engine and (lower := self.engine.get(whole)) and (n := NUMBER.match(rest)):
            value = int(n[1], 16) << 32 | (lower.number or 0)
            self.engine.values[self.engine.values.index(lower)] = LabelledValue(lower.line, whole, "", f"{value:#018x}", value)
        else:
            self.value(number, indent, names["label"].get(label, label), index, rest)

    def value(self, number: int, indent: str, label: str, index: str, text: str) -> None:
        if label == "ELSP" and not text.startswith("pid ") and (m := VALUE.match(f"{indent}{text}")):
            self.value(number, *m.groups())  # an empty port has no end of its line
            return
        if not indent:
            self.engine = None
        holder = self.engine.values if self.engine and label != "fence" else self.found.values
        if len(holder) >= MOST_VALUES:
            raise wrong(self.path, number, f"more than {MOST_VALUES} values")
        found = NUMBER.match(text)
        if not found:
            if label in self.registers():
                raise wrong(self.path, number, f"{label} must be a hexadecimal number, not {text!r}")
            holder.append(LabelledValue(number, label, index, text))
            return
        value = int(found[1], 16) if found[2] is None else int(found[1], 16) << 32 | int(found[2], 16)
        if value >> 64:
            raise wrong(self.path, number, f"{label} must fit 64 bits, not {text!r}")
        holder.append(LabelledValue(number, label, index, text, value, tuple(int(digits, 16) for digits in HEX.findall(found[3]))))

    def registers(self) -> dict[str, str]:
        kinds = tables.error_state()["register"]
        return kinds["all"] | kinds["render"] if self.engine else kinds["gpu"]  # type: ignore[no-any-return]

    def finish(self, data: bytes) -> None:
        self.close_block()
        self.found.whole = data.endswith(b"\n")
