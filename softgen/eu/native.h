/* A thread and its environment as compiled code sees them: the structures of eu/thread/block.py, for C. */
#ifndef SOFTGEN_NATIVE_H
#define SOFTGEN_NATIVE_H

#include <stdint.h>

enum { CHANNELS = 32, MAX_DEPTH = 16 };

/* What a call of a thread's code returned. NOT_STARTED is the scheduler's: the thread's block has not been written yet. */
enum status { RUNNING, ENDED, WAITING, OUT_OF_BUDGET, ESCAPE, MODE, NOT_STARTED };

/* The part of a block that is no register: where the thread and its channels are. */
struct control {
    uint32_t ip, status, active, waiting;
    uint64_t executed;
    uint32_t imask, lmask, cmask, if_depth, loop_depth, number;
    uint32_t ifs[MAX_DEPTH], loops[2 * MAX_DEPTH], channel_ip[CHANNELS], stray;
};

struct program;

/* The environment of the threads that one host thread runs. Pointers are host addresses. */
struct context {
    uint64_t table, surfaces;
    uint8_t *local;
    uint64_t local_size;
    uint64_t *record;
    int64_t budget;
    struct program *program;
    uint8_t *blocks;
    uint64_t threads, arrived, notified, general, turns, mask, base, offsets[CHANNELS], alone, executed;
};

typedef int64_t thread_function(uint8_t *block, struct context *context);

#endif
