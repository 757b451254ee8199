/* The loop filter (8.8): which edges of a superblock are filtered, and how wide; all vertical edges first. */
#include <sched.h>

#include "vp9.h"

/* Edges of 8 samples of a row of 8x8 units: a bit each. */
struct row_edges {
    unsigned wide, middle, narrow; /* at the unit's left or upper edge: 16, 8, 4 samples */
};

struct superblock_edges {
    struct row_edges left[SUPERBLOCK], above[SUPERBLOCK];
    unsigned inner[SUPERBLOCK]; /* in the middle of the unit */
    uint8_t level[SUPERBLOCK][SUPERBLOCK];
};

/* An edge at `unit` of a transform's multiples; `is_border`: half of the unit is outside the picture, so nothing wide fits. */
static void mark(struct row_edges *row, unsigned bit, unsigned tx, unsigned unit, int is_border)
{
    if (tx >= TX_16X16) {
        if (unit & ((1u << (tx - TX_8X8)) - 1))
            return;
        *(is_border ? &row->middle : &row->wide) |= bit;
    } else if (tx == TX_8X8 || !(unit & 3))
        row->middle |= bit;
    else
        row->narrow |= bit;
}

static void mark_unit(const struct vp9_picture *p, struct superblock_edges *s, const struct vp9_block *b, int shift, unsigned x, unsigned y, unsigned c, unsigned r)
{
    unsigned tx = shift ? chroma_transform(b) : b->tx, bit = 1u << (c >> shift);
    int skip = b->skip && is_inter(b), last_column = shift && x + c == p->columns - 1, last_row = shift && y + r == p->rows - 1;
    s->level[r >> shift][c >> shift] = b->level;
    if (!b->level)
        return;
    if (!skip || !(c & (units_across(b->size) - 1)))
        mark(&s->left[r >> shift], bit, tx, c >> shift, last_column);
    if (!skip || !(r & (units_down(b->size) - 1)))
        mark(&s->above[r >> shift], bit, tx, r >> shift, last_row);
    if (!skip && tx == TX_4X4 && !last_column)
        s->inner[r >> shift] |= bit;
}

static void gather(const struct vp9_picture *p, struct superblock_edges *s, int shift, unsigned x, unsigned y)
{
    memset(s, 0, sizeof *s);
    for (unsigned r = 0; r < SUPERBLOCK && y + r < p->rows; r += 1u << shift)
        for (unsigned c = 0; c < SUPERBLOCK && x + c < p->columns; c += 1u << shift) {
            const struct vp9_block *b = p->grid[(size_t)(y + r) * p->columns + x + c];
            if (b)
                mark_unit(p, s, b, shift, x, y, c, r);
        }
}

enum { LEVELS = 256 };

static struct vp9_limits limits_of(const struct vp9_picture *p, int level)
{
    int shift = (int)p->depth - 8, inner = level >> ((p->sharpness > 0) + (p->sharpness > 4));
    if (p->sharpness && inner > 9 - (int)p->sharpness)
        inner = 9 - (int)p->sharpness;
    inner = inner < 1 ? 1 : inner;
    return (struct vp9_limits){(2 * (level + 2) + inner) << shift, inner << shift, level >> 4 << shift, shift};
}

static void filter_row(const struct vp9_limits *limits, uint16_t *at, ptrdiff_t along, ptrdiff_t across, const struct row_edges *row, unsigned inner, const uint8_t *levels)
{
    unsigned all = row->wide | row->middle | row->narrow | inner;
    for (unsigned i = 0; all >> i; i++, at += 8) {
        unsigned bit = 1u << i;
        if (!(all & bit))
            continue;
        const struct vp9_limits *of = &limits[levels[i]];
        int width = row->wide & bit ? 16 : row->middle & bit ? 8 : row->narrow & bit ? 4 : 0;
        if (width)
            vp9_filter_edge(at, along, across, width, of);
        if (inner & bit)
            vp9_filter_edge(at + 4 * across, along, across, 4, of);
    }
}

static void filter_superblock(const struct vp9_picture *p, const struct vp9_limits *limits, int plane, unsigned x, unsigned y)
{
    struct superblock_edges s;
    int shift = plane > 0;
    const struct plane *to = &p->picture->frame.plane[plane];
    uint16_t *at = samples_at(to, x * 8 >> shift, y * 8 >> shift);
    ptrdiff_t stride = (ptrdiff_t)to->stride;
    const struct row_edges none = {0};
    gather(p, &s, shift, x, y);
    for (unsigned r = 0; r < SUPERBLOCK >> shift; r++) {
        if (!x)
            s.left[r] = (struct row_edges){s.left[r].wide & ~1u, s.left[r].middle & ~1u, s.left[r].narrow & ~1u};
        filter_row(limits, at + 8 * (ptrdiff_t)r * stride, stride, 1, &s.left[r], s.inner[r], s.level[r]);
    }
    for (unsigned r = 0; r < SUPERBLOCK >> shift; r++) {
        int last_row = shift && y + (r << shift) == p->rows - 1;
        filter_row(limits, at + 8 * (ptrdiff_t)r * stride, 1, stride, y + r ? &s.above[r] : &none, last_row ? 0 : s.inner[r], s.level[r]);
    }
}

/* Filters of a superblock change samples at its left and above, so the one above and to the right comes first. */
static void wait_for_row_above(const struct vp9_picture *p, unsigned row, unsigned x)
{
    unsigned across = (p->columns + SUPERBLOCK - 1) / SUPERBLOCK, wanted = x + 2 < across ? x + 2 : across;
    while (row && __atomic_load_n(&p->filtered[row - 1], __ATOMIC_ACQUIRE) < wanted)
        sched_yield();
}

void vp9_filter(struct vp9_picture *p, unsigned row)
{
    struct vp9_limits limits[LEVELS];
    for (int level = 0; level < LEVELS; level++)
        limits[level] = limits_of(p, level);
    for (unsigned x = 0; x < p->columns; x += SUPERBLOCK) {
        if (p->divided)
            wait_for_row_above(p, row, x / SUPERBLOCK);
        for (int plane = 0; plane < PLANES; plane++)
            filter_superblock(p, limits, plane, x, row * SUPERBLOCK);
        if (p->divided)
            __atomic_store_n(&p->filtered[row], x / SUPERBLOCK + 1, __ATOMIC_RELEASE);
    }
}
