/* The context of compiled code: what the threads that one host thread runs have in common (context.py). */
#ifndef SOFTGEN_CONTEXT_H
#define SOFTGEN_CONTEXT_H

#include <stdint.h>

enum { CHANNELS = 32 };

struct native_program;

/* The head of a context, which C knows; fields of units follow it. All pointers are host addresses. */
struct context_head {
    uint64_t table;      /* host bases of the address space's 4 GiB parts */
    uint64_t surfaces;   /* Bindings (bindings.py) */
    uint8_t *local;      /* shared local memory of the group */
    uint64_t local_size;
    uint64_t *record;    /* the guard's: its first word is the ip of the message being executed */
    int64_t budget;      /* backward branches left in this turn */
    struct native_program *program; /* the engine's data of the kernel, if it is not the function itself */
    uint8_t *blocks;     /* the group's threads, one block each (eu/thread/block.py) */
    uint64_t threads;
    uint64_t arrived;    /* threads at the barrier */
    uint64_t notified;   /* barriers that threads passed since the group started */
    uint64_t general;    /* general state base address */
    uint64_t turns;      /* threads that a function which runs several still has to run, this one counted; 0 is 1 */
    uint64_t mask;       /* note of the access in progress (lanes/bytecode/memory.h): flags and lanes, */
    uint64_t base;       /* address that the offsets count from */
    uint64_t offsets[CHANNELS];
    uint64_t alone;      /* no other host thread runs threads of the dispatch: atomics need not lock (lanes/llvm/access.py) */
    uint64_t executed;   /* instructions of threads that ended in order, whose blocks say nothing of it */
};

#endif
