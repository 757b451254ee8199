/* Running EU threads from C: batches of threads of one program on one worker.
 *
 * A worker is made by Python (threads/workers/worker.py), which has chosen the program's code. A C loop then starts one batch after another:
 *
 *     int64_t loop(struct my_state *s, void *record)
 *     {
 *         int64_t why = threads_pending(s->worker) ? threads_resume(s->worker, record) : THREADS_DONE;
 *         while (why == THREADS_DONE && s->next < s->end) {
 *             for (uint64_t i = 0; i < count; i++)
 *                 write_payload(threads_payload(s->worker, i), s->next + i);
 *             s->next += count;
 *             why = threads_run(s->worker, record, count, NULL);
 *         }
 *         return why;
 *     }
 *
 * Any return value but THREADS_DONE means that Python is needed: an instruction for the interpreter, code for another cr0, the deadline.
 * The loop returns it at once, keeping its own state; Python answers and calls the loop again, which resumes the batch under way.
 * Worker.drive (threads/workers/worker.py) does all this. The loop runs under the guard: it may be left at any access to graphics memory that
 * faults, holds no locks and owns nothing.
 */
#ifndef SOFTGEN_THREADS_H
#define SOFTGEN_THREADS_H

#include <stdint.h>

/* Why the scheduler returned to Python. */
enum return_reason {
    THREADS_DONE,
    THREADS_ESCAPED,        /* the current thread's next instruction is one for the interpreter */
    THREADS_OTHER_MODE,     /* the current thread's cr0 is not the one its code was made for */
    THREADS_DEADLOCK,       /* all threads that are left wait */
    THREADS_DEADLINE,       /* the deadline has passed; call again to go on */
    THREADS_UNKNOWN_STATUS, /* compiled code returned a status that does not exist */
    THREADS_TOO_MANY,       /* a C loop started more threads than a batch may have */
    THREADS_TOO_LONG,       /* payloads of a C loop are longer than a thread's registers */
    THREADS_HELP,           /* the groups left are worth more workers */
};

enum { THREADS_PAYLOAD = 128 * 32 }; /* bytes of the longest payload: the registers of a thread */

struct threads_worker;
struct context_head; /* shared_functions/context.h */

/* Work done since threads_begin. */
struct threads_counts { uint64_t threads, instructions; };

/* One of several loops that run at the same time, each with a worker and on a host thread of its own. */
struct threads_part {
    struct threads_worker *worker;
    void *record; /* of the guard */
    int64_t signal; /* that ended it (guard_call); 0: none, and */
    int64_t result; /* says why it returned */
    _Atomic uint32_t done; /* it has run */
    uint32_t reserved;
    int64_t (*loop)(void *argument, void *record); /* runs with `argument`; NULL: the worker's groups are run */
    void *argument;
};

/* guard_call of memory/guard.c. */
typedef int threads_guard(int64_t (*function)(void *argument, void *record), void *argument, void *record);

struct threads_api {
    uint64_t (*capacity)(const struct threads_worker *worker);
    uint8_t *(*payload)(const struct threads_worker *worker, uint64_t number);
    int64_t (*pending)(const struct threads_worker *worker);
    int64_t (*run)(struct threads_worker *worker, void *record, uint64_t count, const uint32_t *masks);
    int64_t (*resume)(struct threads_worker *worker, void *record);
    struct context_head *(*context)(const struct threads_worker *worker);
    void (*begin)(struct threads_worker *worker, uint64_t deadline);
    struct threads_counts (*counts)(const struct threads_worker *worker);
    int64_t (*parallel)(struct threads_part *parts, uint64_t count, threads_guard *guard);
};

/* What is public of a worker; functions are reached through it, so that a loop links with nothing. */
struct threads_worker {
    const struct threads_api *api;
};

/* Threads of a batch at most. */
static inline uint64_t threads_capacity(const struct threads_worker *worker)
{
    return worker->api->capacity(worker);
}

/* The registers of a thread of the next batch, r0 first: its payload is written here. A loop whose payloads are longer than
 * THREADS_PAYLOAD writes none, and returns THREADS_TOO_LONG. */
static inline uint8_t *threads_payload(const struct threads_worker *worker, uint64_t number)
{
    return worker->api->payload(worker, number);
}

/* Whether a batch is under way. */
static inline int64_t threads_pending(const struct threads_worker *worker)
{
    return worker->api->pending(worker);
}

/* Runs a batch whose payloads have been written, of `capacity` threads at most. `masks` has a dispatch mask for each thread, none of them 0, and must stay as it is until
 * the batch is done; only for a dispatch with WrittenMasks (threads/payload.py). NULL: the masks of the worker's templates. */
static inline int64_t threads_run(struct threads_worker *worker, void *record, uint64_t count, const uint32_t *masks)
{
    return worker->api->run(worker, record, count, masks);
}

/* Goes on with the batch under way. */
static inline int64_t threads_resume(struct threads_worker *worker, void *record)
{
    return worker->api->resume(worker, record);
}

/* The environment of the worker's threads, for compiled functions that a loop calls itself. */
static inline struct context_head *threads_context(const struct threads_worker *worker)
{
    return worker->api->context(worker);
}

/* Begins another run of a loop on a worker that is ready (KeptLoop of threads/workers/kept_loop.py): counts are 0 again. `deadline`: nanoseconds of the
 * monotonic clock. */
static inline void threads_begin(struct threads_worker *worker, uint64_t deadline)
{
    worker->api->begin(worker, deadline);
}

static inline struct threads_counts threads_counts(const struct threads_worker *worker)
{
    return worker->api->counts(worker);
}

/* Runs all parts, the first on the calling thread, until each is done or needs Python (helpers.c). */
static inline void threads_run_parts(struct threads_part *parts, uint64_t count, threads_guard *guard)
{
    parts->worker->api->parallel(parts, count, guard);
}

/* A payload source (PayloadWriter of threads/payload.py): writes the payloads of threads first to first + count - 1 of a dispatch, the
 * i-th at blocks + i * stride; and their dispatch masks, if `masks` is not NULL. Called for any range, in any order, on any host thread. */
typedef void threads_writer(void *state, uint64_t first, uint64_t count, uint8_t *blocks, uint64_t stride, uint32_t *masks);

#endif
