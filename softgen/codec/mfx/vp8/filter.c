/* The loop filters of VP8 (15). */
#include "vp8.h"
#include "../../sample_lanes.h"

enum { BEFORE_2, BEFORE_1, BEFORE_0, BEHIND_0, BEHIND_1, BEHIND_2, FIRST = EDGE_SIDE - 3 }; /* lines that a filter may change */

struct limits {
    int edge, inner, variance; /* of both sides of an edge together, of one side, of those that are left alone */
};

static INLINE lanes signed_clamp(lanes value)
{
    return lanes_clamp(value, lanes_of(-128), lanes_of(127));
}

static INLINE lanes is_below(const lanes line[EDGE_LINES], int limit)
{
    return lanes_distance(line[3], line[4]) * 2 + (lanes_distance(line[2], line[5]) >> 1) <= lanes_of(limit);
}

static INLINE lanes is_smooth(const lanes line[EDGE_LINES], int limit)
{
    lanes most = lanes_of(0);
    for (int i = 0; i < EDGE_LINES - 1; i++)
        if (i != EDGE_SIDE - 1)
            most = lanes_greater(most, lanes_distance(line[i], line[i + 1]));
    return most <= lanes_of(limit);
}

static INLINE lanes varies(const lanes line[EDGE_LINES], int limit)
{
    return lanes_greater(lanes_distance(line[2], line[3]), lanes_distance(line[4], line[5])) > lanes_of(limit);
}

/* What the two samples at the edge change by: `up` is taken from the second and `down` added to the first. */
static INLINE void common(const lanes line[EDGE_LINES], lanes with_outer, lanes *up, lanes *down)
{
    lanes a = signed_clamp((signed_clamp(line[2] - line[5]) & with_outer) + 3 * (line[4] - line[3]));
    *up = signed_clamp(a + 4) >> 3;
    *down = signed_clamp(a + 3) >> 3;
}

/* Lines `first` to the one before `end` changed and written; `by` begins with line FIRST. */
static INLINE void change(const struct edge_place *e, lane_bytes bytes[EDGE_LINES], const lanes line[EDGE_LINES], const lanes *by,
                          int first, int end)
{
    for (int i = first; i < end; i++)
        bytes[i] = lanes_saturated(line[i] + by[i - FIRST]);
    edge_store(e, bytes, first, end);
}

static INLINE int begin(const struct edge_place *e, const struct limits *l, lane_bytes bytes[EDGE_LINES], lanes line[EDGE_LINES],
                        lanes *filtered)
{
    edge_load(e, bytes);
    for (int i = 0; i < EDGE_LINES; i++)
        line[i] = lanes_widen(bytes[i]);
    *filtered = is_below(line, l->edge) & is_smooth(line, l->inner);
    return lanes_any(*filtered);
}

static INLINE void within_mb(const struct edge_place *e, const struct limits *l)
{
    lane_bytes bytes[EDGE_LINES];
    lanes line[EDGE_LINES], filtered, up, down;
    if (!begin(e, l, bytes, line, &filtered))
        return;
    lanes high = varies(line, l->variance);
    common(line, high, &up, &down);
    lanes outer = (up + 1) >> 1 & ~high & filtered;
    lanes by[] = {lanes_of(0), outer, down & filtered, -(up & filtered), -outer};
    change(e, bytes, line, by, FIRST + BEFORE_1, FIRST + BEHIND_2);
}

static INLINE void between_mbs(const struct edge_place *e, const struct limits *l)
{
    lane_bytes bytes[EDGE_LINES];
    lanes line[EDGE_LINES], filtered, up, down, by[6];
    if (!begin(e, l, bytes, line, &filtered))
        return;
    lanes high = varies(line, l->variance), w = signed_clamp(signed_clamp(line[2] - line[5]) + 3 * (line[4] - line[3])) & ~high;
    common(line, high, &up, &down);
    for (int i = 0, weight = 27; i < 3; i++, weight -= 9) {
        lanes a = signed_clamp((w * (int16_t)weight + 63) >> 7);
        by[BEHIND_0 + i] = -(i ? a : lanes_select(high, up, a)) & filtered;
        by[BEFORE_0 - i] = (i ? a : lanes_select(high, down, a)) & filtered;
    }
    change(e, bytes, line, by, FIRST, EDGE_LINES - FIRST);
}

static INLINE void simple(const struct edge_place *e, const struct limits *l)
{
    lane_bytes bytes[EDGE_LINES];
    lanes line[EDGE_LINES], up, down;
    edge_load(e, bytes);
    for (int i = 0; i < EDGE_LINES; i++)
        line[i] = lanes_widen(bytes[i]);
    lanes filtered = is_below(line, l->edge);
    if (!lanes_any(filtered))
        return;
    common(line, ~lanes_of(0), &up, &down);
    lanes by[] = {lanes_of(0), lanes_of(0), down & filtered, -(up & filtered)};
    change(e, bytes, line, by, FIRST + BEFORE_0, FIRST + BEHIND_1);
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

/* An edge at column or row `at` of a macroblock: of luma, or of both planes of chroma at once. */
static INLINE struct edge_place place_of(const struct frame *f, unsigned x, unsigned y, int chroma, int vertical, int at)
{
    const struct plane *plane = &f->plane[chroma];
    ptrdiff_t stride = plane->stride;
    size_t size = chroma ? 8 : 16, first = (size_t)y * size * plane->stride + (size_t)x * size + (size_t)(at * (vertical ? 1 : stride));
    struct edge_place e = {{plane->samples + first, f->plane[2].samples + first}, vertical ? 1 : stride, vertical ? stride : 1};
    if (!chroma)
        e.half[1] = e.half[0] + 8 * e.along;
    return e;
}

static INLINE void edges(const struct vp8_picture *p, unsigned x, unsigned y, int chroma, int vertical, const struct limits *outer,
                         const struct limits *inner)
{
    struct edge_place e = place_of(&p->picture->frame, x, y, chroma, vertical, 0);
    if (vertical ? x : y)
        between_mbs(&e, outer);
    for (int at = 4; inner && at < (chroma ? 8 : 16); at += 4) {
        e = place_of(&p->picture->frame, x, y, chroma, vertical, at);
        within_mb(&e, inner);
    }
}

/* `inner` null: edges within the macroblock are left as they are. */
VECTORIZED static void filter_mb(const struct vp8_picture *p, unsigned x, unsigned y, const struct limits *outer, const struct limits *inner)
{
    edges(p, x, y, 0, 1, outer, inner);
    edges(p, x, y, 0, 0, outer, inner);
    edges(p, x, y, 1, 1, outer, inner);
    edges(p, x, y, 1, 0, outer, inner);
}

/* The simple filter leaves chroma as it is. */
VECTORIZED static void filter_simply(const struct vp8_picture *p, unsigned x, unsigned y, const struct limits *outer, const struct limits *inner)
{
    for (int vertical = 1; vertical >= 0; vertical--)
        for (int at = 0; at < (inner ? 16 : 4); at += 4) {
            struct edge_place e = place_of(&p->picture->frame, x, y, 0, vertical, at);
            if (at || (vertical ? x : y))
                simple(&e, at ? inner : outer);
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
            int is_whole = mb->mode != B_PRED && mb->mode != SPLIT_MV && !mb->coded;
            if (level)
                (p->simple_filter ? filter_simply : filter_mb)(p, x, y, &outer, is_whole ? NULL : &inner);
        }
}
