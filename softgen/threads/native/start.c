/* How threads start: blocks from templates, payloads from a writer, counters of the header patch, dispatch masks. */
#include "scheduler.h"

#include <string.h>

/* -- header patch -------------------------------------------------------------------------------------------------------------------- */

/* What a counter advances by: groups of a strip have the numbers in between. */
static inline uint64_t step_of(const struct scheduler_state *w, uint64_t axis)
{
    return w->rows && !axis ? w->size : 1;
}

/* The counters of the group, or of a strip's first: advanced from those of the group before, or computed. */
static void count_group(struct scheduler_state *w)
{
    w->advanced = w->axes;
    if (w->first + 1 != w->numbered) {
        uint64_t number = w->pieces > 1 ? w->first / w->pieces : w->rows ? w->first / w->rows : w->first;
        for (uint64_t i = 0; i < w->axes; number /= w->extent[i], i++)
            w->counter[i] = w->origin[i] + number % w->extent[i] * step_of(w, i);
    } else if (!w->rows || w->first % w->rows == 0) {
        for (uint64_t i = 0; i < w->axes; i++) {
            w->counter[i] += step_of(w, i);
            if (w->counter[i] < w->origin[i] + w->extent[i] * step_of(w, i)) {
                w->advanced = w->rows ? w->axes : i + 1; /* threads of a strip have their headers anew */
                break;
            }
            w->counter[i] = w->origin[i];
        }
    }
    w->numbered = w->first + 2;
}

/* The template of a thread; all that run in turn in a strip are the same thread of their groups. */
static inline const uint8_t *template_of(const struct scheduler_state *w, uint64_t number)
{
    return w->templates + (w->rows ? w->first % w->rows : number) * w->template_stride;
}

/* `axes` counters, from the first on, of each thread. In a strip the rest of the header is that of the thread, too. */
static void patch_dwords(const struct scheduler_state *w, uint64_t first, uint64_t end, uint64_t axes)
{
    const uint64_t size = place.size;
    for (uint64_t i = first; w->rows && i < end; i++)
        memcpy(block_of(w, i), template_of(w, i), HEADER_BYTES);
    for (uint64_t axis = 0; axis < axes; axis++) {
        uint8_t *at = w->context->blocks + first * size + w->patch_offset[axis];
        const uint32_t value = (uint32_t)w->counter[axis];
        for (uint64_t i = first; i < end; i++, at += size)
            *(uint32_t *)at = value + (w->rows && !axis ? (uint32_t)i : 0);
    }
}

#if defined(__x86_64__)
/* Counters go into the first register, in one piece where the host can: what loads it next must not wait for several stores.
 * Compiled code needs such a host anyway; this file does not. */
typedef uint32_t header __attribute__((vector_size(HEADER_BYTES), aligned(4), may_alias));

__attribute__((target("avx2")))
static void patch_wide(const struct scheduler_state *w, uint64_t first, uint64_t end)
{
    const header number = {0, 1, 2, 3, 4, 5, 6, 7};
    header counters = {0}, kept = ~counters, along = {0};
    for (uint64_t axis = 0; axis < w->axes; axis++) {
        header here = (header)(number == (uint32_t)(w->patch_offset[axis] / 4));
        counters = (counters & ~here) | ((uint32_t)w->counter[axis] & here);
        kept &= ~here;
        if (w->rows && !axis)
            along = here;
    }
    const header *all = w->rows ? (const header *)template_of(w, first) : NULL;
    for (uint64_t i = first; i < end; i++) {
        header *at = (header *)block_of(w, i);
        *at = ((all ? *all : *at) & kept) | (counters + ((uint32_t)i & along));
    }
}

static int has_avx2(void)
{
    static int found = -1;
    if (found < 0)
        found = !!__builtin_cpu_supports("avx2");
    return found;
}

static int can_patch_wide(const struct scheduler_state *w)
{
    int near = has_avx2();
    for (uint64_t axis = 0; axis < w->axes; axis++)
        near &= w->patch_offset[axis] < sizeof(header);
    return near;
}
#endif

/* `axes`: how many counters at least; the others are in the blocks already. */
static void patch_headers(const struct scheduler_state *w, uint64_t first, uint64_t end, uint64_t axes)
{
#if defined(__x86_64__)
    if (axes && can_patch_wide(w)) {
        patch_wide(w, first, end);
        return;
    }
#endif
    patch_dwords(w, first, end, axes);
}

/* -- starting threads ---------------------------------------------------------------------------------------------------------------- */

/* Dispatch mask, vector mask (all four channels of a group in which one is on, IVB 2220-2230), and the channels at ip. */
static void set_mask(uint8_t *block, uint32_t mask)
{
    uint32_t *sr = (uint32_t *)(block + place.sr);
    uint32_t any = (mask | mask >> 1 | mask >> 2 | mask >> 3) & 0x11111111u;
    sr[2] = mask;
    sr[3] = any * 0xf;
    control_of(block)->active = *(uint32_t *)(block + place.cr) & place.vector_mask_enable ? sr[3] : mask;
}

/* The same of a thread of the group; without masks of its own it has that of its template. */
static void mask_thread(const struct scheduler_state *w, uint64_t number)
{
    const uint8_t *from = template_of(w, number);
    set_mask(block_of(w, number), w->masks ? w->masks[number] : ((const uint32_t *)(from + place.sr))[2]);
}

/* All of a block that its last thread may have changed. */
static void write_block(const struct scheduler_state *w, struct group_member *m, uint8_t *block, const uint8_t *from)
{
    for (const struct block_range *r = w->ranges; r < w->ranges + w->range_count; r++)
        if (r->plain)
            memset(block + r->start, (int)r->value, r->size);
        else
            memcpy(block + r->start, from + r->start, r->size);
    m->dirty = !w->clean;
}

#if defined(__x86_64__)
__attribute__((target("avx2")))
static void write_own_wide(const struct scheduler_state *w, uint64_t first, uint64_t end)
{
    const header *from = (const header *)(template_of(w, first) + w->own_start);
    for (uint64_t number = 0; number < w->own_size / sizeof *from; number++) {
        const header value = from[number];
        for (uint64_t i = first; i < end; i++)
            ((header *)(block_of(w, i) + w->own_start))[number] = value;
    }
}
#endif

/* What tells threads from others of their groups, of threads in a strip; registers in one piece each, as the header. */
static void write_own(const struct scheduler_state *w, uint64_t first, uint64_t end)
{
#if defined(__x86_64__)
    if (has_avx2()) {
        write_own_wide(w, first, end);
        return;
    }
#endif
    for (uint64_t i = first; i < end; i++)
        memcpy(block_of(w, i) + w->own_start, template_of(w, i) + w->own_start, w->own_size);
}

/* A block as a thread starts, without counters and written payloads; there is little to do where the thread before left it clean. */
static inline void start_block(const struct scheduler_state *w, uint64_t number)
{
    struct group_member *m = &w->members[number];
    uint8_t *block = block_of(w, number);
    if (m->dirty) {
        write_block(w, m, block, template_of(w, number));
        control_of(block)->number = (uint32_t)number;
    } else {
        struct control_block *control = control_of(block);
        control->ip = w->start;
        control->status = control->waiting = 0;
        control->executed = 0;
        if (w->rows)
            write_own(w, number, number + 1);
    }
    if (__builtin_expect(w->masked, 0))
        mask_thread(w, number);
}

/* The same with counters. */
void start_thread(const struct scheduler_state *w, uint64_t number)
{
    start_block(w, number);
    patch_headers(w, number, number + 1, w->axes);
}

/* What of fresh blocks differs from the group before. */
static void refresh_blocks(const struct scheduler_state *w)
{
    if (w->rows)
        write_own(w, 0, w->size);
    patch_headers(w, 0, w->context->threads, w->advanced);
}

/* All blocks of a group that one function runs. Where threads of the group before ended in order, only masks and counters that have
 * advanced differ. */
static void start_blocks(struct scheduler_state *w)
{
    const uint64_t threads = w->context->threads, fresh = threads <= w->fresh;
    if (!fresh)
        for (uint64_t i = w->begin; i < threads; i++)
            start_block(w, i);
    else if (w->masked)
        for (uint64_t i = w->begin; i < threads; i++)
            mask_thread(w, i);
    if (fresh)
        refresh_blocks(w);
    else
        patch_headers(w, 0, threads, w->axes); /* from 0 on also for a later piece: that is quicker for whole groups */
    if (!w->in_order || !fresh || w->axes)
        w->fresh = w->in_order && w->pieces <= 1 ? threads : 0; /* others have counters of an earlier group */
}

static void reset_members(struct scheduler_state *w)
{
    const struct group_member *m = w->members;
    if (!w->apart && w->context->threads <= w->ready && m->function == w->function && m->program == w->program)
        return;
    for (uint64_t i = w->begin; i < w->context->threads; i++) {
        w->members[i].function = w->function;
        w->members[i].program = w->program;
    }
    w->ready = w->pieces <= 1 ? w->context->threads : 0;
}

/* The group's threads: counters, local memory and notifications cleared. Blocks are written now if one function runs them all, else at each
 * thread's first turn: others may notify it before. */
void start_group(struct scheduler_state *w)
{
    struct context_head *c = w->context;
    w->masked |= w->masks != NULL;
    if (w->axes)
        count_group(w);
    if (c->local_size)
        memset(c->local, (int)w->fill, c->local_size);
    reset_members(w);
    if (c->notified)
        for (uint64_t i = 0; i < w->size; i++) /* all: the next batch may be larger than this one */
            memset(block_of(w, i) + place.notification, 0, NOTIFICATION_BYTES);
    if (w->joint) {
        start_blocks(w);
    } else {
        for (uint64_t i = w->begin; i < c->threads; i++)
            control_of(block_of(w, i))->status = NOT_STARTED;
        w->fresh = 0;
    }
    c->executed = c->arrived = c->notified = w->moved = w->executed = 0;
    w->current = w->begin;
    w->apart = !w->joint;
    w->left = c->threads - w->begin;
    w->inside = 1;
}

/* The threads of the next piece of a group: pieces differ by one thread at most. */
static void divide_group(struct scheduler_state *w)
{
    uint64_t piece = w->first % w->pieces;
    w->begin = w->size * piece / w->pieces;
    w->context->threads = w->size * (piece + 1) / w->pieces;
    w->numbered = 0; /* counters advance from group to group */
}

/* Fields of written headers that depend on which threads run at the same time. */
static void write_slots(const struct scheduler_state *w)
{
    for (const struct slot_rule *rule = w->slot_rules; rule < w->slot_rules + w->slots; rule++)
        for (uint64_t i = w->begin; i < w->context->threads; i++) {
            uint32_t *at = (uint32_t *)(block_of(w, i) + rule->offset);
            *at = (*at & ~rule->mask) | ((rule->value + (uint32_t)i * rule->step) & rule->mask);
        }
}

/* The next group of the dispatch, its payloads from the writer if there is one. */
void next_group(struct scheduler_state *w)
{
    uint64_t before = w->first * w->size;
    w->context->threads = w->total && w->total - before < w->size ? w->total - before : w->size;
    w->begin = 0;
    if (w->pieces > 1)
        divide_group(w);
    w->masks = w->written_masks;
    if (w->writer) {
        w->writer(w->writer_state, w->writer_first + before, w->context->threads, w->context->blocks, place.size, w->written_masks);
        write_slots(w);
    }
    start_group(w);
    w->plain = !w->writer && !w->total && !w->masked && !w->context->local_size;
}

/* The same of a plain dispatch whose blocks are fresh: all else is as the group before left it. */
void restart_group(struct scheduler_state *w)
{
    struct context_head *c = w->context;
    if (w->axes) {
        count_group(w);
        refresh_blocks(w);
    }
    c->executed = c->arrived = w->current = w->moved = w->executed = 0;
    w->left = w->size;
    w->inside = 1;
}
