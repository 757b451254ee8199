/* The deblocking filter (8.7.2): edges between units on a grid of 8 samples, all upright ones of the picture before all level ones. */
#include <stdlib.h>

#include "hevc.h"

/* Table 8-12: beta' and tC' by Q. */
static const uint8_t beta_table[52] = {
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 20, 22, 24, 26, 28, 30, 32, 34, 36, 38, 40,
    42, 44, 46, 48, 50, 52, 54, 56, 58, 60, 62, 64,
};
static const uint8_t tc_table[54] = {
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 5, 5, 6, 6, 7, 8, 9, 10,
    11, 13, 14, 16, 18, 20, 22, 24,
};

/* Four luma samples of an edge: units on both sides, where samples lie. */
struct edge {
    const struct hevc_cu *p, *q;
    const struct hevc_ctb *ctb; /* that the lower or right side is in */
    int strength, x, y, upright;
};

/* -- strength (8.7.2.4) --------------------------------------------------------------------------------------------- */

static int far(const int16_t *a, const int16_t *b)
{
    return abs(a[0] - b[0]) >= 4 || abs(a[1] - b[1]) >= 4;
}

static int differs(const struct hevc_motion *a, const struct hevc_motion *b)
{
    int first = a->index[0] < 0, other = b->index[0] < 0, both = !first && a->index[1] >= 0;
    if (both != (!other && b->index[1] >= 0))
        return 1;
    if (!both)
        return a->store[first] != b->store[other] || far(a->vector[first], b->vector[other]);
    int straight = a->store[0] == b->store[0] && a->store[1] == b->store[1], crossed = a->store[0] == b->store[1] && a->store[1] == b->store[0];
    return !((straight && !far(a->vector[0], b->vector[0]) && !far(a->vector[1], b->vector[1]))
             || (crossed && !far(a->vector[0], b->vector[1]) && !far(a->vector[1], b->vector[0])));
}

/* Whether filters may cross the edge between two coding tree blocks; `from` has the lower or right side. */
static int crosses(const struct hevc_picture *p, const struct hevc_ctb *from, const struct hevc_ctb *to)
{
    if (from == to)
        return 1;
    return (from->across || from->slice == to->slice) && (p->across_tiles || p->tiles[from - p->ctbs] == p->tiles[to - p->ctbs]);
}

/* The edge at the left of, or above, the 4x4 block at (x, y); whether it is filtered. */
static int find_edge(const struct hevc_picture *p, int x, int y, int upright, struct edge *e)
{
    size_t at = hevc_block_at(p, x, y), before = upright ? at - 1 : at - p->blocks_across;
    int marks = p->marks[at] & (upright ? TRANSFORM_LEFT | MOTION_LEFT : TRANSFORM_TOP | MOTION_TOP);
    if (!marks)
        return 0;
    int px = x - upright, py = y - !upright;
    e->ctb = hevc_ctb_at(p, x, y);
    if (e->ctb->unfiltered || !crosses(p, e->ctb, hevc_ctb_at(p, px, py)))
        return 0;
    e->p = hevc_cu_at(p, px, py);
    e->q = hevc_cu_at(p, x, y);
    e->x = x;
    e->y = y;
    e->upright = upright;
    if (e->p->kind != CU_INTER || e->q->kind != CU_INTER)
        e->strength = 2;
    else if (marks & (TRANSFORM_LEFT | TRANSFORM_TOP) && (p->marks[at] | p->marks[before]) & HAS_COEFFICIENTS)
        e->strength = 1;
    else
        e->strength = differs(&p->motions[before], &p->motions[at]);
    return e->strength;
}

/* -- luma (8.7.2.5.3, 8.7.2.5.7) ------------------------------------------------------------------------------------ */

static int bend(const uint16_t *s, ptrdiff_t step)
{
    return abs(s[2 * step] - 2 * s[step] + s[0]);
}

/* Whether a line is smooth enough for the strong filter; `s` is its first sample behind the edge. */
static int smooth(const uint16_t *s, ptrdiff_t step, int bends, int beta, int tc)
{
    return 2 * bends < beta >> 2 && abs(s[-4 * step] - s[-step]) + abs(s[0] - s[3 * step]) < beta >> 3
           && abs(s[-step] - s[0]) < (5 * tc + 1) >> 1;
}

static void strong(uint16_t *s, ptrdiff_t step, int tc, int keep_p, int keep_q)
{
    int p3 = s[-4 * step], p2 = s[-3 * step], p1 = s[-2 * step], p0 = s[-step], q0 = s[0], q1 = s[step], q2 = s[2 * step], q3 = s[3 * step];
    int limit = 2 * tc;
    if (!keep_p) {
        s[-step] = (uint16_t)clamp((p2 + 2 * p1 + 2 * p0 + 2 * q0 + q1 + 4) >> 3, p0 - limit, p0 + limit);
        s[-2 * step] = (uint16_t)clamp((p2 + p1 + p0 + q0 + 2) >> 2, p1 - limit, p1 + limit);
        s[-3 * step] = (uint16_t)clamp((2 * p3 + 3 * p2 + p1 + p0 + q0 + 4) >> 3, p2 - limit, p2 + limit);
    }
    if (!keep_q) {
        s[0] = (uint16_t)clamp((p1 + 2 * p0 + 2 * q0 + 2 * q1 + q2 + 4) >> 3, q0 - limit, q0 + limit);
        s[step] = (uint16_t)clamp((p0 + q0 + q1 + q2 + 2) >> 2, q1 - limit, q1 + limit);
        s[2 * step] = (uint16_t)clamp((p0 + q0 + q1 + 3 * q2 + 2 * q3 + 4) >> 3, q2 - limit, q2 + limit);
    }
}

/* `wide`: bits of sides, p first, of which the second sample changes too. */
static void weak(uint16_t *s, ptrdiff_t step, int tc, int wide, int keep_p, int keep_q, int depth)
{
    int p2 = s[-3 * step], p1 = s[-2 * step], p0 = s[-step], q0 = s[0], q1 = s[step], q2 = s[2 * step];
    int delta = (9 * (q0 - p0) - 3 * (q1 - p1) + 8) >> 4, half = tc >> 1;
    if (abs(delta) >= 10 * tc)
        return;
    delta = clamp(delta, -tc, tc);
    if (!keep_p) {
        s[-step] = (uint16_t)hevc_clip(p0 + delta, depth);
        if (wide & 1)
            s[-2 * step] = (uint16_t)hevc_clip(p1 + clamp((((p2 + p0 + 1) >> 1) - p1 + delta) >> 1, -half, half), depth);
    }
    if (!keep_q) {
        s[0] = (uint16_t)hevc_clip(q0 - delta, depth);
        if (wide & 2)
            s[step] = (uint16_t)hevc_clip(q1 + clamp((((q2 + q0 + 1) >> 1) - q1 - delta) >> 1, -half, half), depth);
    }
}

static void filter_luma(const struct hevc_picture *p, const struct edge *e)
{
    const struct plane *plane = &p->picture->frame.plane[0];
    ptrdiff_t step = e->upright ? 1 : plane->stride, next = e->upright ? plane->stride : 1;
    uint16_t *s = hevc_samples(plane, e->x, e->y), *last = s + 3 * next;
    int depth = (int)p->depth_luma, qp = (e->p->qp + e->q->qp + 1) >> 1;
    int beta = beta_table[clamp(qp + e->ctb->beta, 0, 51)] << (depth - 8);
    int tc = tc_table[clamp(qp + 2 * (e->strength - 1) + e->ctb->tc, 0, 53)] << (depth - 8);
    int p_0 = bend(s - 3 * step, step), q_0 = bend(s, step), p_3 = bend(last - 3 * step, step), q_3 = bend(last, step);
    if (p_0 + q_0 + p_3 + q_3 >= beta)
        return;
    int limit = (beta + (beta >> 1)) >> 3, wide = (p_0 + p_3 < limit) | (q_0 + q_3 < limit) << 1;
    int is_strong = smooth(s, step, p_0 + q_0, beta, tc) && smooth(last, step, p_3 + q_3, beta, tc);
    for (int i = 0; i < 4; i++, s += next)
        if (is_strong)
            strong(s, step, tc, e->p->exact, e->q->exact);
        else
            weak(s, step, tc, wide, e->p->exact, e->q->exact, depth);
}

/* -- chroma (8.7.2.5.5, 8.7.2.5.8) ---------------------------------------------------------------------------------- */

static void filter_chroma(const struct hevc_picture *p, const struct edge *e, int component)
{
    const struct plane *plane = &p->picture->frame.plane[component];
    ptrdiff_t step = e->upright ? 1 : plane->stride, next = e->upright ? plane->stride : 1;
    uint16_t *s = hevc_samples(plane, e->x >> 1, e->y >> 1);
    int depth = (int)p->depth_chroma, index = ((e->p->qp + e->q->qp + 1) >> 1) + p->chroma_offset[component - 1];
    int qp = index < 0 ? index : index > 57 ? index - 6 : hevc_chroma_qp[index];
    int tc = tc_table[clamp(qp + 2 + e->ctb->tc, 0, 53)] << (depth - 8);
    for (int i = 0; i < 2; i++, s += next) {
        int p1 = s[-2 * step], p0 = s[-step], q0 = s[0], q1 = s[step];
        int delta = clamp((((q0 - p0) * 4) + p1 - q1 + 4) >> 3, -tc, tc);
        if (!e->p->exact)
            s[-step] = (uint16_t)hevc_clip(p0 + delta, depth);
        if (!e->q->exact)
            s[0] = (uint16_t)hevc_clip(q0 - delta, depth);
    }
}

static void filter_edge(const struct hevc_picture *p, int x, int y, int upright)
{
    struct edge e;
    if (!find_edge(p, x, y, upright, &e))
        return;
    filter_luma(p, &e);
    if (e.strength == 2 && !((upright ? x : y) & 15))
        for (int component = 1; component < PLANES; component++)
            filter_chroma(p, &e, component);
}

void hevc_deblock(struct hevc_picture *p)
{
    for (int y = 0; y < (int)p->height; y += 4)
        for (int x = 8; x < (int)p->width; x += 8)
            filter_edge(p, x, y, 1);
    for (int y = 8; y < (int)p->height; y += 8)
        for (int x = 0; x < (int)p->width; x += 4)
            filter_edge(p, x, y, 0);
}
