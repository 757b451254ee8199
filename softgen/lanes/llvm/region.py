"""Regions of graphics memory on the LLVM machine.

A region is host memory of a size (`FlatRegion`), or graphics addresses that a table translates (`TableRegion`: one entry for each 4 GiB,
see softgen.memory.arena). Whether offsets are contiguous, uniform or divergent is known when the code is written (affine.py) or
tested at run time: by an inline fast path (fast_path.py), then by an access function that the module shares (access.py).

Before graphics memory is touched a note is written, so that a fault can be attributed to its lane: a word with the mask and flags, the
base, and the offsets (64-bit words from `note` on). Code that finds a bad address itself calls guard_leave.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from softgen.bits.units import PAGE_SIZE
from softgen.lanes.code_machine import HostPointer, Scalar
from softgen.lanes.llvm.access import GATHERED, SIZE_SHIFT, WIDE, AccessFunction, AccessShape, OneLane
from softgen.lanes.llvm.addressing import LEAVE, FlatRegion, LlvmAddressing, TableRegion
from softgen.lanes.llvm.affine import EVERY
from softgen.lanes.llvm.fast_path import FastPath
from softgen.lanes.llvm.memory import _every, atomic_lane, plain_lane
from softgen.lanes.types import LaneType, u64
from softgen.lanes.value import Operators, Region, Value


class LlvmRegions:
    """Loads, stores and atomics of regions."""

    def __init__(self, addressing: LlvmAddressing) -> None:
        self.addressing, self.ir, self.masks = addressing, addressing.ir, addressing.masks

    def load(self, type: LaneType, base: Region, offsets: Value, mask: Value | None) -> Any:
        ir = self.ir
        if isinstance(base.payload, FlatRegion) and base.payload.scattered and type.bits >= GATHERED:
            return self._gather(type, base, offsets, mask)
        shape, vector = self.shape("read", type, base, offsets), ir.vector(type, offsets.lanes)
        path, found = FastPath(self.addressing, shape, base, offsets, mask), ir.place(vector)
        for pointer in path.contiguous():
            if path.affine and not shape.quiet:
                self.addressing.prefetch(base.payload, pointer)
            self._contiguous_load(path, pointer, found)
        for pointer in path.uniform():
            element = ir.element(type)
            every = ir.splat(element, shape.lanes, ir.emit(f"load {element}, ptr {pointer}, align 1"))
            on = ir.emit(f"select {path.bools} {path.mask}, {vector} {every}, {vector} zeroinitializer")
            ir.line(f"store {vector} {on}, ptr {found}")
        for pointer in path.strided():
            ir.line(f"store {vector} {self._strided_load(path, pointer)}, ptr {found}")
        for pointers in path.anywhere() if type.bits <= GATHERED else ():
            ir.line(f"store {vector} {self._gathered_dwords(path, pointers)}, ptr {found}")
        if self._in_place(shape):
            far = self._gather_inside(shape, base, path.offsets(offsets), mask)
        else:
            far = self.ask(shape, vector, base, path.offsets(offsets), mask, [], lambda inner: AccessFunction(inner, shape).read())
        ir.line(f"store {vector} {far}, ptr {found}")
        path.end()
        return ir.emit(f"load {vector}, ptr {found}")

    def _contiguous_load(self, path: FastPath, pointer: str, result: str) -> None:
        """Load the active lanes into the place `result`; zeros for others. If a masked load is a branch for each lane, inactive lanes are
        read, too, if they are on the page of an active one."""
        ir = self.ir
        shape, vector = path.shape, ir.vector(path.shape.type, path.shape.lanes)
        operands = [("ptr", pointer), ("i32", "1"), (path.bools, path.mask), (vector, "zeroinitializer")]

        def load_masked() -> None:
            ir.line(f"store {vector} {ir.intrinsic('llvm.masked.load', vector, operands, (vector, 'ptr'))}, ptr {result}")

        if path.mask in (EVERY, _every(None)) or self._masks_lanes(shape):
            load_masked()
            return
        near, far, done = ir.labels("page", "pages", "loaded")
        place = ir.emit(f"and i64 {ir.emit(f'ptrtoint ptr {pointer} to i64')}, {PAGE_SIZE - 1}")
        on_page = ir.emit(f"icmp ule i64 {place}, {PAGE_SIZE - shape.lanes * shape.size}")
        some = self.masks.any_lane(shape.lanes, path.mask)
        ir.line(f"br i1 {ir.emit(f'and i1 {on_page}, {some}')}, label %{near}, label %{far}, !prof !1")
        ir.start(near)
        whole = ir.emit(f"load {vector}, ptr {pointer}, align 1")
        active = ir.emit(f"select {path.bools} {path.mask}, {vector} {whole}, {vector} zeroinitializer")
        ir.line(f"store {vector} {active}, ptr {result}")
        ir.line(f"br label %{done}")
        ir.start(far)
        load_masked()
        ir.line(f"br label %{done}")
        ir.start(done)

    def _contiguous_store(self, path: FastPath, pointer: str, value: str) -> None:
        """Store the active lanes. Where a masked store is a branch for each lane, all are stored at once if all are active."""
        ir = self.ir
        shape, vector = path.shape, ir.vector(path.shape.type, path.shape.lanes)
        operands = [(vector, value), ("ptr", pointer), ("i32", "1"), (path.bools, path.mask)]
        if path.mask in (EVERY, _every(None)) or self._masks_lanes(shape):
            ir.intrinsic("llvm.masked.store", "void", operands, (vector, "ptr"))
            return
        every, some, done = ir.labels("every", "some", "stored")
        inactive = ir.emit(f"xor {path.bools} {path.mask}, splat (i1 true)")
        ir.line(f"br i1 {self.masks.any_lane(shape.lanes, inactive)}, label %{some}, label %{every}")
        ir.start(every)
        ir.line(f"store {vector} {value}, ptr {pointer}, align 1")
        ir.line(f"br label %{done}")
        ir.start(some)
        ir.intrinsic("llvm.masked.store", "void", operands, (vector, "ptr"))
        ir.line(f"br label %{done}")
        ir.start(done)

    def _masks_lanes(self, shape: AccessShape) -> bool:
        """Whether a masked load or store is one instruction on the host."""
        ir = self.ir
        return not ir.module.neon and (shape.type.bits >= GATHERED or ir.module.has("avx512bw") and ir.module.has("avx512vl"))

    def _in_place(self, shape: AccessShape) -> bool:
        """Whether divergent lanes need no call: of memory that cannot be missing, where a gather or scatter is one instruction. On NEON
        neither is, but loads that are not masked are short enough."""
        ir = self.ir
        native = ir.module.has("avx512f") or ir.module.neon and shape.what == "read"
        return shape.quiet and not shape.wide and shape.type.bits >= GATHERED and native

    def _gather_inside(self, shape: AccessShape, base: Region, offsets: Value, mask: Value | None) -> str:
        """The lanes before the size ends; a call would spill every vector."""
        ir = self.ir
        vector, lanes, (origin, size) = ir.vector(shape.type, shape.lanes), shape.lanes, self.addressing.origin(base)
        near = self.addressing.below(offsets.payload, shape.offset, lanes, size, shape.size)
        inside = ir.emit(f"and <{lanes} x i1> {_every(mask)}, {near}")
        if not ir.module.neon:
            return self._gathered(vector, lanes, origin, offsets, inside)
        some = ir.emit(f"icmp uge i64 {size}, {shape.size}")
        origin = ir.emit(f"select i1 {some}, ptr {origin}, ptr {self.masks.zeros()}")
        last = ir.intrinsic("llvm.usub.sat", "i64", [("i64", size), ("i64", str(shape.size))], ("i64",))
        last = ir.intrinsic("llvm.umin", "i64", [("i64", last), ("i64", str(0xFFFFFFFF))], ("i64",))
        kind = f"<{lanes} x i32>"
        splat = ir.splat("i32", lanes, ir.emit(f"trunc i64 {last} to i32"))
        near = ir.intrinsic("llvm.umin", kind, [(kind, str(offsets.payload)), (kind, splat)], (kind,))
        found = self._gathered(vector, lanes, origin, Value(offsets.machine, offsets.type, lanes, near), "splat (i1 true)")
        return ir.emit(f"select <{lanes} x i1> {inside}, {vector} {found}, {vector} zeroinitializer")

    def _gathered(self, vector: str, lanes: int, origin: str, offsets: Value, mask: str) -> str:
        ir = self.ir
        pointers = ir.emit(f"getelementptr i8, ptr {origin}, <{lanes} x i64> {ir.far(offsets)}")
        return self._gather_from(vector, lanes, pointers, mask)

    def _gather_from(self, vector: str, lanes: int, pointers: str, mask: str) -> str:
        places = f"<{lanes} x ptr>"
        operands = [(places, pointers), ("i32", "1"), (f"<{lanes} x i1>", mask), (vector, "zeroinitializer")]
        return self.ir.intrinsic("llvm.masked.gather", vector, operands, (vector, places))

    def _scatter_to(self, path: FastPath, value: str, pointers: str, mask: str) -> None:
        ir = self.ir
        vector, places = ir.vector(path.shape.type, path.shape.lanes), f"<{path.shape.lanes} x ptr>"
        operands = [(vector, value), (places, pointers), ("i32", "1"), (path.bools, mask)]
        ir.intrinsic("llvm.masked.scatter", "void", operands, (vector, places))

    def _gathered_dwords(self, path: FastPath, pointers: str) -> str:
        """Lanes of up to 32 bits, gathered as dwords."""
        ir = self.ir
        lanes, type = path.shape.lanes, path.shape.type
        dwords = f"<{lanes} x i32>"
        found = self._gather_from(dwords, lanes, pointers, path.mask)
        if type.bits == GATHERED:
            return ir.emit(f"bitcast {dwords} {found} to {ir.vector(type, lanes)}")
        narrow = ir.emit(f"trunc {dwords} {found} to <{lanes} x i{type.bits}>")
        return ir.emit(f"bitcast <{lanes} x i{type.bits}> {narrow} to {ir.vector(type, lanes)}")

    def _scatter_inside(self, path: FastPath, base: Region, offsets: Value, value: Value) -> None:
        """Scatter of the lanes that are inside of the region."""
        ir = self.ir
        shape, (origin, size) = path.shape, self.addressing.origin(base)
        lanes = shape.lanes
        inside = ir.emit(f"and {path.bools} {path.mask}, {self.addressing.below(offsets.payload, shape.offset, lanes, size, shape.size)}")
        pointers = ir.emit(f"getelementptr i8, ptr {origin}, <{lanes} x i64> {ir.far(offsets)}")
        self._scatter_to(path, value.payload, pointers, inside)

    def _strided_load(self, path: FastPath, pointer: str) -> str:
        ir = self.ir
        type, lanes = path.shape.type, path.shape.lanes
        vector, element = ir.vector(type, lanes), ir.element(type)
        if type.bits >= GATHERED:
            return self._gather_from(vector, lanes, path.lane_pointers(pointer), path.mask)
        found = "poison"
        for lane in range(lanes):
            value = ir.emit(f"load {element}, ptr {path.lane_pointer(pointer, lane)}, align 1")
            found = ir.emit(f"insertelement {vector} {found}, {element} {value}, i64 {lane}")
        return found

    def _strided_store(self, path: FastPath, pointer: str, value: str) -> None:
        ir = self.ir
        type, lanes = path.shape.type, path.shape.lanes
        vector, element = ir.vector(type, lanes), ir.element(type)
        if type.bits >= GATHERED:
            self._scatter_to(path, value, path.lane_pointers(pointer), path.mask)
            return
        for lane in range(lanes):  # where they meet, the highest wins
            text = ir.emit(f"extractelement {vector} {value}, i64 {lane}")
            ir.line(f"store {element} {text}, ptr {path.lane_pointer(pointer, lane)}, align 1")

    def _gather(self, type: LaneType, base: Region, offsets: Value, mask: Value | None) -> str:
        """A gather in place: a call would spill every vector."""
        ir = self.ir
        lanes, wide, every = offsets.lanes, offsets.type is u64, _every(mask)
        kind, far, origin = ir.vector(offsets.type, lanes), f"<{lanes} x i64>", self.addressing.origin(base)[0]
        bits = ir.emit(f"zext i{lanes} {ir.emit(f'bitcast <{lanes} x i1> {every} to i{lanes}')} to i64")
        word = ir.emit(f"or i64 {bits}, {type.bytes << SIZE_SHIFT | WIDE * wide}")
        self.write_note(base, word, ir.emit(f"ptrtoint ptr {origin} to i64"))
        ir.line(f"store {kind} {offsets.payload}, ptr {ir.emit(f'getelementptr i64, ptr {base.payload.note}, i64 2')}, align 8")
        self.addressing.noted()
        places = offsets.payload
        if not wide:    # hosts gather with signed indices of 32 bits: these count from the middle
            origin = ir.emit(f"getelementptr i8, ptr {origin}, i64 {1 << 31}")
            places = ir.emit(f"sext {kind} {ir.emit(f'xor {kind} {places}, splat (i32 {-(1 << 31)})')} to {far}")
        pointers = ir.emit(f"getelementptr i8, ptr {origin}, {far} {places}")
        return self._gather_from(ir.vector(type, lanes), lanes, pointers, every)

    def store(self, value: Value, base: Region, offsets: Value, mask: Value | None) -> None:
        shape = self.shape("write", value.type, base, offsets)
        path = FastPath(self.addressing, shape, base, offsets, mask)
        for pointer in path.contiguous():
            self._contiguous_store(path, pointer, value.payload)
        for pointer in path.strided():
            self._strided_store(path, pointer, value.payload)
        for pointers in path.anywhere() if value.type.bits == GATHERED else ():
            self._scatter_to(path, value.payload, pointers, path.mask)
        if self._in_place(shape):
            self._scatter_inside(path, base, path.offsets(offsets), value)
        else:
            self.ask(shape, "void", base, path.offsets(offsets), mask, [value], lambda inner: AccessFunction(inner, shape).write())
        path.end()

    def atomic(self, op: str, type: LaneType, base: Region, offsets: Value, operands: list[Any], mask: Value | None) -> Any:
        shape = self.shape(op, type, base, offsets)
        values = [Value(offsets.machine, type, offsets.lanes, operand) for operand in operands]

        def one_lane(how: Callable[..., str]) -> Callable[[LlvmAddressing], OneLane]:
            def act(inner: LlvmAddressing, place: str, operands: list[str]) -> tuple[str, str]:
                old = how(inner.ir, op, type, place, operands)
                return old, old
            return lambda inner: partial(act, inner)
        return self._change(shape, base, offsets, mask, values, one_lane(atomic_lane), one_lane(plain_lane))[0]

    def update(self, type: LaneType, base: Region, offsets: Value, operands: list[Value], mask: Value,
                function: Callable[..., Value]) -> tuple[Any, Any]:
        if not function.__name__.isidentifier():
            raise TypeError(f"a function for update must have a name of its own, not {function.__name__}")
        shape = self.shape(function.__name__, type, base, offsets)
        return self._change(shape, base, offsets, mask, operands,
                            lambda inner: lambda place, given: retry(inner, type, place, given, function),
                            lambda inner: lambda place, given: replace(inner, type, place, given, function))

    def shape(self, what: str, type: LaneType, base: Region, offsets: Value) -> AccessShape:
        place = base.payload
        table = isinstance(place, TableRegion)
        return AccessShape(what, type, offsets.lanes, offsets.type is u64, table, not table and place.quiet,
                     place.bits if table else 0, table and place.canonical)

    def ask(self, shape: AccessShape, result: str, base: Region, offsets: Value, mask: Value | None, values: list[Value],
             build: Callable[[LlvmAddressing], None]) -> str:
        """Calls the function for an access, which is written first where the module has none yet."""
        ir = self.ir
        parameters = (*shape.parameters, *(ir.vector(value.type, value.lanes) for value in values))
        name = self.addressing.function(shape.name, result, parameters, build)
        self.addressing.announce(base)
        bits = ir.emit(f"bitcast <{shape.lanes} x i1> {_every(mask)} to {shape.integer}")
        given = (base.payload.note, *self.addressing.origin(base), offsets.payload, bits, *(value.payload for value in values))
        call = f"call {result} {name}({', '.join(f'{kind} {text}' for kind, text in zip(parameters, given, strict=True))})"
        if result != "void":
            return ir.emit(call)
        ir.line(call)
        return ""

    def _change(self, shape: AccessShape, base: Region, offsets: Value, mask: Value | None, operands: list[Value],
                one_lane: Callable[[LlvmAddressing], OneLane], alone: Callable[[LlvmAddressing], OneLane]) -> tuple[str, str]:
        ir = self.ir
        vector = ir.vector(shape.type, shape.lanes)
        both = f"{{ {vector}, {vector} }}"
        pair = self.ask(shape, both, base, offsets, mask, operands,
                        lambda inner: AccessFunction(inner, shape).change(operands, one_lane(inner), alone(inner)))
        return ir.emit(f"extractvalue {both} {pair}, 0"), ir.emit(f"extractvalue {both} {pair}, 1")

    def write_note(self, base: Region, word: str, at: str) -> None:
        ir = self.ir
        if isinstance(base.payload, FlatRegion) and base.payload.quiet:
            return
        self.addressing.announce(base)
        for place, text in enumerate((word, at)):
            ir.line(f"store i64 {text}, ptr {ir.emit(f'getelementptr i64, ptr {base.payload.note}, i64 {place}')}")
        self.addressing.noted()

    def inside(self, base: Region, offsets: Value, size: int) -> Any:
        if isinstance(base.payload, TableRegion):
            return "splat (i1 true)"
        return self.addressing.below(self.ir.far(offsets), "i64", offsets.lanes, self.addressing.origin(base)[1], size)


def retry(addressing: LlvmAddressing, type: LaneType, place: str, operands: list[str], function: Callable[..., Value]) -> tuple[str, str]:
    """Compute and compare-exchange until no other thread has changed the value."""
    ir = addressing.ir
    element, expected = ir.element(type), ir.place(ir.element(type))
    ir.line(f"store {element} {ir.emit(f'load atomic {element}, ptr {place} monotonic, align {type.bytes}')}, ptr {expected}")
    again, done = ir.labels("again", "changed")
    ir.line(f"br label %{again}")
    ir.start(again)
    old = ir.emit(f"load {element}, ptr {expected}")
    new = _computed_once(addressing, type, [old, *operands], function)
    pair = ir.emit(f"cmpxchg ptr {place}, {element} {old}, {element} {new} seq_cst seq_cst, align {type.bytes}")
    ir.line(f"store {element} {ir.emit(f'extractvalue {{ {element}, i1 }} {pair}, 0')}, ptr {expected}")
    ir.line(f"br i1 {ir.emit(f'extractvalue {{ {element}, i1 }} {pair}, 1')}, label %{done}, label %{again}")
    ir.start(done)
    return old, new


def replace(addressing: LlvmAddressing, type: LaneType, place: str, operands: list[str], function: Callable[..., Value]) -> tuple[str, str]:
    """Read-modify-write without a loop, where no other thread can change the value meanwhile."""
    ir = addressing.ir
    element = ir.element(type)
    old = ir.emit(f"load {element}, ptr {place}, align {type.bytes}")
    new = _computed_once(addressing, type, [old, *operands], function)
    ir.line(f"store {element} {new}, ptr {place}, align {type.bytes}")
    return old, new


def _computed_once(addressing: LlvmAddressing, type: LaneType, scalars: list[str], function: Callable[..., Value]) -> str:
    ir = addressing.ir
    element = ir.element(type)
    vectors = [ir.emit(f"insertelement <1 x {element}> poison, {element} {scalar}, i64 0") for scalar in scalars]
    values = [Value(addressing.machine, type, 1, vector) for vector in vectors]
    return ir.emit(f"extractelement <1 x {element}> {function(addressing.machine, *values).payload}, i64 0")


def region(m: Operators, place: FlatRegion | TableRegion, name: str = "") -> Region:
    """A region for programs on an LLVM machine."""
    return Region(m, place, name)


def flat_region(m: Operators, host: Scalar, size: Scalar, note: HostPointer | None, quiet: bool = False, name: str = "",
                scattered: bool = False) -> Region:
    """Host memory of a size. Accesses leave a note at `note`; `quiet` memory cannot be missing, and leaves none. Loads from `scattered`
    memory are inside, and gathers at once."""
    return Region(m, FlatRegion(host.text, size.text, "null" if note is None else note.text, quiet, scattered), name)


def mapped_region(m: Operators, host: Scalar, size: Scalar, mapped: Scalar, note: HostPointer, record: HostPointer, ip: Scalar,
                  stream: int | None = None, name: str = "") -> Region:
    """Host memory of a size whose first `mapped` bytes cannot be missing. Accesses that may reach others leave a note at `note`, and the
    instruction pointer at `record`. Threads read a stream one after another."""
    return Region(m, FlatRegion(host.text, size.text, note.text, False, False, mapped.text, record.text, ip.typed, stream), name)


def table_region(m: Operators, table: HostPointer, base: Scalar, note: HostPointer, bits: int, canonical: bool = False,
                 name: str = "") -> Region:
    """Graphics memory through the table of an address space, from `base` on; addresses have `bits`, or must be canonical."""
    return Region(m, TableRegion(table.text, base.text, note.text, bits, canonical), name)


__all__ = ["LEAVE", "FlatRegion", "LlvmRegions", "TableRegion", "flat_region", "mapped_region", "region", "table_region"]
