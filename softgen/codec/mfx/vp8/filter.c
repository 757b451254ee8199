/* The loop filters of VP8 (15). */
#include <stdlib.h>

#include "vp8.h"

struct limits {
    int edge, inner, variance; /* of both sides of an edge together, of one side, of those that are left alone */
};

static int signed_clamp(int value)
{
    return clamp(value, -128, 127);
}

static uint8_t sample(int value)
{
    return (uint8_t)(signed_clamp(value) + 128);
}

static int is_below(const uint8_t *s, ptrdiff_t step, int limit)
{
    return abs(s[-step] - s[0]) * 2 + abs(s[-2 * step] - s[step]) / 2 <= limit;
}

static int is_smooth(const uint8_t *s, ptrdiff_t step, int limit)
{
    return abs(s[-4 * step] - s[-3 * step]) <= limit && abs(s[-3 * step] - s[-2 * step]) <= limit && abs(s[-2 * step] - s[-step]) <= limit
        && abs(s[3 * step] - s[2 * step]) <= limit && abs(s[2 * step] - s[step]) <= limit && abs(s[step] - s[0]) <= limit;
}

static int varies(const uint8_t *s, ptrdiff_t step, int limit)
{
    return abs(s[-2 * step] - s[-step]) > limit || abs(s[step] - s[0]) > limit;
}

/* The two samples at the edge; answers by how much the second one changed. */
static int common(uint8_t *s, ptrdiff_t step, int with_outer)
{
    int p1 = s[-2 * step] - 128, p0 = s[-step] - 128, q0 = s[0] - 128, q1 = s[step] - 128;
    int a = signed_clamp((with_outer ? signed_clamp(p1 - q1) : 0) + 3 * (q0 - p0));
    int up = signed_clamp(a + 4) >> 3, down = signed_clamp(a + 3) >> 3;
    s[0] = sample(q0 - up);
    s[-step] = sample(p0 + down);
    return up;
}

static void within_mb(uint8_t *s, ptrdiff_t step, const struct limits *l)
{
    if (!is_below(s, step, l->edge) || !is_smooth(s, step, l->inner))
        return;
    int high = varies(s, step, l->variance), a = (common(s, step, high) + 1) >> 1;
    if (high)
        return;
    s[step] = sample(s[step] - 128 - a);
    s[-2 * step] = sample(s[-2 * step] - 128 + a);
}

static void between_mbs(uint8_t *s, ptrdiff_t step, const struct limits *l)
{
    if (!is_below(s, step, l->edge) || !is_smooth(s, step, l->inner))
        return;
    if (varies(s, step, l->variance)) {
        common(s, step, 1);
        return;
    }
    int w = signed_clamp(signed_clamp(s[-2 * step] - s[step]) + 3 * (s[0] - s[-step]));
    for (int i = 0, weight = 27; i < 3; i++, weight -= 9) {
        int a = signed_clamp((weight * w + 63) >> 7);
        s[i * step] = sample(s[i * step] - 128 - a);
        s[-(i + 1) * step] = sample(s[-(i + 1) * step] - 128 + a);
    }
}

typedef void edge_filter(uint8_t *s, ptrdiff_t step, const struct limits *l);

static void simple(uint8_t *s, ptrdiff_t step, const struct limits *l)
{
    if (is_below(s, step, l->edge))
        common(s, step, 1);
}

static inline void edge(edge_filter *filter, uint8_t *s, ptrdiff_t along, ptrdiff_t step, int count, const struct limits *l)
{
    for (int i = 0; i < count; i++, s += along)
        filter(s, step, l);
}

static int level_of(const struct vp8_picture *p, const struct vp8_mb *mb)
{
    int level = p->levels[mb->segment];
    if (!p->deltas)
        return level;
    level += p->reference_delta[mb->reference];
    if (mb->reference == INTRA_FRAME)
        level += mb->mode == B_PRED ? p->mode_delta[0] : 0;
    else
        level += p->mode_delta[mb->mode == ZERO_MV ? 1 : mb->mode == SPLIT_MV ? 3 : 2];
    return clamp(level, 0, 63);
}

static int inner_limit(const struct vp8_picture *p, int level)
{
    int limit = level >> (p->sharpness > 4 ? 2 : p->sharpness > 0);
    if (p->sharpness && limit > 9 - (int)p->sharpness)
        limit = 9 - (int)p->sharpness;
    return limit < 1 ? 1 : limit;
}

static int variance_limit(const struct vp8_picture *p, int level)
{
    if (p->key_frame)
        return (level >= 15) + (level >= 40);
    return (level >= 15) + (level >= 20) + (level >= 40);
}

static void planes(struct vp8_picture *p, unsigned x, unsigned y, const struct limits *outer, const struct limits *inner, int is_whole)
{
    for (int i = 0; i < (p->simple_filter ? 1 : PLANES); i++) {
        const struct plane *plane = &p->picture->frame.plane[i];
        int size = i ? 8 : 16;
        ptrdiff_t stride = plane->stride;
        uint8_t *at = plane->samples + (size_t)y * (size_t)size * plane->stride + (size_t)x * (size_t)size;
        edge_filter *at_mb = p->simple_filter ? simple : between_mbs, *in_mb = p->simple_filter ? simple : within_mb;
        if (x)
            edge(at_mb, at, stride, 1, size, outer);
        for (int k = 4; !is_whole && k < size; k += 4)
            edge(in_mb, at + k, stride, 1, size, inner);
        if (y)
            edge(at_mb, at, 1, stride, size, outer);
        for (int k = 4; !is_whole && k < size; k += 4)
            edge(in_mb, at + k * stride, 1, stride, size, inner);
    }
}

void vp8_filter(struct vp8_picture *p)
{
    unsigned width = p->picture->width;
    for (unsigned y = 0; y < p->picture->height; y++)
        for (unsigned x = 0; x < width; x++) {
            const struct vp8_mb *mb = p->mbs + (size_t)(y + 1) * (width + 1) + x + 1;
            int level = level_of(p, mb), limit = inner_limit(p, level), variance = variance_limit(p, level);
            struct limits outer = {2 * (level + 2) + limit, limit, variance}, inner = {2 * level + limit, limit, variance};
            if (level)
                planes(p, x, y, &outer, &inner, mb->mode != B_PRED && mb->mode != SPLIT_MV && !mb->coded);
        }
}
