/* The scheduler's structures, and what its files share. */
#ifndef SOFTGEN_SCHEDULER_H
#define SOFTGEN_SCHEDULER_H

#include "threads.h"

#include "../../eu/native.h"

#include <stdatomic.h>

enum { AXES = 4 };                                      /* counters of a header patch, and a constant */
enum { SLOT_RULES = 4 };                                /* rules for fields of written headers */
enum { NOTIFICATION_BYTES = 12, HEADER_BYTES = 32 };    /* HEADER_BYTES: r0 */
enum { CLOCK_INTERVAL = 256 }; /* threads started between two looks at the clock */
enum { CHUNK_TIME = 50000, CHUNK_GROWTH = 8 }; /* nanoseconds of a chunk of groups, and how many times longer than the last it may be */

enum { IP_ALIGNMENT = 8 }; /* the low bits of ip are zero */
enum { NOT_STARTED = CR0_CHANGED + 1 }; /* status of a thread whose block has not been written yet */

/* A thread of the group under way. */
struct group_member {
    thread_function *function; /* for the cr0 that the thread has */
    struct native_program *program;
    uint64_t dirty; /* its block is not as its template */
};

/* Bytes of a block; plain: a thread starts with `value` in each of them, zeros but in some worlds (world.py). */
struct block_range { uint64_t start, size, plain, value; };

/* Whole dwords of a payload that hardware leaves undefined, as far as `bits` say, in threads none of whose `channels` are on; no channels: in
 * all threads. */
struct undefined_dwords { uint32_t offset, size, channels, bits; };

/* What Python did for a thread that returned with CR0_CHANGED or ESCAPE at an ip, where that depends on cr0.0 alone: done again for the
 * next thread without Python. An escaped instruction that only changes cr0.0 has been executed; its result is here. */
struct fallback_answer {
    uint32_t status, control, ip; /* the question */
    uint32_t then, next, counts; /* cr0.0 and ip afterwards, instructions executed */
    thread_function *function;
    struct native_program *program;
    uint32_t source, addend; /* of an escaped instruction that jumps: ip is a dword of the block, and a constant; source 0: it does not */
    uint32_t masked;         /* and it does only where channel 0 is on */
};

/* The groups of a dispatch that no worker has taken yet; where groups are divided, their pieces, which are taken one by one: threads of one
 * may wait until those of another have written something. */
struct group_share {
    _Atomic uint64_t next, end;
    uint64_t pieces; /* of each group */
    uint64_t workers; /* that take from it */
    uint64_t worthwhile; /* nanoseconds of work left for which a worker that is alone returns, to have others started; 0: it does not */
    _Atomic uint64_t halted; /* Python is needed: workers end the chunk they have, and return */
    uint64_t constants; /* 1: the last axis of workers is a dword of the header that differs between dispatches, not between groups; or 0 */
    uint64_t constant, constant_offset; /* its value in this dispatch, and its byte in the payload */
    uint64_t threads_done, instructions; /* of all workers, when none of them runs, */
    double seconds; /* and how long they ran since they last returned */
};

/* A header field of the i-th thread of a worker's groups: value + i * step under the mask, in the dword at a byte (payload.SlotField). */
struct slot_rule {
    uint32_t offset, mask, value, step;
};

/* A dispatch as one host thread runs it. `function` is what threads start with; members may go on with another one. */
struct scheduler_state {
    struct threads_worker public;
    struct context_head *context;
    uint8_t *templates; /* a block for each thread of a group, as it starts, */
    uint64_t template_stride; /* so many bytes apart; 0: one for all */
    struct group_member *members;
    struct block_range *ranges; /* what of a block is written again when it is dirty */
    uint64_t range_count;
    thread_function *function;
    struct native_program *program;
    uint64_t clean; /* function leaves the block alone when a thread ends in its first turn */
    uint64_t joint; /* function runs as many threads as context->turns says, one after another */
    uint64_t in_order; /* joint, and writes nothing to the blocks of threads that end: all that it got past have */
    uint64_t start; /* ip of a thread that starts */
    uint64_t fill; /* what bytes of local memory hold when a group starts: zeros but in some worlds (world.py) */
    int64_t turn; /* backward branches of a turn */
    struct fallback_answer *answers;
    uint64_t answer_count;
    uint64_t size; /* threads of a group, but for the last one of `total` */
    uint64_t total; /* threads of the dispatch, 0: all groups have `size` */
    threads_writer *writer; /* writes payloads, or NULL: they are in the templates */
    void *writer_state;
    uint64_t writer_first; /* number of the first thread of the first group, for the writer */
    uint64_t slots; /* fields of a written header that tell threads apart, */
    struct slot_rule slot_rules[SLOT_RULES];
    uint32_t *written_masks; /* the writer gives dispatch masks, into this array; or NULL */
    uint64_t axes; /* of the header patch: counters that advance from group to group, the first one fastest; the last may be a constant */
    uint64_t origin[AXES], extent[AXES], patch_offset[AXES]; /* first value, number of values, byte of its dword in the payload */
    uint64_t rows; /* 0, or groups run in strips of `size`, neighbours on the first axis: a thread of each group of the strip, then the next
                    * thread of each. So many threads has a group; what is counted in place of groups is one thread of all of a strip */
    uint64_t own_start, own_size; /* bytes of payloads in which threads of a group differ, whole registers */
    struct group_share *share; /* where chunks come from; NULL: this one is all */
    uint64_t chunk, taken, taken_at; /* groups to take next; those taken last, and when */
    uint64_t pieces; /* of each group of this chunk, more than 1: they are what is counted, in place of groups */
    uint64_t first, last; /* groups of this chunk: first is the one under way */
    uint64_t deadline; /* nanoseconds of the monotonic clock */
    struct undefined_dwords *undefined; /* of the payloads of C loops, in worlds where they hold `undefined_value` (world.py) */
    uint64_t undefined_count, undefined_value;
    /* progress */
    uint64_t inside; /* a group is under way */
    uint64_t begin; /* its first thread, 0 but in later pieces of a group; context->threads is the end */
    const uint32_t *masks; /* dispatch masks of its threads; NULL: those of the templates */
    uint64_t masked; /* blocks may have other masks than their templates */
    uint64_t counter[AXES], numbered; /* its counters, and one more than the number of the group that they would advance to */
    uint64_t plain; /* groups have nothing to start but blocks and counters: no payloads to write, no masks, no local memory */
    uint64_t advanced; /* counters that differ from the group before, from the first on */
    uint64_t ready; /* members that have `function` and `program`, unless the group before was apart */
    uint64_t fresh; /* blocks, from the first on, that are as threads start, but for counters: a group of threads in order leaves them so */
    uint64_t current, left, moved, since_clock;
    uint64_t executed; /* instructions of the group, as counted last */
    uint64_t apart; /* a thread of the group goes on with another function: each is called for itself */
    uint64_t threads_done, instructions;
};

/* The layout of a block (eu/thread/block.py), set once by threads_place. */
struct block_layout { uint64_t size, control, notification, cr, sr; uint32_t vector_mask_enable; };
__attribute__((visibility("hidden"))) extern struct block_layout place;

static inline uint8_t *block_of(const struct scheduler_state *w, uint64_t number)
{
    return w->context->blocks + number * place.size;
}

static inline struct control_block *control_of(uint8_t *block)
{
    return (struct control_block *)(block + place.control);
}

/* answers.c */
__attribute__((visibility("hidden"))) int answered(const struct scheduler_state *w, struct group_member *m, uint8_t *block, int64_t *status);

/* scheduler.c */
__attribute__((visibility("hidden"))) int late(const struct scheduler_state *w);
int64_t threads_groups(struct scheduler_state *w, void *record);

/* helpers.c */
int64_t threads_parallel(struct threads_part *parts, uint64_t count, threads_guard *guard);
int64_t threads_restart(struct threads_part *parts, uint64_t count, threads_guard *guard, uint64_t slice);
void threads_alert(uint64_t count);

/* start.c */
__attribute__((visibility("hidden"))) void start_thread(const struct scheduler_state *w, uint64_t number);
__attribute__((visibility("hidden"))) void start_group(struct scheduler_state *w);
__attribute__((visibility("hidden"))) void next_group(struct scheduler_state *w);
__attribute__((visibility("hidden"))) void restart_group(struct scheduler_state *w);

#endif
