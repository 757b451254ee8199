/* SETUP: triangles whose edges or vertices are drawn instead of their inside (BDW 8678-8725). */
#include "geometry.h"

/* The depth offset that a whole triangle would have; of a clipped one, that of any part of it. */
static double outline_offset(const struct setup_plan *plan, const struct screen_vertex *v, uint32_t count)
{
    for (uint32_t i = 2; i < count; i++) {
        struct screen_vertex part[3] = {v[0], v[i - 1], v[i]};
        struct setup_record record;
        if (!determinant(part))
            continue;
        set_planes(plan, part, &record);
        return depth_offset(plan, part, &record.z);
    }
    return 0;
}

/* Adds a vertex as a point, which has its attributes; those that are flat are the triangle's. Vertices that clipping made are none. */
static void add_corner(struct geometry *g, const struct object *object, uint32_t entry, const struct screen_vertex *v, double offset,
                       struct setup_record *record)
{
    struct object corner = *object;
    uint64_t attributes = UINT64_MAX;
    uint32_t provoking = object->flags >> OBJECT_PROVOKING_SHIFT & 3;
    corner.vertex[0] = entry;
    corner.vertex[1] = object->vertex[provoking < 3 ? provoking : 0];
    corner.flags &= ~(uint32_t)(OBJECT_VERTICES | 3 << OBJECT_PROVOKING_SHIFT);
    corner.flags |= 1 | 1 << OBJECT_PROVOKING_SHIFT | OBJECT_CORNER;
    if (entry == UINT32_MAX || !set_point(g, &corner, entry, v, record))
        return;
    record->z.c += offset;
    keep_record(g, &corner, &attributes);
}

/* Adds the edges or vertices of a polygon. `edges` says of each edge, from corner i to the next, and of each corner whether it is drawn;
 * `entries` are the vertices that corners are, for their point widths. */
void add_outline(struct geometry *g, const struct object *object, const struct screen_vertex *v, const uint32_t *edges,
                 const uint32_t *entries, uint32_t count, uint32_t back_facing)
{
    const struct setup_plan *plan = g->setup;
    uint64_t attributes = UINT64_MAX;
    uint32_t mode = back_facing ? plan->fill_back : plan->fill_front;
    double offset = plan->offset >> mode & 1 ? outline_offset(plan, v, count) : 0;
    *g->stipple = 0;
    for (uint32_t i = 0; i < count; i++) {
        struct screen_vertex ends[2] = {v[i], v[i + 1 < count ? i + 1 : 0]};
        if (!edges[i])
            continue;
        struct setup_record *record = begin_record(g, object, back_facing);
        if (mode == FILL_POINT)
            add_corner(g, object, entries[i], ends, offset, record);
        else if (set_line(g, ends, record)) {
            record->z.c += offset;
            keep_record(g, object, &attributes);
        }
    }
}
