/* Latched state commands, as streamer/latch.c keeps them and as the pipelines' C code reads them (MarkedLatched of command.py).
 *
 * This header is below the pipelines, as command.py is, so that none of them includes the streamer's files. */
#ifndef SOFTGEN_LATCHES_H
#define SOFTGEN_LATCHES_H

#include <stdint.h>

/* The latched commands of a hardware context. */
struct latches {
    uint32_t *slots;
    uint32_t *lengths; /* of a slot, in dwords; commands by index: 1 + the index of the item latched last */
    uint32_t *counts;  /* how often a slot was latched */
    uint64_t *present; /* which items of a slot were latched */
    uint32_t slot_count; /* rules made after the arrays were sized have slots beyond */
    uint32_t consumed, last; /* by latch_run: dwords, and the last command's first dword */
};

#endif
