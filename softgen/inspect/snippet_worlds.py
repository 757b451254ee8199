"""The first instruction of a snippet that depends on registers which nothing has written: the snippet in two worlds, side by side.

In one world such registers hold zeros, in the other random bytes; what an instruction makes of them differs, or where it leads.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from softgen.bits.units import GRF_BYTES
from softgen.errors import SoftgenError
from softgen.eu.thread.block import BLOCK_OFFSETS
from softgen.inspect import registers
from softgen.inspect.check.undefined import VISIBLE, source_bytes
from softgen.inspect.snippet import Snippet
from softgen.threads.world import undefined_bytes

FILES = {"grf": "r", "mrf": "m", "acc": "acc", "f": "f"}


def fill_registers(snippet: Snippet, settings: Iterable[str], seed: int) -> None:
    """Let registers hold what nobody knows, apart from those that are set: elements that a setting leaves out are zero."""
    chance = np.random.default_rng(seed)
    block = snippet.thread.block
    for first, last in undefined_bytes():
        block[first:last] = chance.integers(0, 256, last - first, np.uint8)
    for text in settings:
        setting = registers.setting(text, snippet.gen, snippet.thread)
        base, size = BLOCK_OFFSETS.get(setting.place), 4 if setting.place == "f" else GRF_BYTES
        if base is not None and setting.place in FILES:
            end = -(-(setting.start + len(setting.data)) // size) * size
            block[base + setting.start // size * size : base + end] = 0
        snippet.set(text)


def unwritten(plain: Snippet, other: Snippet, limit: int) -> str:
    """Place and text of the first instruction whose result differs between two worlds; '' where none does. Both are run."""
    a, b = plain.thread, other.thread
    for _ in range(limit):
        here = a.ip
        if a.ended or here == plain.end or here not in plain.places:
            return ""
        inst = plain.interpreter.code.line(here).instruction
        before = a.block[:VISIBLE].copy(), b.block[:VISIBLE].copy()
        try:
            went = [snippet.interpreter.step() for snippet in (plain, other)]
        except SoftgenError:
            return ""
        written = (before[0] ^ a.block[:VISIBLE]) | (before[1] ^ b.block[:VISIBLE])  # bits: channels that are off keep theirs of a flag
        if (written & (a.block[:VISIBLE] ^ b.block[:VISIBLE])).any() or (a.ip, a.ended) != (b.ip, b.ended):
            place = plain.places[here]
            sources = names(np.flatnonzero(before[0] != before[1]).tolist(), source_bytes(inst))
            return f"{place.where}: {place.text}: depends on {', '.join(sources) or 'a register'}, which nothing has written"
        if not all(went):
            return ""
    return ""


def names(differing: list[int], sources: Iterable[tuple[int, int]]) -> list[str]:
    """The registers of some bytes of a thread's block, as far as an instruction may read them. Which flags it reads is not looked at."""
    found: list[str] = []
    for at in differing:
        if any(first <= at < last for first, last in sources):
            file = max((name for name in FILES if BLOCK_OFFSETS[name] <= at), key=BLOCK_OFFSETS.__getitem__)
            found.append("a flag" if file == "f" else f"{FILES[file]}{(at - BLOCK_OFFSETS[file]) // GRF_BYTES}")
    return list(dict.fromkeys(found))
