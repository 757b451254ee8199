/* The deblocking of an edge in 16 lanes (8.7.2.3, 8.7.2.4): a line of luma, or both planes of chroma. */
#ifndef SOFTGEN_CODEC_AVC_EDGE_LANES_H
#define SOFTGEN_CODEC_AVC_EDGE_LANES_H

#include "../../sample_lanes.h"

/* For each lane of an edge; NO_LIMIT: its samples stay as they are. */
struct lane_thresholds {
    lanes alpha, beta, limit;
};

enum { NO_LIMIT = -1 };

static INLINE lanes is_smooth_edge(const lanes line[EDGE_LINES], const struct lane_thresholds *t)
{
    return (lanes_distance(line[3], line[4]) < t->alpha) & (lanes_distance(line[2], line[3]) < t->beta)
         & (lanes_distance(line[5], line[4]) < t->beta) & (t->limit >= 0);
}

/* By how much the samples at the edge change, at most by `most`. */
static INLINE lanes weak_change(const lanes line[EDGE_LINES], lanes most)
{
    return lanes_clamp(((line[4] - line[3]) * 4 + (line[2] - line[5]) + 4) >> 3, -most, most);
}

/* The change of the second sample from the edge, of the side whose third one is `third`. */
static INLINE lanes weak_second(lanes third, lanes second, lanes middle, lanes limit)
{
    return lanes_clamp((third + middle - 2 * second) >> 1, -limit, limit);
}

static INLINE void weak_luma_edge(lanes line[EDGE_LINES], const struct lane_thresholds *t, lanes smooth)
{
    lanes near_p = lanes_distance(line[1], line[3]) < t->beta, near_q = lanes_distance(line[6], line[4]) < t->beta;
    lanes change = weak_change(line, t->limit - near_p - near_q) & smooth, middle = (line[3] + line[4] + 1) >> 1;
    line[2] += weak_second(line[1], line[2], middle, t->limit) & near_p & smooth;
    line[5] += weak_second(line[6], line[5], middle, t->limit) & near_q & smooth;
    line[3] += change;
    line[4] -= change;
}

/* One side of a strong edge: its four samples from the edge on, and two of the other side. */
static INLINE void strong_side(const lanes own[4], lanes first, lanes second, lanes full, lanes out[3])
{
    out[0] = lanes_select(full, (own[2] + 2 * own[1] + 2 * own[0] + 2 * first + second + 4) >> 3, (2 * own[1] + own[0] + second + 2) >> 2);
    out[1] = lanes_select(full, (own[2] + own[1] + own[0] + first + 2) >> 2, own[1]);
    out[2] = lanes_select(full, (2 * own[3] + 3 * own[2] + own[1] + own[0] + first + 4) >> 3, own[2]);
}

static INLINE void strong_luma_edge(lanes line[EDGE_LINES], const struct lane_thresholds *t, lanes smooth)
{
    lanes close = lanes_distance(line[3], line[4]) < (t->alpha >> 2) + 2;
    lanes p[4] = {line[3], line[2], line[1], line[0]}, q[4] = {line[4], line[5], line[6], line[7]}, to_p[3], to_q[3];
    strong_side(p, q[0], q[1], close & (lanes_distance(p[2], p[0]) < t->beta), to_p);
    strong_side(q, p[0], p[1], close & (lanes_distance(q[2], q[0]) < t->beta), to_q);
    for (int i = 0; i < 3; i++) {
        line[3 - i] = lanes_select(smooth, to_p[i], p[i]);
        line[4 + i] = lanes_select(smooth, to_q[i], q[i]);
    }
}

static INLINE void chroma_of_edge(lanes line[EDGE_LINES], const struct lane_thresholds *t, lanes smooth, int strong)
{
    lanes p1 = line[2], p0 = line[3], q0 = line[4], q1 = line[5], change = weak_change(line, t->limit + 1) & smooth;
    line[3] = strong ? lanes_select(smooth, (2 * p1 + p0 + q1 + 2) >> 2, p0) : p0 + change;
    line[4] = strong ? lanes_select(smooth, (2 * q1 + q0 + p1 + 2) >> 2, q0) : q0 - change;
}

VECTORIZED static void filter_lanes(const struct edge_place *e, const struct lane_thresholds *t, int strong, int chroma)
{
    lane_bytes bytes[EDGE_LINES];
    lanes line[EDGE_LINES];
    int first = chroma ? 3 : strong ? 1 : 2;
    edge_load(e, bytes);
    for (int i = 0; i < EDGE_LINES; i++)
        line[i] = lanes_widen(bytes[i]);
    lanes smooth = is_smooth_edge(line, t);
    if (!lanes_any(smooth))
        return;
    if (chroma)
        chroma_of_edge(line, t, smooth, strong);
    else if (strong)
        strong_luma_edge(line, t, smooth);
    else
        weak_luma_edge(line, t, smooth);
    for (int i = 1; i < EDGE_LINES - 1; i++)
        bytes[i] = lanes_saturated(line[i]);
    edge_store(e, bytes, first, EDGE_LINES - first);
}

#endif
