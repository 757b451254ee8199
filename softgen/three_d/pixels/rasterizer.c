/* Rasterizer: the pixels of a tile that an object covers, as 4x4 blocks.
 *
 * A tile is walked in 16x16 and then 4x4 blocks. An edge function has its least and greatest value in a corner of a block: a block is
 * rejected, fully inside, or tested pixel by pixel, sixteen blocks or pixels at a time. Integers throughout: coverage is exact.
 *
 * Positions have at most 8 sub-pixel bits, so the steps of an edge function are multiples of 256, and of its value only the sign of
 * value / 256, rounded down, matters. An edge that crosses the tile has values in it which 32 bits hold: positions differ by less than
 * 2^16 pixels.
 */
#include "tile_edges.h"

/* The 4x4 blocks of a 16x16 block, for the edges that cross it. */
INLINE uint32_t walk_coarse(const struct tile_edge *const *crossing, uint32_t count, int32_t left, int32_t top, const int32_t box[4],
                            struct pixel_block *out)
{
    const struct pixel_block *first = out;
    lanes outside = {0}, partial = {0}; /* negative where an edge rejects a block, and where one crosses it */
    for (uint32_t n = 0; n < count; n++) {
        const struct tile_edge *e = crossing[n];
        lanes value = e->to_block + (e->value + e->dx * left + e->dy * top);
        outside |= value + e->rise;
        partial |= value + e->fall;
    }
    uint32_t tested = signs(&partial);
    for (uint32_t todo = box_blocks(left, top, box) & ~signs(&outside); todo; todo &= todo - 1) {
        uint32_t number = (uint32_t)__builtin_ctz(todo), mask = 0xffff;
        int32_t x = left + (int32_t)(number % 4) * BLOCK, y = top + (int32_t)(number / 4) * BLOCK;
        if (tested >> number & 1) {
            lanes negative = {0};
            for (uint32_t n = 0; n < count; n++)
                negative |= crossing[n]->to_pixel + (crossing[n]->value + crossing[n]->dx * x + crossing[n]->dy * y);
            mask = ~signs(&negative) & 0xffff;
        }
        if (x < box[0] || y < box[1] || x + BLOCK > box[2] || y + BLOCK > box[3])
            mask &= box_mask(x, y, box);
        *out = (struct pixel_block){(uint16_t)x, (uint16_t)y, mask};
        out += mask != 0;
    }
    return (uint32_t)(out - first);
}

/* The few 4x4 blocks of a small box, pixel by pixel. */
INLINE uint32_t walk_small(const struct tile_edge *edges, uint32_t count, const int32_t box[4], struct pixel_block *out)
{
    const struct pixel_block *first = out;
    for (int32_t y = box[1] & -BLOCK; y < box[3]; y += BLOCK)
        for (int32_t x = box[0] & -BLOCK; x < box[2]; x += BLOCK) {
            lanes negative = {0};
            for (uint32_t n = 0; n < count; n++)
                negative |= edges[n].to_pixel + (edges[n].value + edges[n].dx * x + edges[n].dy * y);
            uint32_t mask = ~signs(&negative) & box_mask(x, y, box);
            *out = (struct pixel_block){(uint16_t)x, (uint16_t)y, mask};
            out += mask != 0;
        }
    return (uint32_t)(out - first);
}

VECTORIZED static uint32_t walk_tile(const struct setup_record *r, int32_t x, int32_t y, struct pixel_block *out)
{
    struct tile_edge edges[EDGES];
    int32_t box[4];
    uint32_t count = 0, used = 0;
    if (!clip_box(r, x, y, box))
        return 0;
    for (uint32_t n = 0; n < r->edges && n < EDGES; n++) {
        int crosses = begin_edge(&edges[used], r, n, x, y, 0, 0);
        if (crosses < 0)
            return 0;
        used += (uint32_t)crosses;
    }
    if (blocks_of(box) <= FEW)
        return walk_small(edges, used, box, out);
    for (uint32_t n = 0; n < used; n++)
        begin_coarse(&edges[n]);
    for (int32_t top = box[1] & -COARSE; top < box[3]; top += COARSE)
        for (int32_t left = box[0] & -COARSE; left < box[2]; left += COARSE) {
            const struct tile_edge *crossing[EDGES];
            uint32_t number = 0, outside = 0;
            for (uint32_t n = 0; n < used; n++) {
                int32_t value = edges[n].value + edges[n].dx * left + edges[n].dy * top;
                outside |= value + edges[n].coarse_rise < 0;
                crossing[number] = &edges[n];
                number += value + edges[n].coarse_fall < 0;
            }
            if (!outside)
                count += walk_coarse(crossing, number, left, top, box, out + count);
        }
    return count;
}

/* Removes the pixels that polygon stipple masks out. */
static uint32_t stipple(const struct raster_plan *plan, struct pixel_block *blocks, uint32_t count)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < count; i++) {
        struct pixel_block b = blocks[i];
        b.mask &= stippled_pixels(plan, b.x, b.y);
        if (b.mask)
            blocks[kept++] = b;
    }
    return kept;
}

uint32_t covered_samples(const struct raster_plan *plan, const struct setup_record *r, int64_t x, int64_t y)
{
    uint32_t found = plan->sample_mask;
    for (uint32_t n = 0; n < r->edges; n++) {
        int64_t dx = r->edge_dx[n] >> UNIT_SHIFT, dy = r->edge_dy[n] >> UNIT_SHIFT; /* steps are multiples of 256 */
        int64_t pixel = r->edge[n] + r->edge_dx[n] * x + r->edge_dy[n] * y;
        for (uint32_t i = 0; i < plan->samples; i++)
            found &= ~((uint32_t)(pixel + dx * plan->sample[i][0] + dy * plan->sample[i][1] < 0) << i);
    }
    return found;
}

/* Forced sample counts: that a sample is covered is enough. Masks stay out of the frame of all others. */
__attribute__((noinline)) static uint32_t cover_any(const struct raster_plan *plan, const struct setup_record *record, uint32_t x, uint32_t y,
                                                    struct pixel_block *blocks)
{
    uint16_t masks[TILE_BLOCKS][MOST_SAMPLES];
    return cover_samples(plan, record, (int32_t)x, (int32_t)y, blocks, masks);
}

EXPORT uint32_t rasterize_tile(const struct raster_plan *plan, const struct setup_record *record, uint32_t x, uint32_t y,
                               struct pixel_block *blocks)
{
    uint32_t count = plan->samples ? cover_any(plan, record, x, y, blocks) : walk_tile(record, (int32_t)x, (int32_t)y, blocks);
    for (uint32_t i = 0; i < count; i++) {
        blocks[i].x = (uint16_t)(blocks[i].x + x);
        blocks[i].y = (uint16_t)(blocks[i].y + y);
    }
    if (record->coverage >= COVERAGE_LINE && record->coverage <= COVERAGE_DIAMOND_LAST)
        return cover_lines(plan, record, blocks, count);
    return is_stippled(plan, record) ? stipple(plan, blocks, count) : count;
}
