/* The loop of the threaded engine (T0), the barrier of a thread group, and calls of one thread alone.
 *
 * A thread is a block of memory and its environment is a context (native.h); the code that an engine made of a kernel is called as
 * function(block, context) and returns a status. Everything here runs under the guard (memory/guard.c) and may be left at any access to
 * graphics memory: it holds no locks and owns nothing. Plain C without the Python API; ctypes releases the interpreter lock around calls.
 */
#include "native.h"

#include <stddef.h>

/* -- the threaded engine ------------------------------------------------------------------------------------------------------------- */

/* The layout of a block (eu/thread/block.py), set once. */
static struct { uint64_t size, control, notification; } place;

void native_place(uint64_t size, uint64_t control, uint64_t notification)
{
    place.size = size;
    place.control = control;
    place.notification = notification;
}

static struct native_op *find(const struct native_program *program, uint32_t ip)
{
    uint64_t at = ip - program->start;
    if (ip < program->start || at % STEP || at / STEP >= program->count || program->index[at / STEP] == NOWHERE)
        return NULL;
    return program->ops + program->index[at / STEP];
}

/* The handler of an op that the interpreter must execute. */
int64_t native_escape(uint8_t *block, struct native_op *op, struct context_head *context, uint64_t executed)
{
    struct control_block *control = (struct control_block *)(block + place.control);
    (void)context;
    control->ip = op->ip;
    control->executed += executed;
    return ESCAPE;
}

/* Code for a thread that only the interpreter runs. */
int64_t native_interpret(uint8_t *block, struct context_head *context)
{
    (void)block;
    (void)context;
    return ESCAPE;
}

static struct native_count *counts; /* of this process: one thread at a time counts */

void native_count_in(struct native_count *into)
{
    counts = into;
}

/* The handler of an op that is counted. */
int64_t native_counted(uint8_t *block, struct native_op *op, struct context_head *context, uint64_t executed)
{
    struct native_count *count = counts + op->need;
    const struct control_block *control = (const struct control_block *)(block + place.control);
    if (count->waits && !*(const uint32_t *)(block + op->dst))
        return count->function(block, op, context, executed);
    count->executed++;
    count->lanes += count->always ? count->always : (uint64_t)__builtin_popcount(control->active & count->channels);
    return count->function(block, op, context, executed);
}

/* Handlers do not clear the upper halves of vector registers behind each op, which C that uses the lower ones would suffer from. */
#if defined(__x86_64__)
__attribute__((target("avx")))
static void clear_upper_halves(void)
{
    __builtin_ia32_vzeroupper();
}
#endif

/* Each handler calls the next one in its place, until one leaves: then the block is as the thread stands, and what it gives is a status. */
int64_t native_threaded(uint8_t *block, struct context_head *context)
{
    struct native_op *op = find(context->program, ((struct control_block *)(block + place.control))->ip);
    if (!op)
        return ESCAPE; /* no instruction is there: the interpreter reports it */
    int64_t status = op->function(block, op, context, 0);
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx"))
        clear_upper_halves();
#endif
    return status;
}

/* -- barriers ------------------------------------------------------------------------------------------------------------------------ */

/* A thread of the group has reached the barrier; the last one notifies all. Compiled code calls this. */
void native_barrier(struct context_head *context)
{
    if (++context->arrived < context->threads)
        return;
    context->arrived = 0;
    context->notified++;
    for (uint64_t i = 0; i < context->threads; i++)
        ++*(uint32_t *)(context->blocks + i * place.size + place.notification);
}

/* -- one thread alone ---------------------------------------------------------------------------------------------------------------- */

int64_t native_single(struct single_thread *single, void *record)
{
    single->context->record = record;
    return single->function(single->block, single->context);
}
