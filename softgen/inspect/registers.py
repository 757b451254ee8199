"""Register values as text: `r2:f=1.5,2.5` becomes bytes; changed bytes become lanes of the types they were written with.

    setting  = register [. element] [: type] = value {, value}
    register   r0 … r127 (g2 is r2), m0 … where there are any, and f0 a0 acc0 cr0 … by generation
    element    index in elements of the type (default: the first)
    type       ud d uw w ub b uq q f hf df, as far as the generation has it. Default: uw for a0 and f0.1, else ud
    value      7 -7 0x1f; floats 1.5 -2e3 inf nan, or their bits 0x3f800000; 1.5*8 is eight of them
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from softgen.bits.units import GRF_BYTES, GRF_COUNT
from softgen.errors import DecodeError
from softgen.eu.interpreter import InterpreterState
from softgen.eu.isa import registers, types
from softgen.eu.thread.regions import LANES, WIDE_ACCUMULATORS, write_at
from softgen.eu.thread.state import ThreadState
from softgen.lanes.types import bool_

Number = int | float
Snapshot = Mapping[str, bytes]

FILES = {"grf": "r", "mrf": "m"}  # how register files are called in text
SETTING = re.compile(r"([a-z]+)(\d{0,9})(?:\.(\d{1,9}))?(?::(\w+))?\s*=\s*(.*)", re.DOTALL | re.ASCII)
UNSEEN = frozenset({"null", "ip", "tm", "ce"})  # nothing of them is kept between instructions
DTYPES = {"ub": "u1", "b": "i1", "uw": "u2", "w": "i2", "ud": "u4", "d": "i4", "uq": "u8", "q": "i8", "hf": "f2", "f": "f4", "df": "f8"}
MOST = 1 << 12  # lanes a setting can have: all bytes of the largest file


@dataclass(frozen=True)
class Register:
    """A register in its file: `r5` starts at byte 160 of grf."""

    name: str
    place: str  # grf, mrf, or an architecture register
    start: int
    size: int


def find(name: str, number: str, gen: float, thread: ThreadState) -> Register:
    """The register of a typed name and number."""
    place = {"r": "grf", "g": "grf", "m": "mrf"}.get(name, name)
    index = int(number or 0)
    if place in FILES:
        count, size = len(thread.grf if place == "grf" else thread.mrf) // GRF_BYTES, GRF_BYTES
    else:
        row = registers.register(place, gen) if place not in UNSEEN else None
        count, size = (max(row.count, 1), row.size) if row else (0, 0)
    if not number and place in FILES or index >= count:
        others = sorted(name for name in thread.arf if name not in UNSEEN and registers.register(name, gen))
        message = f", m0 to m{len(thread.mrf) // GRF_BYTES - 1}" if len(thread.mrf) else ""
        raise DecodeError(f"gen {gen:g} has no register {name}{number} to set; "
                          f"expected r0 to r{GRF_COUNT - 1}{message}, or a number after one of {' '.join(others)}")  # fmt: skip
    return Register(f"{FILES.get(place, place)}{index}", place, index * size, size)


# -- what is typed -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Setting:
    """Values for consecutive lanes of one type."""

    place: str
    start: int
    type: str
    data: bytes


def setting(text: str, gen: float, thread: ThreadState) -> Setting:
    """Parse the argument of `--set`. Errors say what was expected."""
    found = SETTING.fullmatch(text.strip())
    if found is None:
        raise DecodeError("expected REGISTER[.ELEMENT][:TYPE]=VALUE[,VALUE…], such as r2:f=1.5,2.5 or f0.0=0xff")
    name, number, element, kind, values = found.groups()
    where = find(name, number, gen, thread)
    kind = kind or ("uw" if where.place == "a" or where.place == "f" and element else "ud")
    known = [name for name in types.codes("register", gen) if name in LANES]
    if kind not in known:
        raise DecodeError(f"gen {gen:g} has no type {kind!r}; expected one of {' '.join(known)}")
    size = types.size(kind)
    start = where.start + int(element or 0) * size
    if start + size > where.start + where.size:
        raise DecodeError(f"{where.name} has {where.size // size} elements of type {kind}; expected a number below that, not {element}")
    data = b"".join(_value(part.strip(), kind) for part in values.split(","))
    room = len(_held(thread)[where.place]) - start
    if len(data) > room:
        raise DecodeError(f"{len(data) // size} values of type {kind} are too many; expected {room // size} or fewer from there on")
    return Setting(where.place, start, kind, data)


def _value(text: str, kind: str) -> bytes:
    """One value, or several equal ones."""
    number, star, times = (part.strip() for part in text.partition("*"))
    if star and (not re.fullmatch(r"[0-9]{1,9}", times) or not 0 < int(times) <= MOST):
        raise DecodeError(f"expected a number of lanes after the '*', not {times!r}")
    type = LANES[kind]
    hexadecimal = re.fullmatch(r"0[xX][0-9a-fA-F]+", number)
    if hexadecimal and not int(number, 16) >> type.bits:  # the bits of any type
        data = int(number, 16).to_bytes(type.bytes, "little")
    else:
        data = _float(number, kind) if type.is_float else _integer(number, kind)
    return data * int(times or 1)


def _integer(text: str, kind: str) -> bytes:
    type = LANES[kind]
    if not re.fullmatch(r"[+-]?([0-9]{1,99}|0[xX][0-9a-fA-F]+|0[bB][01]+)", text):
        hint = "; floats need a type, such as :f" if _is_float(text) else ""
        raise DecodeError(f"expected an integer for type {kind}, not {text!r}{hint}")
    value = int(text, 10 if text.lstrip("+-").isdecimal() else 0)
    if not type.lowest <= value <= type.highest:
        raise DecodeError(f"{text} is outside type {kind}; expected {type.lowest} to {type.highest}")
    return value.to_bytes(type.bytes, "little", signed=value < 0)


def _float(text: str, kind: str) -> bytes:
    if not _is_float(text):
        raise DecodeError(f"expected a float for type {kind}, or its bits as 0x…, not {text!r}")
    with np.errstate(over="ignore"):
        return np.array([float(text)]).astype(DTYPES[kind]).tobytes()


def _is_float(text: str) -> bool:
    return re.fullmatch(r"[+-]?(\d+\.?\d*([eE][+-]?\d+)?|\.\d+([eE][+-]?\d+)?|inf|nan)", text, re.ASCII) is not None


def apply(setting: Setting, state: InterpreterState) -> None:
    """Write a setting; accumulators also keep their integers in full width."""
    data = _held(state.thread)[setting.place]
    data[setting.start : setting.start + len(setting.data)] = np.frombuffer(setting.data, np.uint8)
    if setting.place == "acc":
        size = types.size(setting.type)
        value = state.m.value(LANES[setting.type], np.frombuffer(setting.data, DTYPES[setting.type]))
        offsets = tuple(range(setting.start, setting.start + len(setting.data), size))
        write_at(state, "acc", setting.type, offsets, value, state.m.constant(bool_, 1, len(offsets)))


# -- what is shown -------------------------------------------------------------------------------------------------


def _held(thread: ThreadState) -> dict[str, Any]:
    return {"grf": thread.grf, "mrf": thread.mrf} | {name: data for name, data in thread.arf.items() if name not in UNSEEN}


def snapshot(thread: ThreadState) -> Snapshot:
    return {name: data.tobytes() for name, data in _held(thread).items()}


@dataclass(frozen=True)
class RegisterLanes:
    """Consecutive elements of one type within a register."""

    register: str  # "r5"
    sub: int  # the first, in elements of the type
    type: str
    before: tuple[Number, ...]
    after: tuple[Number, ...]
    whole: bool  # whether they are all of the register

    @property
    def name(self) -> str:
        if self.register[0] == "f" and self.register[1:].isdigit():
            return f"{self.register}.{self.sub}"
        return f"{self.register}:{self.type}" if self.whole else f"{self.register}.{self.sub}:{self.type}"


class Kinds:
    """The type with which each register byte was last written; partly overwritten elements lose theirs."""

    def __init__(self, thread: ThreadState) -> None:
        self.gen = thread.gen
        self.held: dict[str, list[str]] = {name: [""] * len(data) for name, data in _held(thread).items()}
        self.last: dict[tuple[str, int], str] = {}  # by file and start of a register

    def write(self, place: str, offset: int, kind: str) -> None:
        """Record a write to the element of this type that contains the byte."""
        size, kinds = types.size(kind), self.held[place]
        start = offset // size * size
        for at in range(start, min(start + size, len(kinds))):
            if kinds[at] and kinds[at] != kind:
                old = types.size(kinds[at])
                first = at // old * old
                kinds[first : first + old] = [""] * len(kinds[first : first + old])
        if start + size <= len(kinds):
            kinds[start : start + size] = [kind] * size
        row = register_at(place, offset, self.gen)
        self.last[place, row.start] = kind

    def lanes(self, row: Register, before: Snapshot, after: Snapshot) -> Iterator[RegisterLanes]:
        """A register by runs of one type."""
        runs: list[tuple[str, list[int]]] = []
        at, end = row.start, row.start + row.size
        while at < end:
            kind = self._kind(row, at, end)
            if not runs or runs[-1][0] != kind:
                runs.append((kind, []))
            runs[-1][1].append(at)
            at += types.size(kind)
        for kind, offsets in runs:
            was, now = (tuple(_number(snapshot, row.place, kind, offset) for offset in offsets) for snapshot in (before, after))
            yield RegisterLanes(row.name, (offsets[0] - row.start) // types.size(kind), kind, was, now, len(runs) == 1)

    def _kind(self, row: Register, at: int, end: int) -> str:
        kinds = self.held[row.place]
        if kinds[at]:
            return kinds[at]
        for kind in (self.last.get((row.place, row.start), "ud"), "ud", "uw"):
            size = types.size(kind)
            if (at - row.start) % size == 0 and at + size <= end and not any(kinds[at : at + size]):
                return kind
        return "ub"


def register_at(place: str, offset: int, gen: float) -> Register:
    """The register that holds a byte of a file."""
    row = None if place in FILES else registers.register(place, gen)
    size = row.size if row else GRF_BYTES
    index = offset // size
    name = place if row and not row.count else f"{FILES.get(place, place)}{index}"
    return Register(name, place, index * size, size)


def _number(snapshot: Snapshot, place: str, kind: str, offset: int) -> Number:
    if place == "acc" and kind in WIDE_ACCUMULATORS:
        at = offset // types.size(kind) * 8
        return int.from_bytes(snapshot[WIDE_ACCUMULATORS[kind]][at : at + 8], "little", signed=True)
    value = np.frombuffer(snapshot[place], DTYPES[kind], 1, offset)[0]
    return float(str(value)) if LANES[kind].is_float else int(value)


def changed_bytes(before: Snapshot, after: Snapshot) -> dict[str, list[int]]:
    """Offsets of changed bytes by register file. Full-width accumulator integers count as the bytes of their element."""
    found: dict[str, list[int]] = {}
    for name, now in after.items():
        if now == before[name]:
            continue
        offsets = np.nonzero(np.frombuffer(now, np.uint8) != np.frombuffer(before[name], np.uint8))[0].tolist()
        wide = {WIDE_ACCUMULATORS[kind]: types.size(kind) for kind in WIDE_ACCUMULATORS}.get(name)
        place = "acc" if wide else name
        known = found.setdefault(place, [])
        known += [offset // 8 * wide for offset in offsets] if wide else offsets
    return {place: sorted(set(offsets)) for place, offsets in found.items()}


def changes(before: Snapshot, after: Snapshot, kinds: Kinds) -> list[RegisterLanes]:
    """Changed registers: flags by words, the others whole."""
    found: list[RegisterLanes] = []
    for place, offsets in changed_bytes(before, after).items():
        rows = {row.start: row for row in (register_at(place, offset, kinds.gen) for offset in offsets)}
        for row in rows.values():
            if place == "f":
                found += _flags(row, offsets, before, after)
            else:
                found += [lanes for lanes in kinds.lanes(row, before, after) if repr(lanes.before) != repr(lanes.after)]  # NaN is NaN
    return found


def _flags(row: Register, offsets: list[int], before: Snapshot, after: Snapshot) -> Iterator[RegisterLanes]:
    for word in sorted({offset // 2 * 2 for offset in offsets if row.start <= offset < row.start + row.size}):
        was, now = (int.from_bytes(snapshot["f"][word : word + 2], "little") for snapshot in (before, after))
        yield RegisterLanes(row.name, (word - row.start) // 2, "uw", (was,), (now,), False)
