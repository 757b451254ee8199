"""Visibility streams in memory: a bit for each object of a draw, in whole pages of the page pool, found through the render list.

Reads   3DSTATE_PTBR_PAGE_POOL_BASE_ADDRESS 3DSTATE_PTBR_RENDER_LIST_BASE_ADDRESS PTBR_PAGE_POOL_SIZE PTBR_NUM_PAGES_RECORDED
        VISIBILITY_LIST_ENTRY
Writes  memory, PTBR_NUM_PAGES_RECORDED

The manual leaves format and compression to the hardware (ICL 2769-2777, 2832-2837): here the streams are not compressed.
"""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import numpy.typing as npt

from softgen.bits.catalogue import layout
from softgen.bits.units import PAGE_SIZE
from softgen.errors import DecodeError, SoftgenError
from softgen.three_d.state.state import PipelineContext

Visible = npt.NDArray[np.bool_]
LIST, POOL = "3DSTATE_PTBR_RENDER_LIST_BASE_ADDRESS", "3DSTATE_PTBR_PAGE_POOL_BASE_ADDRESS"
ENTRY = "VISIBILITY_LIST_ENTRY"
ENTRY_BYTES = 8


def base(cs: Any, command: str) -> int:
    """The address that a command gives."""
    found = cs.latched.get(command)
    if found is None:
        raise DecodeError(f"3DPRIMITIVE with posh_enable needs {command}, which no command has set")
    mask: int = (1 << cs.space.bits) - 1
    return int(getattr(found, found._fields[-1])) & mask


def next_entry(cs: Any) -> int:
    """The address of the next draw's entry in the render list, in the order of draws with visibility."""
    context: PipelineContext = cs.state(PipelineContext)
    number = context.visibility_draws
    context.visibility_draws = number + 1
    return base(cs, LIST) + ENTRY_BYTES * number


def write(cs: Any, visible: Visible) -> None:
    """The stream of a draw, in pages that no draw before has, and its entry."""
    entry, pool, first = next_entry(cs), base(cs, POOL), cs.get("PTBR_NUM_PAGES_RECORDED")
    data = np.packbits(visible, bitorder="little").tobytes()
    pages, most = max(-(-len(data) // PAGE_SIZE), 1), cs.get("PTBR_PAGE_POOL_SIZE")
    if most and first + pages > most:
        raise SoftgenError(f"the page pool at {pool:#x} has {most} pages (PTBR_PAGE_POOL_SIZE), of which {first} are used: a draw of "
                           f"{len(visible)} objects needs {pages}")  # fmt: skip
    cs.write(pool + PAGE_SIZE * first, data)
    cs.write(entry, struct.pack("<2I", *layout(ENTRY, cs.generation.number).pack(first_page=first, recorded=1, objects=len(visible))))
    cs.set("PTBR_NUM_PAGES_RECORDED", first + pages)


def read(cs: Any, objects: int) -> Visible | None:
    """The stream of the next draw; None where none of so many objects was recorded."""
    at = next_entry(cs)
    entry: Any = layout(ENTRY, cs.generation.number).raw(struct.unpack("<2I", cs.read(at, ENTRY_BYTES)))
    if not entry.recorded or entry.objects != objects:
        return None
    data = cs.read(base(cs, POOL) + PAGE_SIZE * entry.first_page, -(-objects // 8))
    return np.unpackbits(np.frombuffer(data, np.uint8), count=objects, bitorder="little").astype(np.bool_)
