/* What geometry shader threads put out: vertices, and the objects that they make, in the order of objects, instances and vertices
 * (BDW 5738-5747, 5843-5855, 6020-6050). Entries live only as long as their round. */
#include "geometry_payload.h"

#include <stddef.h>
#include <string.h>

enum { SLOT = 16, ROW = 64, STREAM_BITS = 2 };
enum { EDGE_0 = 1 << OBJECT_EDGES_SHIFT, EDGE_2 = EDGE_0 << 2 };

/* How many vertices an invocation has put out. */
static uint32_t vertices_of(struct geometry_stage *s, const uint8_t *entry, uint32_t lane)
{
    const struct geometry_form *f = s->form;
    uint32_t count = f->count;
    if (f->counted == COUNT_IN_ENTRY)
        memcpy(&count, entry, sizeof count);
    else if (f->counted == COUNT_IN_MESSAGE) /* of the thread's last message: both slots (public: Mesa brw_vec4_generator.cpp) */
        count = s->entries[(entry - s->loop->urb) / ROW - lane * (f->entry_bytes / ROW)].dw2 >> 16 * lane & 0xffff;
    if (count <= f->most_vertices)
        return count;
    s->clamped = 1;
    return f->most_vertices;
}

/* Bits of the control data header; what is behind its end is zero. */
static inline uint32_t control_bits(const struct geometry_form *f, const uint8_t *entry, uint32_t vertex, uint32_t bits)
{
    uint32_t at = vertex * bits;
    return at / 8 < f->control_bytes ? entry[f->control_offset + at / 8] >> at % 8 & ((1u << bits) - 1) : 0;
}

/* A primitive that is being put together. */
struct strip {
    uint32_t begin, next, made; /* its first vertex; the number of vertices at which it has its next object; objects so far */
    struct object *last;
};

static void add_object(struct geometry_stage *s, struct strip *p, uint32_t first, uint32_t vertex, uint32_t primitive)
{
    const struct output_topology *t = &s->form->topology;
    struct object *o = &s->objects->objects[s->objects->count++];
    o->flags = t->flags | (t->inverts && p->made % 2 == t->inverts % 2 ? OBJECT_INVERTED : 0) |
               (t->line_strip && (p->made || t->continued) ? OBJECT_CONTINUES : 0);
    o->primitive = primitive;
    if (t->polygon)
        o->flags &= ~(uint32_t)((p->made ? EDGE_0 : 0) | EDGE_2);
    for (uint32_t i = 0; i < 3; i++) {
        uint32_t back = t->back[i < t->corners ? i : 0];
        o->vertex[i] = first + (back == TOPOLOGY_FIRST ? p->begin : vertex - back);
    }
    p->last = o;
    p->made++;
}

static void end_primitive(const struct output_topology *t, struct strip *p, uint32_t next)
{
    if (p->last)
        p->last->flags |= t->polygon ? EDGE_2 : t->line_strip ? OBJECT_LAST : 0;
    *p = (struct strip){.begin = next, .next = t->minimum};
}

/* The objects of one invocation's vertices, of which `first` is the number of the first. Bits at and after the count mean nothing. */
static void make_objects(struct geometry_stage *s, const uint8_t *entry, uint32_t first, uint32_t vertices, uint32_t primitive)
{
    const struct geometry_form *f = s->form;
    const struct output_topology *t = &f->topology;
    struct strip p = {.next = t->minimum};
    for (uint32_t v = 0; v < vertices; v++) {
        if (v - p.begin + 1 == p.next) {
            p.next += t->step;
            add_object(s, &p, first, v, primitive);
            uint32_t stream = f->has_streams ? control_bits(f, entry, v, STREAM_BITS) : f->stream;
            p.last->flags |= stream << OBJECT_STREAM_SHIFT;
        }
        if (v + 1 == vertices || (!f->has_streams && control_bits(f, entry, v, 1)))
            end_primitive(t, &p, v + 1);
    }
}

/* Copies vertices, and leaves the entry as threads have to find it: kernels may leave vertex headers alone. */
static void take_vertices(struct geometry_stage *s, uint8_t *entry, uint32_t count)
{
    const struct geometry_form *f = s->form;
    struct vertex_array *v = s->vertices;
    uint8_t *from = entry + f->vertex_offset, *to = v->entries + v->count * v->stride;
    if (v->stride == f->vertex_bytes)
        memcpy(to, from, (uint64_t)count * f->vertex_bytes);
    for (uint32_t i = 0; i < count; i++) {
        if (v->stride != f->vertex_bytes)
            memcpy(to + i * v->stride, from + i * f->vertex_bytes, f->vertex_bytes);
        memset(from + i * f->vertex_bytes, 0, SLOT);
    }
    memset(entry, 0, f->vertex_offset);
    v->count += count;
}

/* What the threads of the round put out, as far as there is room; 1: all of it. */
int read_entries(struct geometry_stage *s)
{
    const struct geometry_form *f = s->form;
    const struct geometry_shader *g = s->loop;
    for (uint64_t count = (g->end - g->first) * f->lanes; s->read < count; s->read++) {
        uint8_t *entry = g->room + s->read * f->entry_bytes;
        uint64_t object, thread = g->first + s->read / f->lanes;
        uint32_t instance, lane = (uint32_t)(s->read % f->lanes);
        if (lane >= lanes_of(f, thread, s->input.objects->count, &object, &instance))
            continue;
        uint32_t vertices = vertices_of(s, entry, lane), first = s->vertices->count;
        if (first + vertices > s->vertices->capacity || s->objects->count + vertices > s->objects->capacity)
            return 0;
        object += f->one_object ? 0 : lane;
        make_objects(s, entry, first, vertices, s->input.objects->objects[object].primitive);
        take_vertices(s, entry, vertices);
    }
    return 1;
}
