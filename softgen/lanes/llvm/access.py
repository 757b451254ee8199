"""The access functions of compiled programs: one for each kind of access to graphics memory, type and number of lanes.

The pattern of the offsets is tested at run time: contiguous (one masked load or store), uniform (one load), divergent (gather, scatter).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from softgen.lanes.bytecode.memory_h import NOTE_ATOMIC, NOTE_BLOCK, NOTE_CONTIGUOUS, NOTE_TABLE, NOTE_UNIFORM, NOTE_WIDE
from softgen.lanes.bytecode.memory_h import SIZE_SHIFT as SIZE_SHIFT
from softgen.lanes.llvm.addressing import CANONICAL_BITS, LlvmAddressing
from softgen.lanes.types import LaneType
from softgen.lanes.value import Value

# Flags in the note's first word, above the mask.
WIDE, TABLE, BLOCK, ATOMIC, CONTIGUOUS, UNIFORM = (
    1 << bit for bit in (NOTE_WIDE, NOTE_TABLE, NOTE_BLOCK, NOTE_ATOMIC, NOTE_CONTIGUOUS, NOTE_UNIFORM))  # fmt: skip
READ, WRITE, UNKNOWN = 0, 1, 3                      # kinds of access of guard.c
GATHERED = 32                                      # bits of a lane from which hosts can gather
ALONE = 34                                          # the word behind the note: no other host thread changes the memory meanwhile


OneLane = Callable[[str, list[str]], tuple[str, str]]     # pointer and operands -> what was there, what was put there


@dataclass(frozen=True)
class AccessShape:
    """What an access function is made for."""

    what: str                   # read, write, or the name of an atomic
    type: LaneType
    lanes: int
    wide: bool                  # offsets of 64 bits
    table: bool
    quiet: bool
    bits: int
    canonical: bool
    count: int = 1              # adjacent elements of a lane

    @property
    def name(self) -> str:
        kind = f"table{self.bits}{'c' if self.canonical else ''}" if self.table else "quiet" if self.quiet else "flat"
        many = f"{self.count}_" if self.count > 1 else ""
        return f"{self.what}_{many}{self.type}x{self.lanes}_{kind}_{'u64' if self.wide else 'u32'}"

    @property
    def size(self) -> int:
        """Bytes of a lane."""
        return self.type.bytes * self.count

    @property
    def atomic(self) -> bool:
        return self.what not in ("read", "write")

    @property
    def integer(self) -> str:
        return f"i{self.lanes}"

    @property
    def offset(self) -> str:
        return "i64" if self.wide else "i32"

    @property
    def parameters(self) -> tuple[str, ...]:
        """Note, host or table, size or base, offsets, mask; what is stored or computed with follows."""
        return "ptr", "ptr", "i64", f"<{self.lanes} x {self.offset}>", self.integer


class AccessFunction:
    """Writes the body of an access function: its parameters are those of the shape."""

    def __init__(self, addressing: LlvmAddressing, shape: AccessShape) -> None:
        self.addressing, self.ir, self.masks, self.shape = addressing, addressing.ir, addressing.masks, shape
        self.lanes, self.size = shape.lanes, shape.size
        self.vector = self.ir.vector(shape.type, shape.lanes)
        self.bools = f"<{self.lanes} x i1>"
        self.kind, self.where = shape.offset, "%a3"
        self.bits = self._active()

    # -- what every access begins with --------------------------------------------------------------------------------

    def _note(self, how: int, base: str) -> None:
        """Write the note of the access, from which a fault is explained."""
        ir, shape = self.ir, self.shape
        word = self.size << SIZE_SHIFT | WIDE * (self.kind == "i64") | TABLE * shape.table | ATOMIC * shape.atomic | how
        mask = ir.emit(f"zext {shape.integer} {self.bits} to i64")
        for place, text in enumerate((ir.emit(f"or i64 {mask}, {word}"), base)):
            ir.line(f"store i64 {text}, ptr {ir.emit(f'getelementptr i64, ptr %a0, i64 {place}')}")
        self.addressing.noted()

    def _remember(self) -> str:
        """Puts the offsets where they can be found again one by one: into the note, if one is due."""
        ir, vector = self.ir, f"<{self.lanes} x {self.kind}>"
        if self.shape.quiet and not self.shape.atomic:
            offsets = ir.place(vector)
        else:
            self._note(0, "0" if self.shape.table else ir.emit("ptrtoint ptr %a1 to i64"))
            offsets = ir.emit("getelementptr i64, ptr %a0, i64 2")
        ir.line(f"store {vector} {self.where}, ptr {offsets}, align 8")
        self.addressing.noted()
        return offsets

    def _active(self) -> str:
        """The lanes that touch memory, as bits; nothing more is done if there are none."""
        ir = self.ir
        mask = self.masks.mask_of_bits(self.lanes, "%a4")
        if not self.shape.table:
            mask = ir.emit(f"and {self.bools} {mask}, {self.addressing.below('%a3', self.kind, self.lanes, '%a2', self.size)}")
        bits = ir.emit(f"bitcast {self.bools} {mask} to {self.shape.integer}")
        some, none = ir.labels("some", "none")
        ir.line(f"br i1 {ir.emit(f'icmp eq {self.shape.integer} {bits}, 0')}, label %{none}, label %{some}")
        ir.start(none)
        nothing = {"read": f"ret {self.vector} zeroinitializer", "write": "ret void"}
        ir.line(nothing.get(self.shape.what, f"ret {{ {self.vector}, {self.vector} }} zeroinitializer"))
        ir.start(some)
        self.mask, self.bits = mask, bits
        if self.shape.table:
            self._addresses()
        return bits

    def _addresses(self) -> None:
        """Offsets become addresses, checked where they must be canonical."""
        ir, far = self.ir, f"<{self.lanes} x i64>"
        offsets = "%a3" if self.shape.wide else ir.emit(f"zext <{self.lanes} x i32> %a3 to {far}")
        whole = ir.emit(f"add {far} {offsets}, {ir.splat('i64', self.lanes, '%a2')}")
        if self.shape.canonical:
            moved = ir.emit(f"add {far} {whole}, splat (i64 {1 << CANONICAL_BITS - 1})")
            wrong = ir.emit(f"icmp uge {far} {moved}, splat (i64 {1 << CANONICAL_BITS})")
            self.kind, self.where = "i64", whole
            self._refuse(ir.emit(f"and {self.bools} {wrong}, {self.mask}"), READ if self.shape.what == "read" else WRITE)
        self.kind = "i64"
        self.where = ir.emit(f"and {far} {whole}, splat (i64 {(1 << self.shape.bits) - 1})")

    def _refuse(self, wrong: str, access: int) -> None:
        """Leaves with the lowest lane that is wrong."""
        ir = self.ir
        bad, fine = ir.labels("wrong", "right")
        ir.line(f"br i1 {self.masks.any_lane(self.lanes, wrong)}, label %{bad}, label %{fine}, !prof !0")
        ir.start(bad)
        self._remember()
        first = self._lowest(ir.emit(f"bitcast {self.bools} {wrong} to {self.shape.integer}"))
        address = ir.emit(f"extractelement <{self.lanes} x {self.kind}> {self.where}, i64 {first}")
        self.addressing.leave(address if self.kind == "i64" else ir.emit(f"zext i32 {address} to i64"), access)
        ir.start(fine)

    def _lowest(self, bits: str) -> str:
        ir, kind = self.ir, self.shape.integer
        found = ir.intrinsic("llvm.cttz", kind, [(kind, bits), ("i1", "true")], (kind,))
        return found if kind == "i64" else ir.emit(f"zext {kind} {found} to i64")

    # -- one place and many -----------------------------------------------------------------------------------------------

    def _pointer(self, raw: str) -> str:
        """The host's pointer to an offset or address."""
        ir = self.ir
        if self.shape.table:
            return self.addressing.translate("%a1", raw, self.shape.bits)
        return ir.emit(f"getelementptr i8, ptr %a1, i64 {raw if self.kind == 'i64' else ir.emit(f'zext i32 {raw} to i64')}")

    def _place(self, offsets: str, lane: str) -> str:
        """The host's pointer of a lane."""
        ir = self.ir
        return self._pointer(ir.emit(f"load {self.kind}, ptr {ir.emit(f'getelementptr {self.kind}, ptr {offsets}, i64 {lane}')}, align 1"))

    def _first(self) -> tuple[str, str, str]:
        """The lowest lane that is on: its number, offset or address, and pointer."""
        lane = self._lowest(self.bits)
        value = self.ir.emit(f"extractelement <{self.lanes} x {self.kind}> {self.where}, i64 {lane}")
        return lane, value, self._pointer(value)

    def _pointers(self) -> str:
        ir, far = self.ir, f"<{self.lanes} x i64>"
        if not self.shape.table:
            if self.kind == "i64":
                return ir.emit(f"getelementptr i8, ptr %a1, {far} {self.where}")
            return self._counted_from_the_middle("%a1", self.where)
        part = ir.emit(f"lshr {far} {self.where}, splat (i64 32)")
        entries = ir.emit(f"getelementptr i64, ptr %a1, {far} {part}")
        operands = [(f"<{self.lanes} x ptr>", entries), ("i32", "8"), (self.bools, self.mask), (far, "zeroinitializer")]
        bases = ir.intrinsic("llvm.masked.gather", far, operands, (far, f"<{self.lanes} x ptr>"))
        low = ir.emit(f"and {far} {self.where}, splat (i64 {0xFFFFFFFF})")
        return ir.emit(f"inttoptr {far} {ir.emit(f'add {far} {bases}, {low}')} to <{self.lanes} x ptr>")

    def _with_pointers(self, act: Callable[[str], None]) -> None:
        """Writes the code of `act`, which is given the pointers of all lanes. By a table there are two such pieces: one entry of it serves
        all lanes, unless they are in several parts."""
        ir, far = self.ir, f"<{self.lanes} x i64>"
        if not self.shape.table:
            act(self._pointers())
            return
        _, address, pointer = self._first()
        low = ir.emit(f"and i64 {address}, {0xFFFFFFFF}")
        base = ir.emit(f"getelementptr i8, ptr {pointer}, i64 {ir.emit(f'sub i64 0, {low}')}")
        near, apart, done = ir.labels("part", "parts", "places")
        parts = [ir.emit(f"lshr {far} {text}, splat (i64 32)") for text in (self.where, ir.splat("i64", self.lanes, address))]
        ir.line(f"br i1 {self._all(ir.emit(f'icmp eq {far} {parts[0]}, {parts[1]}'))}, label %{near}, label %{apart}, !prof !1")
        ir.start(near)
        act(self._counted_from_the_middle(base, ir.emit(f"trunc {far} {self.where} to <{self.lanes} x i32>")))
        ir.line(f"br label %{done}")
        ir.start(apart)
        act(self._pointers())
        ir.line(f"br label %{done}")
        ir.start(done)

    def _stored_pointers(self) -> str:
        """A place with the pointers of all lanes."""
        ir, far = self.ir, f"<{self.lanes} x i64>"
        place = ir.place(far)
        self._with_pointers(lambda found: ir.line(f"store {far} {ir.emit(f'ptrtoint <{self.lanes} x ptr> {found} to {far}')}, ptr {place}"))
        return place

    def _counted_from_the_middle(self, start: str, offsets: str) -> str:
        """Pointers at unsigned offsets of 32 bits: hosts gather with signed indices, which count from the middle."""
        ir, far = self.ir, f"<{self.lanes} x i64>"
        middle = ir.emit(f"getelementptr i8, ptr {start}, i64 {1 << 31}")
        signed = ir.emit(f"xor <{self.lanes} x i32> {offsets}, splat (i32 {-(1 << 31)})")
        return ir.emit(f"getelementptr i8, ptr {middle}, {far} {ir.emit(f'sext <{self.lanes} x i32> {signed} to {far}')}")

    def _all(self, same: str) -> str:
        """Whether something holds in every lane that is on."""
        ir = self.ir
        missed = ir.emit(f"and {self.bools} {ir.emit(f'xor {self.bools} {same}, splat (i1 true)')}, {self.mask}")
        return ir.emit(f"xor i1 {self.masks.any_lane(self.lanes, missed)}, true")

    def _contiguous(self, first: str, value: str, pointer: str) -> tuple[str, str, str]:
        """Whether the active lanes are contiguous, and where lane 0 is then: a pointer, and an address if there is one."""
        ir, wide = self.ir, f"<{self.lanes} x {self.kind}>"
        back = ir.emit(f"mul i64 {first}, {self.size}")
        start = ir.emit(f"sub {self.kind} {value}, {back if self.kind == 'i64' else ir.emit(f'trunc i64 {back} to i32')}")
        steps = f"<{', '.join(f'{self.kind} {lane * self.size}' for lane in range(self.lanes))}>"
        expected = ir.emit(f"add {wide} {ir.splat(self.kind, self.lanes, start)}, {steps}")
        found = self._all(ir.emit(f"icmp eq {wide} {self.where}, {expected}"))
        if self.kind == "i32":      # contiguous lanes that pass 4 GiB do not wrap to zero
            near = ir.emit(f"icmp ule i32 {value}, {(1 << 32) - self.lanes * self.size}")
            found = ir.emit(f"and i1 {found}, {near}")
        where = ir.emit(f"sub i64 {value}, {back}") if self.shape.table else ""
        return found, ir.emit(f"getelementptr i8, ptr {pointer}, i64 {ir.emit(f'sub i64 0, {back}')}"), where

    def _say(self, how: int, pointer: str, address: str) -> None:
        if not self.shape.quiet:
            self._note(how, address or self.ir.emit(f"ptrtoint ptr {pointer} to i64"))

    def _each(self, body: Callable[[str], None]) -> None:
        """A turn for each lane that is on, lowest first."""
        ir, kind = self.ir, self.shape.integer
        left = ir.place(kind)
        ir.line(f"store {kind} {self.bits}, ptr {left}")
        again, done = ir.labels("lane", "lanes")
        ir.line(f"br label %{again}")
        ir.start(again)
        bits = ir.emit(f"load {kind}, ptr {left}")
        body(self._lowest(bits))
        rest = ir.emit(f"and {kind} {bits}, {ir.emit(f'sub {kind} {bits}, 1')}")
        ir.line(f"store {kind} {rest}, ptr {left}")
        ir.line(f"br i1 {ir.emit(f'icmp eq {kind} {rest}, 0')}, label %{done}, label %{again}")
        ir.start(done)

    # -- the accesses --------------------------------------------------------------------------------------------------------

    def read(self) -> None:
        ir, vector = self.ir, self.vector
        first, value, pointer = self._first()
        row, start, address = self._contiguous(first, value, pointer)
        contiguous, apart, uniform, divergent = ir.labels("contiguous", "apart", "uniform", "divergent")
        ir.line(f"br i1 {row}, label %{contiguous}, label %{apart}")
        ir.start(contiguous)
        self._say(CONTIGUOUS, start, address)
        operands = [("ptr", start), ("i32", "1"), (self.bools, self.mask), (vector, "zeroinitializer")]
        ir.line(f"ret {vector} {ir.intrinsic('llvm.masked.load', vector, operands, (vector, 'ptr'))}")
        ir.start(apart)
        equal = ir.emit(f"icmp eq <{self.lanes} x {self.kind}> {self.where}, {ir.splat(self.kind, self.lanes, value)}")
        ir.line(f"br i1 {self._all(equal)}, label %{uniform}, label %{divergent}")
        ir.start(uniform)
        self._say(UNIFORM, pointer, value if self.shape.table else "")
        element = ir.element(self.shape.type)
        found = ir.splat(element, self.lanes, ir.emit(f"load {element}, ptr {pointer}, align 1"))
        ir.line(f"ret {vector} {ir.emit(f'select {self.bools} {self.mask}, {vector} {found}, {vector} zeroinitializer')}")
        ir.start(divergent)
        ir.line(f"ret {vector} {self._gather()}")

    def _gather(self) -> str:
        ir, vector, element = self.ir, self.vector, self.ir.element(self.shape.type)
        narrow = self.shape.type.bits < GATHERED
        offsets = self._remember() if narrow or not self.shape.quiet else ""
        found = ir.place(vector)
        if not narrow:
            def gather(pointers: str) -> None:
                places = f"<{self.lanes} x ptr>"
                operands = [(places, pointers), ("i32", "1"), (self.bools, self.mask), (vector, "zeroinitializer")]
                ir.line(f"store {vector} {ir.intrinsic('llvm.masked.gather', vector, operands, (vector, places))}, ptr {found}")
            self._with_pointers(gather)
            return ir.emit(f"load {vector}, ptr {found}")
        ir.line(f"store {vector} zeroinitializer, ptr {found}")
        self._gather_inside_dwords()

        def load_lane(lane: str) -> None:
            value = ir.emit(f"load {element}, ptr {self._place(offsets, lane)}, align 1")
            ir.line(f"store {element} {value}, ptr {ir.emit(f'getelementptr {element}, ptr {found}, i64 {lane}')}")
        self._each(load_lane)
        return ir.emit(f"load {vector}, ptr {found}")

    def _gather_inside_dwords(self) -> None:
        """Return if each narrow lane is inside one aligned dword: the dwords are gathered. They are on the pages of the lanes."""
        ir, far, words, places = self.ir, f"<{self.lanes} x i64>", f"<{self.lanes} x i32>", f"<{self.lanes} x ptr>"
        where = ir.emit(f"ptrtoint {places} {self._pointers()} to {far}")
        rest = ir.emit(f"trunc {far} {ir.emit(f'and {far} {where}, splat (i64 3)')} to {words}")
        within, across = ir.labels("within", "across")
        inside = self._all(ir.emit(f"icmp ule {words} {rest}, splat (i32 {4 - self.size})")) if self.size > 1 else "true"
        ir.line(f"br i1 {inside}, label %{within}, label %{across}, !prof !1")
        ir.start(within)
        aligned = ir.emit(f"inttoptr {far} {ir.emit(f'and {far} {where}, splat (i64 -4)')} to {places}")
        operands = [(places, aligned), ("i32", "4"), (self.bools, self.mask), (words, "zeroinitializer")]
        held = ir.intrinsic("llvm.masked.gather", words, operands, (words, places))
        shifted = ir.emit(f"lshr {words} {held}, {ir.emit(f'shl {words} {rest}, splat (i32 3)')}")
        ir.line(f"ret {self.vector} {ir.emit(f'trunc {words} {shifted} to {self.vector}')}")
        ir.start(across)

    def write(self) -> None:
        ir, vector = self.ir, self.vector
        row, start, address = self._contiguous(*self._first())
        contiguous, divergent = ir.labels("contiguous", "divergent")
        ir.line(f"br i1 {row}, label %{contiguous}, label %{divergent}")
        ir.start(contiguous)
        self._say(CONTIGUOUS, start, address)
        ir.intrinsic("llvm.masked.store", "void", [(vector, "%a5"), ("ptr", start), ("i32", "1"), (self.bools, self.mask)], (vector, "ptr"))
        ir.line("ret void")
        ir.start(divergent)
        self._scatter()
        ir.line("ret void")

    def _scatter(self) -> None:
        ir, vector, element = self.ir, self.vector, self.ir.element(self.shape.type)
        narrow = self.shape.type.bits < GATHERED
        offsets = self._remember() if narrow or not self.shape.quiet else ""
        if not narrow:
            def scatter(pointers: str) -> None:
                places = f"<{self.lanes} x ptr>"
                ir.intrinsic("llvm.masked.scatter", "void", [(vector, "%a5"), (places, pointers), ("i32", "1"), (self.bools, self.mask)],
                            (vector, places))
            self._with_pointers(scatter)
            return
        given = ir.place(vector)
        ir.line(f"store {vector} %a5, ptr {given}")

        def store_lane(lane: str) -> None:
            value = ir.emit(f"load {element}, ptr {ir.emit(f'getelementptr {element}, ptr {given}, i64 {lane}')}")
            ir.line(f"store {element} {value}, ptr {self._place(offsets, lane)}, align 1")
        self._each(store_lane)

    def change(self, operands: list[Value], one_lane: OneLane, alone: OneLane) -> None:
        """Atomics: what was there, and what was put there. Quiet memory is that of one host thread, others may be for a while: `alone`
        does the same without a lock."""
        ir, vector, element = self.ir, self.vector, self.ir.element(self.shape.type)
        kind = f"<{self.lanes} x {self.kind}>"
        where = self.where
        if not self.shape.table and not self.shape.quiet:       # a surface may begin anywhere
            base = ir.emit(f"ptrtoint ptr %a1 to {self.kind}")
            where = ir.emit(f"add {kind} {where}, {ir.splat(self.kind, self.lanes, base)}")
        rest = ir.emit(f"and {kind} {where}, splat ({self.kind} {self.size - 1})")
        self._refuse(ir.emit(f"and {self.bools} {self.mask}, {ir.emit(f'icmp ne {kind} {rest}, zeroinitializer')}"), UNKNOWN)
        offsets = self._remember()
        pointers = self._stored_pointers() if self.shape.table else ""
        found = [ir.place(vector) for _ in range(2)]
        given = [ir.place(vector) for _ in operands]
        for place in found:
            ir.line(f"store {vector} zeroinitializer, ptr {place}")
        for number, place in enumerate(given):
            ir.line(f"store {vector} %a{5 + number}, ptr {place}")

        def pointer(lane: str) -> str:
            if not pointers:
                return self._place(offsets, lane)
            return ir.emit(f"load ptr, ptr {ir.emit(f'getelementptr i64, ptr {pointers}, i64 {lane}')}")

        def change_lane(act: OneLane, lane: str) -> None:
            numbers = [ir.emit(f"load {element}, ptr {ir.emit(f'getelementptr {element}, ptr {place}, i64 {lane}')}") for place in given]
            for value, place in zip(act(pointer(lane), numbers), found, strict=True):
                ir.line(f"store {element} {value}, ptr {ir.emit(f'getelementptr {element}, ptr {place}, i64 {lane}')}")
        if self.shape.quiet:
            self._each(partial(change_lane, alone))
        else:
            word = ir.emit(f"load i64, ptr {ir.emit(f'getelementptr i64, ptr %a0, i64 {ALONE}')}")
            plain, locked, done = ir.labels("plain", "locked", "changed")
            ir.line(f"br i1 {ir.emit(f'icmp eq i64 {word}, 0')}, label %{locked}, label %{plain}")
            for label, act in ((plain, alone), (locked, one_lane)):
                ir.start(label)
                self._each(partial(change_lane, act))
                ir.line(f"br label %{done}")
            ir.start(done)
        both = f"{{ {vector}, {vector} }}"
        half = ir.emit(f"insertvalue {both} poison, {vector} {ir.emit(f'load {vector}, ptr {found[0]}')}, 0")
        last = ir.emit(f"load {vector}, ptr {found[1]}")
        ir.line(f"ret {both} {ir.emit(f'insertvalue {both} {half}, {vector} {last}, 1')}")
