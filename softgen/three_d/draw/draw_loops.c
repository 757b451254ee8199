/* Stages of a prepared draw on several host threads: loops like the stage's own, which share its work (shared_stages.py). */
#include "draw.h"

#include <string.h>

/* How many loops do the work of the stage that begins, if it is worth `loops`. */
int64_t share_stage(struct draw *d, const struct shared_loops *s, uint64_t loops)
{
    d->running_count = 0;
    d->loops = loops < d->host_threads ? loops : d->host_threads;
    if (d->loops < 2) {
        d->loops = 1;
        return THREADS_DONE;
    }
    return s->scratch ? DRAW_SHARE : s->count < d->loops ? DRAW_NO_WORKERS : THREADS_DONE;
}

void *loop_of(const struct shared_loops *s, uint64_t number, void *own)
{
    return number ? s->copies + (number - 1) * s->size : own;
}

static void begin_loops(struct draw *d, const struct shared_loops *s, int64_t (*function)(void *, void *), void *own)
{
    for (uint64_t i = 0; i < d->loops; i++) {
        struct threads_part *part = &d->running[i];
        *part = s->parts[i];
        part->loop = function;
        part->argument = loop_of(s, i, own);
        if (i) {
            memcpy(part->argument, own, s->size);
            *(struct threads_worker **)part->argument = part->worker;
        }
    }
    d->running_count = d->loops;
}

/* The loops of the stage, until all are done or some need Python; called again, those go on. */
int64_t run_loops(struct draw *d, const struct shared_loops *s, int64_t (*function)(void *, void *), void *loop)
{
    uint64_t left = 0;
    if (!d->running_count)
        begin_loops(d, s, function, loop);
    threads_run_parts(d->running, d->running_count, d->guard);
    for (uint64_t i = 0; i < d->running_count; i++)
        if (d->running[i].signal || d->running[i].result != THREADS_DONE)
            d->running[left++] = d->running[i];
    d->running_count = left;
    return left ? DRAW_LOOPS : THREADS_DONE;
}

/* -- workers of a stage -------------------------------------------------------------------------------------------------------------- */

/* `worker`: of the stage's own loop; NULL: it has no threads. */
void begin_workers(struct threads_worker *worker, const struct shared_loops *s, uint64_t deadline)
{
    if (worker)
        threads_begin(worker, deadline);
    for (uint64_t i = 1; i < s->count; i++)
        threads_begin(s->parts[i].worker, deadline);
}

void count_work(struct threads_worker *worker, const struct shared_loops *s, struct stage_work *work)
{
    struct threads_counts done = worker ? threads_counts(worker) : (struct threads_counts){0, 0};
    for (uint64_t i = 1; i < s->count; i++) {
        struct threads_counts more = threads_counts(s->parts[i].worker);
        done.threads += more.threads;
        done.instructions += more.instructions;
    }
    work->threads = done.threads;
    work->instructions = done.instructions;
}
