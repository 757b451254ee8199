/* Rasterizer: the pixels of a tile that an object covers, as 4x4 blocks.
 *
 * A tile is walked in 16x16 and then 4x4 blocks. An edge function has its least and greatest value in a corner of a block: a block is
 * rejected, fully inside, or tested pixel by pixel. Integers throughout: coverage is exact.
 */
#include "pixels.h"

enum { EDGES = 4, COARSE = 16 };

/* An edge in the tile: its value at the upper left pixel, and how far it can fall and rise within a block. */
struct tile_edge {
    int64_t value, dx, dy;
    int64_t fall[2], rise[2]; /* in a 4x4 and in a 16x16 block */
    int64_t step[BLOCK_PIXELS]; /* to the pixels of a 4x4 block, by bit of the mask */
};

static const uint8_t pixel_x[BLOCK_PIXELS] = {0, 1, 0, 1, 2, 3, 2, 3, 0, 1, 0, 1, 2, 3, 2, 3};
static const uint8_t pixel_y[BLOCK_PIXELS] = {0, 0, 1, 1, 0, 0, 1, 1, 2, 2, 3, 3, 2, 2, 3, 3};
static const uint16_t columns[BLOCK] = {0x0505, 0x0a0a, 0x5050, 0xa0a0}, rows[BLOCK] = {0x0033, 0x00cc, 0x3300, 0xcc00};

static void range(int64_t step, int64_t pixels, int64_t *fall, int64_t *rise)
{
    *(step < 0 ? fall : rise) += step * (pixels - 1);
}

static inline __attribute__((always_inline)) void begin_edge(struct tile_edge *e, const struct setup_record *r, uint32_t n, int64_t x,
                                                             int64_t y)
{
    static const int64_t sizes[2] = {BLOCK, COARSE};
    e->dx = r->edge_dx[n];
    e->dy = r->edge_dy[n];
    e->value = r->edge[n] + e->dx * x + e->dy * y;
    for (int i = 0; i < 2; i++) {
        e->fall[i] = e->rise[i] = 0;
        range(e->dx, sizes[i], &e->fall[i], &e->rise[i]);
        range(e->dy, sizes[i], &e->fall[i], &e->rise[i]);
    }
    for (int i = 0; i < BLOCK_PIXELS; i++)
        e->step[i] = e->dx * pixel_x[i] + e->dy * pixel_y[i];
}

/* Pixels of a block that are inside of an edge. */
static inline __attribute__((always_inline)) uint32_t edge_mask(const struct tile_edge *e, int64_t value)
{
    uint32_t mask = 0;
    for (int i = 0; i < BLOCK_PIXELS; i++)
        mask |= (uint32_t)(value + e->step[i] >= 0) << i;
    return mask;
}

/* Pixels of the block at (x, y) that are in the rectangle. */
static inline uint32_t box_mask(int32_t x, int32_t y, const int32_t box[4])
{
    uint32_t across = 0, down = 0;
    for (int i = 0; i < BLOCK; i++) {
        across |= x + i >= box[0] && x + i < box[2] ? columns[i] : 0;
        down |= y + i >= box[1] && y + i < box[3] ? rows[i] : 0;
    }
    return across & down;
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

/* The 4x4 blocks of a 16x16 block, for the edges that cross it. */
static inline __attribute__((always_inline)) uint32_t walk_coarse(const struct tile_edge *edges, uint32_t crossing, int32_t left, int32_t top,
                                                                  const int32_t box[4], struct pixel_block *out)
{
    uint32_t count = 0;
    for (int32_t y = top; y < top + COARSE && y < box[3]; y += BLOCK) {
        if (y + BLOCK <= box[1])
            continue;
        for (int32_t x = left; x < left + COARSE && x < box[2]; x += BLOCK) {
            uint32_t mask = x >= box[0] && x + BLOCK <= box[2] && y >= box[1] && y + BLOCK <= box[3] ? 0xffff : box_mask(x, y, box);
            for (uint32_t left_edges = crossing; left_edges && mask; left_edges &= left_edges - 1) {
                const struct tile_edge *e = &edges[__builtin_ctz(left_edges)];
                int64_t value = e->value + e->dx * x + e->dy * y;
                if (value + e->rise[0] < 0)
                    mask = 0;
                else if (value + e->fall[0] < 0)
                    mask &= edge_mask(e, value);
            }
            if (mask)
                out[count++] = (struct pixel_block){(uint16_t)x, (uint16_t)y, mask};
        }
    }
    return count;
}

VECTORIZED static uint32_t walk_tile(const struct setup_record *r, int32_t x, int32_t y, struct pixel_block *out)
{
    struct tile_edge edges[EDGES];
    int32_t box[4];
    uint32_t count = 0, used = r->edges < EDGES ? r->edges : EDGES;
    if (!clip_box(r, x, y, box))
        return 0;
    for (uint32_t n = 0; n < used; n++)
        begin_edge(&edges[n], r, n, x, y);
    for (int32_t top = box[1] & -COARSE; top < box[3]; top += COARSE)
        for (int32_t left = box[0] & -COARSE; left < box[2]; left += COARSE) {
            uint32_t crossing = 0, outside = 0;
            for (uint32_t n = 0; n < used; n++) {
                int64_t value = edges[n].value + edges[n].dx * left + edges[n].dy * top;
                outside |= value + edges[n].rise[1] < 0;
                crossing |= (uint32_t)(value + edges[n].fall[1] < 0) << n;
            }
            if (!outside)
                count += walk_coarse(edges, crossing, left, top, box, out + count);
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

EXPORT uint32_t rasterize_tile(const struct raster_plan *plan, const struct setup_record *record, uint32_t x, uint32_t y,
                               struct pixel_block *blocks)
{
    uint32_t count = walk_tile(record, (int32_t)x, (int32_t)y, blocks);
    for (uint32_t i = 0; i < count; i++) {
        blocks[i].x = (uint16_t)(blocks[i].x + x);
        blocks[i].y = (uint16_t)(blocks[i].y + y);
    }
    return plan->stippled >> (record->topology & 63) & 1 ? stipple(plan, blocks, count) : count;
}
