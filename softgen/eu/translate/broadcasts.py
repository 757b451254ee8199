"""Hoists broadcasts of scalars above a rare branch.

LLVM selects instructions for one basic block at a time: a scalar that the block has loaded from memory is broadcast by the load, one that
was loaded in the block before by a shuffle of its own. So registers that are broadcast after the fast path of a function
(simd32_pairing.py) are read before it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from softgen.eu.translate.liveness import Exit, Use
from softgen.eu.translate.registers import RegisterAccess, overlap

MOST = 4  # vector registers that may be live across the branch for this


@dataclass(eq=False)
class RareBranch:
    """A placeholder in the text, before a rare branch: which accesses of its segment follow."""

    items: list[Use | Exit]
    before: int  # how many of them precede it

    def broadcasts(self, in_block: set[str]) -> list[RegisterAccess]:
        """The first broadcasts behind it, of registers that nobody has written by then. Those in the thread's block may be written by
        address as well."""
        found: list[RegisterAccess] = []
        written: list[RegisterAccess] = []
        for access in self.items[self.before :]:
            if not isinstance(access, RegisterAccess):
                continue
            if not access.result:
                written.append(access)
            elif _is_broadcast(access) and access.place not in in_block and not any(overlap(access, write) for write in written):
                found.append(access)
        return found[:MOST]


def hoisted(body: Iterable[object], in_block: set[str]) -> Iterator[object]:
    """The text of a function with its accesses in their new order."""
    early: set[RegisterAccess] = set()
    for line in body:
        if isinstance(line, RareBranch):
            reads = [access for access in line.broadcasts(in_block) if access not in early]
            early.update(reads)
            yield from reads
        elif line not in early:
            yield line


def _is_broadcast(access: RegisterAccess) -> bool:
    return len(access.offsets) > 1 and len(set(access.offsets)) == 1
