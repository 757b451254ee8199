/* Inter prediction: blocks of references between samples (8.5.3.3.3), and their weighted sums (8.5.3.3.4). */
#include <string.h>

#include "hevc.h"

#define INLINE inline __attribute__((always_inline))
#ifdef __x86_64__
#define VECTORIZED __attribute__((target_clones("arch=x86-64-v3", "default")))
#else
#define VECTORIZED
#endif

enum { LANES = 16, STRIDE = HEVC_MOST_CTB, ROOM_STRIDE = HEVC_MOST_CTB + 16, BITS = 14 };

typedef int16_t group __attribute__((vector_size(2 * LANES)));

static const int8_t luma_taps[4][8] = {
    {0, 0, 0, 64, 0, 0, 0, 0}, {-1, 4, -10, 58, 17, -5, 1, 0}, {-1, 4, -11, 40, 40, -11, 4, -1}, {0, 1, -5, 17, 58, -10, 4, -1},
};
static const int8_t chroma_taps[8][4] = {
    {0, 64, 0, 0}, {-2, 58, 10, -2}, {-4, 54, 16, -2}, {-6, 46, 28, -4}, {-4, 36, 36, -4}, {-4, 28, 46, -6}, {-2, 16, 54, -4}, {-2, 10, 58, -2},
};

/* Samples from (x, y) on; those beyond an edge are the edge's. LANES samples more than those of the last row may be read. */
static const uint16_t *fetch(struct hevc_decoder *d, const struct plane *p, int x, int y, int width, int height, ptrdiff_t *stride)
{
    int last = y + height - (int)p->height, more = last < 0 ? 0 : LANES;
    if (x >= 0 && y >= 0 && x + width + more <= (int)p->width && last <= 0) {
        *stride = p->stride;
        return hevc_samples(p, x, y);
    }
    int left = clamp(-x, 0, width), right = clamp((int)p->width - x, left, width); /* those between are the plane's */
    for (int j = 0; j < height; j++) {
        const uint16_t *row = hevc_samples(p, 0, clamp(y + j, 0, (int)p->height - 1));
        uint16_t *to = d->room + j * ROOM_STRIDE;
        for (int i = 0; i < left; i++)
            to[i] = row[0];
        if (right > left)
            memcpy(to + left, row + x + left, (size_t)(right - left) * sizeof *to);
        for (int i = right; i < width; i++)
            to[i] = row[p->width - 1];
    }
    *stride = ROOM_STRIDE;
    return d->room;
}

/* -- samples of 14 bits --------------------------------------------------------------------------------------------- */

static INLINE group load_group(const int16_t *from)
{
    group found;
    memcpy(&found, from, sizeof found);
    return found;
}

/* The sum of products, shifted right. Sums have more than 16 bits, but their upper and lower parts do not where the samples are split at the
 * shift first; of the result 16 bits count. */
static INLINE group filtered(const int16_t *from, ptrdiff_t step, const group *c, int taps, int shift)
{
    group high = {0}, low = {0};
    for (int i = 0; i < taps; i++) {
        group s = load_group(from + i * step);
        high += (s >> shift) * c[i];
        if (shift)
            low += (s & (int16_t)((1 << shift) - 1)) * c[i];
    }
    return high + (low >> shift);
}

/* Sums of samples `step` apart; whole groups are written to a row of STRIDE. */
static INLINE void filter_rows(int16_t *to, const int16_t *from, ptrdiff_t stride, ptrdiff_t step, const int8_t *f, int taps, int width, int height,
                               int shift)
{
    group c[8];
    for (int i = 0; i < taps; i++)
        c[i] = (group){0} + f[i];
    for (int y = 0; y < height; y++, to += STRIDE, from += stride)
        for (int x = 0; x < width; x += LANES) {
            group found = filtered(from + x, step, c, taps, shift);
            memcpy(to + x, &found, sizeof found);
        }
}

#define FILTER(NAME, TAPS)                                                                                                                 \
    VECTORIZED static void NAME(int16_t *to, const int16_t *from, ptrdiff_t stride, ptrdiff_t step, const int8_t *f, int width, int height, \
                                int shift)                                                                                                 \
    {                                                                                                                                      \
        if (!shift)                                                                                                                        \
            filter_rows(to, from, stride, step, f, TAPS, width, height, 0);                                                                \
        else if (shift == 6)                                                                                                               \
            filter_rows(to, from, stride, step, f, TAPS, width, height, 6);                                                                \
        else                                                                                                                               \
            filter_rows(to, from, stride, step, f, TAPS, width, height, shift);                                                            \
    }
FILTER(luma_filter, 8)
FILTER(chroma_filter, 4)

VECTORIZED static void whole(int16_t *to, const int16_t *from, ptrdiff_t stride, int width, int height, int shift)
{
    for (int y = 0; y < height; y++, to += STRIDE, from += stride)
        for (int x = 0; x < width; x += LANES) {
            group found = load_group(from + x) << shift;
            memcpy(to + x, &found, sizeof found);
        }
}

struct kind { /* of a component's filter */
    int taps, before;
    void (*filter)(int16_t *, const int16_t *, ptrdiff_t, ptrdiff_t, const int8_t *, int, int, int);
};
static const struct kind luma_kind = {8, 3, luma_filter}, chroma_kind = {4, 1, chroma_filter};

/* A block of a reference: its place in a plane, and the taps across and down; null at a whole sample. */
struct source {
    const struct plane *plane;
    const struct kind *kind;
    int x, y;
    const int8_t *across, *down;
};

static struct source source_of(const struct frame *f, const struct hevc_block *b, const int16_t *vector, int component)
{
    int x = vector[0], y = vector[1];
    if (!component)
        return (struct source){&f->plane[0], &luma_kind, b->x + (x >> 2), b->y + (y >> 2), x & 3 ? luma_taps[x & 3] : NULL,
                               y & 3 ? luma_taps[y & 3] : NULL};
    return (struct source){&f->plane[component], &chroma_kind, (b->x >> 1) + (x >> 3), (b->y >> 1) + (y >> 3),
                           x & 7 ? chroma_taps[x & 7] : NULL, y & 7 ? chroma_taps[y & 7] : NULL};
}

/* A block with 14 bits. */
static void interpolate(struct hevc_decoder *d, int16_t *to, const struct source *s, int width, int height, int depth)
{
    int before_x = s->across ? s->kind->before : 0, before_y = s->down ? s->kind->before : 0, more = s->kind->taps - 1;
    ptrdiff_t stride;
    const int16_t *from = (const int16_t *)fetch(d, s->plane, s->x - before_x, s->y - before_y, width + (s->across ? more : 0),
                                                 height + (s->down ? more : 0), &stride);
    if (s->across && s->down) {
        s->kind->filter(d->rows, from, stride, 1, s->across, width, height + more, depth - 8);
        s->kind->filter(to, d->rows, STRIDE, STRIDE, s->down, width, height, 6);
    } else if (s->across || s->down)
        s->kind->filter(to, from, stride, s->across ? 1 : stride, s->across ? s->across : s->down, width, height, depth - 8);
    else
        whole(to, from, stride, width, height, BITS - depth);
}

/* -- sums ----------------------------------------------------------------------------------------------------------- */

struct target {
    uint16_t *to;
    ptrdiff_t stride;
    int width, height, depth;
};

static INLINE group least(group a, int b)
{
    group most = (group){0} + (int16_t)b, mask = a < most;
    return (a & mask) | (most & ~mask);
}

/* Rounds numbers of 14 bits; those that are far beyond a sample are limited first, so that rounding does not overflow. */
static INLINE group rounded(group a, int shift, int most)
{
    int round = shift ? 1 << (shift - 1) : 0;
    group found = least((least(a, INT16_MAX - round) + (int16_t)round) >> shift, most);
    return found & ~(found < 0);
}

/* Stores the first `count` samples, an even number. */
static INLINE void put_group(uint16_t *to, group found, int count)
{
    uint16_t samples[LANES];
    if (count >= LANES) {
        memcpy(to, &found, sizeof found);
        return;
    }
    memcpy(samples, &found, sizeof found);
    int at = 0;
    if (count & 8)
        memcpy(to, samples, 8 * sizeof *to), at = 8;
    if (count & 4)
        memcpy(to + at, samples + at, 4 * sizeof *to), at += 4;
    if (count & 2)
        memcpy(to + at, samples + at, 2 * sizeof *to);
}

VECTORIZED static void one_sum(const struct target *t, const int16_t *a)
{
    for (int y = 0; y < t->height; y++, a += STRIDE)
        for (int x = 0; x < t->width; x += LANES)
            put_group(t->to + y * t->stride + x, rounded(load_group(a + x), BITS - t->depth, (1 << t->depth) - 1), t->width - x);
}

/* The mean of two numbers, rounded down, needs no more bits than they have. */
static INLINE group mean(group a, group b)
{
    return (a & b) + ((a ^ b) >> 1);
}

VECTORIZED static void two_sum(const struct target *t, const int16_t *a, const int16_t *b)
{
    for (int y = 0; y < t->height; y++, a += STRIDE, b += STRIDE)
        for (int x = 0; x < t->width; x += LANES)
            put_group(t->to + y * t->stride + x, rounded(mean(load_group(a + x), load_group(b + x)), BITS - t->depth, (1 << t->depth) - 1),
                      t->width - x);
}

struct weights {
    int factor[2], offset[2], shift;
};

VECTORIZED static void one_weighted(const struct target *t, const int16_t *a, const struct weights *w, int list)
{
    int most = (1 << t->depth) - 1, round = w->shift ? 1 << (w->shift - 1) : 0, factor = w->factor[list], offset = w->offset[list], shift = w->shift;
    for (int y = 0; y < t->height; y++, a += STRIDE) {
        uint16_t *to = t->to + y * t->stride;
        for (int x = 0; x < t->width; x++)
            to[x] = (uint16_t)clamp(((a[x] * factor + round) >> shift) + offset, 0, most);
    }
}

VECTORIZED static void two_weighted(const struct target *t, const int16_t *a, const int16_t *b, const struct weights *w)
{
    int most = (1 << t->depth) - 1, round = (w->offset[0] + w->offset[1] + 1) * (1 << w->shift), first = w->factor[0], second = w->factor[1];
    int shift = w->shift + 1;
    for (int y = 0; y < t->height; y++, a += STRIDE, b += STRIDE) {
        uint16_t *to = t->to + y * t->stride;
        for (int x = 0; x < t->width; x++)
            to[x] = (uint16_t)clamp((a[x] * first + b[x] * second + round) >> shift, 0, most);
    }
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

/* A block that is one of a reference, at whole samples. */
static void copy(struct hevc_decoder *d, const struct target *t, const struct source *s)
{
    ptrdiff_t stride;
    const uint16_t *from = fetch(d, s->plane, s->x, s->y, t->width, t->height, &stride);
    for (int y = 0; y < t->height; y++)
        memcpy(t->to + y * t->stride, from + y * stride, (size_t)t->width * sizeof *t->to);
}

static void predict(struct hevc_decoder *d, const struct hevc_block *b, const struct hevc_motion *m, const struct frame *const from[HEVC_LISTS],
                    int component)
{
    const struct plane *p = &d->hevc->picture->frame.plane[component];
    int down = component > 0, is_weighted = d->slice->type == HEVC_P ? d->hevc->weighted : d->hevc->weighted_b, list = !from[0];
    struct target t = {hevc_samples(p, b->x >> down, b->y >> down), p->stride, b->width >> down, b->height >> down,
                       hevc_depth(d->hevc, component)};
    for (int i = 0; i < HEVC_LISTS; i++)
        if (from[i]) {
            struct source s = source_of(from[i], b, m->vector[i], component);
            if (!from[!i] && !is_weighted && !s.across && !s.down) {
                copy(d, &t, &s);
                return;
            }
            interpolate(d, d->predicted[i], &s, t.width, t.height, t.depth);
        }
    if (is_weighted) {
        struct weights w = weights_of(d, m, component);
        if (from[0] && from[1])
            two_weighted(&t, d->predicted[0], d->predicted[1], &w);
        else
            one_weighted(&t, d->predicted[list], &w, list);
    } else if (from[0] && from[1])
        two_sum(&t, d->predicted[0], d->predicted[1]);
    else
        one_sum(&t, d->predicted[list]);
}

/* The reference, of which what a block needs has been read. */
static const struct frame *reference_of(const struct hevc_decoder *d, const struct hevc_block *b, const struct hevc_motion *m, int list)
{
    const int16_t *vector = m->vector[list];
    return reference_block(d->hevc->picture, (unsigned)m->store[list], b->x + (vector[0] >> 2), b->y + (vector[1] >> 2), b->width, b->height);
}

/* Predicts a block; one whose reference does not exist is an error. */
void hevc_inter(struct hevc_decoder *d, const struct hevc_block *b, const struct hevc_motion *m)
{
    const struct frame *from[HEVC_LISTS] = {NULL, NULL};
    for (int list = 0; list < HEVC_LISTS; list++)
        if (m->index[list] >= 0 && (m->store[list] < 0 || !(from[list] = reference_of(d, b, m, list)))) {
            d->error = 1;
            return;
        }
    for (int component = 0; component < PLANES && (from[0] || from[1]); component++)
        predict(d, b, m, from, component);
}
