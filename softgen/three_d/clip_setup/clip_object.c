/* CLIP: cuts off what is outside the guardband, Z and user planes; fixed function from 7 on. */
#include "geometry.h"

#include <math.h>
#include <string.h>

/* What is kept has w of at least this, so that dividing by it stays finite. */
static const double W_MIN = 0x1p-100;

struct clip_planes {
    const struct limits *guard;
    double z_min;
};

/* How far inside a plane a corner is: below zero is outside. */
static double distance(const struct clip_planes *planes, const struct corner *c, uint32_t plane)
{
    const double *p = c->position;
    switch (plane) {
    case OUT_NEGATIVE_W: return p[3] - W_MIN;
    case OUT_Z_MIN: return p[2] - planes->z_min * p[3];
    case OUT_Z_MAX: return p[3] - p[2];
    case OUT_GUARD_X_MIN: return p[0] - planes->guard->x_min * p[3];
    case OUT_GUARD_X_MAX: return planes->guard->x_max * p[3] - p[0];
    case OUT_GUARD_Y_MIN: return p[1] - planes->guard->y_min * p[3];
    case OUT_GUARD_Y_MAX: return planes->guard->y_max * p[3] - p[1];
    }
    for (int i = 0; i < 8; i++)
        if (plane == 1u << (OUT_USER_SHIFT + i))
            return c->distance[i];
    return 0;
}

/* Where the edge between two corners meets the plane. Always computed from the outer to the inner corner, so that two triangles that
 * share an edge get the same corner on it. */
static struct corner meet(const struct corner *out, const struct corner *in, double d_out, double d_in)
{
    struct corner c;
    const double *a = (const double *)out, *b = (const double *)in;
    double t = d_out / (d_out - d_in), *into = (double *)&c;
    for (uint32_t i = 0; i < sizeof c / sizeof *into; i++)
        into[i] = a[i] + (b[i] - a[i]) * t;
    return c;
}

/* Sutherland and Hodgman: the part of a polygon inside one plane. A line is a polygon there and back: its first two corners are what is
 * left of it. */
static uint32_t clip_plane(const struct clip_planes *planes, uint32_t plane, const struct corner *from, uint32_t count,
                           struct corner *to)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < count; i++) {
        const struct corner *a = &from[i], *b = &from[(i + 1) % count];
        double da = distance(planes, a, plane), db = distance(planes, b, plane);
        if (kept + 2 > CORNERS) /* rounding has made it concave: nothing sensible is left of it */
            return 0;
        if (da >= 0)
            to[kept++] = *a;
        if ((da >= 0) != (db >= 0))
            to[kept++] = da < 0 ? meet(a, b, da, db) : meet(b, a, db, da);
    }
    return kept;
}

static int load(const struct geometry *g, const struct object *object, uint32_t number, struct corner *c)
{
    const uint8_t *entry = entry_of(g->vertices, object->vertex[number]);
    float position[4], distances[8] = {0};
    uint64_t held = g->vertices->stride > 32 ? g->vertices->stride - 32 : 0;
    memcpy(position, entry + 4 * POSITION, sizeof position);
    memcpy(distances, entry + 32, held < sizeof distances ? held : sizeof distances);
    memset(c, 0, sizeof *c);
    c->weight[number] = 1;
    for (int i = 0; i < 4; i++)
        c->position[i] = position[i];
    int valid = 1;
    for (int i = 0; i < 8; i++)
        if (g->clip->user_clip >> i & 1)
            c->distance[i] = distances[i], valid &= !isnan(distances[i]);
    for (int i = 0; i < 4; i++)
        valid &= !isnan(position[i]);
    return valid;
}

/* The corners of a line or triangle that are left, in order; 0 if nothing is. A NaN makes it invalid (G45 5164). */
uint32_t clip_object(const struct geometry *g, const struct object *object, uint32_t outcodes, struct corner *corners)
{
    static const uint32_t order[] = {OUT_NEGATIVE_W, OUT_Z_MIN, OUT_Z_MAX, OUT_GUARD_X_MIN, OUT_GUARD_X_MAX, OUT_GUARD_Y_MIN,
                                     OUT_GUARD_Y_MAX, 1 << 14, 1 << 15, 1 << 16, 1 << 17, 1 << 18, 1 << 19, 1 << 20, 1 << 21};
    struct corner other[CORNERS];
    uint32_t count = object->flags & OBJECT_VERTICES, index;
    memcpy(&index, entry_of(g->vertices, object->vertex[0]) + 4 * HEADER_VIEWPORT, sizeof index);
    const struct limits *guard = &g->clip->guardband[viewport_index(index, g->clip->viewports)];
    struct clip_planes planes = {g->clip->test_guardband ? guard : &g->clip->viewport, g->clip->z_min};
    for (uint32_t i = 0; i < count; i++)
        if (!load(g, object, i, &corners[i]))
            return 0;
    for (uint32_t i = 0; i < sizeof order / sizeof *order && count; i++)
        if (outcodes & order[i]) {
            memcpy(other, corners, count * sizeof *corners);
            count = clip_plane(&planes, order[i], other, count, corners);
        }
    return count;
}
