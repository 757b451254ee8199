"""Records: the values of a layout's fields by name, and the numbers that dwords stand for."""

from __future__ import annotations

import struct
from array import array
from collections.abc import Iterable
from operator import itemgetter
from typing import Any


class Record(tuple[Any, ...]):
    """A read-only record. Fields are attributes; `_asdict` gives them by name."""

    __slots__ = ()
    _fields: tuple[str, ...] = ()

    def _asdict(self) -> dict[str, Any]:
        return dict(zip(self._fields, self, strict=True))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{n}={v!r}' for n, v in self._asdict().items())})"

    def __getattr__(self, name: str) -> Any:  # only reached when the class has no such field
        raise AttributeError(f"{type(self).__name__} has no field {name!r}; it has {', '.join(self._fields) or 'none'}")


def record_class(name: str, fields: Iterable[str]) -> type[Record]:
    """A class of records with these fields."""
    fields = tuple(fields)
    attributes: dict[str, Any] = {n: property(itemgetter(i)) for i, n in enumerate(fields)}
    return type(name, (Record,), {"__slots__": (), "_fields": fields, **attributes})


# -- numbers -----------------------------------------------------------------------------------------------------


def to_float(bits: int) -> float:
    return float(struct.unpack("<f", bits.to_bytes(4, "little"))[0])


def to_double(bits: int) -> float:
    return float(struct.unpack("<d", bits.to_bytes(8, "little"))[0])


def to_half(bits: int) -> float:
    return float(struct.unpack("<e", bits.to_bytes(2, "little"))[0])


def sign(value: int, width: int) -> int:
    return value - (1 << width) if value >> width - 1 else value


def join(dwords: Any) -> int:
    """Dwords as one number, dword 0 lowest."""
    return int.from_bytes(array("I", dwords).tobytes(), "little")


def split(bits: int, dwords: int) -> list[int]:
    return array("I", (bits & (1 << 32 * dwords) - 1).to_bytes(4 * dwords, "little")).tolist()
