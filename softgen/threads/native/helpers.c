/* Host threads that help with a dispatch: as many as dispatches have needed at the same time, asleep in between.
 *
 * They know nothing of Python and hold no interpreter lock. Each runs threads_groups, or a loop that starts batches (threads.h), on a worker
 * of its own, under the guard, until no work is left or Python is needed; the thread that called answers for all of them afterwards. Plain C
 * without the Python API.
 */
#define _GNU_SOURCE
#include "scheduler.h"

#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { MOST_HELPERS = 1024, SPIN_TIME = 300000, PAUSES = 32 }; /* nanoseconds; pauses between two looks at the clock */

struct helper {
    _Atomic(struct threads_part *) part; /* to run next; taken by the helper or by the thread that offered it, whichever is first */
    _Atomic uint32_t bell; /* counts calls */
    _Atomic uint32_t asleep; /* or about to be: a thread that rings must wake it */
    int busy; /* has been given a part, under the lock */
};

enum { NOT_DONE, DONE, AWAITED }; /* of threads_part.done; AWAITED: not done, and the calling thread sleeps */

static struct helper helpers[MOST_HELPERS];
static int helper_count;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static _Atomic(threads_guard *) guarded;

static uint64_t nanoseconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Lets the other thread of a core run, for some tens of nanoseconds. Arm's `yield` does nothing on most processors. */
static inline void relax(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb" ::: "memory");
#endif
}

/* Waits SPIN_TIME at most; whether the word has another value now. A thread that has something to do gets the processor in between. */
static int spin_while(_Atomic uint32_t *word, uint32_t value)
{
    for (uint64_t began = nanoseconds();;) {
        for (int i = 0; i < PAUSES; i++, relax())
            if (atomic_load_explicit(word, memory_order_acquire) != value)
                return 1;
        if (nanoseconds() - began > SPIN_TIME)
            return 0;
        sched_yield();
    }
}

static void sleep_while(_Atomic uint32_t *word, uint32_t value)
{
    while (atomic_load(word) == value)
        syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, NULL, NULL, 0);
}

static void wake(_Atomic uint32_t *word)
{
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

static int64_t run_guarded(void *argument, void *record)
{
    struct threads_part *part = argument;
    part->result = part->loop ? part->loop(part->argument, record) : threads_groups((struct scheduler_state *)part->worker, record);
    return part->result;
}

static void run_part(struct threads_part *part)
{
    struct scheduler_state *worker = (struct scheduler_state *)part->worker;
    *(uint64_t *)part->record = UINT64_MAX; /* no instruction yet (NO_IP of memory/guard.py) */
    part->signal = atomic_load(&guarded)(run_guarded, part, part->record);
    if (part->signal && worker->share)
        atomic_store(&worker->share->halted, 1);
}

/* A loop, or the groups that a worker had taken before, on the calling thread: its helper did not wake up in time, or there is none. */
static void run_rest(struct threads_part *part)
{
    const struct scheduler_state *worker = (const struct scheduler_state *)part->worker;
    if (part->loop || worker->inside || worker->first != worker->last) {
        run_part(part);
        atomic_store(&part->done, DONE);
    }
}

/* Waits until the bell has rung more than `heard` times. Where work follows work, the next comes sooner than a thread that sleeps wakes up:
 * it spins. `asleep` is set before the bell is looked at again, and read after it was rung (both in one order for all threads): either this
 * thread sees the ring, or the ringing one sees that it has to wake this one. */
static void await_bell(struct helper *self, uint32_t heard, int hopeful)
{
    if (hopeful && spin_while(&self->bell, heard))
        return;
    atomic_store(&self->asleep, 1);
    sleep_while(&self->bell, heard);
    atomic_store(&self->asleep, 0);
}

static void ring(struct helper *helper)
{
    atomic_fetch_add(&helper->bell, 1);
    if (atomic_load(&helper->asleep))
        wake(&helper->bell);
}

/* A helper spins after it was woken ahead of its work, and while work has come within SPIN_TIME: a program that leaves more time between
 * two dispatches has the processor to itself. */
static void *helper_main(void *argument)
{
    struct helper *self = argument;
    uint64_t idle_since = nanoseconds();
    int hopeful = 1;
    for (uint32_t heard = 0;; heard++) {
        await_bell(self, heard, hopeful);
        struct threads_part *part = atomic_exchange(&self->part, NULL);
        if (!part) { /* there will be work, or it was done before this thread woke up and was taken back */
            hopeful = 1;
            continue;
        }
        hopeful = nanoseconds() - idle_since < SPIN_TIME;
        run_part(part);
        if (atomic_exchange(&part->done, DONE) == AWAITED) /* the part may be gone from here on: a futex is no more than an address */
            wake(&part->done);
        idle_since = nanoseconds();
    }
    return NULL;
}

/* Waits until a helper has run its part. */
static void await_part(struct threads_part *part)
{
    uint32_t before = NOT_DONE;
    if (spin_while(&part->done, NOT_DONE))
        return;
    if (atomic_compare_exchange_strong(&part->done, &before, AWAITED))
        sleep_while(&part->done, AWAITED);
}

/* A child process has none of its parent's threads. */
static void forget_helpers(void)
{
    helper_count = 0;
    pthread_mutex_init(&lock, NULL);
}

static void prepare(void)
{
    pthread_atfork(NULL, NULL, forget_helpers);
}

/* Signals are for the threads of Python, but for those that an access to memory raises. */
static int start_helper(struct helper *helper)
{
    sigset_t most, before;
    pthread_t thread;
    sigfillset(&most);
    sigdelset(&most, SIGSEGV);
    sigdelset(&most, SIGBUS);
    pthread_sigmask(SIG_SETMASK, &most, &before);
    atomic_store(&helper->part, NULL);
    atomic_store(&helper->bell, 0);
    atomic_store(&helper->asleep, 0);
    int failed = pthread_create(&thread, NULL, helper_main, helper);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (!failed)
        pthread_detach(thread);
    return failed;
}

/* An idle helper, or NULL where the host has no thread left. */
static struct helper *borrow_helper(void)
{
    struct helper *found = NULL;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < helper_count && !found; i++)
        if (!helpers[i].busy)
            found = &helpers[i];
    if (!found && helper_count < MOST_HELPERS && !start_helper(&helpers[helper_count]))
        found = &helpers[helper_count++];
    if (found)
        found->busy = 1;
    pthread_mutex_unlock(&lock);
    return found;
}

static void give_back(struct helper *helper)
{
    pthread_mutex_lock(&lock);
    helper->busy = 0;
    pthread_mutex_unlock(&lock);
}

/* Whether a loop, or all groups of a worker, are done: Python need not look at it. */
static int is_done(struct threads_part *part)
{
    struct scheduler_state *worker = (struct scheduler_state *)part->worker;
    if (atomic_load(&part->done) == DONE && (part->signal || part->result != THREADS_DONE))
        return 0;
    if (part->loop)
        return 1;
    return !worker->inside && worker->first == worker->last
        && (!worker->share || atomic_load(&worker->share->next) >= worker->share->end);
}

static void run_parts(struct threads_part *parts, uint64_t count, threads_guard *guard)
{
    struct helper *lent[MOST_HELPERS];
    atomic_store(&guarded, guard);
    pthread_once(&once, prepare);
    for (uint64_t i = 0; i < count; i++)
        atomic_store(&parts[i].done, NOT_DONE);
    for (uint64_t i = 1; i < count; i++) {
        lent[i] = borrow_helper();
        if (!lent[i])
            continue;
        atomic_store(&lent[i]->part, &parts[i]);
        ring(lent[i]);
    }
    run_part(&parts[0]);
    atomic_store(&parts[0].done, DONE);
    for (uint64_t i = 1; i < count; i++) {
        struct threads_part *given = &parts[i];
        int taken_back = lent[i] && atomic_compare_exchange_strong(&lent[i]->part, &given, NULL);
        if (!lent[i] || taken_back)
            run_rest(&parts[i]);
        else
            await_part(&parts[i]);
        if (lent[i])
            give_back(lent[i]);
    }
}

/* What the workers of a share have done, and how long they took for it since a time. */
static void add_up(struct group_share *share, const struct threads_part *parts, uint64_t count, uint64_t began)
{
    share->threads_done = share->instructions = 0;
    for (uint64_t i = 0; i < count; i++) {
        const struct scheduler_state *w = (const struct scheduler_state *)parts[i].worker;
        share->threads_done += w->threads_done;
        share->instructions += w->instructions;
    }
    share->seconds = (double)(nanoseconds() - began) * 1e-9;
}

/* Runs the parts of a dispatch, the first on the calling thread, the others on helpers. When it returns none of them runs; one that has no
 * groups, whose helper did not wake up in time, has not run at all. Answers whether all are done. */
int64_t threads_parallel(struct threads_part *parts, uint64_t count, threads_guard *guard)
{
    struct group_share *share = count && !parts[0].loop ? ((struct scheduler_state *)parts[0].worker)->share : NULL;
    uint64_t began = share ? nanoseconds() : 0;
    if (count > MOST_HELPERS)
        count = MOST_HELPERS;
    run_parts(parts, count, guard);
    if (share)
        add_up(share, parts, count, began);
    for (uint64_t i = 0; i < count; i++)
        if (!is_done(&parts[i]))
            return 0;
    return 1;
}

/* The same for workers that share groups, and have run a dispatch before: of another one nothing is done. Python is needed after `slice`
 * nanoseconds. */
int64_t threads_restart(struct threads_part *parts, uint64_t count, threads_guard *guard, uint64_t slice)
{
    uint64_t deadline = nanoseconds() + slice;
    struct group_share *share = ((struct scheduler_state *)parts[0].worker)->share;
    share->next = share->halted = 0;
    for (uint64_t i = 0; i < count; i++) {
        struct scheduler_state *w = (struct scheduler_state *)parts[i].worker;
        if (share->constants)
            w->origin[w->axes - 1] = share->constant;
        w->chunk = 1;
        w->numbered = w->taken = w->first = w->last = w->inside = w->answer_count = 0;
        w->threads_done = w->instructions = 0;
        w->deadline = deadline;
    }
    return threads_parallel(parts, count, guard);
}

/* Wakes so many helpers ahead of a dispatch that is being prepared, those that it will get if no other takes them; it need not follow. */
void threads_alert(uint64_t count)
{
    pthread_mutex_lock(&lock);
    for (int i = 0; i < helper_count && count; i++)
        if (!helpers[i].busy) {
            if (atomic_load(&helpers[i].asleep))
                ring(&helpers[i]);
            count--;
        }
    pthread_mutex_unlock(&lock);
}

/* Host threads there are, for tests. */
int64_t threads_helpers(void)
{
    return helper_count;
}
