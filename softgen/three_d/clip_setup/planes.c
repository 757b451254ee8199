/* SETUP: edge functions, bounding boxes and planes of polygons on the screen. */
#include "geometry.h"

#include <math.h>

enum { PIXEL = 256 }; /* positions are in 1/256 */

/* The pixel that a position is in; right shifts of negative numbers round down. */
static int64_t pixel_of(int64_t position)
{
    return position >> 8;
}

struct box { int64_t x0, y0, x1, y1; };

static struct box box_about(const struct screen_vertex *v, uint32_t count)
{
    struct box b = {v[0].x, v[0].y, v[0].x, v[0].y};
    for (uint32_t i = 1; i < count; i++) {
        b.x0 = v[i].x < b.x0 ? v[i].x : b.x0, b.x1 = v[i].x > b.x1 ? v[i].x : b.x1;
        b.y0 = v[i].y < b.y0 ? v[i].y : b.y0, b.y1 = v[i].y > b.y1 ? v[i].y : b.y1;
    }
    return b;
}

/* Narrows the record's box, so far that of its viewport, to pixels; 0 if there is none. */
static int narrow_box(struct setup_record *record, int64_t left, int64_t top, int64_t right, int64_t bottom)
{
    record->x0 = left > record->x0 ? (int32_t)left : record->x0;
    record->y0 = top > record->y0 ? (int32_t)top : record->y0;
    record->x1 = right < record->x1 ? (int32_t)right : record->x1;
    record->y1 = bottom < record->y1 ? (int32_t)bottom : record->y1;
    return record->x0 < record->x1 && record->y0 < record->y1;
}

/* The box of pixels whose sample can be inside a polygon; where they have several, of those that it can touch: one of the samples may be
 * inside, wherever it is. */
int set_bounds(const struct setup_plan *plan, const struct screen_vertex *v, uint32_t count, struct setup_record *record)
{
    struct box b = box_about(v, count);
    if (plan->sampled)
        return narrow_box(record, pixel_of(b.x0), pixel_of(b.y0), pixel_of(b.x1) + 1, pixel_of(b.y1) + 1);
    return narrow_box(record, -pixel_of(plan->sample_x - b.x0), -pixel_of(plan->sample_y - b.y0), pixel_of(b.x1 - plan->sample_x) + 1,
                      pixel_of(b.y1 - plan->sample_y) + 1);
}

/* The box of pixels that a triangle can touch, made larger by 1/512 of a pixel (public Mesa anv_device.c: primitiveOverestimationSize). */
int set_touched_bounds(const struct setup_plan *plan, const struct screen_vertex *v, struct setup_record *record)
{
    struct box b = box_about(v, 3);
    int64_t x = PIXEL / 2 - plan->sample_x, y = PIXEL / 2 - plan->sample_y; /* a pixel is a square about its sample */
    return narrow_box(record, pixel_of(b.x0 + x - 1), pixel_of(b.y0 + y - 1), pixel_of(b.x1 + x) + 1, pixel_of(b.y1 + y) + 1);
}

/* The edges of a convex polygon. Clockwise along an edge from a to b, (b - a) x (p - a) is 0 or more inside. A sample on the edge is in
 * if the edge is left (goes up) or top (goes right, level); else the constant is one less (G45 6514). */
void set_edges(const struct setup_plan *plan, const struct screen_vertex *v, uint32_t count, struct setup_record *record)
{
    int clockwise = determinant(v) > 0;
    record->edges = count;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t after = i + 1 < count ? i + 1 : 0;
        const struct screen_vertex *a = &v[clockwise ? i : after], *b = &v[clockwise ? after : i];
        int64_t dx = b->x - a->x, dy = b->y - a->y;
        int inside = dy < 0 || (dy == 0 && dx > 0);
        record->edge[i] = dx * (plan->sample_y - a->y) - dy * (plan->sample_x - a->x) - !inside;
        record->edge_dx[i] = -dy * PIXEL;
        record->edge_dy[i] = dx * PIXEL;
    }
}

/* Conservative rasterization: moves the edges of a triangle outwards, so that all pixels are inside that have a point in common with the
 * triangle; those of its box are not left. */
void widen_edges(struct setup_record *record)
{
    for (uint32_t i = 0; i < record->edges; i++)
        record->edge[i] += edge_margin(record, i) + 1; /* whether an edge is left or top does not matter */
}

/* What planes through three vertices have in common: gradients of the second and third vertex's weights, and the way from the first
 * vertex to the sample of pixel (0, 0). */
struct basis {
    double dx1, dy1, dx2, dy2, x, y;
};

static struct basis basis_of(const struct setup_plan *plan, const struct screen_vertex *v)
{
    int64_t area = determinant(v);
    double scale = area ? PIXEL / (double)area : 0; /* a degenerate triangle, drawn conservatively, is as its first vertex */
    return (struct basis){
        (double)(v[2].y - v[0].y) * scale, (double)(v[0].x - v[2].x) * scale,
        (double)(v[0].y - v[1].y) * scale, (double)(v[1].x - v[0].x) * scale,
        (double)(plan->sample_x - v[0].x) / PIXEL, (double)(plan->sample_y - v[0].y) / PIXEL,
    };
}

/* The plane through three values, in this order of arithmetic: differences from the first, times gradients, summed; then along x and y. */
static struct plane plane_of(const struct basis *b, double f0, double f1, double f2)
{
    double f10 = f1 - f0, f20 = f2 - f0;
    double dx = f10 * b->dx1 + f20 * b->dx2, dy = f10 * b->dy1 + f20 * b->dy2;
    return (struct plane){f0 + dx * b->x + dy * b->y, dx, dy};
}

/* Z, 1/w and barycentrics; perspective barycentrics are planes of b/w. */
void set_planes(const struct setup_plan *plan, const struct screen_vertex *v, struct setup_record *record)
{
    struct basis basis = basis_of(plan, v);
    record->z = plane_of(&basis, v[0].z, v[1].z, v[2].z);
    record->rhw = plane_of(&basis, v[0].rhw, v[1].rhw, v[2].rhw);
    for (int i = 0; i < 2; i++) {
        record->linear[i] = plane_of(&basis, v[0].linear[i], v[1].linear[i], v[2].linear[i]);
        record->perspective[i] = plane_of(&basis, v[0].perspective[i] * v[0].rhw, v[1].perspective[i] * v[1].rhw,
                                          v[2].perspective[i] * v[2].rhw);
    }
}

/* The depth offset of a triangle, in float32 (G45 6642-6673): scale * steepest slope + constant, clamped on one side. */
float depth_offset(const struct setup_plan *plan, const struct screen_vertex *v, const struct plane *z)
{
    float slope = fmaxf(fabsf((float)z->dx), fabsf((float)z->dy)), unit = 1.0f;
    if (plan->offset_float) {
        float most = fmaxf(fmaxf(fabsf((float)v[0].z), fabsf((float)v[1].z)), fabsf((float)v[2].z));
        unit = most > 0 && isfinite(most) ? ldexpf(1.0f, ilogbf(most) - 23) : 0.0f;
    }
    float bias = plan->offset_scale * slope + plan->offset_constant * unit;
    if (plan->offset_clamp > 0)
        return fminf(bias, plan->offset_clamp);
    return plan->offset_clamp < 0 ? fmaxf(bias, plan->offset_clamp) : bias;
}
