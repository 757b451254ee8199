"""The data port in compiled code: memory as regions of the LLVM machine, through the fields of the context."""

from __future__ import annotations

import ctypes

from softgen.lanes.code_machine import Scalar
from softgen.lanes.llvm.region import flat_region, mapped_region, table_region
from softgen.lanes.record import RecordLayout
from softgen.lanes.types import bool_, u32, u64
from softgen.lanes.value import Region, Value
from softgen.shared_functions.bindings import KEYED, KNOWN, SURFACES, Bindings, Surface
from softgen.shared_functions.compiled import MessageCode
from softgen.shared_functions.texture.compiled import CompiledTexels

SURFACE = RecordLayout.of(Surface)
SLOT = 4  # bytes that a lane of most messages accesses


class CompiledDataPort(CompiledTexels):
    """A DataPortEnvironment in compiled code."""

    def __init__(self, code: MessageCode) -> None:
        super().__init__(code)
        self._checked = False  # that the message has a buffer

    def within(self, index: int | Value, offsets: Value, mask: Value, what: str) -> None:
        """A side exit for the first message with a lane outside a buffer, which the interpreter reports. Affine offsets are inside if the
        last one is; then there is a buffer, too."""
        code, m = self.code, self.code.m
        entry = self._entry(index)
        size, known = (self._surface(entry, name) for name in ("size", "known"))
        sure, check = m.labels("sure", "check")
        code.before_branch()
        m.branch(m.affine_inside(offsets, mask, size, SLOT), sure, check, likely=True)
        m.start(check)
        end = m.broadcast(size.min(offsets.type.highest).convert(offsets.type).lane(), offsets.lanes)
        inside = ~m.any(mask & (m.rematerialised(offsets, mask) >= end)) | (known > KNOWN).lane()
        code.escape(inside & self._exists(entry))
        m.jump(sure)
        m.start(sure)
        self._checked = True

    def _entry(self, index: int | Value | Scalar) -> int | Scalar:
        m = self.code.m
        return m.scalar(m.convert(index, u64)) if isinstance(index, Value) else index

    def _exists(self, index: int | Scalar) -> Value:
        return (self._surface(index, "host") != 0).lane()

    def _surface(self, index: int | Scalar, name: str) -> Scalar:
        """A field of an entry. Those that code names were resolved before it ran; others may be while it runs."""
        bindings = self.code.pointer("surfaces", dereferenceable=ctypes.sizeof(Bindings))
        return bindings.at(index * SURFACE.size + SURFACE.offset(name)).load(u64, invariant=self.code.named(index) is not None)

    def bound(self, index: int | Value | Scalar) -> Region:
        code, entry = self.code, self._entry(index)
        if (named := code.named(entry)) is not None:
            code.indices.add(named)
        host, size, mapped = (self._surface(entry, name) for name in ("host", "size", "mapped"))
        if not self._checked:
            code.escape(self._exists(entry))
        name = f"surface {index}" if isinstance(index, int) else "a surface"
        return mapped_region(code.m, host, size, mapped, code.note, code.pointer("record"), code.ip, named, name)

    def bindless(self, offset: int | Value) -> Region:
        key = self.code.m.constant(u32, offset, 1) if isinstance(offset, int) else offset
        return self.bound(self.keyed("surface_keys", KEYED, key) + SURFACES)

    def general(self, base: Value | None = None) -> Region:
        code = self.code
        start = code.field("general")
        if base is not None:
            start = start + code.m.scalar(base)
        return table_region(code.m, code.pointer("table"), start, code.announce(), code.address_bits, name="memory")

    def addresses(self) -> Region:
        code = self.code
        table = code.pointer("table")
        return table_region(code.m, table, code.m.number(u64, 0), code.announce(), code.address_bits, canonical=True, name="memory")

    def local(self, plain: bool = False) -> Region:
        code = self.code
        note = None if plain else code.announce()
        return flat_region(code.m, code.field("local"), code.field("local_size"), note, quiet=True, name="local memory")


__all__ = ["CompiledDataPort", "bool_"]
