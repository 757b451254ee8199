/* Pixels of blocks become channels of threads: what pixel_shader.c and samples/sample_threads.c have in common. */
#ifndef SOFTGEN_THREAD_BLOCKS_H
#define SOFTGEN_THREAD_BLOCKS_H

#include "pixels.h"

#include <stddef.h>
#include <string.h>

/* What the pixel backend and the pixel interpolator need of samples. */
void tell_samples(const struct pixel_loop *l, const struct thread_pixels *t, struct pixel_dispatch *told, uint32_t channel);

INLINE struct pixel_dispatch *sideband_of(const struct pixel_loop *l, uint8_t *payload)
{
    return (struct pixel_dispatch *)(payload + l->plan->sideband);
}

/* -- threads ------------------------------------------------------------------------------------------------------------------------- */

/* Adds pixels to the last thread of the batch, from channel `channel` on. */
INLINE void add_pixels(struct pixel_loop *l, struct thread_pixels *t, uint32_t channel)
{
    uint32_t thread = l->batch - 1, lit = t->lit >> t->first & ((1u << t->count) - 1);
    uint8_t *payload = threads_payload(l->head.worker, thread);
    struct pixel_dispatch *told = sideband_of(l, payload);
    for (uint32_t i = 0; i < t->count / 4; i++) {
        uint32_t subspan = t->order->subspan[t->first / 4 + i];
        t->place[i] = (t->block->y + (subspan & 2)) << 16 | (t->block->x + 2 * (subspan & 1));
    }
    if (!channel) {
        memset(told, 0, offsetof(struct pixel_dispatch, depth));
        told->back_facing = t->record->back_facing;
        told->layer = t->record->layer;
        told->viewport = t->record->viewport;
        write_common(&l->plan->payload, t->record, l->records->attributes, payload);
        if (l->plan->interpolated)
            write_planes(t->record, told->planes);
        t->slot = l->head.first_slot + thread;
        l->masks[thread] = 0;
    }
    write_pixels(&l->plan->payload, t, payload);
    memcpy(&told->place[channel / 4], t->place, t->count / 4 * sizeof *t->place);
    told->lit |= lit << channel;
    if (l->plan->late)
        memcpy(&told->depth[channel], t->z + t->first, t->count * sizeof *t->z);
    if (t->samples)
        tell_samples(l, t, told, channel);
    if (l->plan->raster.antialiased)
        write_antialias(&l->plan->raster, t, &told->antialias[channel]);
    l->masks[thread] |= whole_subspans(lit) << channel;
}

/* The threads of a block: one of 16 channels; one or two of 8, for those pairs of subspans, lit ones first, that have a lit pixel; or half of one of 32. */
INLINE void add_threads(struct pixel_loop *l, struct thread_pixels *t)
{
    uint32_t width = l->plan->payload.width;
    if (width == 32) {
        t->upper = l->open;
        l->batch += !l->open;
        add_pixels(l, t, l->open ? BLOCK_PIXELS : 0);
        l->open = !l->open;
        return;
    }
    t->count = width;
    for (t->first = 0; t->first < BLOCK_PIXELS; t->first += width)
        if (t->lit >> t->first & ((1u << width) - 1)) {
            l->batch++;
            add_pixels(l, t, 0);
        }
}

/* -- blocks -------------------------------------------------------------------------------------------------------------------------- */

/* The pixels of a mask that pass early tests. */
INLINE uint32_t test_early(struct pixel_loop *l, const struct setup_record *r, const struct pixel_block *b, uint32_t mask, const float *z)
{
    struct depth_block tested = {b->x, b->y, mask, r->back_facing, r->layer, r->viewport, {0}};
    memcpy(tested.z, z, sizeof tested.z);
    l->testing = 1;
    uint32_t lit = l->plan->depth(l->context, l->plan->depth_target, &tested);
    l->testing = 0;
    return lit & mask;
}

/* Puts the values of a block's subspans in their order. */
INLINE void pack_values(const struct subspan_order *order, void *values)
{
    uint32_t of_block[BLOCK_PIXELS];
    memcpy(of_block, values, sizeof of_block);
    for (int i = 0; i < 4; i++)
        memcpy((uint32_t *)values + 4 * i, of_block + 4 * order->subspan[i], 4 * sizeof *of_block);
}

/* Puts the lit subspans of a block first. */
INLINE void pack_subspans(struct thread_pixels *t)
{
    const struct thread_pixels block = *t;
    t->lit = t->covered = 0;
    for (int i = 0; i < 4; i++) {
        uint32_t subspan = t->order->subspan[i];
        t->lit |= (block.lit >> 4 * subspan & 15) << 4 * i;
        t->covered |= (block.covered >> 4 * subspan & 15) << 4 * i;
    }
}

#endif
