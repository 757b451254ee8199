"""Host addresses of graphics memory on the LLVM machine: what a region is made of, and how an offset becomes a pointer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import NamedTuple

from softgen.lanes.code_machine import Scalar
from softgen.lanes.llvm import affine
from softgen.lanes.llvm.scalar import LlvmCode, LlvmScalar
from softgen.lanes.llvm.text import LlvmText
from softgen.lanes.types import bool_, u64
from softgen.lanes.value import Region, Value

CANONICAL_BITS = 48
LEAVE = "guard_leave"       # an import of every module that reaches graphics memory
AHEAD = 4                   # iterations from a prefetch to its load: of a new page, one takes longer than two iterations;
FAR = 2048                  # bytes, outside loops;
HALVES = 2                  # so many loads of a stream are prefetched there: 32 channels take two messages

class FlatRegion(NamedTuple):
    """Operands: host address (i64), size in bytes (i64), where the note goes (ptr). Memory that cannot be missing needs none (quiet); of
    other memory the first bytes may be known to be there (mapped, i64). Loads that are known to be inside and rarely contiguous are gathers
    without tests (scattered). A note comes with the instruction pointer (typed), stored at `record` (ptr), unless it was before. A
    numbered stream is read from its beginning to its end by threads in order."""

    host: str
    size: str
    note: str
    quiet: bool = False
    scattered: bool = False
    mapped: str = ""
    record: str = ""
    ip: str = ""
    stream: int | None = None


class TableRegion(NamedTuple):
    """Operands: the table (ptr), what counts with every offset (i64), the note. Addresses have `bits`; canonical ones are checked."""

    table: str
    base: str
    note: str
    bits: int
    canonical: bool


class LlvmAddressing:
    """Address computations that accesses of regions share."""

    def __init__(self, code: LlvmCode, another: Callable[[], LlvmAddressing]) -> None:
        """`another` makes those of another function of the module."""
        self.machine, self.code, self.ir, self.masks, self.another = code.machine, code, code.ir, code.masks, another
        self.in_loop = False  # what is written now runs again: contiguous loads are prefetched
        self.prefetched: Counter[int] = Counter()  # loads outside loops that are, by stream

    def function(self, name: str, result: str, parameters: tuple[str, ...], build: Callable[[LlvmAddressing], None]) -> str:
        """The name of an internal function, written by `build` where the module has none yet."""

        def written() -> LlvmText:
            inner = self.another()
            build(inner)
            return inner.ir

        return self.ir.module.internal(name, result, parameters, written)

    def origin(self, base: Region) -> tuple[str, str]:
        """Host and size, or table and base, with the region's delta in them."""
        ir = self.ir
        place = base.payload
        if isinstance(place, TableRegion):
            return place.table, ir.emit(f"add i64 {place.base}, {base.delta}") if base.delta else place.base
        host, size = place.host, place.size
        if base.delta:
            host = ir.emit(f"add i64 {host}, {base.delta}")
            size = ir.intrinsic("llvm.usub.sat", "i64", [("i64", size), ("i64", str(base.delta))], ("i64",))
        return ir.emit(f"inttoptr i64 {host} to ptr"), size

    def mapped(self, base: Region) -> str:
        """The bytes of a region that cannot be missing, with its delta in them; "" where nothing is known of that."""
        place = base.payload
        known = place.mapped if isinstance(place, FlatRegion) else ""
        if not known or not base.delta:
            return known
        return self.ir.intrinsic("llvm.usub.sat", "i64", [("i64", known), ("i64", str(base.delta))], ("i64",))

    def announce(self, base: Region) -> None:
        """Say which instruction is about to touch memory, before its note is written."""
        place = base.payload
        if isinstance(place, FlatRegion) and place.record:
            self.ir.line(f"store {place.ip}, ptr {place.record}")

    def noted(self) -> None:
        """The note is in memory before the access: compilers see no reason for that order. No instruction comes of it."""
        self.ir.line('fence syncscope("singlethread") seq_cst')

    def below(self, offsets: str, kind: str, lanes: int, size: str, width: int) -> str:
        """Lanes with room for `width` bytes before the size ends."""
        ir = self.ir
        last = ir.emit(f"sub i64 {size}, {width}")
        if kind == "i32":
            last = ir.intrinsic("llvm.umin", "i64", [("i64", last), ("i64", str(0xFFFFFFFF))], ("i64",))
            last = ir.emit(f"trunc i64 {last} to i32")
        near = ir.emit(f"icmp ule <{lanes} x {kind}> {offsets}, {ir.splat(kind, lanes, last)}")
        fits = ir.splat("i1", lanes, ir.emit(f"icmp uge i64 {size}, {width}"))
        return ir.emit(f"and <{lanes} x i1> {near}, {fits}")

    def room_for(self, first: str, size: str, total: int) -> str:
        """Whether so many bytes from `first` on are before the size ends."""
        ir = self.ir
        starts = ir.intrinsic("llvm.usub.sat", "i64", [("i64", size), ("i64", str(total - 1))], ("i64",))
        return ir.emit(f"icmp ult i64 {first}, {starts}")

    def at_most(self, number: str, limit: int) -> str:
        """The smaller of an unsigned number and a limit."""
        return self.ir.intrinsic("llvm.umin", "i64", [("i64", number), ("i64", str(limit))], ("i64",))

    def is_canonical(self, address: str) -> str:
        """Whether the bits above the highest one that addresses have are all like it."""
        ir = self.ir
        moved = ir.emit(f"add i64 {address}, {1 << CANONICAL_BITS - 1}")
        return ir.emit(f"icmp ult i64 {moved}, {1 << CANONICAL_BITS}")

    def leave_unless(self, good: str, address: str, access: int) -> None:
        ir = self.ir
        bad, fine = ir.labels("bad", "fine")
        ir.line(f"br i1 {good}, label %{fine}, label %{bad}, !prof !1")
        ir.start(bad)
        self.leave(address, access)
        ir.start(fine)

    def leave(self, address: str, access: int) -> None:
        ir = self.ir
        ir.line(f"call void {ir.outside(LEAVE, 'void', ('i64', 'i32'))}(i64 {address}, i32 {access})")
        ir.line("unreachable")

    def translate(self, table: str, address: str, bits: int) -> str:
        """The host's pointer to an address."""
        ir = self.ir
        reached = ir.emit(f"and i64 {address}, {(1 << bits) - 1}")
        entry = ir.emit(f"getelementptr i64, ptr {table}, i64 {ir.emit(f'lshr i64 {reached}, 32')}")
        low = ir.emit(f"and i64 {reached}, {0xFFFFFFFF}")
        host = ir.emit(f"add i64 {ir.emit(f'load i64, ptr {entry}')}, {low}")
        return ir.emit(f"inttoptr i64 {host} to ptr")

    def affine_inside(self, offsets: Value, mask: Value, size: Scalar, width: int) -> LlvmScalar:
        """Whether `width` bytes at each active lane's offset are known to be inside: of ascending affine offsets, if the last ones are."""
        ir = self.ir
        known = affine.usable(ir, offsets.payload, mask.payload)
        if known is None or known.stride >> offsets.type.bits - 1:
            return self.code.number(bool_, 0)
        total = known.stride * (offsets.lanes - 1) + width
        base = LlvmScalar(self.code, offsets.type.unsigned, known.base()).convert(u64)
        good = self.room_for(base.text, size.text, total)
        for condition in known.conditions:
            good = ir.emit(f"and i1 {good}, {condition()}")
        return LlvmScalar(self.code, bool_, good)

    def rematerialised(self, offsets: Value, mask: str) -> Value:
        """The offsets of active lanes, for code that seldom runs: affine ones are computed there, so that nothing else needs the vector."""
        ir = self.ir
        known, lanes, bits = affine.usable(ir, offsets.payload, mask), offsets.lanes, offsets.type.bits
        if known is None or known.conditions:
            return offsets
        first = ir.splat(f"i{bits}", lanes, known.base())
        steps = f"<{', '.join(f'i{bits} {lane * known.stride % (1 << bits)}' for lane in range(lanes))}>"
        return Value(offsets.machine, offsets.type, lanes, ir.emit(f"add <{lanes} x i{bits}> {first}, {steps}"))

    def prefetch(self, place: FlatRegion | TableRegion, pointer: str) -> None:
        """Prefetch what a contiguous load reads in another iteration, or in a later thread: the host's own prefetchers stay within a page.
        A prefetch never faults."""
        stream = place.stream if isinstance(place, FlatRegion) else None
        if self.in_loop:
            self._prefetch(self._iterations_later(pointer))
        elif stream is not None and self.prefetched[stream] < HALVES:
            self.prefetched[stream] += 1
            self._prefetch(self.ir.emit(f"getelementptr i8, ptr {pointer}, i64 {FAR}"))

    def _iterations_later(self, pointer: str) -> str:
        """The pointer AHEAD iterations later, if its stride stays the same."""
        ir = self.ir
        before, now = ir.place("i64", "0"), ir.emit(f"ptrtoint ptr {pointer} to i64")
        step = ir.emit(f"sub i64 {now}, {ir.emit(f'load i64, ptr {before}')}")
        ir.line(f"store i64 {now}, ptr {before}")
        return ir.emit(f"getelementptr i8, ptr {pointer}, i64 {ir.emit(f'mul i64 {step}, {AHEAD}')}")

    def _prefetch(self, later: str) -> None:
        read, closest, data = "0", "3", "1"
        self.ir.intrinsic("llvm.prefetch", "void", [("ptr", later), *(("i32", text) for text in (read, closest, data))], ("ptr",))
