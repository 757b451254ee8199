"""Relocations of EXECBUFFER2: the addresses that buffers have, written to the places in other buffers that the driver named.

A list may have millions of entries, so it is checked and applied as arrays.
"""

from __future__ import annotations

import errno
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple

from softgen.bits.units import DWORD
from softgen.driver.errors import Errno
from softgen.driver.ioctl import gem
from softgen.driver.objects.gem_object import GemObject
from softgen.driver.run.protocol import Call
from softgen.driver.uapi import i915_drm as i915
from softgen.driver.uapi.uapi import RELOCATION

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from softgen.driver.objects.node import Node

    Entries = npt.NDArray[np.void]
    Words = npt.NDArray[np.uint64]

MOST_RELOCATIONS = 1 << 22


class RelocationList(NamedTuple):
    """The relocations of a buffer: its row in the submission's list, and the entries as the program has them."""

    row: Any
    bo: GemObject
    data: memoryview


class Relocator:
    """The buffers of a submission, their addresses, and how entries name them."""

    def __init__(self, node: Node, call: Call, flags: int, rows: list[Any], bos: list[GemObject], addresses: list[int]) -> None:
        import numpy as np

        self.node, self.call, self.flags, self.width = node, call, flags, node.gpu.kernel.address_size
        self.rows, self.bos = rows, bos
        self.addresses = canonical(np.array(addresses, np.uint64), self.width)
        handles = np.array([row.handle for row in rows], np.uint64)
        self.order = np.argsort(handles)
        self.handles = handles[self.order]

    def targets(self, entries: Entries) -> npt.NDArray[np.intp]:
        """Which buffer each entry points to, by its number in the list or by its handle; len(rows) where there is none."""
        import numpy as np

        named = entries["target"].astype(np.uint64)
        if self.flags & i915.I915_EXEC_HANDLE_LUT:
            return np.minimum(named, len(self.rows)).astype(np.intp)
        at = np.searchsorted(self.handles, named).clip(max=len(self.rows) - 1)
        return np.where(self.handles[at] == named, self.order[at], len(self.rows))

    def mark_written(self, targets: npt.NDArray[np.intp]) -> None:
        """A relocation with a domain to write to says what EXEC_OBJECT_WRITE does (public: i915, eb_relocate_entry)."""
        for number in set(targets.tolist()):
            row = self.rows[number]
            self.rows[number] = row._replace(flags=row.flags | i915.EXEC_OBJECT_WRITE)

    def apply(self, row: Any, bo: GemObject, entries: Entries) -> bool:
        """Write the addresses of one list; did any entry need it? Their presumed addresses are brought up to date then."""
        targets = self.targets(entries)
        refuse(row, targets >= len(self.rows), errno.ENOENT, "points to a buffer that is not in the list")
        misplaced = (entries["offset"] > bo.size - self.width) | (entries["offset"] % DWORD != 0)
        refuse(row, misplaced, errno.EINVAL, "is written to no place in its buffer")
        self.mark_written(targets[entries["write_domain"] != 0])
        found = self.addresses[targets]
        if self.flags & i915.I915_EXEC_NO_RELOC:
            stale = entries["presumed"] != found
            if not stale.any():
                return False
            changed, at = entries[stale], found[stale]
        else:
            changed, at = entries, found
        gem.wait_idle(self.node, self.call, bo)
        store(bo, changed["offset"], canonical(at + sign_extended(changed["delta"]), self.width), self.width)
        entries["presumed"] = found
        return True


def refuse(row: Any, wrong: npt.NDArray[np.bool_], number: int, why: str) -> None:
    if wrong.any():
        raise Errno(number, f"relocation {int(wrong.argmax())} of buffer {row.handle} {why}")


def sign_extended(delta: npt.NDArray[np.uint32]) -> Words:
    import numpy as np

    return delta.view(np.int32).astype(np.int64).view(np.uint64) if delta.flags.contiguous else sign_extended(delta.copy())


def canonical(addresses: Words, width: int) -> Words:
    """Addresses as they stand in commands: with 64 bits, the bits above 47 repeat bit 47."""
    import numpy as np

    if width == DWORD:
        return addresses & np.uint64(0xFFFFFFFF)
    return ((addresses << np.uint64(16)).view(np.int64) >> 16).view(np.uint64)


def store(bo: GemObject, offsets: Words, values: Words, width: int) -> None:
    """Write values in their order, so that of two that overlap the later one counts. A value may lie in two pieces of memory."""
    import numpy as np

    count = width // DWORD
    places = (offsets // DWORD).astype(np.intp)[:, None] + np.arange(count)
    dwords = values.astype("<u8").view("<u4").reshape(-1, 2)[:, :count]
    first = 0
    for piece in bo.pieces:
        memory = np.frombuffer(piece.buffer.window(piece.offset, piece.size), "<u4")
        if len(bo.pieces) == 1:
            memory[places.ravel()] = dwords.ravel()
            return
        inside = (places >= first) & (places < first + len(memory))
        memory[places[inside] - first] = dwords[inside]
        first += len(memory)


def read_lists(call: Call, rows: list[Any], bos: list[GemObject]) -> list[RelocationList]:
    """The relocations of all buffers. The program may keep the server waiting for them, so no buffer may be claimed yet."""
    total: int = sum(row.relocations for row in rows)
    if not total:
        return []
    if total > MOST_RELOCATIONS:
        raise Errno(errno.EINVAL, f"{total} relocations")
    wanted = [(row, bo) for row, bo in zip(rows, bos, strict=True) if row.relocations]
    data = memoryview(call.read_all([(row.relocations_at, row.relocations * RELOCATION.size) for row, _ in wanted]))
    found, start = list[RelocationList](), 0
    for row, bo in wanted:
        found.append(RelocationList(row, bo, data[start : start + row.relocations * RELOCATION.size]))
        start += len(found[-1].data)
    return found


def relocate(node: Node, call: Call, arg: SimpleNamespace, rows: list[Any], bos: list[GemObject], addresses: list[int],
             lists: list[RelocationList]) -> int:  # fmt: skip
    """Apply relocations; their number. The program gets the lists that changed with its answer."""
    if not lists:
        return 0
    import numpy as np

    layout = np.dtype([(name, f"<u{RELOCATION.sizes[name]}") for name in RELOCATION.names])
    relocator = Relocator(node, call, arg.flags, rows, bos, addresses)
    for row, bo, data in lists:
        if relocator.apply(row, bo, np.frombuffer(data, layout)):
            call.write_late(row.relocations_at, data)
    return sum(row.relocations for row, _, _ in lists)
