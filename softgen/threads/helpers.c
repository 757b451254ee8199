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
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { MOST_HELPERS = 1024, SPINS = 2000 };

struct helper {
    _Atomic(struct threads_part *) part; /* to run next; taken by the helper or by the thread that offered it, whichever is first */
    _Atomic uint32_t bell; /* counts calls */
    int busy; /* has been given a part, under the lock */
};

static struct helper helpers[MOST_HELPERS];
static int helper_count;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static _Atomic(threads_guard *) guarded;

static void sleep_while(_Atomic uint32_t *word, uint32_t value)
{
    for (int i = 0; i < SPINS && atomic_load_explicit(word, memory_order_acquire) == value; i++)
#if defined(__x86_64__)
        __builtin_ia32_pause();
#else
        ;
#endif
    while (atomic_load_explicit(word, memory_order_acquire) == value)
        syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, NULL, NULL, 0);
}

static void wake(_Atomic uint32_t *word)
{
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

static int64_t run_guarded(void *argument, void *record)
{
    struct threads_part *part = argument;
    part->result = part->loop ? part->loop(part->argument, record) : threads_groups((struct worker *)part->worker, record);
    return part->result;
}

static void run_part(struct threads_part *part)
{
    struct worker *worker = (struct worker *)part->worker;
    *(uint64_t *)part->record = UINT64_MAX; /* no instruction yet (NO_IP of memory/guard.py) */
    part->signal = atomic_load(&guarded)(run_guarded, part, part->record);
    if (part->signal && worker->share)
        atomic_store(&worker->share->halted, 1);
}

/* A loop, or the groups that a worker had taken before, on the calling thread: its helper did not wake up in time, or there is none. */
static void run_rest(struct threads_part *part)
{
    const struct worker *worker = (const struct worker *)part->worker;
    if (part->loop || worker->inside || worker->first != worker->last) {
        run_part(part);
        atomic_store(&part->done, 1);
    }
}

static void *helper_main(void *argument)
{
    struct helper *self = argument;
    for (uint32_t heard = 0;; heard++) {
        sleep_while(&self->bell, heard);
        struct threads_part *part = atomic_exchange(&self->part, NULL);
        if (!part)
            continue; /* it was taken back: the work was done before this thread woke up */
        run_part(part);
        atomic_store_explicit(&part->done, 1, memory_order_release);
        wake(&part->done);
    }
    return NULL;
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

/* Runs the parts of a dispatch, the first on the calling thread, the others on helpers. When it returns none of them runs; one that has no
 * groups, whose helper did not wake up in time, has not run at all. */
void threads_parallel(struct threads_part *parts, uint64_t count, threads_guard *guard)
{
    struct helper *lent[MOST_HELPERS];
    if (count > MOST_HELPERS)
        count = MOST_HELPERS;
    atomic_store(&guarded, guard);
    pthread_once(&once, prepare);
    for (uint64_t i = 0; i < count; i++)
        atomic_store(&parts[i].done, 0);
    for (uint64_t i = 1; i < count; i++) {
        lent[i] = borrow_helper();
        if (!lent[i])
            continue;
        atomic_store(&lent[i]->part, &parts[i]);
        atomic_fetch_add(&lent[i]->bell, 1);
        wake(&lent[i]->bell);
    }
    run_part(&parts[0]);
    atomic_store(&parts[0].done, 1);
    for (uint64_t i = 1; i < count; i++) {
        struct threads_part *given = &parts[i];
        int taken_back = lent[i] && atomic_compare_exchange_strong(&lent[i]->part, &given, NULL);
        if (!lent[i] || taken_back)
            run_rest(&parts[i]);
        else
            sleep_while(&parts[i].done, 0);
        if (lent[i])
            give_back(lent[i]);
    }
}

/* Host threads there are, for tests. */
int64_t threads_helpers(void)
{
    return helper_count;
}
