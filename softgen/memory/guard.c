/* The guard: compiled code that touches an unmapped page of an arena comes back with a record instead of a crash.
 *
 * guard_call(function, argument, record) runs function(argument, record) and returns 0, or a signal number with the
 * record filled in. A signal that does not come from a zone of arenas, or that arrives outside a guarded call, goes to
 * the previous handler: a real crash stays a crash.
 *
 * Guarded code must hold no locks and own nothing when it touches graphics memory: it may be left at that instruction.
 * Plain C without the Python API; Python calls it through ctypes, which lets go of the interpreter lock meanwhile.
 */
#define _GNU_SOURCE
#include "guard.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <ucontext.h>

enum { MOST_ZONES = 64, STACK_ROOM = 64 * 1024 };

struct frame {
    sigjmp_buf jump;
    struct fault_record *record;
    struct frame *outer;
};

typedef int64_t guarded(void *argument, struct fault_record *record);

static struct { uint64_t start, end; } zones[MOST_ZONES];
static atomic_int zone_count;
static struct sigaction before[2]; /* who handled SIGSEGV and SIGBUS before us */
static pthread_mutex_t installing = PTHREAD_MUTEX_INITIALIZER;
static pthread_key_t stack_key;
static pthread_once_t stack_once = PTHREAD_ONCE_INIT;
/* Initial-exec: the handler must not allocate a thread's variables the first time it looks at them. */
#define PER_THREAD static __thread __attribute__((tls_model("initial-exec")))
PER_THREAD struct frame *top;
PER_THREAD int has_stack, passed_on;

/* The caller serialises; readers see a zone only when it is complete, and zones never go away. */
int guard_zone(uint64_t start, uint64_t end)
{
    int n = atomic_load(&zone_count);
    if (n == MOST_ZONES)
        return -1;
    zones[n].start = start;
    zones[n].end = end;
    atomic_store(&zone_count, n + 1);
    return 0;
}

static int in_zone(uint64_t address)
{
    for (int i = 0, n = atomic_load(&zone_count); i < n; i++)
        if (zones[i].start <= address && address < zones[i].end)
            return 1;
    return 0;
}

/* What the page fault's error code says; each architecture keeps it elsewhere. */
static uint32_t access_kind(const ucontext_t *context)
{
#if defined(__x86_64__)
    uint64_t error = (uint64_t)context->uc_mcontext.gregs[REG_ERR];
    return error & 16 ? FETCH : error & 2 ? WRITE : READ;
#elif defined(__aarch64__)
    const char *at = (const char *)context->uc_mcontext.__reserved;
    for (uint32_t head[2]; memcpy(head, at, 8), head[0]; at += head[1])
        if (head[0] == 0x45535201) { /* ESR_MAGIC: syndrome; WnR is bit 6 */
            uint64_t syndrome;
            memcpy(&syndrome, at + 8, 8);
            return syndrome >> 6 & 1 ? WRITE : READ;
        }
    return UNKNOWN;
#else
    (void)context;
    return UNKNOWN;
#endif
}

/* Not ours. A handler may hand the signal back to us by raising it (Python's faulthandler does, when it was installed
 * after us): a signal that was sent, after we passed one on, must not go round in circles. */
static void pass_on(int number, siginfo_t *info, void *context)
{
    struct sigaction *old = &before[number == SIGBUS];
    int is_function = old->sa_flags & SA_SIGINFO || (old->sa_handler != SIG_DFL && old->sa_handler != SIG_IGN);
    int sent = info->si_code <= 0;
    if (is_function && !(sent && passed_on)) {
        passed_on = 1;
        if (old->sa_flags & SA_SIGINFO)
            old->sa_sigaction(number, info, context);
        else
            old->sa_handler(number);
        return;
    }
    signal(number, SIG_DFL); /* the instruction runs again and ends the process as it would have */
    if (sent)
        raise(number);
}

static void on_fault(int number, siginfo_t *info, void *context)
{
    uint64_t address = (uint64_t)info->si_addr;
    if (info->si_code <= 0 || !top || !in_zone(address)) {
        pass_on(number, info, context);
        return;
    }
    top->record->address = address;
    top->record->access = access_kind(context);
    top->record->origin = FROM_HOST;
    siglongjmp(top->jump, number);
}

/* For guarded code that sees by itself that an address is bad (not canonical, no arena): leaves with an exact record. */
void guard_leave(uint64_t address, uint32_t access)
{
    if (!top)
        abort();
    top->record->address = address;
    top->record->access = access;
    top->record->origin = FROM_CODE;
    siglongjmp(top->jump, SIGSEGV);
}

/* Someone may have installed a handler after us; the one on top has to be ours, and theirs comes next. */
static void install(void)
{
    static const int numbers[2] = {SIGSEGV, SIGBUS};
    struct sigaction now;
    for (int i = 0; i < 2; i++) {
        sigaction(numbers[i], NULL, &now);
        if (now.sa_flags & SA_SIGINFO && now.sa_sigaction == on_fault)
            continue;
        pthread_mutex_lock(&installing);
        struct sigaction ours = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK};
        sigemptyset(&ours.sa_mask);
        sigaction(numbers[i], &ours, &now);
        if (!(now.sa_flags & SA_SIGINFO && now.sa_sigaction == on_fault))
            before[i] = now;
        pthread_mutex_unlock(&installing);
    }
}

static void free_stack(void *memory)
{
    stack_t none = {.ss_flags = SS_DISABLE};
    sigaltstack(&none, NULL);
    free(memory);
}

static void make_key(void)
{
    pthread_key_create(&stack_key, free_stack);
}

/* A stack for the handler, per thread, unless the thread has one. */
static void provide_stack(void)
{
    stack_t now;
    has_stack = 1;
    if (sigaltstack(NULL, &now) || !(now.ss_flags & SS_DISABLE))
        return;
    size_t size = STACK_ROOM;
#ifdef AT_MINSIGSTKSZ
    size += getauxval(AT_MINSIGSTKSZ);
#endif
    stack_t ours = {.ss_sp = malloc(size), .ss_size = size};
    if (!ours.ss_sp || sigaltstack(&ours, NULL)) {
        free(ours.ss_sp);
        return;
    }
    pthread_once(&stack_once, make_key);
    pthread_setspecific(stack_key, ours.ss_sp);
}

int guard_call(guarded *function, void *argument, struct fault_record *record)
{
    struct frame frame = {.record = record, .outer = top};
    install();
    if (!has_stack)
        provide_stack();
    int number = sigsetjmp(frame.jump, 1);
    if (!number) {
        top = &frame;
        record->result = function(argument, record);
    }
    top = frame.outer;
    return number;
}

/* Small guarded functions, for tests and for `softgen doctor`: the argument names one access. */
struct probe { uint64_t address, value, repeat; };
struct anywhere { uint64_t value; } __attribute__((packed)); /* at an address of any alignment */

int64_t guard_probe_read(struct probe *probe, struct fault_record *record)
{
    record->ip = 0x10;
    probe->value = ((volatile struct anywhere *)probe->address)->value;
    return 1;
}

int64_t guard_probe_write(struct probe *probe, struct fault_record *record)
{
    record->ip = 0x20;
    ((volatile struct anywhere *)probe->address)->value = probe->value;
    return 2;
}
