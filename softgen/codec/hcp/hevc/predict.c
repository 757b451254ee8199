/* Inter prediction: blocks of references between samples (8.5.3.3.3), and their weighted sums (8.5.3.3.4). */
#include <string.h>

#include "hevc.h"

enum { STRIDE = HEVC_MOST_CTB, ROOM_STRIDE = HEVC_MOST_CTB + 16, BITS = 14 };

static const int8_t luma_taps[4][8] = {
    {0, 0, 0, 64, 0, 0, 0, 0}, {-1, 4, -10, 58, 17, -5, 1, 0}, {-1, 4, -11, 40, 40, -11, 4, -1}, {0, 1, -5, 17, 58, -10, 4, -1},
};
static const int8_t chroma_taps[8][4] = {
    {0, 64, 0, 0}, {-2, 58, 10, -2}, {-4, 54, 16, -2}, {-6, 46, 28, -4}, {-4, 36, 36, -4}, {-4, 28, 46, -6}, {-2, 16, 54, -4}, {-2, 10, 58, -2},
};

/* Samples from (x, y) on; those beyond an edge are the edge's. */
static const uint16_t *fetch(struct hevc_decoder *d, const struct plane *p, int x, int y, int width, int height, ptrdiff_t *stride)
{
    if (x >= 0 && y >= 0 && x + width <= (int)p->width && y + height <= (int)p->height) {
        *stride = p->stride;
        return hevc_samples(p, x, y);
    }
    for (int j = 0; j < height; j++) {
        const uint16_t *row = hevc_samples(p, 0, clamp(y + j, 0, (int)p->height - 1));
        for (int i = 0; i < width; i++)
            d->room[j * ROOM_STRIDE + i] = row[clamp(x + i, 0, (int)p->width - 1)];
    }
    *stride = ROOM_STRIDE;
    return d->room;
}

static inline void whole(int16_t *to, const uint16_t *from, ptrdiff_t stride, int width, int height, int shift)
{
    for (int y = 0; y < height; y++, to += STRIDE, from += stride)
        for (int x = 0; x < width; x++)
            to[x] = (int16_t)(from[x] << shift);
}

/* Sums of `taps` samples `step` apart. */
#define FILTER(NAME, SAMPLE, TAPS)                                                                                                         \
    static void NAME(int16_t *restrict to, const SAMPLE *restrict from, ptrdiff_t stride, ptrdiff_t step, const int8_t *f, int width,      \
                     int height, int shift)                                                                                                \
    {                                                                                                                                      \
        int c[TAPS];                                                                                                                       \
        for (int i = 0; i < TAPS; i++)                                                                                                     \
            c[i] = f[i];                                                                                                                   \
        for (int y = 0; y < height; y++, to += STRIDE, from += stride)                                                                     \
            for (int x = 0; x < width; x++) {                                                                                              \
                int sum = 0;                                                                                                               \
                for (int i = 0; i < TAPS; i++)                                                                                             \
                    sum += c[i] * from[x + i * step];                                                                                      \
                to[x] = (int16_t)(sum >> shift);                                                                                           \
            }                                                                                                                              \
    }
FILTER(luma_samples, uint16_t, 8)
FILTER(luma_rows, int16_t, 8)
FILTER(chroma_samples, uint16_t, 4)
FILTER(chroma_rows, int16_t, 4)

struct kind { /* of a component's filter */
    int taps, before;
    void (*samples)(int16_t *restrict, const uint16_t *restrict, ptrdiff_t, ptrdiff_t, const int8_t *, int, int, int);
    void (*rows)(int16_t *restrict, const int16_t *restrict, ptrdiff_t, ptrdiff_t, const int8_t *, int, int, int);
};
static const struct kind luma_kind = {8, 3, luma_samples, luma_rows}, chroma_kind = {4, 1, chroma_samples, chroma_rows};

/* A block at (x, y) of a plane, with 14 bits; across and down: taps, null at a whole sample. */
static void interpolate(struct hevc_decoder *d, int16_t *to, const struct plane *p, int x, int y, int width, int height,
                        const struct kind *kind, const int8_t *across, const int8_t *down, int depth)
{
    int before_x = across ? kind->before : 0, before_y = down ? kind->before : 0, more = kind->taps - 1;
    ptrdiff_t stride;
    const uint16_t *from = fetch(d, p, x - before_x, y - before_y, width + (across ? more : 0), height + (down ? more : 0), &stride);
    if (across && down) {
        kind->samples(d->rows, from, stride, 1, across, width, height + more, depth - 8);
        kind->rows(to, d->rows, STRIDE, STRIDE, down, width, height, 6);
    } else if (across || down)
        kind->samples(to, from, stride, across ? 1 : stride, across ? across : down, width, height, depth - 8);
    else
        whole(to, from, stride, width, height, BITS - depth);
}

static void predict(struct hevc_decoder *d, int16_t *to, const struct frame *f, const struct hevc_block *b, const int16_t *vector, int component)
{
    int depth = hevc_depth(d->hevc, component), x = vector[0], y = vector[1];
    if (!component)
        interpolate(d, to, &f->plane[0], b->x + (x >> 2), b->y + (y >> 2), b->width, b->height, &luma_kind, x & 3 ? luma_taps[x & 3] : NULL,
                    y & 3 ? luma_taps[y & 3] : NULL, depth);
    else
        interpolate(d, to, &f->plane[component], (b->x >> 1) + (x >> 3), (b->y >> 1) + (y >> 3), b->width >> 1, b->height >> 1, &chroma_kind,
                    x & 7 ? chroma_taps[x & 7] : NULL, y & 7 ? chroma_taps[y & 7] : NULL, depth);
}

/* -- sums ----------------------------------------------------------------------------------------------------------- */

static void one_sum(uint16_t *to, ptrdiff_t stride, const int16_t *a, int width, int height, int depth)
{
    int shift = BITS - depth, round = shift ? 1 << (shift - 1) : 0, most = (1 << depth) - 1;
    for (int y = 0; y < height; y++, to += stride, a += STRIDE)
        for (int x = 0; x < width; x++)
            to[x] = (uint16_t)clamp((a[x] + round) >> shift, 0, most);
}

static void two_sum(uint16_t *to, ptrdiff_t stride, const int16_t *a, const int16_t *b, int width, int height, int depth)
{
    int shift = BITS + 1 - depth, round = 1 << (shift - 1), most = (1 << depth) - 1;
    for (int y = 0; y < height; y++, to += stride, a += STRIDE, b += STRIDE)
        for (int x = 0; x < width; x++)
            to[x] = (uint16_t)clamp((a[x] + b[x] + round) >> shift, 0, most);
}

struct weights {
    int factor[2], offset[2], shift;
};

static void one_weighted(uint16_t *to, ptrdiff_t stride, const int16_t *a, int width, int height, int depth, const struct weights *w, int list)
{
    int most = (1 << depth) - 1, round = w->shift ? 1 << (w->shift - 1) : 0;
    for (int y = 0; y < height; y++, to += stride, a += STRIDE)
        for (int x = 0; x < width; x++)
            to[x] = (uint16_t)clamp(((a[x] * w->factor[list] + round) >> w->shift) + w->offset[list], 0, most);
}

static void two_weighted(uint16_t *to, ptrdiff_t stride, const int16_t *a, const int16_t *b, int width, int height, int depth,
                         const struct weights *w)
{
    int most = (1 << depth) - 1, round = (w->offset[0] + w->offset[1] + 1) * (1 << w->shift);
    for (int y = 0; y < height; y++, to += stride, a += STRIDE, b += STRIDE)
        for (int x = 0; x < width; x++)
            to[x] = (uint16_t)clamp((a[x] * w->factor[0] + b[x] * w->factor[1] + round) >> (w->shift + 1), 0, most);
}

static struct weights weights_of(const struct hevc_decoder *d, const struct hevc_motion *m, int component)
{
    const struct hevc_slice *s = d->slice;
    int depth = hevc_depth(d->hevc, component);
    struct weights w = {.shift = (int)s->weight_shift[component > 0] + BITS - depth};
    for (int list = 0; list < HEVC_LISTS; list++)
        if (m->index[list] >= 0) {
            const struct hevc_weight *entry = &s->weight[list][m->index[list]];
            w.factor[list] = entry->weight[component];
            w.offset[list] = entry->offset[component] * (1 << (depth - 8));
        }
    return w;
}

static void sum(struct hevc_decoder *d, const struct hevc_block *b, const struct hevc_motion *m, int component)
{
    const struct plane *p = &d->hevc->picture->frame.plane[component];
    int down = component > 0, width = b->width >> down, height = b->height >> down, depth = hevc_depth(d->hevc, component);
    uint16_t *to = hevc_samples(p, b->x >> down, b->y >> down);
    int both = m->index[0] >= 0 && m->index[1] >= 0, list = m->index[0] < 0;
    if (d->slice->type == HEVC_P ? d->hevc->weighted : d->hevc->weighted_b) {
        struct weights w = weights_of(d, m, component);
        if (both)
            two_weighted(to, p->stride, d->predicted[0], d->predicted[1], width, height, depth, &w);
        else
            one_weighted(to, p->stride, d->predicted[list], width, height, depth, &w, list);
    } else if (both)
        two_sum(to, p->stride, d->predicted[0], d->predicted[1], width, height, depth);
    else
        one_sum(to, p->stride, d->predicted[list], width, height, depth);
}

/* Predicts a block; one whose reference does not exist is an error. */
void hevc_inter(struct hevc_decoder *d, const struct hevc_block *b, const struct hevc_motion *m)
{
    const struct frame *from[HEVC_LISTS] = {NULL, NULL};
    for (int list = 0; list < HEVC_LISTS; list++)
        if (m->index[list] >= 0 && (m->store[list] < 0 || !(from[list] = reference_frame(d->hevc->picture, (unsigned)m->store[list])))) {
            d->error = 1;
            return;
        }
    for (int component = 0; component < PLANES; component++) {
        for (int list = 0; list < HEVC_LISTS; list++)
            if (from[list])
                predict(d, d->predicted[list], from[list], b, m->vector[list], component);
        sum(d, b, m, component);
    }
}
