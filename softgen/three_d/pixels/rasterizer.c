/* Rasterizer: the pixels of a tile that an object covers, as 4x4 blocks.
 *
 * A tile is walked in 16x16 and then 4x4 blocks. An edge function has its least and greatest value in a corner of a block: a block is
 * rejected, fully inside, or tested pixel by pixel, sixteen blocks or pixels at a time. Integers throughout: coverage is exact.
 *
 * Positions have at most 8 sub-pixel bits, so the steps of an edge function are multiples of 256, and of its value only the sign of
 * value / 256, rounded down, matters. An edge that crosses the tile has values in it which 32 bits hold: positions differ by less than
 * 2^16 pixels.
 */
#include "pixels.h"

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

enum { EDGES = 4, COARSE = 16, UNIT_SHIFT = 8 };
enum { FEW = 6 }; /* blocks that are not worth a look at 16x16 ones */

typedef int32_t lanes __attribute__((vector_size(64)));

/* An edge that crosses the tile: its value at the tile's upper left pixel, in 1/256 square pixels; steps to the pixels of a 4x4 block by
 * bit of the mask, to the 4x4 blocks of a 16x16 block in reading order; how far it can fall and rise within a block. */
struct tile_edge {
    lanes to_pixel, to_block;
    int32_t value, dx, dy;
    int32_t fall, rise, coarse_fall, coarse_rise;
};

static const lanes pixel_x = {0, 1, 0, 1, 2, 3, 2, 3, 0, 1, 0, 1, 2, 3, 2, 3};
static const lanes pixel_y = {0, 0, 1, 1, 0, 0, 1, 1, 2, 2, 3, 3, 2, 2, 3, 3};
static const lanes block_x = {0, 4, 8, 12, 0, 4, 8, 12, 0, 4, 8, 12, 0, 4, 8, 12};
static const lanes block_y = {0, 0, 0, 0, 4, 4, 4, 4, 8, 8, 8, 8, 12, 12, 12, 12};
/* Masks of columns and rows of a block, by the bits of those that are meant. */
#define SELECTED(n, a, b, c, d) (((n) & 1 ? (a) : 0) | ((n) & 2 ? (b) : 0) | ((n) & 4 ? (c) : 0) | ((n) & 8 ? (d) : 0))
#define COLUMNS(n) SELECTED(n, 0x0505, 0x0a0a, 0x5050, 0xa0a0)
#define ROWS(n) SELECTED(n, 0x0033, 0x00cc, 0x3300, 0xcc00)
#define SIXTEEN(f) {f(0), f(1), f(2), f(3), f(4), f(5), f(6), f(7), f(8), f(9), f(10), f(11), f(12), f(13), f(14), f(15)}
static const uint16_t columns[16] = SIXTEEN(COLUMNS), rows[16] = SIXTEEN(ROWS);

/* The sign bit of each lane. */
INLINE uint32_t signs(const lanes *value)
{
#if defined(__x86_64__)
    const __m128i *part = (const __m128i *)value;
    __m128i low = _mm_packs_epi32(part[0], part[1]), high = _mm_packs_epi32(part[2], part[3]);
    return (uint32_t)_mm_movemask_epi8(_mm_packs_epi16(low, high));
#else
    uint32_t found = 0;
    for (int i = 0; i < 16; i++)
        found |= (uint32_t)((*value)[i] < 0) << i;
    return found;
#endif
}

/* An edge of a record in a tile: 1 if it crosses it, 0 if all of the tile is inside, -1 if none is. */
INLINE int begin_edge(struct tile_edge *e, const struct setup_record *r, uint32_t n, int64_t x, int64_t y)
{
    int64_t dx = r->edge_dx[n] >> UNIT_SHIFT, dy = r->edge_dy[n] >> UNIT_SHIFT, value = (r->edge[n] >> UNIT_SHIFT) + dx * x + dy * y;
    int64_t fall = (dx < 0 ? dx : 0) + (dy < 0 ? dy : 0), rise = dx + dy - fall;
    if (value + rise * (TILE - 1) < 0)
        return -1;
    if (value + fall * (TILE - 1) >= 0)
        return 0;
    e->value = (int32_t)value;
    e->dx = (int32_t)dx;
    e->dy = (int32_t)dy;
    e->fall = (int32_t)fall;
    e->rise = (int32_t)rise;
    e->to_pixel = pixel_x * e->dx + pixel_y * e->dy;
    return 1;
}

/* What walk_coarse needs besides. */
INLINE void begin_coarse(struct tile_edge *e)
{
    e->coarse_fall = e->fall * (COARSE - 1);
    e->coarse_rise = e->rise * (COARSE - 1);
    e->fall *= BLOCK - 1;
    e->rise *= BLOCK - 1;
    e->to_block = block_x * e->dx + block_y * e->dy;
}

/* Bits first to last - 1 of four. */
INLINE uint32_t between(int32_t first, int32_t last)
{
    first = first > 0 ? first : 0;
    last = last < BLOCK ? last : BLOCK;
    return (1u << last) - (1u << first);
}

/* Pixels of the block at (x, y), which the rectangle touches, that are in it. */
static inline uint32_t box_mask(int32_t x, int32_t y, const int32_t box[4])
{
    uint32_t across = between(box[0] - x, box[2] - x), down = between(box[1] - y, box[3] - y);
    return columns[across] & rows[down];
}

/* The object's bounding box within the tile, in pixels from its corner; 0 if nothing is left. */
static int clip_box(const struct setup_record *r, int32_t x, int32_t y, int32_t box[4])
{
    box[0] = r->x0 > x ? r->x0 - x : 0;
    box[1] = r->y0 > y ? r->y0 - y : 0;
    box[2] = r->x1 < x + TILE ? r->x1 - x : TILE;
    box[3] = r->y1 < y + TILE ? r->y1 - y : TILE;
    return box[0] < box[2] && box[1] < box[3];
}

/* Blocks of a row or column of four that a range of pixels touches. */
INLINE uint32_t touched(int32_t first, int32_t last)
{
    first = first > 0 ? first / BLOCK : 0;
    last = last < COARSE ? (last + BLOCK - 1) / BLOCK : BLOCK;
    return (1u << last) - (1u << first);
}

/* Blocks of a 16x16 block that the rectangle touches, in reading order. */
INLINE uint32_t box_blocks(int32_t left, int32_t top, const int32_t box[4])
{
    uint32_t across = touched(box[0] - left, box[2] - left), down = touched(box[1] - top, box[3] - top);
    uint32_t spread = (down & 1) | (down & 2) << 3 | (down & 4) << 6 | (down & 8) << 9;
    return across * spread;
}

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

/* How many 4x4 blocks a box touches. */
INLINE int32_t blocks_of(const int32_t box[4])
{
    return ((box[2] - 1) / BLOCK - box[0] / BLOCK + 1) * ((box[3] - 1) / BLOCK - box[1] / BLOCK + 1);
}

VECTORIZED static uint32_t walk_tile(const struct setup_record *r, int32_t x, int32_t y, struct pixel_block *out)
{
    struct tile_edge edges[EDGES];
    int32_t box[4];
    uint32_t count = 0, used = 0;
    if (!clip_box(r, x, y, box))
        return 0;
    for (uint32_t n = 0; n < r->edges && n < EDGES; n++) {
        int crosses = begin_edge(&edges[used], r, n, x, y);
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

/* Removes the pixels that polygon stipple masks out (G45 6524-6600). */
static uint32_t stipple(const struct raster_plan *plan, struct pixel_block *blocks, uint32_t count)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < count; i++) {
        struct pixel_block b = blocks[i];
        uint32_t seen = 0;
        for (int p = 0; p < BLOCK_PIXELS; p++)
            seen |= (plan->stipple[(b.y + pixel_y[p]) % STIPPLE_ROWS] >> (31 - (b.x + pixel_x[p]) % 32) & 1) << p;
        b.mask &= seen;
        if (b.mask)
            blocks[kept++] = b;
    }
    return kept;
}

/* A record whose edges count from a sample. */
static struct setup_record at_sample(const struct raster_plan *plan, const struct setup_record *r, uint32_t sample)
{
    struct setup_record moved = *r;
    for (uint32_t n = 0; n < r->edges; n++) /* steps are multiples of 256 */
        moved.edge[n] += (r->edge_dx[n] >> UNIT_SHIFT) * plan->sample[sample][0] + (r->edge_dy[n] >> UNIT_SHIFT) * plan->sample[sample][1];
    return moved;
}

uint32_t covered_samples(const struct raster_plan *plan, const struct setup_record *record, int64_t x, int64_t y)
{
    uint32_t found = 0;
    for (uint32_t sample = 0; sample < plan->samples; sample++) {
        struct setup_record r = at_sample(plan, record, sample);
        uint32_t inside = plan->sample_mask >> sample & 1;
        for (uint32_t n = 0; n < r.edges; n++)
            inside &= r.edge[n] + r.edge_dx[n] * x + r.edge_dy[n] * y >= 0;
        found |= inside << sample;
    }
    return found;
}

/* The blocks of which a sample is covered, in reading order. */
static uint32_t walk_samples(const struct raster_plan *plan, const struct setup_record *record, int32_t x, int32_t y,
                             struct pixel_block *blocks)
{
    uint16_t covered[TILE_BLOCKS] = {0};
    uint32_t found = 0;
    for (uint32_t sample = 0; sample < plan->samples; sample++) {
        struct setup_record r = at_sample(plan, record, sample);
        uint32_t count = plan->sample_mask >> sample & 1 ? walk_tile(&r, x, y, blocks) : 0;
        for (uint32_t i = 0; i < count; i++)
            covered[blocks[i].y / BLOCK * (TILE / BLOCK) + blocks[i].x / BLOCK] |= (uint16_t)blocks[i].mask;
    }
    for (uint32_t i = 0; i < TILE_BLOCKS; i++)
        if (covered[i])
            blocks[found++] = (struct pixel_block){(uint16_t)(i % (TILE / BLOCK) * BLOCK), (uint16_t)(i / (TILE / BLOCK) * BLOCK), covered[i]};
    return found;
}

EXPORT uint32_t rasterize_tile(const struct raster_plan *plan, const struct setup_record *record, uint32_t x, uint32_t y,
                               struct pixel_block *blocks)
{
    uint32_t count = plan->samples ? walk_samples(plan, record, (int32_t)x, (int32_t)y, blocks)
                                   : walk_tile(record, (int32_t)x, (int32_t)y, blocks);
    for (uint32_t i = 0; i < count; i++) {
        blocks[i].x = (uint16_t)(blocks[i].x + x);
        blocks[i].y = (uint16_t)(blocks[i].y + y);
    }
    if (record->coverage >= COVERAGE_LINE && record->coverage <= COVERAGE_DIAMOND_LAST)
        return cover_lines(plan, record, blocks, count);
    return plan->stippled >> (record->topology & 63) & 1 && record->coverage == COVERAGE_EDGES ? stipple(plan, blocks, count) : count;
}
