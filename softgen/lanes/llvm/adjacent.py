"""Adjacent elements of a lane on the LLVM machine: a message that reads or writes several dwords of each lane.

The elements of a lane are one access of up to 16 bytes (its chunk), and a transposition makes vectors of them: a gather for each element
would touch every lane so many times. Chunks are contiguous, uniform, of a known stride (fast_path.py), or anywhere: those are read and
written in an access function.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from softgen.bits.units import PAGE_SIZE
from softgen.lanes.llvm import affine
from softgen.lanes.llvm.access import GATHERED, AccessFunction, AccessShape
from softgen.lanes.llvm.addressing import LlvmAddressing
from softgen.lanes.llvm.affine import EVERY
from softgen.lanes.llvm.fast_path import FastPath
from softgen.lanes.llvm.memory import _every
from softgen.lanes.llvm.region import LlvmRegions
from softgen.lanes.llvm.text import LlvmText
from softgen.lanes.types import LaneType
from softgen.lanes.value import Region, Value

LARGEST = 16  # bytes of a chunk


class LlvmAdjacent:
    """Adjacent elements of regions. Those that are not accessed together are so many accesses of the machine."""

    def __init__(self, regions: LlvmRegions) -> None:
        self.regions, self.ir, self.machine = regions, regions.ir, regions.addressing.machine

    def load(self, type: LaneType, count: int, base: Region, offsets: Value, mask: Value | None) -> list[Value]:
        ir = self.ir
        most = LARGEST // type.bytes
        if count > most:
            first = self.load(type, most, base, offsets, mask)
            return first + self.load(type, count - most, base.moved(LARGEST), offsets, mask)
        if not self._in_chunks(type, count, offsets, mask):
            return [self.machine.load(type, base.moved(type.bytes * number), offsets, mask) for number in range(count)]
        shape, vector = replace(self.regions.shape("read", type, base, offsets), count=count), ir.vector(type, offsets.lanes)
        path, places = WholePath(self.regions.addressing, shape, base, offsets, mask), [ir.place(vector) for _ in range(count)]

        def keep(vectors: Sequence[str]) -> None:
            for text, place in zip(vectors, places, strict=True):
                ir.line(f"store {vector} {text}, ptr {place}")
        for pointer in path.contiguous():
            keep(path.active(self._split(shape, pointer)))
        for pointer in path.uniform():
            element, size = ir.element(type), type.bytes
            starts = [ir.emit(f"getelementptr i8, ptr {pointer}, i64 {number * size}") for number in range(count)]
            keep(path.active([ir.splat(element, shape.lanes, ir.emit(f"load {element}, ptr {start}, align 1")) for start in starts]))
        for pointer in path.strided():
            pointers = [path.lane_pointer(pointer, lane) for lane in range(shape.lanes)]
            keep(path.active(load_chunks(ir, shape, pointers)))
        both = f"{{ {', '.join([vector] * count)} }}"
        far = self.regions.ask(shape, both, base, path.offsets(offsets), mask, [], lambda inner: AdjacentAccess(inner, shape).read())
        keep([ir.emit(f"extractvalue {both} {far}, {number}") for number in range(count)])
        path.end()
        return [Value(self.machine, type, shape.lanes, ir.emit(f"load {vector}, ptr {place}")) for place in places]

    def _in_chunks(self, type: LaneType, count: int, offsets: Value, mask: Value | None) -> bool:
        """Whether the elements of a lane are accessed together. Where lanes overlap by all but one element, each element is contiguous:
        with wide vectors these are loaded quicker than chunks (conv of the benchmarks: 2.6 ms beside 4.4 with AVX-512)."""
        ir = self.ir
        if count == 1 or type.bits < GATHERED or offsets.lanes % 4:
            return False
        known = affine.usable(self.ir, offsets.payload, _every(mask))
        return known is None or known.stride != type.bytes or ir.module.neon

    def _split(self, shape: AccessShape, pointer: str) -> list[str]:
        """Contiguous chunks."""
        ir = self.ir
        count, total = shape.count, shape.lanes * shape.count
        whole = f"<{total} x {ir.element(shape.type)}>"
        held = ir.emit(f"load {whole}, ptr {pointer}, align 1")
        orders = [", ".join(f"i32 {place}" for place in range(number, total, count)) for number in range(count)]
        return [ir.emit(f"shufflevector {whole} {held}, {whole} poison, <{shape.lanes} x i32> <{order}>") for order in orders]

    def store(self, values: list[Value], base: Region, offsets: Value, mask: Value | None) -> None:
        ir = self.ir
        type, count = values[0].type, len(values)
        most = LARGEST // type.bytes
        if count > most:
            for first in range(0, count, most):
                self.store(values[first : first + most], base.moved(first * type.bytes), offsets, mask)
            return
        if not self._in_chunks(type, count, offsets, mask):
            for number, value in enumerate(values):
                self.machine.store(value, base.moved(type.bytes * number), offsets, mask)
            return
        shape, payloads = replace(self.regions.shape("write", type, base, offsets), count=count), [str(value.payload) for value in values]
        path = WholePath(self.regions.addressing, shape, base, offsets, mask)
        for pointer in path.contiguous():
            ir.line(f"store {joined(ir, shape, payloads)}, ptr {pointer}, align 1")
        for pointer in path.strided():
            store_chunks(ir, shape, payloads, [path.lane_pointer(pointer, lane) for lane in range(shape.lanes)])
        self.regions.ask(shape, "void", base, path.offsets(offsets), mask, values, lambda inner: AdjacentAccess(inner, shape).write())
        path.end()


class WholePath(FastPath):
    """Fast paths that touch every lane. Inactive lanes may be read where they are on the page of an active one; nothing is written
    unless all are active."""

    def __init__(self, addressing: LlvmAddressing, shape: AccessShape, base: Region, offsets: Value, mask: Value | None) -> None:
        super().__init__(addressing, shape, base, offsets, mask)
        self.everyone = self.mask in (EVERY, _every(None))
        self.nearest = 1 if shape.what == "read" else shape.size  # chunks that overlap are written element by element

    def _inside(self, total: int, how: int) -> str:
        ir, good = self.ir, self._before_the_end(total)
        if self.everyone or self.quiet and self.shape.what == "read":
            return good
        bits = ir.emit(f"bitcast {self.bools} {self.mask} to {self.shape.integer}")
        whole = ir.emit(f"icmp eq {self.shape.integer} {bits}, -1")
        if self.shape.what == "read":
            start = self.bound if self.shape.table else ir.emit(f"ptrtoint ptr {self.origin} to i64")
            place = ir.emit(f"and i64 {ir.emit(f'add i64 {start}, {self.far}')}, {PAGE_SIZE - 1}")
            near = ir.emit(f"icmp ule i64 {place}, {PAGE_SIZE - total}") if total <= PAGE_SIZE else "false"
            some = ir.emit(f"icmp ne {self.shape.integer} {bits}, 0")
            whole = ir.emit(f"or i1 {whole}, {ir.emit(f'and i1 {near}, {some}')}")
        return ir.emit(f"and i1 {good}, {whole}")

    def active(self, vectors: list[str]) -> list[str]:
        """Zero in inactive lanes."""
        if self.everyone:
            return vectors
        vector = self.ir.vector(self.shape.type, self.shape.lanes)
        return [self.ir.emit(f"select {self.bools} {self.mask}, {vector} {text}, {vector} zeroinitializer") for text in vectors]


# -- transposition ---------------------------------------------------------------------------------------------------


def load_chunks(ir: LlvmText, shape: AccessShape, pointers: Sequence[str]) -> list[str]:
    """The chunks at pointers, as a vector for each element."""
    if shape.size == 8:
        return _load_pairs(ir, shape, pointers)
    element, width = ir.element(shape.type), LARGEST // shape.type.bytes
    chunk, order = f"<{shape.count} x {element}>", ", ".join(f"i32 {place if place < shape.count else 'poison'}" for place in range(width))
    chunks = [ir.emit(f"load {chunk}, ptr {pointer}, align 1") for pointer in pointers]
    if shape.count < width:
        chunks = [ir.emit(f"shufflevector {chunk} {text}, {chunk} poison, <{width} x i32> <{order}>") for text in chunks]
    rows = [_concatenated(ir, element, width, chunks[row::width]) for row in range(width)]
    return transposed(ir, ir.vector(shape.type, shape.lanes), shape.lanes, rows)[: shape.count]


def _load_pairs(ir: LlvmText, shape: AccessShape, pointers: Sequence[str]) -> list[str]:
    """Chunks of two dwords: qwords, whose halves are taken apart."""
    lanes, held = shape.lanes, "poison"
    whole, halves = f"<{lanes} x i64>", f"<{2 * lanes} x i32>"
    for lane, pointer in enumerate(pointers):
        held = ir.emit(f"insertelement {whole} {held}, i64 {ir.emit(f'load i64, ptr {pointer}, align 1')}, i64 {lane}")
    dwords, vector = ir.emit(f"bitcast {whole} {held} to {halves}"), ir.vector(shape.type, lanes)
    orders = [", ".join(f"i32 {place}" for place in range(number, 2 * lanes, 2)) for number in range(2)]
    found = [ir.emit(f"shufflevector {halves} {dwords}, {halves} poison, <{lanes} x i32> <{order}>") for order in orders]
    return found if ir.element(shape.type) == "i32" else [ir.emit(f"bitcast <{lanes} x i32> {text} to {vector}") for text in found]


def store_chunks(ir: LlvmText, shape: AccessShape, values: Sequence[str], pointers: Sequence[str]) -> None:
    """A vector for each element, as chunks at pointers."""
    width, element = LARGEST // shape.type.bytes, ir.element(shape.type)
    vector, chunk = ir.vector(shape.type, shape.lanes), f"<{shape.count} x {element}>"
    rows = transposed(ir, vector, shape.lanes, [*values, *["poison"] * (width - shape.count)])
    for lane, pointer in enumerate(pointers):
        start = lane // width * width
        order = ", ".join(f"i32 {place}" for place in range(start, start + shape.count))
        text = ir.emit(f"shufflevector {vector} {rows[lane % width]}, {vector} poison, <{shape.count} x i32> <{order}>")
        ir.line(f"store {chunk} {text}, ptr {pointer}, align 1")


def transposed(ir: LlvmText, vector: str, lanes: int, rows: list[str]) -> list[str]:
    """Squares of as many rows as there are, transposed side by side: in units of 16 bytes, as hosts shuffle them."""
    width = len(rows)
    gap = 1
    while gap < width:
        found = list(rows)
        for first in range(width):
            if not first & gap:
                found[first], found[first + gap] = _exchanged(ir, vector, lanes, rows[first], rows[first + gap], gap)
        rows, gap = found, gap * 2
    return rows


def _exchanged(ir: LlvmText, vector: str, lanes: int, a: str, b: str, gap: int) -> tuple[str, str]:
    """One step: blocks of `gap` elements off the diagonal change places."""
    if a == b == "poison":
        return a, b
    orders = ([place if not place & gap else lanes + place - gap for place in range(lanes)],
              [place + gap if not place & gap else lanes + place for place in range(lanes)])
    texts = (", ".join(f"i32 {place}" for place in order) for order in orders)
    low, high = (ir.emit(f"shufflevector {vector} {a}, {vector} {b}, <{lanes} x i32> <{text}>") for text in texts)
    return low, high


def _concatenated(ir: LlvmText, element: str, width: int, parts: Sequence[str]) -> str:
    found = list(parts)
    while len(found) > 1:
        order = ", ".join(f"i32 {place}" for place in range(2 * width))
        vector = f"<{width} x {element}>"
        found = [ir.emit(f"shufflevector {vector} {a}, {vector} {b}, <{2 * width} x i32> <{order}>")
                 for a, b in zip(found[::2], found[1::2], strict=True)]
        width *= 2
    return found[0]


def joined(ir: LlvmText, shape: AccessShape, values: Sequence[str]) -> str:
    """Contiguous chunks of a vector for each element, with their type."""
    element, lanes, count = ir.element(shape.type), shape.lanes, shape.count
    padded = [*values, *["poison"] * (-count % 2)]
    pairs = [_concatenated(ir, element, lanes, padded[first : first + 2]) for first in range(0, len(padded), 2)]
    a, b = pairs[0], pairs[1] if len(pairs) > 1 else "poison"
    order = ", ".join(f"i32 {number * lanes + lane}" for lane in range(lanes) for number in range(count))
    both = f"<{2 * lanes} x {element}>"
    return f"<{count * lanes} x {element}> " + ir.emit(f"shufflevector {both} {a}, {both} {b}, <{count * lanes} x i32> <{order}>")


# -- anywhere --------------------------------------------------------------------------------------------------------


class AdjacentAccess(AccessFunction):
    """The access function of adjacent elements: chunk by chunk if those of all active lanes are inside, else element by element."""

    def _active(self) -> str:
        ir, shape, kind = self.ir, self.shape, self.shape.integer
        if not shape.table:
            mask = self.masks.mask_of_bits(self.lanes, "%a4")
            inside = ir.emit(f"and {self.bools} {mask}, {self.addressing.below('%a3', self.kind, self.lanes, '%a2', self.size)}")
            same = ir.emit(f"icmp eq {kind} {ir.emit(f'bitcast {self.bools} {inside} to {kind}')}, %a4")
            self._else_apart(same)
        self.mask = self.masks.mask_of_bits(self.lanes, "%a4")
        some, none = ir.labels("some", "none")
        ir.line(f"br i1 {ir.emit(f'icmp eq {kind} %a4, 0')}, label %{none}, label %{some}")
        ir.start(none)
        self._give(["zeroinitializer"] * shape.count)
        ir.start(some)
        self.bits = "%a4"
        if shape.table:
            self._addresses()
        return self.bits

    def _give(self, vectors: Sequence[str]) -> None:
        ir, shape = self.ir, self.shape
        if shape.what == "write":
            ir.line("ret void")
            return
        both, whole = f"{{ {', '.join([self.vector] * shape.count)} }}", "poison"
        for number, text in enumerate(vectors):
            whole = ir.emit(f"insertvalue {both} {whole}, {self.vector} {text}, {number}")
        ir.line(f"ret {both} {whole}")

    def _else_apart(self, condition: str) -> None:
        """Goes on where a condition holds; otherwise each element is an access, and the function returns."""
        ir, shape = self.ir, self.shape
        together, apart = ir.labels("together", "elements")
        ir.line(f"br i1 {condition}, label %{together}, label %{apart}, !prof !1")
        ir.start(apart)
        one = replace(shape, count=1)
        parameters = (*one.parameters, *([self.vector] if shape.what == "write" else []))
        name = self.addressing.function(one.name, self.vector if shape.what == "read" else "void", parameters,
                                        lambda inner: getattr(AccessFunction(inner, one), shape.what)())
        found = []
        for number in range(shape.count):
            start, size = self._moved(number * shape.type.bytes)
            given = ["%a0", start, size, "%a3", "%a4", *([f"%a{5 + number}"] if shape.what == "write" else [])]
            call = f"{name}({', '.join(f'{kind} {text}' for kind, text in zip(parameters, given, strict=True))})"
            if shape.what == "read":
                found.append(ir.emit(f"call {self.vector} {call}"))
            else:
                ir.line(f"call void {call}")
        self._give(found)
        ir.start(together)

    def _moved(self, by: int) -> tuple[str, str]:
        """Host and size, or table and base, further on."""
        ir = self.ir
        if self.shape.table:
            return "%a1", ir.emit(f"add i64 %a2, {by}")
        size = ir.intrinsic("llvm.usub.sat", "i64", [("i64", "%a2"), ("i64", str(by))], ("i64",))
        return ir.emit(f"getelementptr i8, ptr %a1, i64 {by}"), size

    def _each_pointer(self) -> list[str]:
        """The pointers of all lanes; inactive ones read zeros."""
        ir, far, pointers = self.ir, f"<{self.lanes} x i64>", f"<{self.lanes} x ptr>"
        if self.shape.table:
            found = ir.emit(f"inttoptr {far} {ir.emit(f'load {far}, ptr {self._stored_pointers()}')} to {pointers}")
        else:
            found = self._pointers()
        safe = ir.emit(f"select {self.bools} {self.mask}, {pointers} {found}, {pointers} {ir.splat('ptr', self.lanes, self.masks.zeros())}")
        return [ir.emit(f"extractelement {pointers} {safe}, i64 {lane}") for lane in range(self.lanes)]

    def read(self) -> None:
        if not self.shape.quiet:
            self._remember()
        self._give(load_chunks(self.ir, self.shape, self._each_pointer()))

    def write(self) -> None:
        """Lanes at offsets that differ by multiples of a chunk's size do not overlap in part: then lane by lane is in order, too."""
        ir, shape, kind = self.ir, self.shape, f"<{self.lanes} x {self.kind}>"
        _, value, _ = self._first()
        rest = ir.emit(f"and {kind} {ir.emit(f'sub {kind} {self.where}, {ir.splat(self.kind, self.lanes, value)}')}, "
                      f"splat ({self.kind} {self.size - 1})")
        apart = self._all(ir.emit(f"icmp eq {kind} {rest}, zeroinitializer")) if self.size & self.size - 1 == 0 else "false"
        self._else_apart(apart)
        given = ir.place(f"<{self.lanes * shape.count} x {ir.element(shape.type)}>")
        ir.line(f"store {joined(ir, shape, [f'%a{5 + number}' for number in range(shape.count)])}, ptr {given}")
        offsets, chunk = self._remember(), f"<{shape.count} x {ir.element(shape.type)}>"

        def store_lane(lane: str) -> None:
            start = ir.emit(f"getelementptr i8, ptr {given}, i64 {ir.emit(f'mul i64 {lane}, {self.size}')}")
            held = ir.emit(f"load {chunk}, ptr {start}, align {shape.type.bytes}")
            ir.line(f"store {chunk} {held}, ptr {self._place(offsets, lane)}, align 1")
        self._each(store_lane)
        ir.line("ret void")
