/* A C loop over batches of threads, and a payload writer: what a pipeline does, small enough for a test. */
#include "threads.h"

#include <stddef.h>
#include <string.h>

enum { REGISTER = 32, CHANNELS = 16 };

/* Payload: r0 is zeros, r1 has 16 words, the channels' numbers in the dispatch; r2.0 a constant. */
static void write_one(uint8_t *block, uint64_t number, uint32_t constant)
{
    uint16_t *ids = (uint16_t *)(block + REGISTER);
    memset(block, 0, 3 * REGISTER);
    for (int lane = 0; lane < CHANNELS; lane++)
        ids[lane] = (uint16_t)(number * CHANNELS + lane);
    memcpy(block + 2 * REGISTER, &constant, sizeof constant);
}

/* Every third thread has five channels on. */
static uint32_t mask_of(uint64_t number)
{
    return number % 3 ? 0xffff : 0x00f1;
}

void write_payloads(void *state, uint64_t first, uint64_t count, uint8_t *blocks, uint64_t stride, uint32_t *masks)
{
    for (uint64_t i = 0; i < count; i++) {
        write_one(blocks + i * stride, first + i, *(const uint32_t *)state);
        if (masks)
            masks[i] = mask_of(first + i);
    }
}

struct loop {
    struct threads_worker *worker;
    uint64_t next, end, batch; /* threads */
    uint64_t *shared; /* next thread of several loops, if they share one; taken batch by batch */
    uint32_t constant, masked;
    uint64_t batches, returns; /* batches started, returns to Python */
    uint32_t masks[64];
};

static uint64_t take(struct loop *l, uint64_t *first)
{
    *first = l->shared ? __atomic_fetch_add(l->shared, l->batch, __ATOMIC_RELAXED) : l->next;
    l->next = *first + l->batch;
    return *first >= l->end ? 0 : l->end - *first < l->batch ? l->end - *first : l->batch;
}

int64_t run_batches(struct loop *l, void *record)
{
    int64_t why = threads_pending(l->worker) ? threads_resume(l->worker, record) : THREADS_DONE;
    while (why == THREADS_DONE) {
        uint64_t first, count = take(l, &first);
        if (!count)
            return THREADS_DONE;
        for (uint64_t i = 0; i < count; i++) {
            write_one(threads_payload(l->worker, i), first + i, l->constant);
            l->masks[i] = mask_of(first + i);
        }
        l->batches++;
        why = threads_run(l->worker, record, count, l->masked ? l->masks : NULL);
    }
    l->returns++;
    return why;
}

uint64_t capacity(const struct threads_worker *worker)
{
    return threads_capacity(worker);
}
