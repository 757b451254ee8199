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

/* Adds the edges or vertices of a polygon. `edges` says of each edge, from corner i to the next, and of each corner whether it is drawn;
 * `entries` are the vertices that corners are, for their point widths. */
void add_outline(struct geometry *g, const struct object *object, const struct screen_vertex *v, const uint32_t *edges,
                 const uint32_t *entries, uint32_t count, uint32_t back_facing)
{
    const struct setup_plan *plan = g->setup;
    uint64_t attributes = UINT64_MAX;
    uint32_t mode = back_facing ? plan->fill_back : plan->fill_front;
    int made;
    double offset = plan->offset >> mode & 1 ? outline_offset(plan, v, count) : 0;
    if ((g->refused = mode == FILL_WIREFRAME ? plan->refuse_line : REFUSED_NOTHING))
        return;
    *g->stipple = 0;
    for (uint32_t i = 0; i < count; i++) {
        struct screen_vertex ends[2] = {v[i], v[i + 1 < count ? i + 1 : 0]};
        if (!edges[i])
            continue;
        struct setup_record *record = begin_record(g, object, back_facing);
        if (mode == FILL_WIREFRAME)
            made = set_line(g, ends, record);
        else
            made = entries[i] != UINT32_MAX && set_point(g, object, entries[i], ends, record);
        record->z.c += offset;
        if (made)
            keep_record(g, object, &attributes);
    }
}
