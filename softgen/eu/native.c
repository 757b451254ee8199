/* What runs compiled threads: the loop of the threaded engine, thread groups in turns on one host thread, and their barrier.
 *
 * A thread is a block of memory and its surroundings are a context (block.py has the same structures); whatever was compiled for a
 * kernel is called as function(block, context) and answers with a status. Everything here runs under the guard (memory/guard.c) and may
 * be left at any access to graphics memory: it holds no locks and owns nothing, and what it knows stands in the structures it was given.
 * Plain C without the Python API; Python calls it through ctypes, which lets go of the interpreter lock meanwhile.
 */
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

enum status { RUNNING, ENDED, WAITING, SPENT, ESCAPE, MODE, FRESH }; /* FRESH: a thread that did not start yet */
enum { CHANNELS = 32, DEEPEST = 16, STEP = 8 };
enum { NOWHERE = 0xffffffff, NOTIFICATIONS = 12 };
/* Why native_groups came back. */
enum reason { DONE, ESCAPED, OTHER_MODE, STUCK, LATE, STRANGE };
enum { LATE_EVERY = 256 }; /* threads started between two looks at the clock */

struct control {
    uint32_t ip, status, active, waiting;
    uint64_t executed;
    uint32_t conditional, loop, carry_on, conditional_depth, loop_depth, number;
    uint32_t conditionals[DEEPEST], loops[2 * DEEPEST], channel_ip[CHANNELS];
};

struct context {
    uint64_t table, surfaces;
    uint8_t *local;
    uint64_t local_size;
    uint64_t *record;
    int64_t budget;
    struct program *program;
    uint8_t *blocks;
    uint64_t threads, arrived, notified, general, turns, mask, base, offsets[CHANNELS];
};

typedef int64_t thread_function(uint8_t *block, struct context *context);

/* -- the threaded engine ------------------------------------------------------------------------------------------------------------- */

struct op;
typedef int64_t handler(uint8_t *block, struct op *op, struct context *context, uint64_t executed);
struct op {
    handler *function;
    uint32_t ip, counts;
    uint8_t rest[48]; /* the handlers' own */
};

struct program {
    struct op *ops;
    uint32_t *index; /* of the op to go on with at start + STEP * n */
    uint64_t start, count;
};

/* Where things are in a block, and how large it is: told once by who laid it out. */
static struct { uint64_t size, control, notification, cr; } place;

void native_place(uint64_t size, uint64_t control, uint64_t notification, uint64_t cr)
{
    place.cr = cr;
    place.size = size;
    place.control = control;
    place.notification = notification;
}

static struct op *find(const struct program *program, uint32_t ip)
{
    uint64_t at = ip - program->start;
    if (ip < program->start || at % STEP || at / STEP >= program->count || program->index[at / STEP] == NOWHERE)
        return NULL;
    return program->ops + program->index[at / STEP];
}

/* The handler of an op that is left to the reference. */
int64_t native_escape(uint8_t *block, struct op *op, struct context *context, uint64_t executed)
{
    struct control *control = (struct control *)(block + place.control);
    (void)context;
    control->ip = op->ip;
    control->executed += executed;
    return ESCAPE;
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
int64_t native_threaded(uint8_t *block, struct context *context)
{
    struct op *op = find(context->program, ((struct control *)(block + place.control))->ip);
    if (!op)
        return ESCAPE; /* where nothing is, for the reference to complain */
    int64_t status = op->function(block, op, context, 0);
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx"))
        clear_upper_halves();
#endif
    return status;
}

/* -- groups -------------------------------------------------------------------------------------------------------------------------- */

struct member {
    thread_function *function; /* for the mode the thread is in */
    struct program *program;
    uint64_t dirty; /* its block is not as its template has it */
};

struct range { uint64_t start, size, zero; }; /* zero: nothing but zeros stand there when a thread starts */

/* What Python answered a thread that came back with MODE or ESCAPE at an address, where that depends on cr0.0 alone: the next thread in the
 * same place needs no Python. An escaped instruction that only changes cr0.0 was executed; it is here with what it makes of it. */
struct answer {
    uint32_t status, control, ip; /* the question */
    uint32_t then, next, counts;
    thread_function *function;
    struct program *program;
};

/* A dispatch as one host thread carries it out. `chosen` is what threads start with; members may go on with something else. */
struct dispatch {
    struct context *context;
    uint8_t *templates; /* a block for each thread of a group, as it starts */
    struct member *members;
    struct range *ranges; /* what of a block is made anew when it is dirty */
    uint64_t range_count;
    thread_function *function;
    struct program *program;
    uint64_t clean; /* function leaves the block alone when a thread ends in its first turn */
    uint64_t joint; /* function runs as many threads as context->turns says, one after another */
    uint64_t start; /* where threads start */
    int64_t turn; /* backward branches before others have a turn */
    struct answer *answers;
    uint64_t answer_count;
    uint64_t axes; /* of the header patch: counters that advance from group to group, the first one fastest */
    uint64_t origin[3], extent[3], patch_offset[3]; /* of each: first value, number of values, byte of its dword in the payload */
    uint64_t first, last; /* groups of this chunk: first is the one under way */
    uint64_t deadline; /* nanoseconds of the monotonic clock */
    /* where it stands */
    uint64_t inside; /* a group is under way */
    uint64_t counter[3], numbered; /* its counters, and one more than the number of the group that they would advance to */
    uint64_t current, left, moved, since_clock;
    uint64_t executed; /* instructions of the group, as counted last */
    uint64_t apart; /* a thread of the group goes on with another function: each is called for itself */
    uint64_t threads_done, instructions;
};

void native_barrier(struct context *context)
{
    if (++context->arrived < context->threads)
        return;
    context->arrived = 0;
    context->notified = 1;
    for (uint64_t i = 0; i < context->threads; i++)
        ++*(uint32_t *)(context->blocks + i * place.size + place.notification);
}

static int late(const struct dispatch *d)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec >= d->deadline;
}

static struct control *control_of(uint8_t *block)
{
    return (struct control *)(block + place.control);
}

/* The counters of the group: advanced from those of the group before, or computed. */
static void count_group(struct dispatch *d)
{
    if (d->first + 1 != d->numbered) {
        uint64_t number = d->first;
        for (uint64_t i = 0; i < d->axes; number /= d->extent[i], i++)
            d->counter[i] = d->origin[i] + number % d->extent[i];
    } else {
        for (uint64_t i = 0; i < d->axes; i++) {
            if (++d->counter[i] < d->origin[i] + d->extent[i])
                break;
            d->counter[i] = d->origin[i];
        }
    }
    d->numbered = d->first + 2;
}

/* Counters go into the first register, in one piece where the host can: what loads it next must not wait for several stores.
 * Compiled code needs such a host anyway; this file does not. */
typedef uint32_t header __attribute__((vector_size(32), aligned(4), may_alias));

#if defined(__x86_64__)
__attribute__((target("avx2")))
#endif
static void patch_wide(const struct dispatch *d, uint64_t first, uint64_t end)
{
    const header number = {0, 1, 2, 3, 4, 5, 6, 7};
    header counters = {0}, kept = ~counters;
    for (uint64_t axis = 0; axis < d->axes; axis++) {
        header here = (header)(number == (uint32_t)(d->patch_offset[axis] / 4));
        counters = (counters & ~here) | ((uint32_t)d->counter[axis] & here);
        kept &= ~here;
    }
    for (uint64_t at = first * place.size; at < end * place.size; at += place.size)
        *(header *)(d->context->blocks + at) = (*(const header *)(d->context->blocks + at) & kept) | counters;
}

static void patch_headers(const struct dispatch *d, uint64_t first, uint64_t end)
{
    int near = 1;
    if (!d->axes)
        return;
    for (uint64_t axis = 0; axis < d->axes; axis++)
        near &= d->patch_offset[axis] < sizeof(header);
#if defined(__x86_64__)
    static int wide = -1;
    if (wide < 0)
        wide = !!__builtin_cpu_supports("avx2");
    near &= wide;
#endif
    if (near)
        patch_wide(d, first, end);
    else
        for (uint64_t i = first; i < end; i++)
            for (uint64_t axis = 0; axis < d->axes; axis++)
                *(uint32_t *)(d->context->blocks + i * place.size + d->patch_offset[axis]) = (uint32_t)d->counter[axis];
}

/* A block as a thread starts, without counters; where nobody changed it, there is not much to do. */
static void start_block(const struct dispatch *d, uint64_t number)
{
    struct member *m = &d->members[number];
    uint8_t *block = d->context->blocks + number * place.size;
    const uint8_t *from = d->templates + number * place.size;
    if (!m->dirty) {
        struct control *control = control_of(block);
        control->ip = d->start;
        control->status = control->waiting = 0;
        control->executed = 0;
        return;
    }
    for (const struct range *r = d->ranges; r < d->ranges + d->range_count; r++)
        if (r->zero)
            memset(block + r->start, 0, r->size);
        else
            memcpy(block + r->start, from + r->start, r->size);
    m->dirty = !d->clean;
}

static void seat_members(struct dispatch *d)
{
    for (uint64_t i = 0; i < d->context->threads; i++) {
        d->members[i].function = d->function;
        d->members[i].program = d->program;
    }
}

/* The next group: where its number is, an empty local memory, nobody notified. Threads are made now if one function runs them all, else
 * when their first turn comes: others may notify them before. */
static void start_group(struct dispatch *d)
{
    struct context *c = d->context;
    count_group(d);
    if (c->local_size)
        memset(c->local, 0, c->local_size);
    if (d->apart || d->members->function != d->function || d->members->program != d->program)
        seat_members(d);
    if (c->notified)
        for (uint64_t i = 0; i < c->threads; i++)
            memset(c->blocks + i * place.size + place.notification, 0, NOTIFICATIONS);
    for (uint64_t i = 0; i < c->threads; i++)
        if (d->joint)
            start_block(d, i);
        else
            control_of(c->blocks + i * place.size)->status = FRESH;
    if (d->joint)
        patch_headers(d, 0, c->threads);
    c->arrived = c->notified = d->current = d->moved = d->executed = 0;
    d->apart = !d->joint;
    d->left = c->threads;
    d->inside = 1;
}

/* Does what Python did for an earlier thread; 0 if it has to be asked. */
static int answered(const struct dispatch *d, struct member *m, uint8_t *block, int64_t status)
{
    struct control *control = control_of(block);
    uint32_t *cr = (uint32_t *)(block + place.cr);
    for (uint64_t i = 0; i < d->answer_count; i++) {
        const struct answer *a = &d->answers[i];
        if (a->status != status || a->control != *cr || a->ip != control->ip)
            continue;
        if (a->function == m->function && a->program == m->program && !a->counts)
            return 0; /* that did not help */
        *cr = a->then;
        control->ip = a->next;
        control->executed += a->counts;
        m->function = a->function;
        m->program = a->program;
        return 1;
    }
    return 0;
}

static enum reason reason_of(int64_t status)
{
    return status == ESCAPE ? ESCAPED : status == MODE ? OTHER_MODE : status == WAITING ? DONE : status == SPENT ? LATE : STRANGE;
}

/* One turn of one thread: why to go back to Python now, or DONE. A thread that moved is one that did something or need not wait. */
static enum reason turn(struct dispatch *d)
{
    struct member *m = &d->members[d->current];
    uint8_t *block = d->context->blocks + d->current * place.size;
    if (control_of(block)->status == FRESH) {
        start_block(d, d->current);
        patch_headers(d, d->current, d->current + 1);
    }
    uint64_t before = control_of(block)->executed;
    int64_t status;
    d->context->budget = d->turn;
    do {
        d->context->program = m->program;
        d->context->turns = 1;
        status = m->function(block, d->context);
    } while ((status == MODE || status == ESCAPE) && answered(d, m, block, status));
    control_of(block)->status = (uint32_t)status;
    if (control_of(block)->executed != before || status == SPENT)
        d->moved = 1;
    if (status == ENDED) {
        d->left--;
        d->moved = 1;
        return DONE;
    }
    m->dirty = 1;
    return reason_of(status);
}

/* Each thread that is left has its turn. d->current is the one to go on with; LATE, ESCAPED and OTHER_MODE leave it where it stands. */
static enum reason round_of_turns(struct dispatch *d)
{
    for (; d->current < d->context->threads; d->current++) {
        if (control_of(d->context->blocks + d->current * place.size)->status == ENDED)
            continue;
        enum reason why = turn(d);
        if (why == LATE) {
            if (!late(d))
                continue;
            d->current++;
            return LATE;
        }
        if (why != DONE)
            return why;
    }
    if (d->left && !d->moved)
        return STUCK;
    d->current = d->moved = 0;
    return DONE;
}

/* Who is left after all had a turn together, and whether anybody did something. */
static void look_round(struct dispatch *d)
{
    uint64_t executed = 0;
    d->left = 0;
    for (uint64_t i = 0; i < d->context->threads; i++) {
        const struct control *control = control_of(d->context->blocks + i * place.size);
        executed += control->executed;
        if (control->status != ENDED) {
            d->members[i].dirty = 1;
            d->left++;
        }
    }
    d->moved |= executed != d->executed;
    d->executed = executed;
}

/* What a thread that came back before its turn was over needs; DONE if all is well and the others can go on. */
static enum reason interrupted(struct dispatch *d, int64_t status)
{
    struct member *m = &d->members[d->current];
    uint8_t *block = d->context->blocks + d->current * place.size;
    control_of(block)->status = (uint32_t)status;
    m->dirty = d->moved = 1;
    if (status == SPENT) {
        d->current++;
        return late(d) ? LATE : DONE;
    }
    if (!answered(d, m, block, status))
        return reason_of(status);
    d->apart = m->function != d->function || m->program != d->program;
    return DONE;
}

/* The same by one function that runs one thread after another: less to and fro, and what they have in common is done once. */
static enum reason joint_turns(struct dispatch *d)
{
    struct context *c = d->context;
    while (d->current < c->threads && !d->apart) {
        c->budget = d->turn;
        c->program = d->program;
        c->turns = c->threads - d->current;
        int64_t status = d->function(c->blocks + d->current * place.size, c);
        if (status == ENDED || status == WAITING)
            break;
        d->current = c->threads - c->turns;
        enum reason why = interrupted(d, status);
        if (why != DONE)
            return why;
    }
    look_round(d);
    if (d->apart)
        return DONE; /* those that had no turn yet have it one by one */
    if (d->left && !d->moved)
        return STUCK;
    d->current = d->moved = 0;
    return DONE;
}

static void end_group(struct dispatch *d)
{
    if (d->apart || d->moved) /* somebody ended in Python's hands: nobody has looked since */
        look_round(d);
    d->instructions += d->executed;
    d->threads_done += d->context->threads;
    d->inside = 0;
    d->first++;
}

/* Runs until the chunk is done or Python is needed; called again, it goes on. After ESCAPED, Python has executed the instruction, stored the
 * thread's status in its member, and moved on to the next thread if this one now waits, or ended (then one fewer is left). */
int64_t native_groups(struct dispatch *d, void *record)
{
    d->context->record = record;
    if (d->inside && d->joint)
        look_round(d); /* Python may have sent a thread its own way, and who is left was not counted yet */
    for (;;) {
        if (!d->inside) {
            if (d->first == d->last)
                return DONE;
            d->since_clock += d->context->threads;
            if (d->since_clock >= LATE_EVERY) {
                d->since_clock = 0;
                if (late(d))
                    return LATE;
            }
            start_group(d);
        }
        while (d->left) {
            enum reason why = d->apart ? round_of_turns(d) : joint_turns(d);
            if (why != DONE)
                return why;
        }
        end_group(d);
    }
}

/* One thread alone, for those who look at it between turns: its status. */
struct single { thread_function *function; uint8_t *block; struct context *context; };

int64_t native_single(struct single *single, void *record)
{
    single->context->record = record;
    return single->function(single->block, single->context);
}

/* Sizes and places of the structures, for a check against block.py and native.py. */
int64_t native_layout(uint64_t *into)
{
    uint64_t found[] = {sizeof(struct control), offsetof(struct control, executed), offsetof(struct control, channel_ip),
                        sizeof(struct context), offsetof(struct context, budget), offsetof(struct context, offsets),
                        sizeof(struct op), sizeof(struct program), sizeof(struct member), sizeof(struct dispatch),
                        offsetof(struct dispatch, first), sizeof(struct answer), offsetof(struct dispatch, instructions), sizeof(struct single), sizeof(struct range)};
    memcpy(into, found, sizeof found);
    return sizeof found / sizeof *found;
}
