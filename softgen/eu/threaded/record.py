"""Records: one of 64 bytes for each operation of a linked program, with what its handler needs to know beside its shape.

A handler is `int64_t h(uint8_t *block, struct op *op, struct context *context, uint64_t executed)`, where `executed` counts instructions
of this turn. It ends with a call of another record's handler in its place, or exits: then it has stored the thread's ip and what
was executed, and returns a ThreadStatus. native.c has what calls the first one, and the first 16 bytes of the record.
"""

from __future__ import annotations

import numpy as np

OP = np.dtype(
    {
        "names": ["function", "ip", "need", "dst", "src0", "src1", "src2", "immediate", "group", "flag", "first", "second"],
        "formats": ["<u8", "<u4", "<u4", "<u4", "<u4", "<u4", "<u4", "<u8", "<u4", "<u4", "<u8", "<u8"],
        "offsets": [0, 8, 12, 16, 20, 24, 28, 32, 40, 44, 48, 56],
        "itemsize": 64,
    }
)
PROGRAM = np.dtype([("ops", "<u8"), ("index", "<u8"), ("start", "<u8"), ("count", "<u8")])
NOWHERE = 0xFFFFFFFF  # in an index: no instruction of the program starts there

SLOTS = ("dst", "src0", "src1", "src2")  # slot n of an instruction; where its operand starts in the block
# A branch has no operands: the slots are addresses instead, and `first` and `second` the records of the latter two.
NEXT, FIRST, SECOND = "dst", "src0", "src1"
# Where a stream can be taken: `need` are the channels that must be on, `first` the handler for when they are not, `second` the stream.


def at(name: str) -> int:
    """The byte offset of a field in a record."""
    fields = OP.fields
    assert fields is not None
    return int(fields[name][1])
