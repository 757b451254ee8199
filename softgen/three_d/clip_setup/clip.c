/* CLIP: which objects are accepted, rejected, or must be clipped (clip.py makes the plan). G45 4167-4530; BDW 1896-2265. */
#include "../draw/draw.h"

#include "geometry.h"

#include <math.h>
#include <string.h>

typedef float vector __attribute__((vector_size(16)));

/* Outcodes of one axis: below its minimum, above its maximum. With a negative 1/w the comparisons of NDC turn round (G45 4173). */
static uint32_t outside(float value, float min, float max, int negative, uint32_t below, uint32_t above)
{
    uint32_t code = (value < min ? below : 0) | (value > max ? above : 0);
    return negative ? code ^ (below | above) : code;
}

/* The tests of X, Y and Z; limits of a clip-space position are multiplied by w, which has the right sign by itself. */
static uint32_t position_code(const struct clip_plan *plan, const float *p, const struct limits *guard, float scale, int negative)
{
    uint32_t code = 0, xy = plan->test_xy || plan->test_guardband;
    if (plan->test_xy) {
        code |= outside(p[0], plan->viewport.x_min * scale, plan->viewport.x_max * scale, negative, OUT_X_MIN, OUT_X_MAX);
        code |= outside(p[1], plan->viewport.y_min * scale, plan->viewport.y_max * scale, negative, OUT_Y_MIN, OUT_Y_MAX);
    }
    if (plan->test_guardband) {
        code |= outside(p[0], guard->x_min * scale, guard->x_max * scale, negative, OUT_GUARD_X_MIN, OUT_GUARD_X_MAX);
        code |= outside(p[1], guard->y_min * scale, guard->y_max * scale, negative, OUT_GUARD_Y_MIN, OUT_GUARD_Y_MAX);
    }
    if (plan->test_xy && !plan->test_guardband) /* one that is off coincides with the other (G45 4175) */
        code |= (code & OUT_XY) >> 6;
    if (!plan->test_xy && plan->test_guardband)
        code |= (code & OUT_GUARD) << 6;
    if (isnan(p[0]) && xy)
        code |= OUT_X_MIN | OUT_X_MAX | OUT_GUARD_X_MIN | OUT_GUARD_X_MAX;
    if (isnan(p[1]) && xy)
        code |= OUT_Y_MIN | OUT_Y_MAX | OUT_GUARD_Y_MIN | OUT_GUARD_Y_MAX;
    uint32_t z = isnan(p[2]) ? OUT_Z : outside(p[2], plan->z_min * scale, scale, negative, OUT_Z_MIN, OUT_Z_MAX);
    return code | (z & ((plan->test_z_min ? OUT_Z_MIN : 0) | (plan->test_z_max ? OUT_Z_MAX : 0)));
}

/* User clip and cull planes: distances below zero (a NaN too) in dwords 8 to 15, or flags in the vertex header (G45 4357). */
static uint32_t user_code(const struct clip_plan *plan, const uint8_t *entry, uint64_t stride)
{
    uint32_t flags = 0, both = plan->user_clip | plan->user_cull;
    if (!both)
        return 0;
    if (plan->user_flags)
        memcpy(&flags, entry + 4 * HEADER_POINT_WIDTH, 4);
    else
        for (uint32_t i = 0; i < 8; i++) {
            float distance = 0;
            if (4 * (i + 9) <= stride)
                memcpy(&distance, entry + 4 * (8 + i), 4);
            flags |= (uint32_t)!(distance >= 0) << i;
        }
    return (flags & plan->user_clip) << OUT_USER_SHIFT | (flags & plan->user_cull) << OUT_CULL_SHIFT;
}

/* [DevCL-B]: flag 7 of the header makes a vertex bad, a negative 1/w is outside user plane 7, and no comparison turns round
   (G45 3714-3761, 4204, 4364). */
static uint32_t flagged_code(const struct clip_plan *plan, const uint8_t *entry, uint64_t stride, const float *p,
                             const struct limits *guard)
{
    uint32_t flags, seventh = 1u << 7;
    memcpy(&flags, entry + 4 * HEADER_POINT_WIDTH, 4);
    if (flags & seventh)
        return OUT_BAD;
    uint32_t outside_w = signbit(p[3]) ? (plan->user_clip & seventh) << OUT_USER_SHIFT : 0;
    return position_code(plan, p, guard, 1.0f, 0) | user_code(plan, entry, stride) | outside_w;
}

static uint32_t vertex_code(const struct clip_plan *plan, const uint8_t *entry, uint64_t stride)
{
    float p[4];
    uint32_t index;
    memcpy(p, entry + 4 * POSITION, sizeof p);
    memcpy(&index, entry + 4 * HEADER_VIEWPORT, sizeof index);
    if (isnan(p[3]))
        return OUT_BAD;
    int negative = plan->clip_space ? !(p[3] > 0) : signbit(p[3]) != 0;
    float scale = plan->clip_space ? p[3] : 1.0f;
    const struct limits *guard = &plan->guardband[viewport_index(index, plan->viewports)];
    if (plan->w_flag)
        return flagged_code(plan, entry, stride, p, guard);
    uint32_t code = position_code(plan, p, guard, scale, negative && !plan->clip_space) | user_code(plan, entry, stride);
    return code | (negative && plan->test_negative_w ? OUT_NEGATIVE_W : 0);
}

/* -- sixteen vertices at a time ------------------------------------------------------------------------------------------------------ */

enum { GROUP = 16 };

/* The plans that test_group is specialised for: without user planes and with one viewport. */
static int is_usual(const struct clip_plan *plan)
{
    return plan->enabled && plan->clip_space && !(plan->user_clip | plan->user_cull) && plan->viewports <= 1;
}

INLINE uint32_t axis_code(float value, float min, float max, uint32_t below, uint32_t above)
{
    return (value < min ? below : 0) | (value > max ? above : 0);
}

/* What vertex_code says, of a position; `tested` are the outcodes that state tests, `x_bits` and `y_bits` those of a NaN. */
INLINE uint32_t usual_code(const struct clip_plan *plan, float x, float y, float z, float w, uint32_t tested, uint32_t x_bits,
                           uint32_t y_bits)
{
    const struct limits v = plan->viewport, guard = plan->guardband[0];
    uint32_t code = axis_code(x, v.x_min * w, v.x_max * w, OUT_X_MIN, OUT_X_MAX);
    code |= axis_code(y, v.y_min * w, v.y_max * w, OUT_Y_MIN, OUT_Y_MAX);
    code |= axis_code(x, guard.x_min * w, guard.x_max * w, OUT_GUARD_X_MIN, OUT_GUARD_X_MAX);
    code |= axis_code(y, guard.y_min * w, guard.y_max * w, OUT_GUARD_Y_MIN, OUT_GUARD_Y_MAX);
    code |= axis_code(z, plan->z_min * w, w, OUT_Z_MIN, OUT_Z_MAX) | (z != z ? OUT_Z : 0) | (w > 0 ? 0 : OUT_NEGATIVE_W);
    code &= tested;
    code |= tested & OUT_GUARD ? 0 : (code & OUT_XY) >> 6; /* one that is off coincides with the other (G45 4175) */
    code |= tested & OUT_XY ? 0 : (code & OUT_GUARD) << 6;
    code |= (x != x ? x_bits : 0) | (y != y ? y_bits : 0);
    return w != w ? OUT_BAD : code;
}

VECTORIZED static void test_group(const struct clip_plan *plan, const struct vertex_array *vertices, uint32_t first, uint32_t *outcodes)
{
    float x[GROUP], y[GROUP], z[GROUP], w[GROUP];
    uint32_t tested = (plan->test_xy ? OUT_XY : 0) | (plan->test_guardband ? OUT_GUARD : 0) | (plan->test_z_min ? OUT_Z_MIN : 0) |
                      (plan->test_z_max ? OUT_Z_MAX : 0) | (plan->test_negative_w ? OUT_NEGATIVE_W : 0);
    uint32_t x_bits = OUT_X_MIN | OUT_X_MAX | OUT_GUARD_X_MIN | OUT_GUARD_X_MAX, y_bits = (OUT_XY | OUT_GUARD) & ~x_bits;
    if (!(tested & (OUT_XY | OUT_GUARD)))
        x_bits = y_bits = 0;
    for (uint32_t i = 0; i < GROUP; i++) {
        struct screen_position p;
        memcpy(&p, entry_of(vertices, first + i) + 4 * POSITION, sizeof p);
        x[i] = p.x, y[i] = p.y, z[i] = p.z, w[i] = p.rhw;
    }
    for (uint32_t i = 0; i < GROUP; i++)
        outcodes[i] = usual_code(plan, x[i], y[i], z[i], w[i], tested, x_bits, y_bits);
    for (uint32_t i = 0; i < GROUP; i++)
        vertices->positions[first + i] = (struct screen_position){x[i] / w[i], y[i] / w[i], z[i] / w[i], 1.0f / w[i]};
}

/* Positions for SETUP, and outcodes. */
static void test_vertices(struct geometry *g)
{
    const struct clip_plan *plan = g->clip;
    uint32_t first = 0;
    if (is_usual(plan))
        for (; first + GROUP <= g->vertices->count; first += GROUP)
            test_group(plan, g->vertices, first, g->outcodes + first);
    for (uint32_t i = first; i < g->vertices->count; i++) {
        const uint8_t *entry = entry_of(g->vertices, i);
        struct screen_position *p = &g->vertices->positions[i];
        memcpy(p, entry + 4 * POSITION, sizeof *p);
        if (plan->clip_space) {
            vector position = {p->x, p->y, p->z, 1.0f};
            position /= p->rhw;
            memcpy(p, &position, sizeof *p);
        }
        g->outcodes[i] = plan->enabled ? vertex_code(plan, entry, g->vertices->stride) : 0;
    }
}

/* The outcodes that a kind of object looks at: a point is tested at its centre, not against the guardband (BDW 2016-2029). */
static uint32_t tested(const struct clip_plan *plan, uint32_t vertices)
{
    if (vertices > 1)
        return ~0u;
    return plan->test_xy ? ~(uint32_t)OUT_GUARD : ~(uint32_t)(OUT_GUARD | OUT_XY);
}

/* ClipDetermination (G45 4383-4470) and the action of the mode (G45 4490-4512). */
static struct clip_result determine(const struct clip_plan *plan, uint32_t all, uint32_t any)
{
    int bad = any & OUT_BAD, rejected = (all & ~(uint32_t)OUT_BAD) != 0;
    uint32_t must = any & (OUT_GUARD | OUT_Z | OUT_NEGATIVE_W | (plan->user_must_clip ? OUT_USER : 0));
    uint32_t action = CLIP_DISCARD;
    switch (plan->mode) {
    case CLIP_NORMAL: action = bad || rejected ? CLIP_DISCARD : must ? CLIP_MUST : CLIP_PASS; break;
    case CLIP_ALL: action = CLIP_MUST; break;
    case CLIP_NON_REJECTED: action = bad || rejected ? CLIP_DISCARD : CLIP_MUST; break;
    case CLIP_ACCEPT_ALL: action = bad ? CLIP_DISCARD : CLIP_PASS; break;
    }
    if (bad && plan->w_flag && plan->mode != CLIP_REJECT_ALL) /* G45 4484, 4514 */
        action = CLIP_MUST;
    return (struct clip_result){action, any & ~(uint32_t)OUT_CULL};
}

/* The rest of a CLIP thread's r0.2: topology and which edges of a polygon are its own (G45 4710-4723). */
static uint32_t payload_bits(const struct object *object)
{
    enum { POLYGON = 14, TRISTRIP = 5, TRISTRIP_REVERSE = 13 };
    uint32_t topology = object->flags >> OBJECT_TOPOLOGY_SHIFT & 31, edges = object->flags >> OBJECT_EDGES_SHIFT;
    if (topology == TRISTRIP || topology == TRISTRIP_REVERSE)
        return object->flags & OBJECT_INVERTED ? TRISTRIP_REVERSE : TRISTRIP;
    return topology | (topology == POLYGON ? (edges & 1) << 8 | (edges >> 2 & 1) << 9 : 0);
}

/* Tests the vertices and objects of a chunk: fills in positions, outcodes and results. How many objects must be clipped. */
EXPORT int64_t clip_test(struct geometry *g)
{
    const struct clip_plan *plan = g->clip;
    int64_t must = 0;
    test_vertices(g);
    for (uint64_t i = 0; i < g->objects->count; i++) {
        const struct object *object = &g->objects->objects[i];
        uint32_t vertices = object->flags & OBJECT_VERTICES, all = ~0u, any = 0;
        if (!plan->enabled) {
            g->results[i] = (struct clip_result){CLIP_PASS, 0};
            continue;
        }
        for (uint32_t v = 0; v < vertices; v++) {
            all &= g->outcodes[object->vertex[v]];
            any |= g->outcodes[object->vertex[v]];
        }
        if (!any && (plan->mode == CLIP_NORMAL || plan->mode == CLIP_ACCEPT_ALL)) { /* the usual case */
            g->results[i] = (struct clip_result){CLIP_PASS, payload_bits(object)};
            continue;
        }
        uint32_t mask = tested(plan, vertices);
        g->results[i] = determine(plan, all & mask, any & mask);
        g->results[i].outcodes |= payload_bits(object);
        must += g->results[i].action == CLIP_MUST;
    }
    if (plan->enabled && plan->statistics)
        g->invocations += plan->statistics == CLIP_COUNTS_THREADS ? (uint64_t)must : g->objects->count;
    return must;
}

/* -- the stage ----------------------------------------------------------------------------------------------------------------------- */

/* Whether a vertex of the chunk has another viewport than the first. */
static int names_viewport(const struct vertex_array *vertices)
{
    const uint8_t *entry = vertices->entries;
    uint32_t found = 0, index;
    for (uint64_t i = 0; i < vertices->count; i++, entry += vertices->stride) {
        memcpy(&index, entry + 4 * HEADER_VIEWPORT, sizeof index);
        found |= index;
    }
    return found != 0;
}

EXPORT int64_t stage_clip(struct draw *d, struct stage *s, void *record)
{
    const struct clip_stage *plan = s->plan;
    struct geometry *g = s->loop;
    (void)record;
    g->vertices = d->chunk.vertices;
    g->objects = d->chunk.objects;
    g->results = g->tested;
    if (plan->one_viewport && !d->viewports && names_viewport(g->vertices))
        return DRAW_VIEWPORTS;
    if (plan->counts_objects)
        d->counts[GS_PRIMITIVES] += g->objects->count;
    uint64_t before = g->invocations;
    d->must_clip = g->objects->count ? (uint64_t)clip_test(g) : 0;
    d->counts[CL_INVOCATIONS] += g->invocations - before;
    return g->objects->count ? THREADS_DONE : STAGE_EMPTY;
}
