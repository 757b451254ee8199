/* What the assembler is given (program.py), and what it answers (assembly.c). */
#ifndef SOFTGEN_BYTECODE_ASSEMBLY_H
#define SOFTGEN_BYTECODE_ASSEMBLY_H
#include "bytecode.h"

/* A slot is a place's number in the upper half and a byte offset in the lower one. In place 0 an offset is an operand already: of a constant, or none. */
enum { SLOT_SHIFT = 32 };
enum { PURE = 1, READS_RESULT = 2, JUMPS = 4 }; /* how an operation is written */

/* An operation before it is encoded; operands are slots. */
struct written_operation {
    u64 code, lanes, how, result, a, b, c, flags, immediate; /* of a jump, `immediate` is the number of a label */
};

/* The first operation of a loop, and the one after the last. */
struct written_loop {
    u64 first, after;
};

/* A program being assembled. */
struct assembly_record {
    const struct written_operation *written;
    const u64 *sizes;                   /* of places, in bytes */
    const u64 *kept;                    /* places that have their bytes for the whole program */
    const u64 *labels;                  /* the operation that each is in front of */
    const struct written_loop *loops;
    u64 operations, places, kept_places, label_count, loop_count;
    struct encoded_operation *encoded;          /* room for all operations */
    u64 used, frame;                    /* results */
};
#endif
