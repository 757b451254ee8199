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

enum status { RUNNING, ENDED, WAITING, SPENT, ESCAPE, MODE, JUMP, FRESH }; /* JUMP is for handlers, FRESH for members */
enum { CHANNELS = 32, DEEPEST = 16, STEP = 8, LOWEST_ADDRESS = 4096 };
enum { NOWHERE = 0xffffffff, NOTIFICATIONS = 12 };
/* Why native_groups came back. */
enum reason { DONE, ESCAPED, OTHER_MODE, STUCK, LATE, STRANGE };
enum { LATE_EVERY = 64 }; /* threads started between two looks at the clock */

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
    uint64_t threads, arrived, general, mask, base, offsets[CHANNELS];
};

typedef int64_t thread_function(uint8_t *block, struct context *context);

/* -- the threaded engine ------------------------------------------------------------------------------------------------------------- */

struct op;
typedef int64_t handler(uint8_t *block, struct op *op, struct context *context);
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

int64_t native_threaded(uint8_t *block, struct context *context)
{
    struct control *control = (struct control *)(block + place.control);
    const struct program *program = context->program;
    struct op *op = find(program, control->ip);
    uint64_t executed = 0;
    int64_t answer = ESCAPE;
    while (op) {
        answer = op->function ? op->function(block, op, context) : ESCAPE;
        if (!answer) {
            executed += op->counts;
            op++;
        } else if (answer >= LOWEST_ADDRESS) {
            executed += op->counts;
            op = (struct op *)answer;
        } else if (answer == JUMP) {
            executed += op->counts;
            op = find(program, control->ip);
            answer = ESCAPE; /* where nothing is, for the reference to complain */
        } else {
            if (answer == ENDED || answer == SPENT)
                executed += op->counts;
            else
                control->ip = op->ip;
            break;
        }
    }
    control->executed += executed;
    return answer;
}

/* -- groups -------------------------------------------------------------------------------------------------------------------------- */

struct member {
    thread_function *function; /* for the mode the thread is in */
    struct program *program;
    uint32_t status;
    uint32_t dirty; /* its block is not as its template has it */
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
    int64_t turn; /* backward branches before others have a turn */
    struct answer *answers;
    uint64_t answer_count;
    uint64_t origin[3], extent[3], id_offset[3]; /* group ids: first, how many, where in a block they belong */
    uint64_t first, last; /* groups of this chunk: first is the one under way */
    uint64_t deadline; /* nanoseconds of the monotonic clock */
    /* where it stands */
    uint64_t inside; /* a group is under way */
    uint64_t id[3]; /* its number */
    uint64_t current, left, moved, since_clock;
    uint64_t threads_done, instructions;
};

void native_barrier(struct context *context)
{
    if (++context->arrived < context->threads)
        return;
    context->arrived = 0;
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

/* The next group: where its number is, an empty local memory, nobody notified. Threads are made when their first turn comes. */
static void start_group(struct dispatch *d)
{
    struct context *c = d->context;
    uint64_t number = d->first;
    for (int i = 0; i < 3; number /= d->extent[i], i++)
        d->id[i] = d->origin[i] + number % d->extent[i];
    if (c->local_size)
        memset(c->local, 0, c->local_size);
    c->arrived = 0;
    for (uint64_t i = 0; i < c->threads; i++) {
        memset(c->blocks + i * place.size + place.notification, 0, NOTIFICATIONS); /* others may notify it before it starts */
        d->members[i] = (struct member){d->function, d->program, FRESH, d->members[i].dirty};
    }
    d->current = d->moved = 0;
    d->left = c->threads;
    d->inside = 1;
}

/* The group's number goes into the first register, in one piece where the host can: what loads it next must not wait for several stores.
 * Compiled code needs such a host anyway; this file does not. */
typedef uint32_t header __attribute__((vector_size(32), aligned(4), may_alias));

#if defined(__x86_64__)
__attribute__((target("avx2")))
#endif
static void wide_header(const struct dispatch *d, uint8_t *block, const uint8_t *from)
{
    const header number = {0, 1, 2, 3, 4, 5, 6, 7};
    header made = *(const header *)from;
    for (int axis = 0; axis < 3; axis++) {
        header here = (header)(number == (uint32_t)(d->id_offset[axis] / 4));
        made = (made & ~here) | ((uint32_t)d->id[axis] & here);
    }
    *(header *)block = made;
}

static void put_header(const struct dispatch *d, uint8_t *block, const uint8_t *from)
{
    int near = d->id_offset[0] < sizeof(header) && d->id_offset[1] < sizeof(header) && d->id_offset[2] < sizeof(header);
#if defined(__x86_64__)
    static int wide = -1;
    if (wide < 0)
        wide = !!__builtin_cpu_supports("avx2");
    near &= wide;
#endif
    if (near)
        wide_header(d, block, from);
    else
        for (int axis = 0; axis < 3; axis++)
            *(uint32_t *)(block + d->id_offset[axis]) = (uint32_t)d->id[axis];
}

/* A thread as it starts; a block that nobody changed needs no more than its group's number. */
static void start_thread(const struct dispatch *d, struct member *m, uint8_t *block)
{
    const uint8_t *from = d->templates + d->current * place.size;
    if (m->dirty)
        for (const struct range *r = d->ranges; r < d->ranges + d->range_count; r++)
            if (r->zero)
                memset(block + r->start, 0, r->size);
            else
                memcpy(block + r->start, from + r->start, r->size);
    else
        memcpy(block + place.control, from + place.control, offsetof(struct control, conditionals));
    put_header(d, block, from);
    m->dirty = !d->clean;
}

static void end_group(struct dispatch *d)
{
    for (uint64_t i = 0; i < d->context->threads; i++)
        d->instructions += control_of(d->context->blocks + i * place.size)->executed;
    d->threads_done += d->context->threads;
    d->inside = 0;
    d->first++;
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

/* One turn of one thread: why to go back to Python now, or DONE. A thread that moved is one that did something or need not wait. */
static enum reason turn(struct dispatch *d)
{
    struct member *m = &d->members[d->current];
    uint8_t *block = d->context->blocks + d->current * place.size;
    if (m->status == FRESH)
        start_thread(d, m, block);
    uint64_t before = control_of(block)->executed;
    int64_t status;
    d->context->budget = d->turn;
    do {
        d->context->program = m->program;
        status = m->function(block, d->context);
    } while ((status == MODE || status == ESCAPE) && answered(d, m, block, status));
    m->status = control_of(block)->status = (uint32_t)status;
    if (control_of(block)->executed != before || status == SPENT)
        d->moved = 1;
    if (status == ENDED) {
        d->left--;
        d->moved = 1;
        return DONE;
    }
    m->dirty = 1;
    return status == ESCAPE ? ESCAPED : status == MODE ? OTHER_MODE : status == WAITING ? DONE : status == SPENT ? LATE : STRANGE;
}

/* Each thread that is left has its turn. d->current is the one to go on with; LATE, ESCAPED and OTHER_MODE leave it where it stands. */
static enum reason round_of_turns(struct dispatch *d)
{
    for (; d->current < d->context->threads; d->current++) {
        struct member *m = &d->members[d->current];
        if (m->status == ENDED)
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

/* Runs until the chunk is done or Python is needed; called again, it goes on. After ESCAPED, Python has executed the instruction, stored the
 * thread's status in its member, and moved on to the next thread if this one now waits, or ended (then one fewer is left). */
int64_t native_groups(struct dispatch *d, void *record)
{
    d->context->record = record;
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
            enum reason why = round_of_turns(d);
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
