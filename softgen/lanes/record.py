"""Records: named fields in memory, on both machines.

    VERTEX = RecordLayout.packed(x=f32, y=f32, entry=u32)
    vertex = m.record(VERTEX, memory, index * VERTEX.size)      # an offset per lane: one record for each lane
    vertex.store("x", vertex.load("x") * scale, mask)

A layout is made from types in order, or from a ctypes.Structure that Python and C use too. With an offset of one lane the record is
uniform: a field is one lane, and an array field has a lane for each element.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import Any, Protocol

from softgen.lanes.types import BY_NAME, LaneType, f32, f64, u32
from softgen.lanes.value import Memory, Value


@dataclass(frozen=True)
class RecordField:
    """A field: `count` elements of a type from a byte offset on."""

    name: str
    type: LaneType
    offset: int
    count: int = 1


class RecordLayout:
    """The fields of a record by name, and its size in bytes."""

    def __init__(self, fields: Iterable[RecordField], size: int) -> None:
        self.fields, self.size = {field.name: field for field in fields}, size

    @classmethod
    def packed(cls, **types: LaneType) -> RecordLayout:
        """Fields one after another, each aligned to its size."""
        fields, at = [], 0
        for name, type in types.items():
            at = -(-at // type.bytes) * type.bytes
            fields.append(RecordField(name, type, at))
            at += type.bytes
        widest = max((type.bytes for type in types.values()), default=1)
        return cls(fields, -(-at // widest) * widest)

    @classmethod
    def of(cls, structure: type[ctypes.Structure]) -> RecordLayout:
        """The scalar and array fields of a ctypes structure; members that are structures have none of their own here."""
        return _of(structure)

    def field(self, name: str) -> RecordField:
        if name not in self.fields:
            raise KeyError(f"a record with the fields {' '.join(self.fields)} has no {name}")
        return self.fields[name]

    def offset(self, name: str) -> int:
        return self.field(name).offset


@cache
def _of(structure: type[ctypes.Structure]) -> RecordLayout:
    fields = []
    kind: Any
    bases: list[Any] = [base for base in reversed(structure.__mro__) if "_fields_" in vars(base)]
    for name, kind, *_ in (field for base in bases for field in base._fields_):
        count = 1
        if issubclass(kind, ctypes.Array):
            count, kind = kind._length_, kind._type_
        if issubclass(kind, ctypes._SimpleCData):
            fields.append(RecordField(name, _lane_type(kind), getattr(structure, name).offset, count))
    return RecordLayout(fields, ctypes.sizeof(structure))


def _lane_type(kind: type[Any]) -> LaneType:
    if kind in (ctypes.c_float, ctypes.c_double):
        return f32 if kind is ctypes.c_float else f64
    signed = kind._type_ in "bhilq"
    return BY_NAME[f"{'i' if signed else 'u'}{8 * ctypes.sizeof(kind)}"]


class RecordMachine(Protocol):
    """The part of a machine that records use."""

    def constant(self, type: LaneType, value: int, lanes: int | None = None) -> Value: ...

    def load(self, type: LaneType, base: Memory, offsets: Value, mask: Value | None = None) -> Value: ...

    def store(self, value: Value, base: Memory, offsets: Value, mask: Value | None = None) -> None: ...

    def load_block(self, type: LaneType, lanes: int, base: Memory, offset: Value | int, mask: Value | None = None) -> Value: ...

    def store_block(self, value: Value, base: Memory, offset: Value | int, mask: Value | None = None) -> None: ...


class RecordView:
    """A record in memory: at one offset, or at an offset for each lane."""

    def __init__(self, m: RecordMachine, layout: RecordLayout, memory: Memory, offset: Value | int) -> None:
        self.m, self.layout, self.memory = m, layout, memory
        self.offset = m.constant(u32, offset, 1) if isinstance(offset, int) else offset
        self._known = offset if isinstance(offset, int) else None

    def load(self, name: str, mask: Value | None = None, element: Value | int | None = None) -> Value:
        """A field, or an element of an array field. Of a uniform record, an array field without `element` is all of it."""
        field = self.layout.field(name)
        at = self._at(field, element)
        if at.lanes > 1:
            return self.m.load(field.type, self.memory, at, mask)
        return self.m.load_block(field.type, field.count if element is None else 1, self.memory, at, mask)

    def store(self, name: str, value: Value, mask: Value | None = None, element: Value | int | None = None) -> None:
        field = self.layout.field(name)
        if value.type is not field.type:
            raise TypeError(f"the field {name} is {field.type}, not {value.type}")
        at = self._at(field, element)
        if at.lanes > 1:
            self.m.store(value, self.memory, at, mask)
        else:
            self.m.store_block(value, self.memory, at, mask)

    def _at(self, field: RecordField, element: Value | int | None) -> Value:
        if isinstance(element, Value):
            return self.offset + (element * field.type.bytes + field.offset)
        if element is None and field.count > 1 and self.offset.lanes > 1:
            raise TypeError(f"{field.name} has {field.count} elements: name one, where each lane has a record of its own")
        if element is not None and not 0 <= element < field.count:
            raise ValueError(f"{field.name} has elements 0 to {field.count - 1}, not {element}")
        start = field.offset + (element or 0) * field.type.bytes
        return self.offset + start if self._known is None else self.m.constant(u32, self._known + start, 1)
