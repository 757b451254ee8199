/* A C loop that starts a pixel shader thread for each 4x4 block of a picture, as the pipeline does. */
#include "threads.h"
#include "three_d.h"

#include <string.h>

enum { REGISTER = 32 };

struct loop {
    struct threads_worker *worker;
    uint64_t next, end, batch; /* threads */
    uint64_t pixel; /* where a thread's block has its struct pixel_dispatch */
    uint64_t across; /* blocks of a row */
    uint32_t lit;
    float depth;
    uint64_t returns; /* to Python */
    uint64_t passed, last; /* pixels; threads of the batch under way */
};

/* r2 has a colour that depends on the block. */
static void write_one(const struct loop *l, uint8_t *block, uint64_t number)
{
    struct pixel_dispatch *pixel = (struct pixel_dispatch *)(block + l->pixel);
    float color[4] = { (float)(number % 16) / 15, (float)(number / 16) / 15, 0.25f, 1 };
    uint32_t x = number % l->across * 4, y = number / l->across * 4;
    memset(block, 0, 3 * REGISTER);
    memcpy(block + 2 * REGISTER, color, sizeof color);
    memset(pixel, 0, sizeof *pixel);
    for (uint32_t i = 0; i < 4; i++)
        pixel->place[i] = (x + i % 2 * 2) | (y + i / 2 * 2) << 16;
    pixel->lit = l->lit;
    for (int i = 0; i < 16; i++)
        pixel->depth[i] = l->depth;
}

static void count(struct loop *l)
{
    for (uint64_t i = 0; i < l->last; i++)
        l->passed += __builtin_popcount(((struct pixel_dispatch *)(threads_payload(l->worker, i) + l->pixel))->passed);
    l->last = 0;
}

int64_t run_pixels(struct loop *l, void *record)
{
    int64_t why = threads_pending(l->worker) ? threads_resume(l->worker, record) : THREADS_DONE;
    while (why == THREADS_DONE) {
        count(l);
        if (l->next >= l->end)
            return THREADS_DONE;
        uint64_t threads = l->end - l->next < l->batch ? l->end - l->next : l->batch;
        for (uint64_t i = 0; i < threads; i++)
            write_one(l, threads_payload(l->worker, i), l->next + i);
        l->next += threads;
        l->last = threads;
        why = threads_run(l->worker, record, threads, 0);
    }
    l->returns++;
    return why;
}
