/* Stages whose work threads do: their loops, on one or several host threads, and the work of their workers. */
#include "draw.h"

#include <string.h>

/* How many loops do the work that a stage begins, if it is worth `loops`. */
int64_t share_stage(struct draw *d, struct stage *s, uint64_t loops)
{
    const struct shared_loops *shared = &s->loops;
    uint64_t most = shared->most && shared->most < d->host_threads ? shared->most : d->host_threads;
    d->running_count = 0;
    d->loops = loops < most ? loops : most;
    if (d->loops < 2)
        d->loops = 1;
    return shared->count < d->loops && d->loops > 1 ? DRAW_NO_WORKERS : THREADS_DONE;
}

/* A loop of those that do a stage's work. */
void *loop_of(const struct stage *s, uint64_t number)
{
    return number ? s->loops.copies + (number - 1) * s->loops.size : s->loop;
}

static void begin_loops(struct draw *d, const struct stage *s)
{
    for (uint64_t i = 0; i < d->loops; i++) {
        struct threads_part *part = &d->running[i];
        *part = s->loops.parts[i];
        part->loop = s->function;
        part->argument = loop_of(s, i);
        if (i) {
            struct stage_loop *loop = part->argument;
            memcpy(loop, s->loop, s->loops.size);
            loop->worker = part->worker;
            loop->first_slot = (uint32_t)i * s->loops.slots;
        }
    }
    d->running_count = d->loops;
}

/* The loops of the stage, until all are done or some need Python; called again, those go on. */
static int64_t run_loops(struct draw *d, const struct stage *s)
{
    uint64_t left = 0;
    if (!d->running_count)
        begin_loops(d, s);
    threads_run_parts(d->running, d->running_count, d->guard);
    for (uint64_t i = 0; i < d->running_count; i++)
        if (d->running[i].signal || d->running[i].result != THREADS_DONE)
            d->running[left++] = d->running[i];
    d->running_count = left;
    return left ? DRAW_LOOPS : THREADS_DONE;
}

static void begin_workers(struct draw *d, struct stage *s)
{
    s->used = 1;
    s->work.nanoseconds = 0;
    threads_begin(s->worker, d->deadline);
    for (uint64_t i = 1; i < s->loops.count; i++)
        threads_begin(s->loops.parts[i].worker, d->deadline);
}

/* The loops of a stage, as share_stage has decided. */
int64_t run_threads(struct draw *d, struct stage *s, void *record)
{
    if (!s->used && s->worker)
        begin_workers(d, s);
    uint64_t began = monotonic_time();
    int64_t why = d->loops > 1 ? run_loops(d, s) : s->function(s->loop, record);
    s->work.nanoseconds += monotonic_time() - began;
    return why;
}

/* Threads and instructions of all workers of a stage, in this draw. */
void count_work(struct stage *s)
{
    struct threads_counts done = {0, 0};
    for (uint64_t i = 0; s->used && i < (s->loops.count ? s->loops.count : 1); i++) {
        struct threads_counts more = threads_counts(i ? s->loops.parts[i].worker : s->worker);
        done.threads += more.threads;
        done.instructions += more.instructions;
    }
    s->work.threads = done.threads;
    s->work.instructions = done.instructions;
}
