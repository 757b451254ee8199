/* SBE: attributes of an object in the layout of pixel shader payloads (attributes.py makes the plan). KBL 22944-23020; BDW 9960-10215. */
#include "geometry.h"

#include <string.h>

static const uint32_t ONE = 0x3f800000;

typedef float vector __attribute__((vector_size(16)));
typedef int32_t selector __attribute__((vector_size(16)));

static float as_float(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* The four components of an attribute at a vertex; what is past the end of its entry reads as 0. */
static void read_source(const struct geometry *g, const struct object *object, const struct attribute *a, uint32_t vertex,
                        uint32_t back_facing, uint32_t into[4])
{
    uint32_t source[4] = {0}, offset = a->source + (back_facing ? a->facing : 0);
    if (offset + sizeof source <= g->vertices->stride)
        memcpy(source, entry_of(g->vertices, object->vertex[vertex]) + offset, sizeof source);
    for (int c = 0; c < 4; c++)
        switch (a->component[c]) {
        case COMPONENT_ZERO: into[c] = 0; break;
        case COMPONENT_ONE: into[c] = ONE; break;
        case COMPONENT_PRIMITIVE: into[c] = object->primitive; break;
        default: into[c] = source[a->component[c] & 3];
        }
}

/* Texture coordinates of a point: b1 goes from its left to its right edge, b2 from the upper to the lower (BDW 10017-10024). */
static void write_sprite(uint32_t lower_left, uint32_t *into)
{
    float x[4] = {1, 0, 0, 0}, y[4] = {0, lower_left ? -1.0f : 1.0f, 0, lower_left ? 1.0f : 0.0f}, w[4] = {0, 0, 0, 1};
    memcpy(into, x, sizeof x);
    memcpy(into + 4, y, sizeof y);
    memset(into + 8, 0, 16);
    memcpy(into + 12, w, sizeof w);
}

/* Per component: a1 - a0, a2 - a0, unused, a0 (GRAPHICS_THREADS 2.6). */
static void write_attribute(const struct geometry *g, const struct object *object, const struct attribute *a, uint32_t back_facing,
                            uint32_t *into)
{
    uint32_t vertices = object->flags & OBJECT_VERTICES, provoking = object->flags >> OBJECT_PROVOKING_SHIFT & 3, value[3][4];
    if (provoking >= vertices)
        provoking = object->flags & OBJECT_CORNER ? 1 : 0;
    read_source(g, object, a, a->flat ? provoking : 0, back_facing, value[0]);
    for (uint32_t v = 1; v < vertices && !a->flat; v++)
        read_source(g, object, a, v, back_facing, value[v]);
    for (uint32_t c = 0; c < 4; c++, into += 4) {
        float delta[3] = {0};
        for (uint32_t v = 1; v < vertices && !a->flat; v++)
            delta[v - 1] = as_float(value[v][c]) - as_float(value[0][c]);
        if (a->component[c] >= COMPONENT_ZERO)
            delta[0] = delta[1] = 0; /* a PrimitiveID is no float */
        for (int i = 0; i < 2 && a->wrap >> c & 1; i++)
            delta[i] -= delta[i] > 0.5f ? 1.0f : delta[i] < -0.5f ? -1.0f : 0.0f;
        memcpy(into, delta, sizeof delta);
        into[3] = value[0][c];
    }
}

/* The same for an attribute of a triangle that is what its source is: the usual case. */
static void write_plain(const struct geometry *g, const struct object *object, const struct attribute *a, uint8_t *into)
{
    vector v[3], none = {0, 0, 0, 0};
    for (int i = 0; i < 3; i++)
        memcpy(&v[i], entry_of(g->vertices, object->vertex[i]) + a->source, sizeof v[i]);
    vector d1 = v[1] - v[0], d2 = v[2] - v[0];
    selector xy = {0, 4, 1, 5}, zw = {2, 6, 3, 7}, first = {0, 1, 4, 5}, second = {2, 3, 6, 7};
    vector low = __builtin_shuffle(d1, d2, xy), high = __builtin_shuffle(d1, d2, zw);
    vector low_a0 = __builtin_shuffle(none, v[0], xy), high_a0 = __builtin_shuffle(none, v[0], zw);
    vector rows[4] = {__builtin_shuffle(low, low_a0, first), __builtin_shuffle(low, low_a0, second),
                      __builtin_shuffle(high, high_a0, first), __builtin_shuffle(high, high_a0, second)};
    memcpy(into, rows, sizeof rows);
}

static int is_plain(const struct geometry *g, const struct object *object, const struct attribute *a)
{
    static const uint8_t same[4] = {0, 1, 2, 3};
    return !a->flat && !a->facing && !a->wrap && (object->flags & OBJECT_VERTICES) == 3 && !memcmp(a->component, same, sizeof same) &&
           a->source + sizeof(vector) <= g->vertices->stride;
}

void write_attributes(const struct geometry *g, const struct object *object, uint32_t back_facing, uint8_t *into)
{
    const struct attribute_plan *plan = g->attributes;
    for (uint32_t i = 0; i < plan->count; i++, into += ATTRIBUTE_BYTES) {
        const struct attribute *a = &plan->attributes[i];
        if (is_plain(g, object, a))
            write_plain(g, object, a, into);
        else if (a->sprite && (object->flags & OBJECT_VERTICES) == 1)
            write_sprite(plan->sprite_lower_left, (uint32_t *)into);
        else
            write_attribute(g, object, a, back_facing, (uint32_t *)into);
    }
}
