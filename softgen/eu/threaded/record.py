"""Records: one of 64 bytes for each operation of a linked program, with what its handler needs to know beside its shape.

A handler is `int64_t h(uint8_t *block, struct native_op *op, struct context_head *context, uint64_t executed)`, where `executed` counts
instructions of this turn. It ends with a call of another record's handler in its place, or exits: then it has stored the thread's ip and
what was executed, and returns a ThreadStatus. native.c has what calls the first one.
"""

from __future__ import annotations

import numpy as np

from softgen.eu.native_h import NOWHERE, NativeOp, NativeProgram

OP, PROGRAM = np.dtype(NativeOp), np.dtype(NativeProgram)

SLOTS = ("dst", "src0", "src1", "src2")  # slot n of an instruction; where its operand starts in the block
# A branch has no operands: the slots are addresses instead, and `first` and `second` the records of the latter two.
NEXT, FIRST, SECOND = "dst", "src0", "src1"
OFFSET = "src2"  # of a jmpi without a known target: where its register is in the block
# Where a stream can be taken: `need` are the channels that must be on, `first` the handler for when they are not, `second` the stream.


def place(name: str) -> int:
    """The byte offset of a field in struct program."""
    fields = PROGRAM.fields
    assert fields is not None
    return int(fields[name][1])


def at(name: str) -> int:
    """The byte offset of a field in a record."""
    fields = OP.fields
    assert fields is not None
    return int(fields[name][1])


__all__ = ["FIRST", "NEXT", "NOWHERE", "OP", "PROGRAM", "SECOND", "SLOTS", "at"]
