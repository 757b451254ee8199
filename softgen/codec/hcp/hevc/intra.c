/* Intra prediction (8.4.4.2): samples beside a block, their filter, and planar, DC and angular prediction. */
#include <stdlib.h>
#include <string.h>

#include "hevc.h"

enum { MOST = 32 };

/* Samples beside a block: those at its left from the lowest to the corner, then those above; `corner` is in the middle. */
struct edge {
    uint16_t samples[4 * MOST + 1];
    int size;
};

static inline uint16_t left_of(const struct edge *e, int y)
{
    return e->samples[2 * e->size - 1 - y];
}

static inline uint16_t above(const struct edge *e, int x)
{
    return e->samples[2 * e->size + 1 + x];
}

/* Whether the block at a luma position may be used. */
static int usable(const struct hevc_decoder *d, int from_x, int from_y, int x, int y)
{
    return hevc_available(d, from_x, from_y, x, y) && (!d->hevc->constrained_intra || hevc_cu_at(d->hevc, x, y)->kind == CU_INTRA);
}

/* Samples that may not be used are those of the nearest one before (8.4.4.2.2); answers whether there are any. */
static int substitute(uint16_t *samples, const uint8_t *there, int count)
{
    int first = 0;
    while (first < count && !there[first])
        first++;
    if (first == count)
        return 0;
    for (int i = 0; i < first; i++)
        samples[i] = samples[first];
    for (int i = first + 1; i < count; i++)
        if (!there[i])
            samples[i] = samples[i - 1];
    return 1;
}

static void gather(const struct hevc_decoder *d, int x, int y, int log2, int component, struct edge *e)
{
    const struct plane *p = &d->hevc->picture->frame.plane[component];
    int size = 1 << log2, shift = component > 0, unit = 4 >> shift, middle = 2 * size, lx = x << shift, ly = y << shift;
    uint8_t there[4 * MOST + 1];
    e->size = size;
    for (int i = 0; i < 2 * size; i += unit) { /* at the left, downwards */
        int ok = usable(d, lx, ly, lx - 1, ly + (i << shift));
        for (int j = i; j < i + unit; j++) {
            there[middle - 1 - j] = (uint8_t)ok;
            if (ok)
                e->samples[middle - 1 - j] = *hevc_samples(p, x - 1, y + j);
        }
    }
    there[middle] = (uint8_t)usable(d, lx, ly, lx - 1, ly - 1);
    if (there[middle])
        e->samples[middle] = *hevc_samples(p, x - 1, y - 1);
    for (int i = 0; i < 2 * size; i += unit) {
        int ok = usable(d, lx, ly, lx + (i << shift), ly - 1);
        memset(there + middle + 1 + i, ok, (size_t)unit);
        if (ok)
            memcpy(e->samples + middle + 1 + i, hevc_samples(p, x + i, y - 1), (size_t)unit * sizeof *e->samples);
    }
    if (!substitute(e->samples, there, 4 * size + 1))
        for (int i = 0; i <= 4 * size; i++)
            e->samples[i] = (uint16_t)(1 << (hevc_depth(d->hevc, component) - 1));
}

static void smooth(struct edge *e)
{
    uint16_t before = e->samples[0];
    for (int i = 1; i < 4 * e->size; i++) {
        uint16_t here = e->samples[i];
        e->samples[i] = (uint16_t)((before + 2 * here + e->samples[i + 1] + 2) >> 2);
        before = here;
    }
}

/* Straight lines between the corners, where the samples are nearly on them already; answers whether they are. */
static int straighten(struct edge *e, int depth)
{
    uint16_t *s = e->samples;
    int a = s[0], b = s[64], c = s[128], limit = 1 << (depth - 5);
    if (abs(a + b - 2 * s[32]) >= limit || abs(b + c - 2 * s[96]) >= limit)
        return 0;
    for (int i = 1; i < 64; i++) {
        s[i] = (uint16_t)(((64 - i) * a + i * b + 32) >> 6);
        s[64 + i] = (uint16_t)(((64 - i) * b + i * c + 32) >> 6);
    }
    return 1;
}

static void filter_edge(const struct hevc_decoder *d, struct edge *e, int log2, int mode)
{
    static const uint8_t limits[6] = {0, 0, 0, 7, 1, 0};
    int from_vertical = abs(mode - INTRA_VERTICAL), from_horizontal = abs(mode - INTRA_HORIZONTAL);
    if (mode == INTRA_DC || log2 == 2 || (from_vertical < from_horizontal ? from_vertical : from_horizontal) <= limits[log2])
        return;
    if (!(d->hevc->strong_smoothing && log2 == 5 && straighten(e, (int)d->hevc->depth_luma)))
        smooth(e);
}

static void planar(const struct edge *e, int log2, uint16_t *to, ptrdiff_t stride)
{
    int size = 1 << log2, right = above(e, size), below = left_of(e, size);
    for (int y = 0; y < size; y++, to += stride)
        for (int x = 0; x < size; x++)
            to[x] = (uint16_t)(((size - 1 - x) * left_of(e, y) + (x + 1) * right + (size - 1 - y) * above(e, x) + (y + 1) * below + size)
                               >> (log2 + 1));
}

static void mean(const struct edge *e, int log2, uint16_t *to, ptrdiff_t stride, int edges)
{
    int size = 1 << log2, sum = size;
    for (int i = 0; i < size; i++)
        sum += above(e, i) + left_of(e, i);
    int value = sum >> (log2 + 1);
    for (int y = 0; y < size; y++)
        for (int x = 0; x < size; x++)
            to[y * stride + x] = (uint16_t)value;
    if (!edges)
        return;
    to[0] = (uint16_t)((left_of(e, 0) + 2 * value + above(e, 0) + 2) >> 2);
    for (int i = 1; i < size; i++) {
        to[i] = (uint16_t)((above(e, i) + 3 * value + 2) >> 2);
        to[i * stride] = (uint16_t)((left_of(e, i) + 3 * value + 2) >> 2);
    }
}

static const int8_t angles[35] = {0, 0, 32, 26, 21, 17, 13, 9, 5, 2, 0, -2, -5, -9, -13, -17, -21, -26, -32, -26, -21, -17, -13, -9, -5, -2,
                                  0, 2, 5, 9, 13, 17, 21, 26, 32};
static const int16_t inverse[15] = {-4096, -1638, -910, -630, -482, -390, -315, -256, -315, -390, -482, -630, -910, -1638, -4096};

/* Predicts along an angle from the samples above, or, mirrored, from those at the left. `ref` is the corner. */
static const uint16_t *reference_line(const struct edge *e, int mode, int vertical, uint16_t *room)
{
    int size = e->size, angle = angles[mode], last = size * angle >> 5;
    uint16_t *ref = room + MOST;
    for (int i = 0; i <= 2 * size; i++)
        ref[i] = vertical ? e->samples[2 * size + i] : e->samples[2 * size - i];
    if (last < -1)
        for (int i = -1; i >= last; i--) {
            int at = (i * inverse[mode - 11] + 128) >> 8;
            ref[i] = vertical ? e->samples[2 * size - at] : e->samples[2 * size + at];
        }
    return ref;
}

static void angular(const struct edge *e, int mode, uint16_t *to, ptrdiff_t stride, int edges, int depth)
{
    uint16_t room[MOST + 2 * MOST + 1], turned[MOST * MOST];
    int size = e->size, vertical = mode >= 18, angle = angles[mode];
    const uint16_t *ref = reference_line(e, mode, vertical, room);
    uint16_t *out = vertical ? to : turned;
    ptrdiff_t step = vertical ? stride : size;
    for (int y = 0; y < size; y++) {
        int at = (y + 1) * angle, whole = at >> 5, part = at & 31;
        const uint16_t *line = ref + whole + 1;
        uint16_t *row = out + y * step;
        if (part)
            for (int x = 0; x < size; x++)
                row[x] = (uint16_t)(((32 - part) * line[x] + part * line[x + 1] + 16) >> 5);
        else
            memcpy(row, line, (size_t)size * sizeof *row);
    }
    if (!angle && edges) /* modes 10 and 26: the other edge shows through */
        for (int y = 0; y < size; y++) {
            int beside = vertical ? left_of(e, y) : above(e, y);
            out[y * step] = (uint16_t)hevc_clip(ref[1] + ((beside - ref[0]) >> 1), depth);
        }
    if (!vertical)
        for (int y = 0; y < size; y++)
            for (int x = 0; x < size; x++)
                to[y * stride + x] = turned[x * size + y];
}

void hevc_intra(struct hevc_decoder *d, int x, int y, int log2, int component, int mode)
{
    const struct plane *p = &d->hevc->picture->frame.plane[component];
    uint16_t *to = hevc_samples(p, x, y);
    int edges = !component && log2 < 5;
    struct edge e;
    gather(d, x, y, log2, component, &e);
    if (!component)
        filter_edge(d, &e, log2, mode);
    if (mode == INTRA_PLANAR)
        planar(&e, log2, to, p->stride);
    else if (mode == INTRA_DC)
        mean(&e, log2, to, p->stride, edges);
    else
        angular(&e, mode, to, p->stride, edges, hevc_depth(d->hevc, component));
}
