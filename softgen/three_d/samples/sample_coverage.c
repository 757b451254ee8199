/* Coverage of pixels with several samples: for each 4x4 block, a mask of pixels for each sample.
 *
 * An edge is set up and stepped once, at the pixels; what it is more at a sample is a number of the edge and the sample. Blocks are rejected
 * and accepted with the least and the greatest of these, so that only those that an edge crosses are looked at sample by sample.
 */
#include "../pixels/tile_edges.h"

struct sample_edge {
    struct tile_edge edge; /* at the pixels */
    int32_t low, high; /* how much less and more it is at the samples */
    int32_t more[MOST_SAMPLES];
};

/* A walk over the blocks of a tile. */
struct sample_walk {
    const struct raster_plan *plan;
    const int32_t *box;
    struct pixel_block *blocks;
    uint16_t (*masks)[MOST_SAMPLES];
    uint32_t count;
};

/* What an edge is more at each sample: values are rounded down as the edge itself is. */
INLINE void begin_samples(struct sample_edge *s, const struct raster_plan *plan, const struct setup_record *r, uint32_t n)
{
    int64_t dx = r->edge_dx[n] >> UNIT_SHIFT, dy = r->edge_dy[n] >> UNIT_SHIFT, pixel = r->edge[n] >> UNIT_SHIFT;
    s->low = INT32_MAX, s->high = INT32_MIN;
    for (uint32_t i = 0; i < plan->samples; i++) {
        int32_t more = (int32_t)(((r->edge[n] + dx * plan->sample[i][0] + dy * plan->sample[i][1]) >> UNIT_SHIFT) - pixel);
        s->more[i] = more;
        s->low = more < s->low ? more : s->low;
        s->high = more > s->high ? more : s->high;
    }
}

/* An edge of a record in a tile, as begin_edge says. */
INLINE int begin_sample_edge(struct sample_edge *s, const struct raster_plan *plan, const struct setup_record *r, uint32_t n, int64_t x,
                             int64_t y)
{
    begin_samples(s, plan, r, n);
    return begin_edge(&s->edge, r, n, x, y, s->low, s->high);
}

/* Keeps a block if a sample that counts is covered. */
INLINE void keep_block(struct sample_walk *w, int32_t x, int32_t y, uint32_t any)
{
    w->blocks[w->count] = (struct pixel_block){(uint16_t)x, (uint16_t)y, any};
    w->count += any != 0;
}

/* A block without edges: all samples of the pixels in the box. */
INLINE void accept_block(struct sample_walk *w, int32_t x, int32_t y)
{
    uint32_t mask = box_mask(x, y, w->box), counted = w->plan->sample_mask;
    for (uint32_t i = 0; i < w->plan->samples; i++)
        w->masks[w->count][i] = (uint16_t)(counted >> i & 1 ? mask : 0);
    keep_block(w, x, y, counted ? mask : 0);
}

/* A block that edges cross. */
INLINE void test_block(struct sample_walk *w, const struct sample_edge *const *crossing, uint32_t edges, int32_t x, int32_t y)
{
    uint32_t inside = box_mask(x, y, w->box), any = 0;
    lanes at_pixels[EDGES];
    for (uint32_t n = 0; n < edges; n++) {
        const struct tile_edge *e = &crossing[n]->edge;
        at_pixels[n] = e->to_pixel + (e->value + e->dx * x + e->dy * y);
    }
    for (uint32_t i = 0; i < w->plan->samples; i++) {
        lanes negative = {0};
        for (uint32_t n = 0; n < edges; n++)
            negative |= at_pixels[n] + crossing[n]->more[i];
        uint32_t mask = w->plan->sample_mask >> i & 1 ? ~signs(&negative) & inside : 0;
        w->masks[w->count][i] = (uint16_t)mask;
        any |= mask;
    }
    keep_block(w, x, y, any);
}

/* The 4x4 blocks of a 16x16 block, for the edges that cross it. */
INLINE void walk_coarse(struct sample_walk *w, const struct sample_edge *const *crossing, uint32_t edges, int32_t left, int32_t top)
{
    lanes outside = {0}, partial = {0}; /* negative where an edge rejects a block, and where one crosses it */
    for (uint32_t n = 0; n < edges; n++) {
        const struct tile_edge *e = &crossing[n]->edge;
        lanes value = e->to_block + (e->value + e->dx * left + e->dy * top);
        outside |= value + e->rise + crossing[n]->high;
        partial |= value + e->fall + crossing[n]->low;
    }
    uint32_t tested = signs(&partial);
    for (uint32_t todo = box_blocks(left, top, w->box) & ~signs(&outside); todo; todo &= todo - 1) {
        uint32_t number = (uint32_t)__builtin_ctz(todo);
        int32_t x = left + (int32_t)(number % 4) * BLOCK, y = top + (int32_t)(number / 4) * BLOCK;
        if (tested >> number & 1)
            test_block(w, crossing, edges, x, y);
        else
            accept_block(w, x, y);
    }
}

/* The few 4x4 blocks of a small box, pixel by pixel. */
INLINE void walk_small(struct sample_walk *w, const struct sample_edge *edges, uint32_t used)
{
    const struct sample_edge *crossing[EDGES];
    for (uint32_t n = 0; n < used; n++)
        crossing[n] = &edges[n];
    for (int32_t y = w->box[1] & -BLOCK; y < w->box[3]; y += BLOCK)
        for (int32_t x = w->box[0] & -BLOCK; x < w->box[2]; x += BLOCK)
            test_block(w, crossing, used, x, y);
}

VECTORIZED static uint32_t walk_tile(const struct raster_plan *plan, const struct setup_record *r, int32_t x, int32_t y,
                                     struct pixel_block *blocks, uint16_t (*masks)[MOST_SAMPLES])
{
    struct sample_edge edges[EDGES];
    int32_t box[4];
    struct sample_walk walk = {plan, box, blocks, masks, 0};
    uint32_t used = 0;
    if (!clip_box(r, x, y, box))
        return 0;
    for (uint32_t n = 0; n < r->edges && n < EDGES; n++) {
        int crosses = begin_sample_edge(&edges[used], plan, r, n, x, y);
        if (crosses < 0)
            return 0;
        used += (uint32_t)crosses;
    }
    if (blocks_of(box) <= FEW) {
        walk_small(&walk, edges, used);
        return walk.count;
    }
    for (uint32_t n = 0; n < used; n++)
        begin_coarse(&edges[n].edge);
    for (int32_t top = box[1] & -COARSE; top < box[3]; top += COARSE)
        for (int32_t left = box[0] & -COARSE; left < box[2]; left += COARSE) {
            const struct sample_edge *crossing[EDGES];
            uint32_t number = 0, outside = 0;
            for (uint32_t n = 0; n < used; n++) {
                const struct tile_edge *e = &edges[n].edge;
                int32_t value = e->value + e->dx * left + e->dy * top;
                outside |= value + edges[n].high + e->coarse_rise < 0;
                crossing[number] = &edges[n];
                number += value + edges[n].low + e->coarse_fall < 0;
            }
            if (!outside)
                walk_coarse(&walk, crossing, number, left, top);
        }
    return walk.count;
}

uint32_t cover_samples(const struct raster_plan *plan, const struct setup_record *record, int32_t x, int32_t y, struct pixel_block *blocks,
                       uint16_t (*masks)[MOST_SAMPLES])
{
    return walk_tile(plan, record, x, y, blocks, masks);
}

/* All samples are where the pixel is: they have its coverage, whatever objects are. */
static uint32_t share_coverage(const struct raster_plan *plan, const struct setup_record *record, uint32_t x, uint32_t y,
                               struct pixel_block *blocks, uint16_t (*masks)[MOST_SAMPLES])
{
    uint32_t count = plan->sample_mask ? rasterize_tile(plan, record, x, y, blocks) : 0;
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t s = 0; s < plan->stored; s++)
            masks[i][s] = (uint16_t)(plan->sample_mask >> s & 1 ? blocks[i].mask : 0);
    return count;
}

/* Removes the pixels that polygon stipple masks out, with all their samples. */
static uint32_t stipple_samples(const struct raster_plan *plan, struct pixel_block *blocks, uint16_t (*masks)[MOST_SAMPLES], uint32_t count)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < count; i++) {
        struct pixel_block b = blocks[i];
        b.mask &= stippled_pixels(plan, b.x, b.y);
        for (uint32_t s = 0; s < plan->stored; s++)
            masks[kept][s] = (uint16_t)(masks[i][s] & b.mask);
        blocks[kept] = b;
        kept += b.mask != 0;
    }
    return kept;
}

EXPORT uint32_t rasterize_samples(const struct raster_plan *plan, const struct setup_record *record, uint32_t x, uint32_t y,
                                  struct pixel_block *blocks, uint16_t (*masks)[MOST_SAMPLES])
{
    if (!plan->samples)
        return share_coverage(plan, record, x, y, blocks, masks);
    uint32_t count = cover_samples(plan, record, (int32_t)x, (int32_t)y, blocks, masks);
    for (uint32_t i = 0; i < count; i++) {
        blocks[i].x = (uint16_t)(blocks[i].x + x);
        blocks[i].y = (uint16_t)(blocks[i].y + y);
    }
    return is_stippled(plan, record) ? stipple_samples(plan, blocks, masks, count) : count;
}
