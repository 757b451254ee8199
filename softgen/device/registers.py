"""The register file: a dword at each offset, and the registers that each hardware context has to itself.

Reads   TIMESTAMP CTX_TIMESTAMP EIR EMR HWSTAM IMR
Writes  nothing

Most registers keep what is written. Those whose page has mask bits in the upper half change only the bits whose mask bit is set, and
keep no mask. Timestamps move by themselves; an engine's registers are the same kind wherever the engine's start. The error identity
register is cleared by ones, except the bit of an error that only a reset ends (KBL 1686-1688). Numbers of EUs are even. Units
that must know when a register is read or written say so with on_read and on_write. Engines on several host threads may use one register
file.
"""

from __future__ import annotations

import threading
import tomllib
from collections.abc import Callable, Iterable
from functools import cache

from softgen.bits import registers
from softgen.bits.generation import SPEC, Generation
from softgen.bits.registers import RegisterPlace
from softgen.bits.units import DWORD_MASK
from softgen.streamer.privilege import privileged

HALF = (1 << 16) - 1
MOVING = ("TIMESTAMP", "CTX_TIMESTAMP")
MASKED_AFTER_RESET = ("EMR", "HWSTAM", "IMR")  # all bits (public Linux i915)
FATAL = "instruction_error"
ODD_EUS = 0x11  # of the least and the greatest number of EUs: hardware clips them to even ones (KBL 17971-17996)
SPARSE = 0x2000  # bytes of the position-only engine's registers, of which only those that pages have are there (ICL 297-298, 658-807)


@cache
def shared_registers() -> frozenset[str]:
    """Names of the registers that do not belong to a context."""
    text = (SPEC / "device" / "shared_registers.toml").read_text("utf-8")
    return frozenset(tomllib.loads(text)["names"]) | privileged("registers")


@cache
def read_only() -> frozenset[str]:
    """Names of registers that keep nothing that software writes."""
    text = (SPEC / "device" / "shared_registers.toml").read_text("utf-8")
    return frozenset(tomllib.loads(text)["read_only"])


@cache
def reset_values() -> dict[str, dict[str, int]]:
    """Reset values of registers, by generation and name."""
    text = (SPEC / "device" / "shared_registers.toml").read_text("utf-8")
    return {generation: dict(values) for generation, values in tomllib.loads(text)["reset"].items()}


class DeviceRegisters:
    """The registers of a GPU by absolute offset."""

    def __init__(self, generation: Generation, clock: Callable[[], int]) -> None:
        self.generation, self.clock = generation, clock
        self.values: dict[int, int] = {}
        self.lock = threading.RLock()  # held while a value is read, changed and written back
        self._places: dict[int, RegisterPlace | None] = {}
        self._plain: set[int] = set()  # registers that just keep what is written
        self._plain_rows: set[tuple[int, ...]] = set()  # of such registers that were written together
        self._owned: dict[int, bool] = {}  # does it belong to contexts?
        bases = registers.bases(generation.number).get("position_only", ())
        self._sparse = range(bases[0], bases[0] + SPARSE) if bases else range(0)
        self._reads: dict[int, Callable[[], int]] = {}
        self._writes: dict[int, Callable[[int], None]] = {}

    def on_read(self, offset: int, answer: Callable[[], int]) -> None:
        self._reads[offset] = answer

    def on_write(self, offset: int, take: Callable[[int], None]) -> None:
        """`take` gets what is written, instead of the register."""
        self._writes[offset] = take
        self._plain.discard(offset)
        self._plain_rows.clear()

    def keep(self, offset: int, value: int) -> None:
        """What a unit that takes a register's writes leaves in it."""
        self.values[offset] = value

    def place(self, offset: int) -> RegisterPlace | None:
        if offset not in self._places:
            self._places[offset] = registers.place(offset, self.generation.number)
        return self._places[offset]

    def belongs_to_contexts(self, offset: int) -> bool:
        """Whether each hardware context has this register to itself."""
        found = self._owned.get(offset)
        if found is None:
            place = self.place(offset)
            found = self._owned[offset] = place is None or place.layout.name not in shared_registers()
        return found and offset not in self._reads and offset not in self._writes

    def is_plain(self, offset: int) -> bool:
        """Whether a register is known to keep what is written, and no unit watches it."""
        return offset in self._plain

    def read(self, offset: int) -> int:
        if offset in self._reads:
            return self._reads[offset]() & DWORD_MASK
        if offset in self.values:
            place = self._places.get(offset)
            if place is None or place.layout.name not in MOVING:
                return self.values[offset]
        place = self.place(offset)
        if place and place.layout.name in MOVING:
            return self.clock() >> 32 * place.dword & DWORD_MASK
        return self.values.get(offset, self._after_reset(place) if place else 0)

    def _after_reset(self, place: RegisterPlace) -> int:
        if place.layout.name in MASKED_AFTER_RESET:
            return DWORD_MASK
        return reset_values().get(f"{self.generation.number:g}", {}).get(place.layout.name, 0)

    def write(self, offset: int, value: int) -> None:
        if offset in self._plain:
            self.values[offset] = value & DWORD_MASK
            return
        if offset in self._writes:
            self._writes[offset](value & DWORD_MASK)
            return
        with self.lock:
            self.values[offset] = self.changed(offset, self.values.get(offset, 0), value)

    def write_plain(self, offsets: tuple[int, ...], values: tuple[int, ...]) -> None:
        if offsets in self._plain_rows:
            self.values.update(zip(offsets, values, strict=False))
            return
        for offset, value in zip(offsets, values, strict=False):
            self.write(offset, value)
        if self._plain.issuperset(offsets):
            self._plain_rows.add(offsets)

    def changed(self, offset: int, old: int, value: int) -> int:
        """The value of a register that held `old` after `value` is written."""
        place = self.place(offset)
        if place is None and offset in self._sparse or place is not None and place.layout.name in read_only():
            return old
        if place and masked(place):
            mask = value >> 16 & HALF
            return old & ~mask | value & mask
        if place and place.layout.name == "R_PWR_CLK_STATE":
            return value & ~ODD_EUS & DWORD_MASK
        if place and place.layout.name == "EIR":
            return old & (~value | place.layout.field(FATAL).mask) & DWORD_MASK
        self._plain.add(offset)
        return value & DWORD_MASK

    def raise_error(self, offset: int, value: int) -> None:
        """Into the error identity register, by the hardware."""
        self.values[offset] = value & DWORD_MASK

    def save(self, offsets: Iterable[int]) -> dict[int, int]:
        return {offset: self.read(offset) for offset in offsets}

    def restore(self, saved: dict[int, int]) -> dict[int, int]:
        for offset, value in saved.items():
            self.write(offset, value)
        return saved


class ContextRegisters:
    """The register file as the commands of one hardware context see it: registers that belong to contexts are its own.

    `own` is saved with the context and replaces saving and restoring: another context's commands have another one.
    """

    def __init__(self, shared: DeviceRegisters, own: dict[int, int]) -> None:
        self.shared, self.own = shared, own
        self._writes: dict[int, Callable[[int], None]] = {}

    def on_write(self, offset: int, take: Callable[[int], None]) -> None:
        """`take` gets what commands of this context write, instead of the register."""
        self._writes[offset] = take

    def keep(self, offset: int, value: int) -> None:
        self.own[offset] = value

    def read(self, offset: int) -> int:
        found = self.own.get(offset)
        return self.shared.read(offset) if found is None else found

    def write(self, offset: int, value: int) -> None:
        if offset in self.own and self.shared.is_plain(offset):
            self.own[offset] = value & DWORD_MASK
        elif offset in self._writes:
            self._writes[offset](value & DWORD_MASK)
        elif self.shared.belongs_to_contexts(offset):
            self.own[offset] = self.shared.changed(offset, self.read(offset), value)
        else:
            self.shared.write(offset, value)

    def save(self, offsets: Iterable[int]) -> dict[int, int]:
        return self.own

    def restore(self, saved: dict[int, int]) -> dict[int, int]:
        self.own = {**self.own, **saved}
        for offset, take in self._writes.items():
            take(self.own.get(offset, 0))
        return self.own


def masked(place: RegisterPlace) -> bool:
    """Whether a register's page has mask bits in its upper half; such a register is one dword."""
    return any(field.name.endswith("_mask") and field.low >= 16 for field in place.layout.fields)
