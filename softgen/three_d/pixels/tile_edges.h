/* Edges of an object in a tile, and the blocks and pixels of its bounding box: what rasterizer.c and sample_coverage.c have in common. */
#ifndef SOFTGEN_TILE_EDGES_H
#define SOFTGEN_TILE_EDGES_H

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

/* An edge of a record in a tile: 1 if it crosses it, 0 if all of the tile is inside, -1 if none is. Its value may be less by `low` and
 * more by `high` in places that count. */
INLINE int begin_edge(struct tile_edge *e, const struct setup_record *r, uint32_t n, int64_t x, int64_t y, int64_t low, int64_t high)
{
    int64_t dx = r->edge_dx[n] >> UNIT_SHIFT, dy = r->edge_dy[n] >> UNIT_SHIFT, value = (r->edge[n] >> UNIT_SHIFT) + dx * x + dy * y;
    int64_t fall = (dx < 0 ? dx : 0) + (dy < 0 ? dy : 0), rise = dx + dy - fall;
    if (value + high + rise * (TILE - 1) < 0)
        return -1;
    if (value + low + fall * (TILE - 1) >= 0)
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
INLINE uint32_t box_mask(int32_t x, int32_t y, const int32_t box[4])
{
    uint32_t across = between(box[0] - x, box[2] - x), down = between(box[1] - y, box[3] - y);
    return columns[across] & rows[down];
}

/* The object's bounding box within the tile, in pixels from its corner; 0 if nothing is left. */
INLINE int clip_box(const struct setup_record *r, int32_t x, int32_t y, int32_t box[4])
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

/* How many 4x4 blocks a box touches. */
INLINE int32_t blocks_of(const int32_t box[4])
{
    return ((box[2] - 1) / BLOCK - box[0] / BLOCK + 1) * ((box[3] - 1) / BLOCK - box[1] / BLOCK + 1);
}

/* Whether polygon stipple masks an object (G45 6524-6600). */
INLINE int is_stippled(const struct raster_plan *plan, const struct setup_record *r)
{
    return plan->stippled >> (r->topology & 63) & 1 && r->coverage == COVERAGE_EDGES;
}

/* The pixels of a block that polygon stipple leaves. */
INLINE uint32_t stippled_pixels(const struct raster_plan *plan, uint32_t x, uint32_t y)
{
    uint32_t seen = 0;
    for (int p = 0; p < BLOCK_PIXELS; p++)
        seen |= (plan->stipple[(y + (uint32_t)pixel_y[p]) % STIPPLE_ROWS] >> (31 - (x + (uint32_t)pixel_x[p]) % 32) & 1) << p;
    return seen;
}

#endif
