/* Lines and smooth points: which of the pixels within their edges they cover, and how much of each (rasterizer.py makes the plan). */
#include "../pixels/pixels.h"

#include <math.h>
#include <stdlib.h>

enum { PIXEL = 256, HALF = PIXEL / 2, STIPPLE_BITS = 16 };

/* -- one-pixel lines ----------------------------------------------------------------------------------------------------------------- */

/* A line relative to the sample of a pixel, turned by 45 degrees: u = x + y, v = x - y. The pixel's diamond is the square |u|, |v| < 1/2;
 * of its boundary, the rule says what is inside. */
struct turned_line {
    int64_t u0, v0, du, dv;
    int right_corner, left_corner, bottom_left_edge, bottom_right_edge; /* the bottom corner always is */
};

static struct turned_line turn(const struct setup_record *r, int legacy, int64_t x, int64_t y)
{
    int64_t x0 = r->line[0] - x * PIXEL, y0 = r->line[1] - y * PIXEL, dx = (int64_t)r->line[2] - r->line[0];
    int64_t dy = (int64_t)r->line[3] - r->line[1];
    int plus_one = dx == -dy, minus_one = dx == dy; /* slope: y points down here */
    struct turned_line l = {x0 + y0, x0 - y0, dx + dy, dx - dy, 0, 0, 1, 1};
    if (legacy) { /* G45 5411-5470 */
        l.right_corner = !plus_one, l.left_corner = plus_one;
        l.bottom_left_edge = plus_one, l.bottom_right_edge = minus_one;
    } else { /* G45 5472-5512 */
        l.right_corner = llabs(dy) > llabs(dx);
    }
    return l;
}

static int is_inside(const struct turned_line *l, int64_t u, int64_t v)
{
    if (llabs(u) < HALF && llabs(v) < HALF)
        return 1;
    if (u == HALF && (v == -HALF || v == HALF))
        return v < 0 || l->right_corner;
    if (u == -HALF && v == -HALF)
        return l->left_corner;
    return (v == -HALF && llabs(u) < HALF && l->bottom_left_edge) || (u == HALF && llabs(v) < HALF && l->bottom_right_edge);
}

/* Narrows t, from low / low_by to high / high_by and both of these excluded, to where |start + step t| < 1/2; 0 if there is none. */
static int narrow(int64_t start, int64_t step, int64_t low[2], int64_t high[2])
{
    if (!step)
        return llabs(start) < HALF;
    int64_t by = llabs(step), from = (step > 0 ? -HALF - start : start - HALF), to = from + PIXEL;
    if (from * low[1] > low[0] * by)
        low[0] = from, low[1] = by;
    if (to * high[1] < high[0] * by)
        high[0] = to, high[1] = by;
    return low[0] * high[1] < high[0] * low[1];
}

/* Whether the line has a point on a boundary that is inside: on the edge `across` = at, |along| < 1/2, or at one of its ends. */
static int touches(int64_t across0, int64_t d_across, int64_t along0, int64_t d_along, int64_t at)
{
    int64_t way = at - across0, by = llabs(d_across);
    if (!d_across) { /* along the edge: its ends are corners, which are looked at by themselves */
        int64_t end = along0 + d_along, least = along0 < end ? along0 : end, most = along0 < end ? end : along0;
        return !way && least < HALF && most > -HALF;
    }
    way = d_across < 0 ? -way : way;
    return way >= 0 && way <= by && llabs(along0 * by + d_along * way) < HALF * by;
}

static int passes(const struct turned_line *l, int64_t u, int64_t v)
{
    int64_t du = u - l->u0, dv = v - l->v0;
    return du * l->dv == dv * l->du && du * l->du + dv * l->dv >= 0 && du * du + dv * dv <= l->du * l->du + l->dv * l->dv;
}

/* Whether a point of the line is inside the diamond. */
static int meets(const struct turned_line *l)
{
    int64_t low[2] = {-1, 1}, high[2] = {2, 1}; /* beyond the line's ends, which belong to it */
    if (narrow(l->u0, l->du, low, high) && narrow(l->v0, l->dv, low, high) && low[0] < low[1] && high[0] > 0)
        return 1;
    return passes(l, HALF, -HALF) || (l->right_corner && passes(l, HALF, HALF)) || (l->left_corner && passes(l, -HALF, -HALF)) ||
           (l->bottom_left_edge && touches(l->v0, l->dv, l->u0, l->du, -HALF)) ||
           (l->bottom_right_edge && touches(l->u0, l->du, l->v0, l->dv, HALF));
}

/* A pixel is lit when the line leaves its diamond (G45 5403), or where the last pixel is drawn, ends in it. */
static int diamond(const struct setup_record *r, int legacy, int64_t x, int64_t y)
{
    struct turned_line l = turn(r, legacy, x, y);
    if (is_inside(&l, l.u0 + l.du, l.v0 + l.dv))
        return r->coverage == COVERAGE_DIAMOND_LAST;
    return meets(&l);
}

/* -- stipple ------------------------------------------------------------------------------------------------------------------------- */

/* Whether the pattern has a line's pixel: bit floor(s / repeat) mod 16, s counting pixels along the major axis (G45 6442-6450). */
static int stippled(const struct raster_plan *plan, const struct setup_record *r, int64_t x, int64_t y)
{
    const int32_t *line = r->line;
    int64_t dx = (int64_t)line[2] - line[0], dy = (int64_t)line[3] - line[1];
    int x_major = llabs(dx) >= llabs(dy), wide = r->coverage == COVERAGE_LINE, back = (x_major ? dx : dy) < 0;
    int64_t start = line[!x_major], first = wide ? -(-start >> 8) - back : (start + HALF) >> 8;
    int64_t step = ((x_major ? x : y) - first) * (back ? -1 : 1);
    uint32_t s = r->stipple + (uint32_t)(step > 0 ? step : 0);
    return plan->line_pattern >> s / plan->line_repeat % STIPPLE_BITS & 1;
}

/* The pixels of a block that the line covers. */
static uint32_t line_mask(const struct raster_plan *plan, const struct setup_record *r, const struct pixel_block *b)
{
    uint32_t mask = b->mask;
    int diamonds = r->coverage == COVERAGE_DIAMOND || r->coverage == COVERAGE_DIAMOND_LAST;
    for (uint32_t todo = mask; todo; todo &= todo - 1) {
        int p = __builtin_ctz(todo);
        int64_t x = b->x + (int64_t)subspan_orders[0].x[p], y = b->y + (int64_t)subspan_orders[0].y[p];
        if ((diamonds && !diamond(r, (int)plan->legacy_diamond, x, y)) || (plan->line_repeat && !stippled(plan, r, x, y)))
            mask &= ~(1u << p);
    }
    return mask;
}

uint32_t cover_lines(const struct raster_plan *plan, const struct setup_record *r, struct pixel_block *blocks, uint32_t count)
{
    uint32_t kept = 0;
    if (r->coverage == COVERAGE_LINE && !plan->line_repeat)
        return count;
    for (uint32_t i = 0; i < count; i++) {
        blocks[kept] = blocks[i];
        blocks[kept].mask = line_mask(plan, r, &blocks[i]);
        kept += blocks[kept].mask != 0;
    }
    return kept;
}

/* -- antialias alpha ----------------------------------------------------------------------------------------------------------------- */

static double ramp(double value)
{
    return value >= 1 ? 1 : value > 0 ? value : 0;
}

/* How far inside an edge of a rectangle a pixel is. */
static double inside_edge(const struct raster_plan *plan, const struct setup_record *r, int n, double x, double y)
{
    double dx = (double)r->edge_dx[n], dy = (double)r->edge_dy[n], length = sqrt(dx * dx + dy * dy);
    double distance = ((double)r->edge[n] + dx * x + dy * y) / length;
    return plan->aa_manhattan ? distance * (fabs(dx) + fabs(dy)) / length : distance; /* G45 5549 */
}

/* Without a slope, coverage rises from the nearer side and the nearer cap, and both are multiplied (G45 5539-5543); with one, all four
 * edges are (G45 6387-6406). */
static double smooth_line(const struct raster_plan *plan, const struct setup_record *r, double x, double y)
{
    double d[4];
    for (int i = 0; i < 4; i++)
        d[i] = inside_edge(plan, r, i, x, y);
    double side = ramp(fmin(d[0], d[2]) / plan->aa_region), cap = ramp(fmin(d[1], d[3]) / plan->aa_cap_region);
    if (plan->aa_slope)
        side = ramp(plan->aa_slope * d[0] - plan->aa_bias) * ramp(plan->aa_slope * d[2] - plan->aa_bias);
    if (plan->aa_slope && plan->aa_cap_slope)
        cap = ramp(plan->aa_cap_slope * d[1] - plan->aa_cap_bias) * ramp(plan->aa_cap_slope * d[3] - plan->aa_cap_bias);
    return side * cap;
}

/* A disc whose edge is a pixel wide. */
static double smooth_point(const struct raster_plan *plan, const struct setup_record *r, double x, double y)
{
    double dx = x - r->line[0] / (double)PIXEL, dy = y - r->line[1] / (double)PIXEL;
    double inside = r->line[2] / (2.0 * PIXEL) + 0.5 - sqrt(dx * dx + dy * dy);
    return ramp(plan->aa_point_slope ? plan->aa_point_slope * inside - plan->aa_point_bias : inside);
}

/* The coverage of a pixel, a multiple of 1/255 (BDW-SF-10); of what is not smooth it is 1. */
EXPORT double antialias_alpha(const struct raster_plan *plan, const struct setup_record *r, double x, double y)
{
    double alpha = 1;
    if (r->coverage == COVERAGE_SMOOTH_LINE)
        alpha = smooth_line(plan, r, x, y);
    else if (r->coverage == COVERAGE_SMOOTH_POINT)
        alpha = smooth_point(plan, r, x, y);
    return rint(alpha * 255) / 255;
}

/* That of a thread's pixels. */
void write_antialias(const struct raster_plan *plan, const struct thread_pixels *t, float *into)
{
    const float *x = t->order->x + t->first, *y = t->order->y + t->first;
    for (uint32_t i = 0; i < t->count; i++)
        into[i] = (float)antialias_alpha(plan, t->record, t->block->x + (double)x[i], t->block->y + (double)y[i]);
}
