/* Points of a patch's domain: an outer ring by the outer factors, rings of a regular grid inside by the inner ones. */
#include "tessellator_domain.h"

#define HALF (TESS_ONE / 2)
#define THIRD 0x5555u /* of 1: u and v in the middle of a triangle */
#define TWO_THIRDS 0xAAAAu

/* -- points of a line ---------------------------------------------------------------------------------------------------------------- */

static uint32_t half(uint32_t f)
{
    return (f + 1) >> 1;
}

static uint32_t ceiling(uint32_t f)
{
    return (f + TESS_ONE - 1) / TESS_ONE;
}

static uint32_t reciprocal(uint32_t segments)
{
    return segments ? (TESS_ONE + segments / 2) / segments : 0;
}

static uint32_t without_highest_bit(uint32_t n)
{
    return n ? n & ~(1u << (31 - __builtin_clz(n))) : 0;
}

uint32_t points_of(uint32_t f, int odd)
{
    return odd ? 2 * ceiling(HALF + half(f)) : 2 * ceiling(half(f)) + 1;
}

static struct axis axis_of(uint32_t f, int odd)
{
    uint32_t h = half(f);
    h += odd || h == HALF ? HALF : 0;
    uint32_t low = h / TESS_ONE, high = ceiling(h);
    struct axis a = {.points = points_of(f, odd), .half_points = high, .fraction = h - low * TESS_ONE, .odd = odd,
                     .below = reciprocal(2 * low - (uint32_t)odd), .above = reciprocal(2 * high - (uint32_t)odd)};
    if (low == high)
        a.split = high + 1;
    else if (odd)
        a.split = low == 1 ? 0 : 2 * without_highest_bit(low - 1) + 1;
    else
        a.split = 2 * without_highest_bit(low) + 1;
    return a;
}

struct axis inner_axis(const struct tess_factors *f, int number)
{
    int odd = f->odd >> (TESS_INNER + number) & 1;
    struct axis a = axis_of(f->fixed[TESS_INNER + number], odd);
    uint32_t least = odd ? 4 : 3;
    a.points = a.points > least ? a.points : least;
    return a;
}

struct axis outer_axis(const struct tess_factors *f, int number)
{
    return axis_of(f->fixed[number], f->odd >> number & 1);
}

/* Where a point is. */
uint32_t place(const struct axis *a, uint32_t point)
{
    int mirrored = point >= a->half_points;
    if (mirrored)
        point = 2 * a->half_points - point - (uint32_t)a->odd;
    if (point == a->half_points)
        return HALF;
    uint32_t low = (point - (point > a->split)) * a->below, high = point * a->above;
    uint32_t found = (low * (TESS_ONE - a->fraction) + high * a->fraction + HALF) >> 16;
    return mirrored ? TESS_ONE - found : found;
}

/* -- points of a domain -------------------------------------------------------------------------------------------------------------- */

void add_point(struct tess_result *r, uint32_t u, uint32_t v)
{
    float *point = r->points[r->point_count++];
    point[0] = (float)u / TESS_ONE;
    point[1] = (float)v / TESS_ONE;
}

/* A ring's edges go from u = 0, v = 1 down to v = 0, along it to u = 1, up to v = 1, and back; each without its last point. */
static void quad_edge(struct tess_result *r, int edge, const struct axis *along, uint32_t ring, uint32_t across)
{
    for (uint32_t p = ring; p + 1 < along->points - ring; p++) {
        uint32_t at = place(along, edge == 1 || edge == 2 ? p : along->points - 1 - p);
        if (edge & 1)
            add_point(r, at, across);
        else
            add_point(r, across, at);
    }
}

static uint32_t rings_of(uint32_t points)
{
    return points >> 1;
}

void quad_points(const struct tess_factors *f, const struct axis *inner, struct tess_result *r)
{
    uint32_t nu = inner[AXIS_U].points, nv = inner[AXIS_V].points, rings = rings_of(nu < nv ? nu : nv);
    for (int edge = 0; edge < 4; edge++) {
        struct axis outer = outer_axis(f, edge);
        quad_edge(r, edge, &outer, 0, edge < 2 ? 0 : TESS_ONE);
    }
    for (uint32_t ring = 1; ring < rings; ring++)
        for (int edge = 0; edge < 4; edge++) {
            const struct axis *along = &inner[edge & 1 ? AXIS_U : AXIS_V], *across = &inner[edge & 1 ? AXIS_V : AXIS_U];
            quad_edge(r, edge, along, ring, place(across, edge < 2 ? ring : across->points - 1 - ring));
        }
    if (nu > nv && !inner[AXIS_V].odd)
        for (uint32_t p = rings; p < nu - rings; p++)
            add_point(r, place(&inner[AXIS_U], p), HALF);
    else if (nv >= nu && !inner[AXIS_U].odd)
        for (uint32_t p = nv - rings; p-- > rings;)
            add_point(r, HALF, place(&inner[AXIS_V], p));
}

/* The edges u = 0 from v = 1 down, v = 0 from u = 0 up, w = 0 from u = 1 down; each without its last point. */
static void triangle_edge(struct tess_result *r, int edge, const struct axis *along, uint32_t ring)
{
    uint32_t across = (place(along, ring) * TWO_THIRDS + HALF) >> 16;
    across = ring ? across : 0;
    for (uint32_t p = ring; p + 1 < along->points - ring; p++) {
        uint32_t at = place(along, edge == 1 ? p : along->points - 1 - p) - (across + 1) / 2;
        switch (edge) {
        case 0: add_point(r, across, at); break;
        case 1: add_point(r, at, across); break;
        default: add_point(r, at, TESS_ONE - at - across);
        }
    }
}

void triangle_points(const struct tess_factors *f, const struct axis *inner, struct tess_result *r)
{
    for (int edge = 0; edge < 3; edge++) {
        struct axis outer = outer_axis(f, edge);
        triangle_edge(r, edge, &outer, 0);
    }
    for (uint32_t ring = 1; ring < rings_of(inner->points); ring++)
        for (int edge = 0; edge < 3; edge++)
            triangle_edge(r, edge, inner, ring);
    if (!inner->odd)
        add_point(r, THIRD, THIRD);
}
