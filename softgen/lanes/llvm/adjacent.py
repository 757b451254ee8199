"""Adjacent elements of a lane on the LLVM machine: a message that reads or writes several dwords of each lane.

The elements of a lane are one access of up to 16 bytes (its chunk), and a transposition makes vectors of them: a gather for each element
would touch every lane so many times. Chunks are contiguous, uniform, of a known stride (llvm_fast_path.py), or anywhere: those are read and
written in an access function.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from softgen.bits.units import PAGE_SIZE
from softgen.lanes.llvm import affine
from softgen.lanes.llvm.access import GATHERED, AccessFunction, AccessShape
from softgen.lanes.llvm.affine import EVERY
from softgen.lanes.llvm.blocks import LlvmBlocks
from softgen.lanes.llvm.fast_path import FastPath
from softgen.lanes.llvm.memory import _every
from softgen.lanes.llvm.region import LlvmRegions
from softgen.lanes.types import LaneType
from softgen.lanes.value import Region, Value

LARGEST = 16  # bytes of a chunk


class LlvmAdjacent(LlvmBlocks):
    """Adjacent elements of regions."""

    def _load_adjacent(self, type: LaneType, count: int, base: Region, offsets: Value, mask: Value | None) -> list[Value]:
        most = LARGEST // type.bytes
        if count > most:
            first = self._load_adjacent(type, most, base, offsets, mask)
            return first + self._load_adjacent(type, count - most, base.moved(LARGEST), offsets, mask)
        if not self._in_chunks(type, count, offsets, mask):
            return super()._load_adjacent(type, count, base, offsets, mask)
        shape, vector = replace(self._shape("read", type, base, offsets), count=count), self.vector(type, offsets.lanes)
        path, places = WholePath(self, shape, base, offsets, mask), [self.place(vector) for _ in range(count)]

        def keep(vectors: Sequence[str]) -> None:
            for text, place in zip(vectors, places, strict=True):
                self.line(f"store {vector} {text}, ptr {place}")
        for pointer in path.contiguous():
            keep(path.active(self._split(shape, pointer)))
        for pointer in path.uniform():
            element, size = self.element(type), type.bytes
            starts = [self.emit(f"getelementptr i8, ptr {pointer}, i64 {number * size}") for number in range(count)]
            keep(path.active([self._splat(element, shape.lanes, self.emit(f"load {element}, ptr {start}, align 1")) for start in starts]))
        for pointer in path.strided():
            pointers = [path.lane_pointer(pointer, lane) for lane in range(shape.lanes)]
            keep(path.active(load_chunks(self, shape, pointers)))
        both = f"{{ {', '.join([vector] * count)} }}"
        far = self._ask(shape, both, base, path.offsets(offsets), mask, [], lambda inner: AdjacentAccess(inner, shape).read())
        keep([self.emit(f"extractvalue {both} {far}, {number}") for number in range(count)])
        path.end()
        return [self._value(type, shape.lanes, self.emit(f"load {vector}, ptr {place}")) for place in places]

    def _in_chunks(self, type: LaneType, count: int, offsets: Value, mask: Value | None) -> bool:
        """Whether the elements of a lane are accessed together. Where lanes overlap by all but one element, each element is contiguous:
        with wide vectors these are loaded quicker than chunks (conv of the benchmarks: 2.6 ms beside 4.4 with AVX-512)."""
        if count == 1 or type.bits < GATHERED or offsets.lanes % 4:
            return False
        known = affine.usable(self, offsets.payload, _every(mask))
        return known is None or known.stride != type.bytes or self.module.neon

    def _split(self, shape: AccessShape, pointer: str) -> list[str]:
        """Contiguous chunks."""
        count, total = shape.count, shape.lanes * shape.count
        whole = f"<{total} x {self.element(shape.type)}>"
        held = self.emit(f"load {whole}, ptr {pointer}, align 1")
        orders = [", ".join(f"i32 {place}" for place in range(number, total, count)) for number in range(count)]
        return [self.emit(f"shufflevector {whole} {held}, {whole} poison, <{shape.lanes} x i32> <{order}>") for order in orders]

    def _store_adjacent(self, values: list[Value], base: Region, offsets: Value, mask: Value | None) -> None:
        type, count = values[0].type, len(values)
        most = LARGEST // type.bytes
        if count > most:
            for first in range(0, count, most):
                self._store_adjacent(values[first : first + most], base.moved(first * type.bytes), offsets, mask)
            return
        if not self._in_chunks(type, count, offsets, mask):
            super()._store_adjacent(values, base, offsets, mask)
            return
        shape, payloads = replace(self._shape("write", type, base, offsets), count=count), [str(value.payload) for value in values]
        path = WholePath(self, shape, base, offsets, mask)
        for pointer in path.contiguous():
            self.line(f"store {joined(self, shape, payloads)}, ptr {pointer}, align 1")
        for pointer in path.strided():
            store_chunks(self, shape, payloads, [path.lane_pointer(pointer, lane) for lane in range(shape.lanes)])
        self._ask(shape, "void", base, path.offsets(offsets), mask, values, lambda inner: AdjacentAccess(inner, shape).write())
        path.end()


class WholePath(FastPath):
    """Fast paths that touch every lane. Inactive lanes may be read where they are on the page of an active one; nothing is written
    unless all are active."""

    def __init__(self, m: LlvmRegions, shape: AccessShape, base: Region, offsets: Value, mask: Value | None) -> None:
        super().__init__(m, shape, base, offsets, mask)
        self.everyone = self.mask in (EVERY, _every(None))
        self.nearest = 1 if shape.what == "read" else shape.size  # chunks that overlap are written element by element

    def _inside(self, total: int, how: int) -> str:
        m, good = self.m, self._before_the_end(total)
        if self.everyone or self.quiet and self.shape.what == "read":
            return good
        bits = m.emit(f"bitcast {self.bools} {self.mask} to {self.shape.integer}")
        whole = m.emit(f"icmp eq {self.shape.integer} {bits}, -1")
        if self.shape.what == "read":
            start = self.bound if self.shape.table else m.emit(f"ptrtoint ptr {self.origin} to i64")
            place = m.emit(f"and i64 {m.emit(f'add i64 {start}, {self.far}')}, {PAGE_SIZE - 1}")
            near = m.emit(f"icmp ule i64 {place}, {PAGE_SIZE - total}") if total <= PAGE_SIZE else "false"
            some = m.emit(f"icmp ne {self.shape.integer} {bits}, 0")
            whole = m.emit(f"or i1 {whole}, {m.emit(f'and i1 {near}, {some}')}")
        return m.emit(f"and i1 {good}, {whole}")

    def active(self, vectors: list[str]) -> list[str]:
        """Zero in inactive lanes."""
        if self.everyone:
            return vectors
        vector = self.m.vector(self.shape.type, self.shape.lanes)
        return [self.m.emit(f"select {self.bools} {self.mask}, {vector} {text}, {vector} zeroinitializer") for text in vectors]


# -- transposition ---------------------------------------------------------------------------------------------------


def load_chunks(m: LlvmRegions, shape: AccessShape, pointers: Sequence[str]) -> list[str]:
    """The chunks at pointers, as a vector for each element."""
    if shape.size == 8:
        return _load_pairs(m, shape, pointers)
    element, width = m.element(shape.type), LARGEST // shape.type.bytes
    chunk, order = f"<{shape.count} x {element}>", ", ".join(f"i32 {place if place < shape.count else 'poison'}" for place in range(width))
    chunks = [m.emit(f"load {chunk}, ptr {pointer}, align 1") for pointer in pointers]
    if shape.count < width:
        chunks = [m.emit(f"shufflevector {chunk} {text}, {chunk} poison, <{width} x i32> <{order}>") for text in chunks]
    rows = [_concatenated(m, element, width, chunks[row::width]) for row in range(width)]
    return transposed(m, m.vector(shape.type, shape.lanes), shape.lanes, rows)[: shape.count]


def _load_pairs(m: LlvmRegions, shape: AccessShape, pointers: Sequence[str]) -> list[str]:
    """Chunks of two dwords: qwords, whose halves are taken apart."""
    lanes, held = shape.lanes, "poison"
    whole, halves = f"<{lanes} x i64>", f"<{2 * lanes} x i32>"
    for lane, pointer in enumerate(pointers):
        held = m.emit(f"insertelement {whole} {held}, i64 {m.emit(f'load i64, ptr {pointer}, align 1')}, i64 {lane}")
    dwords, vector = m.emit(f"bitcast {whole} {held} to {halves}"), m.vector(shape.type, lanes)
    orders = [", ".join(f"i32 {place}" for place in range(number, 2 * lanes, 2)) for number in range(2)]
    found = [m.emit(f"shufflevector {halves} {dwords}, {halves} poison, <{lanes} x i32> <{order}>") for order in orders]
    return found if m.element(shape.type) == "i32" else [m.emit(f"bitcast <{lanes} x i32> {text} to {vector}") for text in found]


def store_chunks(m: LlvmRegions, shape: AccessShape, values: Sequence[str], pointers: Sequence[str]) -> None:
    """A vector for each element, as chunks at pointers."""
    width, element = LARGEST // shape.type.bytes, m.element(shape.type)
    vector, chunk = m.vector(shape.type, shape.lanes), f"<{shape.count} x {element}>"
    rows = transposed(m, vector, shape.lanes, [*values, *["poison"] * (width - shape.count)])
    for lane, pointer in enumerate(pointers):
        start = lane // width * width
        order = ", ".join(f"i32 {place}" for place in range(start, start + shape.count))
        text = m.emit(f"shufflevector {vector} {rows[lane % width]}, {vector} poison, <{shape.count} x i32> <{order}>")
        m.line(f"store {chunk} {text}, ptr {pointer}, align 1")


def transposed(m: LlvmRegions, vector: str, lanes: int, rows: list[str]) -> list[str]:
    """Squares of as many rows as there are, transposed side by side: in units of 16 bytes, as hosts shuffle them."""
    width = len(rows)
    gap = 1
    while gap < width:
        found = list(rows)
        for first in range(width):
            if not first & gap:
                found[first], found[first + gap] = _exchanged(m, vector, lanes, rows[first], rows[first + gap], gap)
        rows, gap = found, gap * 2
    return rows


def _exchanged(m: LlvmRegions, vector: str, lanes: int, a: str, b: str, gap: int) -> tuple[str, str]:
    """One step: blocks of `gap` elements off the diagonal change places."""
    if a == b == "poison":
        return a, b
    orders = ([place if not place & gap else lanes + place - gap for place in range(lanes)],
              [place + gap if not place & gap else lanes + place for place in range(lanes)])
    texts = (", ".join(f"i32 {place}" for place in order) for order in orders)
    low, high = (m.emit(f"shufflevector {vector} {a}, {vector} {b}, <{lanes} x i32> <{text}>") for text in texts)
    return low, high


def _concatenated(m: LlvmRegions, element: str, width: int, parts: Sequence[str]) -> str:
    found = list(parts)
    while len(found) > 1:
        order = ", ".join(f"i32 {place}" for place in range(2 * width))
        vector = f"<{width} x {element}>"
        found = [m.emit(f"shufflevector {vector} {a}, {vector} {b}, <{2 * width} x i32> <{order}>")
                 for a, b in zip(found[::2], found[1::2], strict=True)]
        width *= 2
    return found[0]


def joined(m: LlvmRegions, shape: AccessShape, values: Sequence[str]) -> str:
    """Contiguous chunks of a vector for each element, with their type."""
    element, lanes, count = m.element(shape.type), shape.lanes, shape.count
    padded = [*values, *["poison"] * (-count % 2)]
    pairs = [_concatenated(m, element, lanes, padded[first : first + 2]) for first in range(0, len(padded), 2)]
    a, b = pairs[0], pairs[1] if len(pairs) > 1 else "poison"
    order = ", ".join(f"i32 {number * lanes + lane}" for lane in range(lanes) for number in range(count))
    both = f"<{2 * lanes} x {element}>"
    return f"<{count * lanes} x {element}> " + m.emit(f"shufflevector {both} {a}, {both} {b}, <{count * lanes} x i32> <{order}>")


# -- anywhere --------------------------------------------------------------------------------------------------------


class AdjacentAccess(AccessFunction):
    """The access function of adjacent elements: chunk by chunk if those of all active lanes are inside, else element by element."""

    m: LlvmRegions

    def _active(self) -> str:
        m, shape, kind = self.m, self.shape, self.shape.integer
        if not shape.table:
            mask = m.mask_of_bits(self.lanes, "%a4")
            inside = m.emit(f"and {self.bools} {mask}, {m.below('%a3', self.kind, self.lanes, '%a2', self.size)}")
            same = m.emit(f"icmp eq {kind} {m.emit(f'bitcast {self.bools} {inside} to {kind}')}, %a4")
            self._else_apart(same)
        self.mask = m.mask_of_bits(self.lanes, "%a4")
        some, none = m.labels("some", "none")
        m.line(f"br i1 {m.emit(f'icmp eq {kind} %a4, 0')}, label %{none}, label %{some}")
        m.start(none)
        self._give(["zeroinitializer"] * shape.count)
        m.start(some)
        self.bits = "%a4"
        if shape.table:
            self._addresses()
        return self.bits

    def _give(self, vectors: Sequence[str]) -> None:
        m, shape = self.m, self.shape
        if shape.what == "write":
            m.line("ret void")
            return
        both, whole = f"{{ {', '.join([self.vector] * shape.count)} }}", "poison"
        for number, text in enumerate(vectors):
            whole = m.emit(f"insertvalue {both} {whole}, {self.vector} {text}, {number}")
        m.line(f"ret {both} {whole}")

    def _else_apart(self, condition: str) -> None:
        """Goes on where a condition holds; otherwise each element is an access, and the function returns."""
        m, shape = self.m, self.shape
        together, apart = m.labels("together", "elements")
        m.line(f"br i1 {condition}, label %{together}, label %{apart}, !prof !1")
        m.start(apart)
        one = replace(shape, count=1)
        parameters = (*one.parameters, *([self.vector] if shape.what == "write" else []))
        name = m.internal(one.name, self.vector if shape.what == "read" else "void", parameters,
                          lambda inner: getattr(AccessFunction(inner, one), shape.what)())
        found = []
        for number in range(shape.count):
            start, size = self._moved(number * shape.type.bytes)
            given = ["%a0", start, size, "%a3", "%a4", *([f"%a{5 + number}"] if shape.what == "write" else [])]
            call = f"{name}({', '.join(f'{kind} {text}' for kind, text in zip(parameters, given, strict=True))})"
            if shape.what == "read":
                found.append(m.emit(f"call {self.vector} {call}"))
            else:
                m.line(f"call void {call}")
        self._give(found)
        m.start(together)

    def _moved(self, by: int) -> tuple[str, str]:
        """Host and size, or table and base, further on."""
        m = self.m
        if self.shape.table:
            return "%a1", m.emit(f"add i64 %a2, {by}")
        size = m.intrinsic("llvm.usub.sat", "i64", [("i64", "%a2"), ("i64", str(by))], ("i64",))
        return m.emit(f"getelementptr i8, ptr %a1, i64 {by}"), size

    def _each_pointer(self) -> list[str]:
        """The pointers of all lanes; inactive ones read zeros."""
        m, far, pointers = self.m, f"<{self.lanes} x i64>", f"<{self.lanes} x ptr>"
        if self.shape.table:
            found = m.emit(f"inttoptr {far} {m.emit(f'load {far}, ptr {self._stored_pointers()}')} to {pointers}")
        else:
            found = self._pointers()
        safe = m.emit(f"select {self.bools} {self.mask}, {pointers} {found}, {pointers} {m._splat('ptr', self.lanes, m.zeros())}")
        return [m.emit(f"extractelement {pointers} {safe}, i64 {lane}") for lane in range(self.lanes)]

    def read(self) -> None:
        if not self.shape.quiet:
            self._remember()
        self._give(load_chunks(self.m, self.shape, self._each_pointer()))

    def write(self) -> None:
        """Lanes at offsets that differ by multiples of a chunk's size do not overlap in part: then lane by lane is in order, too."""
        m, shape, kind = self.m, self.shape, f"<{self.lanes} x {self.kind}>"
        _, value, _ = self._first()
        rest = m.emit(f"and {kind} {m.emit(f'sub {kind} {self.where}, {m._splat(self.kind, self.lanes, value)}')}, "
                      f"splat ({self.kind} {self.size - 1})")
        apart = self._all(m.emit(f"icmp eq {kind} {rest}, zeroinitializer")) if self.size & self.size - 1 == 0 else "false"
        self._else_apart(apart)
        given = m.place(f"<{self.lanes * shape.count} x {m.element(shape.type)}>")
        m.line(f"store {joined(m, shape, [f'%a{5 + number}' for number in range(shape.count)])}, ptr {given}")
        offsets, chunk = self._remember(), f"<{shape.count} x {m.element(shape.type)}>"

        def store_lane(lane: str) -> None:
            start = m.emit(f"getelementptr i8, ptr {given}, i64 {m.emit(f'mul i64 {lane}, {self.size}')}")
            held = m.emit(f"load {chunk}, ptr {start}, align {shape.type.bytes}")
            m.line(f"store {chunk} {held}, ptr {self._place(offsets, lane)}, align 1")
        self._each(store_lane)
        m.line("ret void")
