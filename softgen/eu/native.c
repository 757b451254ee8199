/* The loop of the threaded engine (T0), the barrier of a thread group, and calls of one thread alone.
 *
 * A thread is a block of memory and its environment is a context (native.h); the code that an engine made of a kernel is called as
 * function(block, context) and returns a status. Everything here runs under the guard (memory/guard.c) and may be left at any access to
 * graphics memory: it holds no locks and owns nothing. Plain C without the Python API; ctypes releases the interpreter lock around calls.
 */
#include "native.h"

#include "../shared_functions/pixel_dispatch.h"

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

/* A pixel whose threads the interpreter runs, and the code of all others: those of a pixel shader have `stage` in their state register. */
struct sought_pixel { uint64_t x, y, stage, mask, state, pixel; thread_function *function; };
static struct sought_pixel sought;
static uint64_t passed; /* threads of pixel shaders that were not interpreted */

/* `pixel` and `state`: where a block has its struct pixel_dispatch and its state register. */
void native_seek_pixel(const struct sought_pixel *pixel)
{
    sought = *pixel;
    passed = 0;
}

uint64_t native_passed(void)
{
    return passed;
}

static int shades(const struct pixel_dispatch *d)
{
    for (uint32_t channel = 0; channel < DISPATCH_PIXELS; channel++) {
        uint32_t corner = d->place[channel / 4], x = (corner & 0xffff) + channel % 2, y = (corner >> 16) + channel % 4 / 2;
        if (d->lit >> channel & 1 && x == sought.x && y == sought.y)
            return 1;
    }
    return 0;
}

/* Code for threads of which the interpreter runs those of a pixel; `context` has the program of the others. */
int64_t native_interpret_pixel(uint8_t *block, struct context_head *context)
{
    if ((*(const uint32_t *)(block + sought.state) & sought.mask) == sought.stage) {
        if (shades((const struct pixel_dispatch *)(block + sought.pixel)))
            return ESCAPE;
        passed += ((const struct control_block *)(block + place.control))->executed == 0;
    }
    return sought.function(block, context);
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
