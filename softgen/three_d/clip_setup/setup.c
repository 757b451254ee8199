/* SETUP: objects become records for the rasterizer (setup.py makes the plan). G45 5157-5550, 5816-5945; BDW 10300-10450.
 *
 * Order: invalid positions, viewport transformation in float32 (multiply, then add), drawing rectangle origin, expansion of points and
 * lines, rounding to the sub-pixel grid and clamping, degenerate objects, facing and culling, bounding box, edges, planes, attributes.
 */
#include "../draw/draw.h"

#include "geometry.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static uint32_t header(const struct geometry *g, const struct object *object, uint32_t dword)
{
    uint32_t value; /* of the leading vertex (G45 4946-4968) */
    memcpy(&value, entry_of(g->vertices, object->vertex[0]) + 4 * dword, sizeof value);
    return value;
}

/* The viewport of an object: the first one, if there is but one. */
static uint32_t viewport_of(const struct geometry *g, const struct object *object)
{
    return g->setup->viewports > 1 ? viewport_index(header(g, object, HEADER_VIEWPORT), g->setup->viewports) : 0;
}

/* A vertex on the screen; NOT_ON_SCREEN if its position is not a number, before or after the transformation (G45 5164-5166). */
static struct screen_place place_of(const struct setup_plan *plan, const struct viewport *viewport, struct screen_position p)
{
    int is_number = !(isnan(p.x) || isnan(p.y) || isnan(p.z) || isnan(p.rhw));
    if (plan->transform) {
        p.x = viewport->m00 * p.x, p.x = p.x + viewport->m30;
        p.y = viewport->m11 * p.y, p.y = p.y + viewport->m31;
        p.z = viewport->m22 * p.z, p.z = p.z + viewport->m32;
    }
    is_number &= !isnan(p.x) && !isnan(p.y) && !isnan(p.z);
    return (struct screen_place){p.x, p.y, p.z, p.rhw,
                                 is_number ? (int32_t)snap(plan, (double)p.x + plan->origin_x) : NOT_ON_SCREEN,
                                 (int32_t)snap(plan, (double)p.y + plan->origin_y)};
}

/* The same as a corner of an object; 0 if it is not on the screen. */
static int to_corner(const struct setup_plan *plan, const struct screen_place *p, struct screen_vertex *v)
{
    v->exact_x = (double)p->x + plan->origin_x, v->exact_y = (double)p->y + plan->origin_y;
    v->x = p->grid_x, v->y = p->grid_y;
    v->z = p->z, v->rhw = p->rhw;
    return p->grid_x != NOT_ON_SCREEN;
}

static int to_screen(const struct setup_plan *plan, const struct viewport *viewport, struct screen_position p, struct screen_vertex *v)
{
    struct screen_place place = place_of(plan, viewport, p);
    return to_corner(plan, &place, v);
}

/* The vertices of a chunk, once each: those of a mesh are in six triangles. */
static void place_vertices(const struct geometry *g)
{
    const struct setup_plan *plan = g->setup;
    for (uint32_t i = 0; i < g->vertices->count && plan->viewports <= 1; i++)
        g->places[i] = place_of(plan, &plan->viewport[0], g->vertices->positions[i]);
}

/* Starts a record at the end of the array; it counts when keep_record adds it. */
struct setup_record *begin_record(struct geometry *g, const struct object *object, uint32_t back_facing)
{
    const struct setup_plan *plan = g->setup;
    struct setup_record *record = &g->records->records[g->records->count];
    uint32_t index = viewport_of(g, object);
    const struct viewport *viewport = &plan->viewport[index];
    record->x0 = viewport->x0, record->y0 = viewport->y0, record->x1 = viewport->x1, record->y1 = viewport->y1;
    record->edges = 0, record->coverage = COVERAGE_EDGES, record->stipple = 0;
    record->back_facing = back_facing, record->viewport = index;
    record->layer = plan->zero_layer ? 0 : header(g, object, HEADER_LAYER) & 0x7ff;
    record->primitive = object->primitive, record->topology = object->flags >> OBJECT_TOPOLOGY_SHIFT & 63;
    record->x_start = record->y_start = 0;
    record->attributes = g->records->count * g->records->attribute_stride;
    return record;
}

/* Adds the record under way; the parts of a clipped object share the attributes of the first. */
void keep_record(struct geometry *g, const struct object *object, uint64_t *attributes)
{
    struct setup_record *record = &g->records->records[g->records->count++];
    if (*attributes == UINT64_MAX) {
        *attributes = record->attributes;
        write_attributes(g, object, record->back_facing, g->records->attributes + record->attributes);
    }
    record->attributes = *attributes;
}

/* Facing of a triangle; a degenerate one counts as clockwise (G45 5353-5361). */
static uint32_t facing(const struct setup_plan *plan, const struct object *object, int64_t area)
{
    uint32_t counter_clockwise = (area < 0) ^ ((object->flags & OBJECT_INVERTED) != 0);
    return counter_clockwise != plan->front_counter_clockwise;
}

static int visible(const struct setup_plan *plan, uint32_t back_facing)
{
    return !(back_facing ? plan->cull_back : plan->cull_front);
}

static int solid(const struct setup_plan *plan, uint32_t back_facing)
{
    return (back_facing ? plan->fill_back : plan->fill_front) == FILL_SOLID;
}

/* Whether vertices are further from each other than SETUP allows (G45 5323). */
static int far_apart(const struct setup_plan *plan, const struct screen_vertex *a, const struct screen_vertex *b)
{
    return llabs(a->x - b->x) > plan->limit || llabs(a->y - b->y) > plan->limit;
}

static void add_triangle(struct geometry *g, const struct object *object, const struct screen_vertex *v, uint32_t back_facing,
                         uint64_t *attributes)
{
    struct setup_record *record = begin_record(g, object, back_facing);
    if (g->setup->conservative && !g->setup->sampled ? !set_touched_bounds(g->setup, v, record) : !set_bounds(g->setup, v, 3, record))
        return;
    set_edges(g->setup, v, 3, record);
    if (g->setup->conservative)
        widen_edges(record);
    set_planes(g->setup, v, record);
    float offset = g->setup->offset >> FILL_SOLID & 1 ? depth_offset(g->setup, v, &record->z) : 0;
    record->z.c += offset;
    if (g->sf_inputs) {
        set_sf_input(g->setup, object, v, record, &g->sf_inputs[g->records->count]);
        g->sf_inputs[g->records->count].depth_offset = offset;
    }
    g->oversized += far_apart(g->setup, &v[0], &v[1]) || far_apart(g->setup, &v[0], &v[2]) || far_apart(g->setup, &v[1], &v[2]);
    keep_record(g, object, attributes);
}

/* The fourth corner of a rectangle completes a parallelogram; planes are those of the three (G45 5311). Never culled (G45 5365). */
static void add_rectangle(struct geometry *g, const struct object *object, struct screen_vertex *v, uint64_t *attributes)
{
    struct setup_record *record = begin_record(g, object, 0);
    v[3] = v[0];
    v[3].x = v[0].x - v[1].x + v[2].x, v[3].y = v[0].y - v[1].y + v[2].y;
    if (!determinant(v) || !set_bounds(g->setup, v, 4, record))
        return;
    set_edges(g->setup, v, 4, record);
    set_planes(g->setup, v, record);
    if (g->sf_inputs)
        set_sf_input(g->setup, object, v, record, &g->sf_inputs[g->records->count]);
    keep_record(g, object, attributes);
}

static void add_line(struct geometry *g, const struct object *object, const struct screen_vertex *v, uint64_t *attributes)
{
    struct setup_record *record = begin_record(g, object, (object->flags & OBJECT_BACK_FACING) != 0);
    if (!(object->flags & OBJECT_CONTINUES))
        *g->stipple = 0;
    if (!set_line(g, v, record))
        return;
    if (record->coverage == COVERAGE_DIAMOND && g->setup->last_pixel && object->flags & OBJECT_LAST)
        record->coverage = COVERAGE_DIAMOND_LAST;
    g->oversized += (uint64_t)far_apart(g->setup, &v[0], &v[1]);
    if (g->sf_inputs)
        set_sf_input(g->setup, object, v, record, &g->sf_inputs[g->records->count]);
    keep_record(g, object, attributes);
}

static void add_point(struct geometry *g, const struct object *object, const struct screen_vertex *v, uint64_t *attributes)
{
    struct setup_record *record = begin_record(g, object, (object->flags & OBJECT_BACK_FACING) != 0);
    if (set_point(g, object, object->vertex[0], v, record))
        keep_record(g, object, attributes);
}

/* An object whose vertices are as CLIP tested them. */
static void add_whole(struct geometry *g, const struct object *object)
{
    struct screen_vertex v[4];
    uint64_t attributes = UINT64_MAX;
    uint32_t vertices = object->flags & OBJECT_VERTICES;
    const struct viewport *viewport = &g->setup->viewport[viewport_of(g, object)];
    for (uint32_t i = 0; i < vertices; i++) {
        uint32_t number = object->vertex[i];
        int there = g->setup->viewports > 1 ? to_screen(g->setup, viewport, g->vertices->positions[number], &v[i])
                                            : to_corner(g->setup, &g->places[number], &v[i]);
        if (!there)
            return;
        v[i].perspective[0] = v[i].linear[0] = i == 1, v[i].perspective[1] = v[i].linear[1] = i == 2;
    }
    if (vertices == 1)
        add_point(g, object, v, &attributes);
    else if (vertices == 2)
        add_line(g, object, v, &attributes);
    else if (object->flags & OBJECT_RECTANGLE)
        add_rectangle(g, object, v, &attributes);
    else if (vertices == 3) {
        int64_t area = determinant(v);
        uint32_t back_facing = facing(g->setup, object, area), bits = object->flags >> OBJECT_EDGES_SHIFT;
        if ((!area && !g->setup->conservative) || !visible(g->setup, back_facing))
            return;
        if (solid(g->setup, back_facing))
            add_triangle(g, object, v, back_facing, &attributes);
        else
            add_outline(g, object, v, (uint32_t[]){bits & 1, bits & 2, bits & 4}, object->vertex, 3, back_facing);
    }
}

/* A corner that clipping left or made: its position as the others get theirs, and barycentrics of the whole object there. */
static int corner_to_screen(const struct geometry *g, const struct object *object, const struct viewport *viewport,
                            const struct corner *c, struct screen_vertex *v)
{
    const double *p = c->position;
    struct screen_position position = {(float)(p[0] / p[3]), (float)(p[1] / p[3]), (float)(p[2] / p[3]), (float)(1 / p[3])};
    for (int i = 0; i < 2; i++) {
        float w = 0;
        if (i + 1u < (object->flags & OBJECT_VERTICES))
            memcpy(&w, entry_of(g->vertices, object->vertex[i + 1]) + 4 * (POSITION + 3), sizeof w);
        v->perspective[i] = c->weight[i + 1];
        v->linear[i] = c->weight[i + 1] * w / p[3];
    }
    return to_screen(g->setup, viewport, position, v);
}

/* The outline of a clipped triangle: what is left of its own edges and vertices. An edge between two corners is part of the one across
 * from vertex k when neither has weight of k; clipping computes such weights as exactly 0. */
static void add_clipped_outline(struct geometry *g, const struct object *object, const struct corner *corners,
                                const struct screen_vertex *v, uint32_t count, uint32_t back_facing)
{
    uint32_t edges[CORNERS], entries[CORNERS], mode = back_facing ? g->setup->fill_back : g->setup->fill_front;
    for (uint32_t i = 0; i < count; i++) {
        const double *a = corners[i].weight, *b = corners[i + 1 < count ? i + 1 : 0].weight;
        edges[i] = 0, entries[i] = UINT32_MAX;
        for (uint32_t k = 0; k < 3; k++) {
            uint32_t flag = object->flags >> (OBJECT_EDGES_SHIFT + (k + 1) % 3) & 1; /* edge k + 1 is the one across from vertex k */
            if (mode == FILL_WIREFRAME && a[k] == 0 && b[k] == 0)
                edges[i] |= flag;
            if (a[k] == 1)
                entries[i] = object->vertex[k], edges[i] |= mode == FILL_POINT && object->flags >> (OBJECT_EDGES_SHIFT + k) & 1;
        }
    }
    add_outline(g, object, v, edges, entries, count, back_facing);
}

/* Clips an object and adds what is left of it; the parts of a triangle are a fan, all facing as the whole polygon does. */
static uint32_t add_clipped(struct geometry *g, const struct object *object, uint32_t outcodes)
{
    struct corner corners[CORNERS];
    struct screen_vertex v[CORNERS], part[3];
    uint64_t attributes = UINT64_MAX;
    int64_t area = 0;
    uint32_t vertices = object->flags & OBJECT_VERTICES, count = clip_object(g, object, outcodes, corners);
    const struct viewport *viewport = &g->setup->viewport[viewport_of(g, object)];
    if (count < vertices)
        return 0;
    for (uint32_t i = 0; i < count; i++)
        if (!corner_to_screen(g, object, viewport, &corners[i], &v[i]))
            return 0;
    if (vertices == 2) {
        add_line(g, object, v, &attributes);
        return 1;
    }
    part[0] = v[0];
    for (uint32_t i = 2; i < count; i++) {
        part[1] = v[i - 1], part[2] = v[i];
        area += determinant(part);
    }
    uint32_t back_facing = facing(g->setup, object, area);
    if (!area || !visible(g->setup, back_facing))
        return count - 2;
    if (!solid(g->setup, back_facing))
        add_clipped_outline(g, object, corners, v, count, back_facing);
    for (uint32_t i = 2; i < count && solid(g->setup, back_facing); i++) {
        part[1] = v[i - 1], part[2] = v[i];
        int64_t own = determinant(part);
        if (own && (own < 0) == (area < 0))
            add_triangle(g, object, part, back_facing, &attributes);
    }
    return count - 2;
}

/* Sets up objects from g->next on, until all are done or records might not hold another one. */
EXPORT void setup_objects(struct geometry *g)
{
    uint64_t primitives = 0;
    if (!g->next)
        place_vertices(g);
    while (g->next < g->objects->count && g->records->count + PARTS <= g->records->capacity) {
        const struct object *object = &g->objects->objects[g->next];
        struct clip_result result = g->results ? g->results[g->next] : (struct clip_result){CLIP_PASS, 0};
        /* A rectangle is software's to keep within limits: what must be clipped of one passes, and ends at its bounding box. */
        int whole = result.action == CLIP_PASS || (result.action == CLIP_MUST && (object->flags & OBJECT_RECTANGLE));
        if (whole)
            add_whole(g, object), primitives++;
        else if (result.action == CLIP_MUST)
            primitives += add_clipped(g, object, result.outcodes);
        g->next++;
    }
    if (g->setup->statistics)
        g->primitives += primitives;
}

/* -- the stage ----------------------------------------------------------------------------------------------------------------------- */

EXPORT int64_t stage_setup(struct draw *d, struct stage *s, void *record)
{
    const struct setup_stage *plan = s->plan;
    struct geometry *g = s->loop;
    (void)record;
    if (!s->more) {
        g->vertices = d->chunk.vertices;
        g->objects = d->chunk.objects;
        g->next = 0;
        d->records->attribute_stride = plan->attribute_stride;
    }
    uint64_t primitives = g->primitives, oversized = g->oversized;
    d->records->count = 0;
    setup_objects(g);
    s->more = g->next < g->objects->count;
    d->counts[CL_PRIMITIVES] += g->primitives - primitives;
    d->oversized += g->oversized - oversized;
    return d->records->count ? THREADS_DONE : STAGE_EMPTY;
}
