/* The scheduler of one host thread: groups of threads in turns, each group's barrier, and batches that C loops start (threads.h).
 *
 * Runs under the guard (memory/guard.c) and may be left at any access to graphics memory: it holds no locks and owns nothing, and all it
 * knows is in the structures it was given (scheduler.h). Plain C without the Python API.
 */
#include "scheduler.h"

#include <stddef.h>
#include <string.h>
#include <time.h>

struct block_layout place;

void threads_place(uint64_t size, uint64_t control, uint64_t notification, uint64_t cr, uint64_t sr, uint32_t vector_mask_enable)
{
    place.size = size;
    place.control = control;
    place.notification = notification;
    place.cr = cr;
    place.sr = sr;
    place.vector_mask_enable = vector_mask_enable;
}

static uint64_t nanoseconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

int late(const struct scheduler_state *w)
{
    return nanoseconds() >= w->deadline;
}

/* -- turns --------------------------------------------------------------------------------------------------------------------------- */

static enum return_reason reason_of(int64_t status)
{
    return status == ESCAPE ? THREADS_ESCAPED : status == CR0_CHANGED ? THREADS_OTHER_MODE : status == WAITING ? THREADS_DONE
         : status == OUT_OF_BUDGET ? THREADS_DEADLINE : THREADS_UNKNOWN_STATUS;
}

/* One turn of one thread: why Python is needed, or DONE. A thread has moved if it executed something or need not wait. */
static enum return_reason turn(struct scheduler_state *w)
{
    struct group_member *m = &w->members[w->current];
    uint8_t *block = block_of(w, w->current);
    if (control_of(block)->status == NOT_STARTED)
        start_thread(w, w->current);
    uint64_t before = control_of(block)->executed;
    int64_t status;
    w->context->budget = w->turn;
    do {
        w->context->program = m->program;
        w->context->turns = 1;
        status = m->function(block, w->context);
    } while ((status == CR0_CHANGED || status == ESCAPE) && answered(w, m, block, &status));
    control_of(block)->status = (uint32_t)status;
    if (control_of(block)->executed != before || status == OUT_OF_BUDGET)
        w->moved = 1;
    if (status == ENDED) {
        w->left--;
        w->moved = 1;
        return THREADS_DONE;
    }
    m->dirty = 1;
    return reason_of(status);
}

static void next_round(struct scheduler_state *w)
{
    w->current = w->begin;
    w->moved = 0;
}

/* A turn for each thread that is left. w->current is the one to go on with; it stays at a thread for which Python is needed. */
static enum return_reason round_of_turns(struct scheduler_state *w)
{
    for (; w->current < w->context->threads; w->current++) {
        if (control_of(block_of(w, w->current))->status == ENDED)
            continue;
        enum return_reason why = turn(w);
        if (why == THREADS_DEADLINE) {
            if (!late(w))
                continue;
            w->current++;
            return THREADS_DEADLINE;
        }
        if (why != THREADS_DONE)
            return why;
    }
    if (w->left && !w->moved)
        return THREADS_DEADLOCK;
    next_round(w);
    return THREADS_DONE;
}

/* Counts the threads that are left after a joint call, and whether any of them moved. */
static void count_left(struct scheduler_state *w)
{
    uint64_t executed = w->context->executed;
    w->left = 0;
    for (uint64_t i = w->begin; i < w->context->threads; i++) {
        const struct control_block *control = control_of(block_of(w, i));
        executed += control->executed;
        if (control->status != ENDED) {
            w->members[i].dirty = 1;
            w->left++;
        }
    }
    w->moved |= executed != w->executed;
    w->executed = executed;
}

/* Writes what code for threads in order does not: the threads from `first` on have ended, up to the one that was interrupted. */
static void note_ended(struct scheduler_state *w, uint64_t first, uint64_t end)
{
    for (uint64_t i = first; i < end; i++)
        control_of(block_of(w, i))->status = ENDED;
    w->fresh = 0;
}

/* Handles a thread that left a joint call; DONE if the others can go on. */
static enum return_reason interrupted(struct scheduler_state *w, int64_t status)
{
    struct group_member *m = &w->members[w->current];
    uint8_t *block = block_of(w, w->current);
    control_of(block)->status = (uint32_t)status;
    m->dirty = w->moved = 1;
    if (status == OUT_OF_BUDGET) {
        w->current++;
        return late(w) ? THREADS_DEADLINE : THREADS_DONE;
    }
    if (!answered(w, m, block, &status)) {
        control_of(block)->status = (uint32_t)status;
        return reason_of(status);
    }
    w->apart = m->function != w->function || m->program != w->program;
    return THREADS_DONE;
}

/* A barrier was passed: threads moved, and those that waited are left. How many is counted after a round without one. */
static enum return_reason passed_barrier(struct scheduler_state *w)
{
    for (uint64_t i = w->begin; i < w->context->threads; i++)
        w->members[i].dirty = 1;
    next_round(w);
    return THREADS_DONE;
}

/* A call that runs threads from the current one on; whether all of the group have ended in order. */
static int joint_call(struct scheduler_state *w, int64_t *status)
{
    struct context_head *c = w->context;
    c->budget = w->turn;
    c->program = w->program;
    c->turns = c->threads - w->current;
    *status = w->function(block_of(w, w->current), c);
    if (*status != ENDED || !w->fresh) /* some are left, or were interrupted before */
        return 0;
    w->executed = c->executed;
    w->left = 0;
    return 1;
}

/* A round of turns by one function that runs one thread after another: fewer calls, and what threads have in common is done once. */
static enum return_reason joint_turns(struct scheduler_state *w)
{
    struct context_head *c = w->context;
    uint64_t barriers = c->notified;
    while (w->current < c->threads && !w->apart) {
        int64_t status;
        if (joint_call(w, &status))
            return THREADS_DONE;
        const uint64_t first = w->current, over = status == ENDED || status == WAITING;
        w->current = over ? c->threads : c->threads - c->turns;
        if (w->in_order)
            note_ended(w, first, w->current);
        if (over)
            break;
        enum return_reason why = interrupted(w, status);
        if (why != THREADS_DONE)
            return why;
    }
    if (c->notified != barriers && !w->apart)
        return passed_barrier(w);
    count_left(w);
    if (w->apart)
        return THREADS_DONE; /* those that had no turn yet have it one by one */
    if (w->left && !w->moved)
        return THREADS_DEADLOCK;
    next_round(w);
    return THREADS_DONE;
}

static void end_group(struct scheduler_state *w)
{
    if (w->apart || w->moved) /* a thread may have ended in Python: counts are old */
        count_left(w);
    w->instructions += w->executed;
    w->threads_done += w->context->threads - w->begin;
    w->inside = 0;
    w->first++;
}

static enum return_reason run_group(struct scheduler_state *w)
{
    while (w->left) {
        enum return_reason why = w->apart ? round_of_turns(w) : joint_turns(w);
        if (why != THREADS_DONE)
            return why;
    }
    end_group(w);
    return THREADS_DONE;
}

/* Whether it is time to return to Python, looked at after every CLOCK_INTERVAL threads. */
static int clock_due(struct scheduler_state *w, uint64_t threads)
{
    w->since_clock += threads;
    if (w->since_clock < CLOCK_INTERVAL)
        return 0;
    w->since_clock = 0;
    return late(w);
}

/* -- entries ------------------------------------------------------------------------------------------------------------------------- */

static void enter(struct scheduler_state *w, void *record)
{
    w->context->record = record;
    if (w->inside && w->joint)
        count_left(w); /* Python may have given a thread another function, and those left were not counted yet */
}

/* Chunks are as long as CHUNK_TIME, and shorter towards the end, so that workers end at the same time. */
static void size_chunk(struct scheduler_state *w, uint64_t now)
{
    uint64_t spent = now - w->taken_at + 1, fits = w->taken * CHUNK_TIME / spent;
    w->chunk = !fits ? 1 : fits < CHUNK_GROWTH * w->taken ? fits : CHUNK_GROWTH * w->taken;
    w->taken = 0;
}

/* The next chunk of the dispatch; DONE with an empty chunk if there is none, or if workers shall return. */
static enum return_reason take_chunk(struct scheduler_state *w)
{
    struct group_share *s = w->share;
    uint64_t now = nanoseconds(), next = atomic_load(&s->next), left, size, pace = 0;
    if (w->taken) {
        pace = (now - w->taken_at) / w->taken;
        size_chunk(w, now);
    }
    if (atomic_load(&s->halted))
        return THREADS_DONE;
    do {
        left = s->end - next;
        if (!left)
            return THREADS_DONE;
        if (now >= w->deadline)
            return THREADS_DEADLINE;
        if (s->worthwhile && left > 1 && pace * left > s->worthwhile)
            return THREADS_HELP;
        size = s->workers == 1 ? left : left / (2 * s->workers);
        size = size < w->chunk ? size : w->chunk;
        size = size && s->pieces <= 1 ? size : 1;
    } while (!atomic_compare_exchange_weak(&s->next, &next, next + size));
    if ((w->pieces = s->pieces) > 1)
        w->fresh = 0; /* each piece is started in full */
    w->first = next;
    w->last = next + size;
    w->taken = size;
    w->taken_at = now;
    return THREADS_DONE;
}

/* Runs the groups from w->first up to w->last, then chunks of w->share, until all are done or Python is needed; called again, it goes on.
 * After ESCAPED, Python has executed the instruction, stored the thread's status in its block, and moved on to the next thread if this one
 * now waits or has ended (then one fewer is left). */
int64_t threads_groups(struct scheduler_state *w, void *record)
{
    enter(w, record);
    for (;;) {
        if (!w->inside) {
            if (w->first == w->last && w->share) {
                enum return_reason why = take_chunk(w);
                if (why != THREADS_DONE)
                    return why;
            }
            if (w->first == w->last)
                return THREADS_DONE;
            if (clock_due(w, w->size))
                return THREADS_DEADLINE;
            if (w->plain && w->fresh == w->size && !w->context->notified)
                restart_group(w);
            else
                next_group(w);
        }
        enum return_reason why = run_group(w);
        if (why != THREADS_DONE) {
            if (w->share && why != THREADS_DEADLINE)
                atomic_store(&w->share->halted, 1);
            return why;
        }
    }
}

static uint64_t capacity(const struct threads_worker *worker)
{
    return ((const struct scheduler_state *)worker)->size;
}

static uint8_t *payload(const struct threads_worker *worker, uint64_t number)
{
    return block_of((const struct scheduler_state *)worker, number);
}

static int64_t pending(const struct threads_worker *worker)
{
    return (int64_t)((const struct scheduler_state *)worker)->inside;
}

static int64_t resume(struct threads_worker *worker, void *record)
{
    struct scheduler_state *w = (struct scheduler_state *)worker;
    enter(w, record);
    return w->inside ? run_group(w) : THREADS_DONE;
}

/* Another value in what is undefined of the payloads of a batch. */
static void leave_undefined(const struct scheduler_state *w, uint64_t count, const uint32_t *masks)
{
    for (uint64_t i = 0; i < count; i++)
        for (const struct undefined_dwords *u = w->undefined; u < w->undefined + w->undefined_count; u++)
            for (uint32_t at = u->offset; at < u->offset + u->size && !(u->channels & (masks ? masks[i] : UINT32_MAX)); at += sizeof at) {
                uint32_t held, *dword = (uint32_t *)(block_of(w, i) + at);
                memcpy(&held, dword, sizeof held);
                held = (held & ~u->bits) | ((uint32_t)w->undefined_value & u->bits);
                memcpy(dword, &held, sizeof held);
            }
}

static int64_t run(struct threads_worker *worker, void *record, uint64_t count, const uint32_t *masks)
{
    struct scheduler_state *w = (struct scheduler_state *)worker;
    if (!count)
        return THREADS_DONE;
    if (count > w->size)
        return THREADS_TOO_MANY; /* there are blocks and members for no more */
    if (w->undefined_count)
        leave_undefined(w, count, masks);
    w->context->record = record;
    w->context->threads = count;
    w->masks = masks;
    start_group(w);
    if (clock_due(w, count))
        return THREADS_DEADLINE;
    return run_group(w);
}

static struct context_head *context_of(const struct threads_worker *worker)
{
    return ((const struct scheduler_state *)worker)->context;
}

static void begin(struct threads_worker *worker, uint64_t deadline)
{
    struct scheduler_state *w = (struct scheduler_state *)worker;
    w->first = w->last = w->threads_done = w->instructions = w->inside = w->answer_count = 0;
    w->deadline = deadline;
}

static struct threads_counts counts(const struct threads_worker *worker)
{
    const struct scheduler_state *w = (const struct scheduler_state *)worker;
    return (struct threads_counts){w->threads_done, w->instructions};
}

static const struct threads_api api = {capacity, payload, pending, run, resume, context_of, begin, counts, threads_parallel};

const struct threads_api *threads_functions(void)
{
    return &api;
}
