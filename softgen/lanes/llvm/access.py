"""The access functions of compiled programs: one for each kind of access to graphics memory, type and number of lanes.

The pattern of the offsets is tested at run time: contiguous (one masked load or store), uniform (one load), divergent (gather, scatter).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from softgen.lanes.llvm.addressing import CANONICAL_BITS, LlvmAddressing
from softgen.lanes.types import LaneType
from softgen.lanes.value import Value

# Flags in the note's first word, above the mask: 64-bit offsets; addresses of a TableRegion; a block without lanes; an atomic; lanes
# contiguous from the base on; lanes uniform at the base.
WIDE, TABLE, BLOCK, ATOMIC, CONTIGUOUS, UNIFORM = (1 << bit for bit in range(32, 38))
SIZE_SHIFT = 40                                     # bytes of a lane
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

    def __init__(self, m: LlvmAddressing, shape: AccessShape) -> None:
        self.m, self.shape = m, shape
        self.lanes, self.size = shape.lanes, shape.size
        self.vector = m.vector(shape.type, shape.lanes)
        self.bools = f"<{self.lanes} x i1>"
        self.kind, self.where = shape.offset, "%a3"
        self.bits = self._active()

    # -- what every access begins with --------------------------------------------------------------------------------

    def _note(self, how: int, base: str) -> None:
        """Write the note of the access, from which a fault is explained."""
        m, shape = self.m, self.shape
        word = self.size << SIZE_SHIFT | WIDE * (self.kind == "i64") | TABLE * shape.table | ATOMIC * shape.atomic | how
        mask = m.emit(f"zext {shape.integer} {self.bits} to i64")
        for place, text in enumerate((m.emit(f"or i64 {mask}, {word}"), base)):
            m.line(f"store i64 {text}, ptr {m.emit(f'getelementptr i64, ptr %a0, i64 {place}')}")
        m.noted()

    def _remember(self) -> str:
        """Puts the offsets where they can be found again one by one: into the note, if one is due."""
        m, vector = self.m, f"<{self.lanes} x {self.kind}>"
        if self.shape.quiet and not self.shape.atomic:
            offsets = m.place(vector)
        else:
            self._note(0, "0" if self.shape.table else m.emit("ptrtoint ptr %a1 to i64"))
            offsets = m.emit("getelementptr i64, ptr %a0, i64 2")
        m.line(f"store {vector} {self.where}, ptr {offsets}, align 8")
        m.noted()
        return offsets

    def _active(self) -> str:
        """The lanes that touch memory, as bits; nothing more is done if there are none."""
        m = self.m
        mask = m.mask_of_bits(self.lanes, "%a4")
        if not self.shape.table:
            mask = m.emit(f"and {self.bools} {mask}, {m.below('%a3', self.kind, self.lanes, '%a2', self.size)}")
        bits = m.emit(f"bitcast {self.bools} {mask} to {self.shape.integer}")
        some, none = m.labels("some", "none")
        m.line(f"br i1 {m.emit(f'icmp eq {self.shape.integer} {bits}, 0')}, label %{none}, label %{some}")
        m.start(none)
        nothing = {"read": f"ret {self.vector} zeroinitializer", "write": "ret void"}
        m.line(nothing.get(self.shape.what, f"ret {{ {self.vector}, {self.vector} }} zeroinitializer"))
        m.start(some)
        self.mask, self.bits = mask, bits
        if self.shape.table:
            self._addresses()
        return bits

    def _addresses(self) -> None:
        """Offsets become addresses, checked where they must be canonical."""
        m, far = self.m, f"<{self.lanes} x i64>"
        offsets = "%a3" if self.shape.wide else m.emit(f"zext <{self.lanes} x i32> %a3 to {far}")
        whole = m.emit(f"add {far} {offsets}, {m._splat('i64', self.lanes, '%a2')}")
        if self.shape.canonical:
            moved = m.emit(f"add {far} {whole}, splat (i64 {1 << CANONICAL_BITS - 1})")
            wrong = m.emit(f"icmp uge {far} {moved}, splat (i64 {1 << CANONICAL_BITS})")
            self.kind, self.where = "i64", whole
            self._refuse(m.emit(f"and {self.bools} {wrong}, {self.mask}"), READ if self.shape.what == "read" else WRITE)
        self.kind = "i64"
        self.where = m.emit(f"and {far} {whole}, splat (i64 {(1 << self.shape.bits) - 1})")

    def _refuse(self, wrong: str, access: int) -> None:
        """Leaves with the lowest lane that is wrong."""
        m = self.m
        bad, fine = m.labels("wrong", "right")
        m.line(f"br i1 {m.any_lane(self.lanes, wrong)}, label %{bad}, label %{fine}, !prof !0")
        m.start(bad)
        self._remember()
        first = self._lowest(m.emit(f"bitcast {self.bools} {wrong} to {self.shape.integer}"))
        address = m.emit(f"extractelement <{self.lanes} x {self.kind}> {self.where}, i64 {first}")
        m.leave(address if self.kind == "i64" else m.emit(f"zext i32 {address} to i64"), access)
        m.start(fine)

    def _lowest(self, bits: str) -> str:
        m, kind = self.m, self.shape.integer
        found = m.intrinsic("llvm.cttz", kind, [(kind, bits), ("i1", "true")], (kind,))
        return found if kind == "i64" else m.emit(f"zext {kind} {found} to i64")

    # -- one place and many -----------------------------------------------------------------------------------------------

    def _pointer(self, raw: str) -> str:
        """The host's pointer to an offset or address."""
        m = self.m
        if self.shape.table:
            return m.translate("%a1", raw, self.shape.bits)
        return m.emit(f"getelementptr i8, ptr %a1, i64 {raw if self.kind == 'i64' else m.emit(f'zext i32 {raw} to i64')}")

    def _place(self, offsets: str, lane: str) -> str:
        """The host's pointer of a lane."""
        m = self.m
        return self._pointer(m.emit(f"load {self.kind}, ptr {m.emit(f'getelementptr {self.kind}, ptr {offsets}, i64 {lane}')}, align 1"))

    def _first(self) -> tuple[str, str, str]:
        """The lowest lane that is on: its number, offset or address, and pointer."""
        lane = self._lowest(self.bits)
        value = self.m.emit(f"extractelement <{self.lanes} x {self.kind}> {self.where}, i64 {lane}")
        return lane, value, self._pointer(value)

    def _pointers(self) -> str:
        m, far = self.m, f"<{self.lanes} x i64>"
        if not self.shape.table:
            if self.kind == "i64":
                return m.emit(f"getelementptr i8, ptr %a1, {far} {self.where}")
            return self._counted_from_the_middle("%a1", self.where)
        part = m.emit(f"lshr {far} {self.where}, splat (i64 32)")
        entries = m.emit(f"getelementptr i64, ptr %a1, {far} {part}")
        operands = [(f"<{self.lanes} x ptr>", entries), ("i32", "8"), (self.bools, self.mask), (far, "zeroinitializer")]
        bases = m.intrinsic("llvm.masked.gather", far, operands, (far, f"<{self.lanes} x ptr>"))
        low = m.emit(f"and {far} {self.where}, splat (i64 {0xFFFFFFFF})")
        return m.emit(f"inttoptr {far} {m.emit(f'add {far} {bases}, {low}')} to <{self.lanes} x ptr>")

    def _with_pointers(self, act: Callable[[str], None]) -> None:
        """Writes the code of `act`, which is given the pointers of all lanes. By a table there are two such pieces: one entry of it serves
        all lanes, unless they are in several parts."""
        m, far = self.m, f"<{self.lanes} x i64>"
        if not self.shape.table:
            act(self._pointers())
            return
        _, address, pointer = self._first()
        low = m.emit(f"and i64 {address}, {0xFFFFFFFF}")
        base = m.emit(f"getelementptr i8, ptr {pointer}, i64 {m.emit(f'sub i64 0, {low}')}")
        near, apart, done = m.labels("part", "parts", "places")
        parts = [m.emit(f"lshr {far} {text}, splat (i64 32)") for text in (self.where, m._splat("i64", self.lanes, address))]
        m.line(f"br i1 {self._all(m.emit(f'icmp eq {far} {parts[0]}, {parts[1]}'))}, label %{near}, label %{apart}, !prof !1")
        m.start(near)
        act(self._counted_from_the_middle(base, m.emit(f"trunc {far} {self.where} to <{self.lanes} x i32>")))
        m.line(f"br label %{done}")
        m.start(apart)
        act(self._pointers())
        m.line(f"br label %{done}")
        m.start(done)

    def _stored_pointers(self) -> str:
        """A place with the pointers of all lanes."""
        m, far = self.m, f"<{self.lanes} x i64>"
        place = m.place(far)
        self._with_pointers(lambda found: m.line(f"store {far} {m.emit(f'ptrtoint <{self.lanes} x ptr> {found} to {far}')}, ptr {place}"))
        return place

    def _counted_from_the_middle(self, start: str, offsets: str) -> str:
        """Pointers at unsigned offsets of 32 bits: hosts gather with signed indices, which count from the middle."""
        m, far = self.m, f"<{self.lanes} x i64>"
        middle = m.emit(f"getelementptr i8, ptr {start}, i64 {1 << 31}")
        signed = m.emit(f"xor <{self.lanes} x i32> {offsets}, splat (i32 {-(1 << 31)})")
        return m.emit(f"getelementptr i8, ptr {middle}, {far} {m.emit(f'sext <{self.lanes} x i32> {signed} to {far}')}")

    def _all(self, same: str) -> str:
        """Whether something holds in every lane that is on."""
        m = self.m
        missed = m.emit(f"and {self.bools} {m.emit(f'xor {self.bools} {same}, splat (i1 true)')}, {self.mask}")
        return m.emit(f"xor i1 {m.any_lane(self.lanes, missed)}, true")

    def _contiguous(self, first: str, value: str, pointer: str) -> tuple[str, str, str]:
        """Whether the active lanes are contiguous, and where lane 0 is then: a pointer, and an address if there is one."""
        m, wide = self.m, f"<{self.lanes} x {self.kind}>"
        back = m.emit(f"mul i64 {first}, {self.size}")
        start = m.emit(f"sub {self.kind} {value}, {back if self.kind == 'i64' else m.emit(f'trunc i64 {back} to i32')}")
        steps = f"<{', '.join(f'{self.kind} {lane * self.size}' for lane in range(self.lanes))}>"
        expected = m.emit(f"add {wide} {m._splat(self.kind, self.lanes, start)}, {steps}")
        found = self._all(m.emit(f"icmp eq {wide} {self.where}, {expected}"))
        if self.kind == "i32":      # contiguous lanes that pass 4 GiB do not wrap to zero
            near = m.emit(f"icmp ule i32 {value}, {(1 << 32) - self.lanes * self.size}")
            found = m.emit(f"and i1 {found}, {near}")
        where = m.emit(f"sub i64 {value}, {back}") if self.shape.table else ""
        return found, m.emit(f"getelementptr i8, ptr {pointer}, i64 {m.emit(f'sub i64 0, {back}')}"), where

    def _say(self, how: int, pointer: str, address: str) -> None:
        if not self.shape.quiet:
            self._note(how, address or self.m.emit(f"ptrtoint ptr {pointer} to i64"))

    def _each(self, body: Callable[[str], None]) -> None:
        """A turn for each lane that is on, lowest first."""
        m, kind = self.m, self.shape.integer
        left = m.place(kind)
        m.line(f"store {kind} {self.bits}, ptr {left}")
        again, done = m.labels("lane", "lanes")
        m.line(f"br label %{again}")
        m.start(again)
        bits = m.emit(f"load {kind}, ptr {left}")
        body(self._lowest(bits))
        rest = m.emit(f"and {kind} {bits}, {m.emit(f'sub {kind} {bits}, 1')}")
        m.line(f"store {kind} {rest}, ptr {left}")
        m.line(f"br i1 {m.emit(f'icmp eq {kind} {rest}, 0')}, label %{done}, label %{again}")
        m.start(done)

    # -- the accesses --------------------------------------------------------------------------------------------------------

    def read(self) -> None:
        m, vector = self.m, self.vector
        first, value, pointer = self._first()
        row, start, address = self._contiguous(first, value, pointer)
        contiguous, apart, uniform, divergent = m.labels("contiguous", "apart", "uniform", "divergent")
        m.line(f"br i1 {row}, label %{contiguous}, label %{apart}")
        m.start(contiguous)
        self._say(CONTIGUOUS, start, address)
        operands = [("ptr", start), ("i32", "1"), (self.bools, self.mask), (vector, "zeroinitializer")]
        m.line(f"ret {vector} {m.intrinsic('llvm.masked.load', vector, operands, (vector, 'ptr'))}")
        m.start(apart)
        equal = m.emit(f"icmp eq <{self.lanes} x {self.kind}> {self.where}, {m._splat(self.kind, self.lanes, value)}")
        m.line(f"br i1 {self._all(equal)}, label %{uniform}, label %{divergent}")
        m.start(uniform)
        self._say(UNIFORM, pointer, value if self.shape.table else "")
        element = m.element(self.shape.type)
        found = m._splat(element, self.lanes, m.emit(f"load {element}, ptr {pointer}, align 1"))
        m.line(f"ret {vector} {m.emit(f'select {self.bools} {self.mask}, {vector} {found}, {vector} zeroinitializer')}")
        m.start(divergent)
        m.line(f"ret {vector} {self._gather()}")

    def _gather(self) -> str:
        m, vector, element = self.m, self.vector, self.m.element(self.shape.type)
        narrow = self.shape.type.bits < GATHERED
        offsets = self._remember() if narrow or not self.shape.quiet else ""
        found = m.place(vector)
        if not narrow:
            def gather(pointers: str) -> None:
                places = f"<{self.lanes} x ptr>"
                operands = [(places, pointers), ("i32", "1"), (self.bools, self.mask), (vector, "zeroinitializer")]
                m.line(f"store {vector} {m.intrinsic('llvm.masked.gather', vector, operands, (vector, places))}, ptr {found}")
            self._with_pointers(gather)
            return m.emit(f"load {vector}, ptr {found}")
        m.line(f"store {vector} zeroinitializer, ptr {found}")
        self._gather_inside_dwords()

        def load_lane(lane: str) -> None:
            value = m.emit(f"load {element}, ptr {self._place(offsets, lane)}, align 1")
            m.line(f"store {element} {value}, ptr {m.emit(f'getelementptr {element}, ptr {found}, i64 {lane}')}")
        self._each(load_lane)
        return m.emit(f"load {vector}, ptr {found}")

    def _gather_inside_dwords(self) -> None:
        """Return if each narrow lane is inside one aligned dword: the dwords are gathered. They are on the pages of the lanes."""
        m, far, words, places = self.m, f"<{self.lanes} x i64>", f"<{self.lanes} x i32>", f"<{self.lanes} x ptr>"
        where = m.emit(f"ptrtoint {places} {self._pointers()} to {far}")
        rest = m.emit(f"trunc {far} {m.emit(f'and {far} {where}, splat (i64 3)')} to {words}")
        within, across = m.labels("within", "across")
        inside = self._all(m.emit(f"icmp ule {words} {rest}, splat (i32 {4 - self.size})")) if self.size > 1 else "true"
        m.line(f"br i1 {inside}, label %{within}, label %{across}, !prof !1")
        m.start(within)
        aligned = m.emit(f"inttoptr {far} {m.emit(f'and {far} {where}, splat (i64 -4)')} to {places}")
        operands = [(places, aligned), ("i32", "4"), (self.bools, self.mask), (words, "zeroinitializer")]
        held = m.intrinsic("llvm.masked.gather", words, operands, (words, places))
        shifted = m.emit(f"lshr {words} {held}, {m.emit(f'shl {words} {rest}, splat (i32 3)')}")
        m.line(f"ret {self.vector} {m.emit(f'trunc {words} {shifted} to {self.vector}')}")
        m.start(across)

    def write(self) -> None:
        m, vector = self.m, self.vector
        row, start, address = self._contiguous(*self._first())
        contiguous, divergent = m.labels("contiguous", "divergent")
        m.line(f"br i1 {row}, label %{contiguous}, label %{divergent}")
        m.start(contiguous)
        self._say(CONTIGUOUS, start, address)
        m.intrinsic("llvm.masked.store", "void", [(vector, "%a5"), ("ptr", start), ("i32", "1"), (self.bools, self.mask)], (vector, "ptr"))
        m.line("ret void")
        m.start(divergent)
        self._scatter()
        m.line("ret void")

    def _scatter(self) -> None:
        m, vector, element = self.m, self.vector, self.m.element(self.shape.type)
        narrow = self.shape.type.bits < GATHERED
        offsets = self._remember() if narrow or not self.shape.quiet else ""
        if not narrow:
            def scatter(pointers: str) -> None:
                places = f"<{self.lanes} x ptr>"
                m.intrinsic("llvm.masked.scatter", "void", [(vector, "%a5"), (places, pointers), ("i32", "1"), (self.bools, self.mask)],
                            (vector, places))
            self._with_pointers(scatter)
            return
        given = m.place(vector)
        m.line(f"store {vector} %a5, ptr {given}")

        def store_lane(lane: str) -> None:
            value = m.emit(f"load {element}, ptr {m.emit(f'getelementptr {element}, ptr {given}, i64 {lane}')}")
            m.line(f"store {element} {value}, ptr {self._place(offsets, lane)}, align 1")
        self._each(store_lane)

    def change(self, operands: list[Value], one_lane: OneLane, alone: OneLane) -> None:
        """Atomics: what was there, and what was put there. Quiet memory is that of one host thread, others may be for a while: `alone`
        does the same without a lock."""
        m, vector, element = self.m, self.vector, self.m.element(self.shape.type)
        kind = f"<{self.lanes} x {self.kind}>"
        where = self.where
        if not self.shape.table and not self.shape.quiet:       # a surface may begin anywhere
            base = m.emit(f"ptrtoint ptr %a1 to {self.kind}")
            where = m.emit(f"add {kind} {where}, {m._splat(self.kind, self.lanes, base)}")
        rest = m.emit(f"and {kind} {where}, splat ({self.kind} {self.size - 1})")
        self._refuse(m.emit(f"and {self.bools} {self.mask}, {m.emit(f'icmp ne {kind} {rest}, zeroinitializer')}"), UNKNOWN)
        offsets = self._remember()
        pointers = self._stored_pointers() if self.shape.table else ""
        found = [m.place(vector) for _ in range(2)]
        given = [m.place(vector) for _ in operands]
        for place in found:
            m.line(f"store {vector} zeroinitializer, ptr {place}")
        for number, place in enumerate(given):
            m.line(f"store {vector} %a{5 + number}, ptr {place}")

        def pointer(lane: str) -> str:
            if not pointers:
                return self._place(offsets, lane)
            return m.emit(f"load ptr, ptr {m.emit(f'getelementptr i64, ptr {pointers}, i64 {lane}')}")

        def change_lane(act: OneLane, lane: str) -> None:
            numbers = [m.emit(f"load {element}, ptr {m.emit(f'getelementptr {element}, ptr {place}, i64 {lane}')}") for place in given]
            for value, place in zip(act(pointer(lane), numbers), found, strict=True):
                m.line(f"store {element} {value}, ptr {m.emit(f'getelementptr {element}, ptr {place}, i64 {lane}')}")
        if self.shape.quiet:
            self._each(partial(change_lane, alone))
        else:
            word = m.emit(f"load i64, ptr {m.emit(f'getelementptr i64, ptr %a0, i64 {ALONE}')}")
            plain, locked, done = m.labels("plain", "locked", "changed")
            m.line(f"br i1 {m.emit(f'icmp eq i64 {word}, 0')}, label %{locked}, label %{plain}")
            for label, act in ((plain, alone), (locked, one_lane)):
                m.start(label)
                self._each(partial(change_lane, act))
                m.line(f"br label %{done}")
            m.start(done)
        both = f"{{ {vector}, {vector} }}"
        half = m.emit(f"insertvalue {both} poison, {vector} {m.emit(f'load {vector}, ptr {found[0]}')}, 0")
        last = m.emit(f"load {vector}, ptr {found[1]}")
        m.line(f"ret {both} {m.emit(f'insertvalue {both} {half}, {vector} {last}, 1')}")
