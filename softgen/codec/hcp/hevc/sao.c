/* Sample adaptive offset (8.7.3), from a copy of the deblocked samples. */
#include <string.h>

#include "hevc.h"

#define INLINE inline __attribute__((always_inline))
#ifdef __x86_64__
#define VECTORIZED __attribute__((target_clones("arch=x86-64-v3", "default")))
#else
#define VECTORIZED
#endif

enum { NO_SAO, BAND, LANES = 16 };

typedef int16_t group __attribute__((vector_size(2 * LANES)));

/* A coding tree block of a component. */
struct area {
    const struct plane *plane;
    const uint16_t *copy; /* of the whole plane, with its stride */
    int x, y, width, height, depth;
    uint8_t allowed[3][3]; /* samples of the blocks around it may be used; by row and column, itself in the middle */
};

static int may_use(const struct hevc_picture *p, int address, int x, int y)
{
    if (x < 0 || y < 0 || x >= (int)p->across || y >= (int)p->down)
        return 0;
    int other = y * (int)p->across + x;
    const struct hevc_ctb *a = &p->ctbs[address], *b = &p->ctbs[other];
    if (a->slice != b->slice && !(p->to_scan[address] > p->to_scan[other] ? a : b)->across)
        return 0;
    return p->across_tiles || p->tiles[address] == p->tiles[other];
}

static void surroundings(const struct hevc_picture *p, int ctb_x, int ctb_y, struct area *a)
{
    for (int y = -1; y <= 1; y++)
        for (int x = -1; x <= 1; x++)
            a->allowed[y + 1][x + 1] = (uint8_t)may_use(p, ctb_y * (int)p->across + ctb_x, ctb_x + x, ctb_y + y);
}

static void bands(const struct area *a, int first, const int16_t *offset)
{
    int16_t table[32] = {0};
    for (int i = 0; i < 4; i++)
        table[(first + i) & 31] = offset[i];
    for (int y = 0; y < a->height; y++) {
        uint16_t *row = hevc_samples(a->plane, a->x, a->y + y);
        for (int x = 0; x < a->width; x++)
            row[x] = (uint16_t)hevc_clip(row[x] + table[row[x] >> (a->depth - 5)], a->depth);
    }
}

static int is_allowed(const struct area *a, int x, int y)
{
    return a->allowed[y < 0 ? 0 : y < a->height ? 1 : 2][x < 0 ? 0 : x < a->width ? 1 : 2];
}

struct direction {
    int dx, dy;
    int16_t by_sum[5]; /* offsets by the signs of the differences to both neighbours */
};

static INLINE group load_group(const uint16_t *from)
{
    group found;
    memcpy(&found, from, sizeof found);
    return found;
}

/* Offsets by the signs of two differences, which are masks: -1 where a sample is more. */
static INLINE group offset_of(group here, group before, group behind, const int16_t *by_sum)
{
    group sum = (here < before) - (here > before) + (here < behind) - (here > behind), found = {0};
    for (int i = 0; i < 5; i++)
        found |= (sum == (int16_t)(i - 2)) & by_sum[i];
    return found;
}

static INLINE group limited(group x, int most)
{
    group limit = (group){0} + (int16_t)most, below = x < limit;
    x = (x & below) | (limit & ~below);
    return x & ~(x < 0);
}

VECTORIZED static void adjust(uint16_t *row, const uint16_t *from, ptrdiff_t next, int count, const int16_t *by_sum, int most)
{
    int x = 0;
    for (; x + LANES <= count; x += LANES) {
        group here = load_group(from + x);
        here = limited(here + offset_of(here, load_group(from + x - next), load_group(from + x + next), by_sum), most);
        memcpy(row + x, &here, sizeof here);
    }
    for (; x < count; x++) {
        int here = from[x], before = from[x - next], behind = from[x + next];
        row[x] = (uint16_t)clamp(here + by_sum[2 + (here > before) - (here < before) + (here > behind) - (here < behind)], 0, most);
    }
}

/* Samples of a row from x on, where both neighbours of the first one, and so of all, may be used. */
static void span(const struct area *a, const struct direction *d, int y, int x, int end)
{
    uint16_t *row = hevc_samples(a->plane, a->x, a->y + y);
    const uint16_t *from = a->copy + (ptrdiff_t)(a->y + y) * a->plane->stride + a->x;
    if (is_allowed(a, x + d->dx, y + d->dy) && is_allowed(a, x - d->dx, y - d->dy))
        adjust(row + x, from + x, d->dy * (ptrdiff_t)a->plane->stride + d->dx, end - x, d->by_sum, (1 << a->depth) - 1);
}

/* Whether all blocks around may be used. */
static int is_inside(const struct area *a)
{
    int all = 1;
    for (int i = 0; i < 9; i++)
        all &= a->allowed[i / 3][i % 3];
    return all;
}

static void edges(const struct area *a, int direction, const int16_t *offset)
{
    static const int8_t step[4][2] = {{1, 0}, {0, 1}, {1, 1}, {-1, 1}};
    struct direction d = {step[direction][0], step[direction][1], {offset[0], offset[1], 0, offset[2], offset[3]}};
    int inside = is_inside(a);
    for (int y = 0; y < a->height; y++) {
        if (inside) {
            span(a, &d, y, 0, a->width);
            continue;
        }
        span(a, &d, y, 0, 1);
        span(a, &d, y, 1, a->width - 1);
        span(a, &d, y, a->width - 1, a->width);
    }
}

/* Units whose samples are exact get them back. */
static void restore(const struct hevc_picture *p, const struct area *a, int shift)
{
    int size = 8 >> shift;
    for (int y = 0; y < a->height; y += size)
        for (int x = 0; x < a->width; x += size)
            if (hevc_cu_at(p, (a->x + x) << shift, (a->y + y) << shift)->exact)
                for (int i = 0; i < size; i++)
                    memcpy(hevc_samples(a->plane, a->x + x, a->y + y + i),
                           a->copy + (ptrdiff_t)(a->y + y + i) * a->plane->stride + a->x + x, (size_t)size * sizeof(uint16_t));
}

static void filter(struct hevc_picture *p, int ctb_x, int ctb_y, int component)
{
    const struct hevc_sao *sao = &p->ctbs[ctb_y * (int)p->across + ctb_x].sao;
    int shift = component > 0, size = (1 << p->log2_ctb) >> shift;
    struct area a = {.plane = &p->picture->frame.plane[component], .copy = p->copy, .x = ctb_x * size, .y = ctb_y * size};
    if (sao->type[component] == NO_SAO)
        return;
    a.depth = hevc_depth(p, component);
    a.width = size < (int)a.plane->width - a.x ? size : (int)a.plane->width - a.x;
    a.height = size < (int)a.plane->height - a.y ? size : (int)a.plane->height - a.y;
    if (sao->type[component] == BAND)
        bands(&a, sao->place[component], sao->offset[component]);
    else {
        surroundings(p, ctb_x, ctb_y, &a);
        edges(&a, sao->place[component], sao->offset[component]);
    }
    if (p->bypass || p->pcm_unfiltered)
        restore(p, &a, shift);
}

static int is_used(const struct hevc_picture *p, int component, int ctb_y)
{
    int any = 0;
    for (int x = 0; x < (int)p->across; x++)
        any |= p->ctbs[ctb_y * (int)p->across + x].sao.type[component];
    return any;
}

/* Copies the rows of samples that blocks of a row need: theirs, and one on either side. Answers up to where there are copies. */
static int copy_rows(struct hevc_picture *p, int component, int ctb_y, int copied)
{
    const struct plane *plane = &p->picture->frame.plane[component];
    int size = (1 << p->log2_ctb) >> (component > 0), first = ctb_y * size - 1, end = (ctb_y + 1) * size + 1;
    first = first > copied ? first : copied;
    end = end < (int)plane->height ? end : (int)plane->height;
    memcpy(p->copy + (size_t)first * plane->stride, hevc_samples(plane, 0, first), (size_t)plane->stride * (size_t)(end - first) * sizeof *p->copy);
    return end;
}

void hevc_sao(struct hevc_picture *p)
{
    for (int component = 0; component < PLANES; component++)
        for (int y = 0, copied = 0; y < (int)p->down; y++) {
            if (!is_used(p, component, y))
                continue;
            copied = copy_rows(p, component, y, copied);
            for (int x = 0; x < (int)p->across; x++)
                filter(p, x, y, component);
        }
}
