/* The deblocking filter (8.7), on a whole picture that has been decoded. */
#include <stdlib.h>
#include <string.h>

#include "avc.h"
#include "edge_lanes.h"

enum { NOT_FILTERED = 1, WITHIN_SLICES = 2, STRONG = 4 };

static const uint8_t alphas[52] = {0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  4,  4,  5,  6,  7,  8,  9,  10, 12, 13,
                                   15, 17, 20, 22, 25, 28, 32, 36, 40, 45, 50, 56, 63, 71, 80, 90, 101, 113, 127, 144, 162, 182, 203, 226, 255, 255};
static const uint8_t betas[52] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,  0,  0,  2,  2,  2,  3,  3,  3,  3,  4,  4,  4,
                                  6, 6, 7, 7, 8, 8, 9, 9, 10, 10, 11, 11, 12, 12, 13, 13, 14, 14, 15, 15, 16, 16, 17, 17, 18, 18};
static const int8_t limits[52][3] = { /* tC0 by strength less one */
    {0, 0, 0}, {0, 0, 0}, {0, 0, 0}, {0, 0, 0}, {0, 0, 0}, {0, 0, 0}, {0, 0, 0}, {0, 0, 0}, {0, 0, 0}, {0, 0, 0}, {0, 0, 0}, {0, 0, 0},
    {0, 0, 0}, {0, 0, 0}, {0, 0, 0}, {0, 0, 0}, {0, 0, 0}, {0, 0, 1}, {0, 0, 1}, {0, 0, 1}, {0, 0, 1}, {0, 1, 1}, {0, 1, 1}, {1, 1, 1},
    {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, {1, 1, 2}, {1, 1, 2}, {1, 1, 2}, {1, 1, 2}, {1, 2, 3}, {1, 2, 3}, {2, 2, 3}, {2, 2, 4}, {2, 3, 4},
    {2, 3, 4}, {3, 3, 5}, {3, 4, 6}, {3, 4, 6}, {4, 5, 7}, {4, 5, 8}, {4, 6, 9}, {5, 7, 10}, {6, 8, 11}, {6, 8, 13}, {7, 10, 14},
    {8, 11, 16}, {9, 12, 18}, {10, 13, 20}, {11, 15, 23}, {13, 17, 25},
};

/* An edge: where its first sample behind it is, how to go across and along it. */
struct edge {
    uint8_t *samples;
    ptrdiff_t across, along;
};

struct thresholds {
    int alpha, beta, index;
};

static struct thresholds thresholds_of(const struct avc_mb *mb, int qp)
{
    int index = clamp(qp + mb->filter_alpha, 0, 51);
    return (struct thresholds){alphas[index], betas[clamp(qp + mb->filter_beta, 0, 51)], index};
}

static inline int is_smooth(int p1, int p0, int q0, int q1, const struct thresholds *t)
{
    return abs(p0 - q0) < t->alpha && abs(p1 - p0) < t->beta && abs(q1 - q0) < t->beta;
}

static void strong_luma(uint8_t *s, ptrdiff_t n, const struct thresholds *t)
{
    int p3 = s[-4 * n], p2 = s[-3 * n], p1 = s[-2 * n], p0 = s[-n], q0 = s[0], q1 = s[n], q2 = s[2 * n], q3 = s[3 * n];
    int close = abs(p0 - q0) < (t->alpha >> 2) + 2;
    if (close && abs(p2 - p0) < t->beta) {
        s[-n] = (uint8_t)((p2 + 2 * p1 + 2 * p0 + 2 * q0 + q1 + 4) >> 3);
        s[-2 * n] = (uint8_t)((p2 + p1 + p0 + q0 + 2) >> 2);
        s[-3 * n] = (uint8_t)((2 * p3 + 3 * p2 + p1 + p0 + q0 + 4) >> 3);
    } else
        s[-n] = (uint8_t)((2 * p1 + p0 + q1 + 2) >> 2);
    if (close && abs(q2 - q0) < t->beta) {
        s[0] = (uint8_t)((p1 + 2 * p0 + 2 * q0 + 2 * q1 + q2 + 4) >> 3);
        s[n] = (uint8_t)((p0 + q0 + q1 + q2 + 2) >> 2);
        s[2 * n] = (uint8_t)((2 * q3 + 3 * q2 + q1 + q0 + p0 + 4) >> 3);
    } else
        s[0] = (uint8_t)((2 * q1 + q0 + p1 + 2) >> 2);
}

static void weak_luma(uint8_t *s, ptrdiff_t n, int limit, const struct thresholds *t)
{
    int p2 = s[-3 * n], p1 = s[-2 * n], p0 = s[-n], q0 = s[0], q1 = s[n], q2 = s[2 * n];
    int near_p = abs(p2 - p0) < t->beta, near_q = abs(q2 - q0) < t->beta, most = limit + near_p + near_q;
    int change = clamp((((q0 - p0) * 4) + (p1 - q1) + 4) >> 3, -most, most);
    if (near_p)
        s[-2 * n] = (uint8_t)(p1 + clamp((p2 + ((p0 + q0 + 1) >> 1) - 2 * p1) >> 1, -limit, limit));
    if (near_q)
        s[n] = (uint8_t)(q1 + clamp((q2 + ((p0 + q0 + 1) >> 1) - 2 * q1) >> 1, -limit, limit));
    s[-n] = clamp_sample(p0 + change);
    s[0] = clamp_sample(q0 - change);
}

static void luma_lines(struct edge e, int count, int strength, const struct thresholds *t)
{
    for (int i = 0; i < count; i++, e.samples += e.along) {
        uint8_t *s = e.samples;
        if (!is_smooth(s[-2 * e.across], s[-e.across], s[0], s[e.across], t))
            continue;
        if (strength == STRONG)
            strong_luma(s, e.across, t);
        else
            weak_luma(s, e.across, limits[t->index][strength - 1], t);
    }
}

static void chroma_lines(struct edge e, int count, int strength, const struct thresholds *t)
{
    for (int i = 0; i < count; i++, e.samples += e.along) {
        uint8_t *s = e.samples;
        ptrdiff_t n = e.across;
        int p1 = s[-2 * n], p0 = s[-n], q0 = s[0], q1 = s[n];
        if (!is_smooth(p1, p0, q0, q1, t))
            continue;
        if (strength == STRONG) {
            s[-n] = (uint8_t)((2 * p1 + p0 + q1 + 2) >> 2);
            s[0] = (uint8_t)((2 * q1 + q0 + p1 + 2) >> 2);
            continue;
        }
        int most = limits[t->index][strength - 1] + 1, change = clamp((((q0 - p0) * 4) + (p1 - q1) + 4) >> 3, -most, most);
        s[-n] = clamp_sample(p0 + change);
        s[0] = clamp_sample(q0 - change);
    }
}

/* -- strengths ------------------------------------------------------------------------------------------------------ */

static int has_coefficients(const struct avc_mb *mb, int block)
{
    const uint8_t *c = mb->count + (mb->transform8 ? block & ~5 : block);
    return mb->transform8 ? c[0] | c[1] | c[4] | c[5] : c[0];
}

static int far_apart(const int16_t *a, const int16_t *b, int limit)
{
    return abs(a[0] - b[0]) >= 4 || abs(a[1] - b[1]) >= limit;
}

/* Whether the motion of two blocks differs: other pictures, or vectors that are far apart. */
static int moves_apart(const struct avc_mb *p, int pb, const struct avc_mb *q, int qb, int limit)
{
    int pq = (pb >> 3) * 2 + ((pb & 3) >> 1), qq = (qb >> 3) * 2 + ((qb & 3) >> 1);
    int p0 = p->picture[0][pq], p1 = p->picture[1][pq], q0 = q->picture[0][qq], q1 = q->picture[1][qq];
    int same = p0 == q0 && p1 == q1, crossed = p0 == q1 && p1 == q0;
    if (!same && !crossed)
        return 1;
    int apart = far_apart(p->vector[0][pb], q->vector[0][qb], limit) || far_apart(p->vector[1][pb], q->vector[1][qb], limit);
    if (same && !apart)
        return 0;
    return !crossed || far_apart(p->vector[0][pb], q->vector[1][qb], limit) || far_apart(p->vector[1][pb], q->vector[0][qb], limit);
}

/* bS between blocks of macroblocks that are both intra or not (8.7.2.1), but for those of intra macroblocks. */
static int strength_of(const struct avc_mb *p, int pb, const struct avc_mb *q, int qb, int mixed)
{
    if (has_coefficients(p, pb) || has_coefficients(q, qb))
        return 2;
    return mixed || moves_apart(p, pb, q, qb, q->field ? 2 : 4);
}

/* -- edges ---------------------------------------------------------------------------------------------------------- */

struct filter {
    struct avc_picture *avc;
    struct avc_mb *mb;
    unsigned x, y;
    uint8_t *samples[PLANES];
    ptrdiff_t stride[PLANES];
    int as_one; /* the macroblock's blocks move alike */
    uint32_t coded; /* those of them that have coefficients, a bit each */
};

/* Chroma of some lines of an edge, between the macroblock and `p`. */
static void chroma_edge(const struct filter *f, const struct avc_mb *p, struct edge e[PLANES], int count, int strength)
{
    for (int plane = 1; plane < (f->avc->monochrome ? 1 : PLANES); plane++) {
        int qp = (chroma_qp(f->avc, p->qp, plane - 1) + chroma_qp(f->avc, f->mb->qp, plane - 1) + 1) >> 1;
        struct thresholds t = thresholds_of(f->mb, qp);
        chroma_lines(e[plane], count, strength, &t);
    }
}

static void luma_edge(const struct filter *f, const struct avc_mb *p, struct edge e, int count, int strength)
{
    struct thresholds t = thresholds_of(f->mb, (p->qp + f->mb->qp + 1) >> 1);
    luma_lines(e, count, strength, &t);
}

/* -- edges in lanes: whole edges, whose strengths hold for a block each ------------------------------------------------ */

/* tC0 for `count` lanes of each block. */
static void set_limits(int16_t *to, int count, const uint8_t strengths[4], const struct thresholds *t)
{
    for (int k = 0; k < 4; k++) {
        int strength = strengths[k], limit = !strength ? NO_LIMIT : strength == STRONG ? 0 : limits[t->index][strength - 1];
        for (int i = 0; i < count; i++)
            to[k * count + i] = (int16_t)limit;
    }
}

static void whole_luma(const struct filter *f, const struct avc_mb *p, int vertical, int i, const uint8_t strengths[4])
{
    struct thresholds t = thresholds_of(f->mb, (p->qp + f->mb->qp + 1) >> 1);
    ptrdiff_t across = vertical ? 1 : f->stride[0], along = vertical ? f->stride[0] : 1;
    uint8_t *first = f->samples[0] + 4 * i * across;
    int16_t limit[LANES];
    if (!t.alpha || !t.beta)
        return;
    struct lane_thresholds lane = {lanes_of(t.alpha), lanes_of(t.beta), lanes_of(0)};
    set_limits(limit, 4, strengths, &t);
    memcpy(&lane.limit, limit, sizeof limit);
    filter_lanes(&(struct edge_place){{first, first + 8 * along}, across, along}, &lane, strengths[0] == STRONG, 0);
}

/* Both planes of chroma at once. */
static void whole_chroma(const struct filter *f, const struct avc_mb *p, int vertical, int i, const uint8_t strengths[4])
{
    int16_t alpha[LANES], beta[LANES], limit[LANES];
    struct edge_place e = {{NULL, NULL}, vertical ? 1 : f->stride[1], vertical ? f->stride[1] : 1};
    struct lane_thresholds lane;
    int any = 0;
    for (int half = 0; half < 2; half++) {
        int qp = (chroma_qp(f->avc, p->qp, half) + chroma_qp(f->avc, f->mb->qp, half) + 1) >> 1;
        struct thresholds t = thresholds_of(f->mb, qp);
        for (int k = 0; k < 8; k++) {
            alpha[8 * half + k] = (int16_t)t.alpha;
            beta[8 * half + k] = (int16_t)t.beta;
        }
        set_limits(limit + 8 * half, 2, strengths, &t);
        e.half[half] = f->samples[1 + half] + 2 * i * e.across;
        any |= t.alpha && t.beta;
    }
    if (!any)
        return;
    memcpy(&lane.alpha, alpha, sizeof alpha);
    memcpy(&lane.beta, beta, sizeof beta);
    memcpy(&lane.limit, limit, sizeof limit);
    filter_lanes(&e, &lane, strengths[0] == STRONG, 1);
}

/* Whether all blocks of a macroblock move alike. */
static int moves_as_one(const struct avc_mb *mb)
{
    for (int list = 0; list < AVC_LISTS; list++)
        if (memcmp(mb->picture[list], mb->picture[list] + 1, 3) || memcmp(mb->vector[list], mb->vector[list] + 1, 15 * sizeof mb->vector[0][0]))
            return 0;
    return 1;
}

/* Strengths of the four blocks along an edge; whether one is not zero. */
static int strengths_of(const struct filter *f, const struct avc_mb *p, int vertical, int i, uint8_t strengths[4])
{
    const struct avc_mb *q = f->mb;
    int outer = i == 0, mixed = p->field != q->field, any = 0;
    if (is_intra(p) || is_intra(q)) {
        memset(strengths, outer && (vertical || !(p->field || q->field)) ? STRONG : 3, 4);
        return 1;
    }
    for (int k = 0; k < 4; k++) {
        int qb = vertical ? 4 * k + i : 4 * i + k, pb = outer ? (vertical ? qb + 3 : qb + 12) : vertical ? qb - 1 : qb - 4;
        if (!outer && f->as_one) /* then coefficients alone decide */
            strengths[k] = 2 * (f->coded >> qb & 1 || f->coded >> pb & 1);
        else
            strengths[k] = (uint8_t)strength_of(p, pb, q, qb, mixed);
        any |= strengths[k];
    }
    return any;
}

/* A vertical or horizontal edge at block `i` of the macroblock, between it and `p` (itself, or the one beside it). */
static void whole_edge(const struct filter *f, const struct avc_mb *p, int vertical, int i)
{
    uint8_t strengths[4];
    int luma = !(f->mb->transform8 && i & 1), chroma = !(i & 1) && !f->avc->monochrome;
    if (!(luma || chroma) || !strengths_of(f, p, vertical, i, strengths))
        return;
    if (luma)
        whole_luma(f, p, vertical, i, strengths);
    if (chroma)
        whole_chroma(f, p, vertical, i, strengths);
}

/* The left edge of a macroblock whose neighbours have fields where it has not, or the other way round: each row for itself. */
static void mixed_left(const struct filter *f, const struct avc_mb *pair)
{
    const struct avc_mb *q = f->mb;
    int bottom = f->y & 1;
    for (int i = 0; i < 16 + 8; i++) { /* rows of luma, then of chroma */
        int chroma = i >= 16, k = i - 16, row = !chroma ? i : q->field ? 2 * k : 4 * (k >> 1) + (k & 1);
        int line = q->field ? 2 * row + bottom : row + 16 * bottom; /* of the pair, as a frame has it */
        int other = pair->field ? line & 1 : line >> 4, block = (pair->field ? line >> 1 : line & 15) >> 2;
        const struct avc_mb *p = pair + (other ? f->avc->width : 0);
        int strength = is_intra(p) || is_intra(q) ? STRONG : strength_of(p, 4 * block + 3, q, 4 * (row >> 2), 1);
        struct edge e[PLANES];
        for (int plane = 0; plane < (f->avc->monochrome ? 1 : PLANES); plane++)
            e[plane] = (struct edge){f->samples[plane] + (plane ? k : row) * f->stride[plane], 1, f->stride[plane]};
        if (chroma)
            chroma_edge(f, p, e, 1, strength);
        else
            luma_edge(f, p, e[0], 1, strength);
    }
}

/* The top edge of a frame macroblock below a pair of fields: the rows of each parity with the field of that parity. */
static void fields_above(const struct filter *f, const struct avc_mb *pair)
{
    for (int parity = 0; parity < 2; parity++) {
        const struct avc_mb *p = pair + (parity ? f->avc->width : 0), *q = f->mb;
        for (int k = 0; k < 4; k++) {
            int strength = is_intra(p) || is_intra(q) ? 3 : strength_of(p, 12 + k, q, k, 1);
            struct edge e[PLANES];
            for (int plane = 0; plane < (f->avc->monochrome ? 1 : PLANES); plane++) {
                int size = plane ? 2 : 4;
                e[plane] = (struct edge){f->samples[plane] + parity * f->stride[plane] + k * size, 2 * f->stride[plane], 1};
            }
            luma_edge(f, p, e[0], 4, strength);
            chroma_edge(f, p, e, 2, strength);
        }
    }
}

static const struct avc_mb *beside(const struct filter *f, int x, int y)
{
    if (x < 0 || y < 0)
        return NULL;
    const struct avc_mb *mb = &f->avc->mbs[(size_t)y * f->avc->width + (size_t)x];
    if (mb->kind == NOT_DECODED || (f->mb->filter == WITHIN_SLICES && mb->slice != f->mb->slice))
        return NULL;
    return mb;
}

static void left_edge(const struct filter *f)
{
    int y = (int)f->y;
    const struct avc_mb *p = beside(f, (int)f->x - 1, f->avc->mbaff ? y & ~1 : y);
    if (!p)
        return;
    if (f->avc->mbaff && p->field != f->mb->field)
        mixed_left(f, p);
    else
        whole_edge(f, p + (f->avc->mbaff && y & 1 ? f->avc->width : 0), 1, 0);
}

static void top_edge(const struct filter *f)
{
    int x = (int)f->x, y = (int)f->y;
    const struct avc_mb *p;
    if (!f->avc->mbaff || (y & 1 && !f->mb->field)) {
        if ((p = beside(f, x, y - 1)))
            whole_edge(f, p, 0, 0);
        return;
    }
    if (!(p = beside(f, x, (y & ~1) - 2)))
        return;
    if (!f->mb->field && p->field)
        fields_above(f, p);
    else /* of a field of the pair above, that of the same parity; of a frame, its bottom macroblock */
        whole_edge(f, p + (p->field && !(y & 1) ? 0 : f->avc->width), 0, 0);
}

static void filter_mb(struct filter *f)
{
    unsigned split = f->avc->mbaff && f->mb->field, top = split ? f->y & ~1u : f->y;
    for (int i = 0; i < (f->avc->monochrome ? 1 : PLANES); i++) {
        const struct plane *p = &f->avc->picture->frame.plane[i];
        size_t size = i ? 8 : 16;
        f->stride[i] = (ptrdiff_t)p->stride << split;
        f->samples[i] = p->samples + (top * size + (split ? f->y & 1 : 0)) * p->stride + f->x * size;
    }
    f->coded = 0;
    for (int i = 0; i < 16; i++)
        f->coded |= (uint32_t)(has_coefficients(f->mb, i) != 0) << i;
    f->as_one = moves_as_one(f->mb);
    int smooth = !is_intra(f->mb) && f->as_one && !f->coded; /* no edge within it is filtered */
    left_edge(f);
    for (int i = 1; i < 4 && !smooth; i++)
        whole_edge(f, f->mb, 1, i);
    top_edge(f);
    for (int i = 1; i < 4 && !smooth; i++)
        whole_edge(f, f->mb, 0, i);
}

void avc_filter(struct avc_picture *avc)
{
    struct filter f = {.avc = avc};
    unsigned step = 1 + avc->mbaff;
    for (unsigned row = 0; row < avc->height; row += step)
        for (unsigned x = 0; x < avc->width; x++)
            for (unsigned i = 0; i < step; i++) {
                f.x = x;
                f.y = row + i;
                f.mb = &avc->mbs[(size_t)f.y * avc->width + x];
                if (f.mb->kind != NOT_DECODED && f.mb->filter != NOT_FILTERED)
                    filter_mb(&f);
            }
}
