/* The vertices that GS and CLIP threads put out become objects. A thread's entries are linked in the order of their allocation, in which
 * they leave the stage (G45 1615); each says topology, start and end of its primitive (G45 1055-1063). */
#include "stage_threads.h"

#include <stddef.h>
#include <string.h>

enum { EDGE_0 = 1 << OBJECT_EDGES_SHIFT, EDGE_2 = EDGE_0 << 2, PRIM_END = 1, PRIM_START = 2, COUNT_CLIP = 1 << 7 };

/* The primitive that a thread is putting out. */
struct primitive {
    uint32_t count, next, made, first, recent[3];
    struct object *last; /* its last object */
};

/* Makes room after so many vertices for what threads put out. Kernels may leave parts of their entries alone: all are zero. */
void begin_output(struct thread_output *o, uint64_t vertices, uint64_t threads)
{
    struct vertex_array *v = &o->vertices;
    uint32_t rows = (uint32_t)(v->stride / URB_ROW);
    uint64_t end = vertices + threads * PER_THREAD;
    memset(v->entries + vertices * v->stride, 0, (end - vertices) * v->stride);
    v->count = (uint32_t)vertices;
    o->objects.count = 0;
    o->refused = o->invocations = 0;
    *o->pool = (struct urb_pool){(uint32_t)vertices * rows, (uint32_t)end * rows, rows, o->pool->retained};
}

/* The entry that a thread starts with; UINT32_MAX if there is none. */
uint32_t first_entry(struct thread_output *o)
{
    struct urb_pool *pool = o->pool;
    uint32_t handle = pool->next;
    if (handle + pool->step > pool->end) {
        o->refused = OUTPUT_FULL;
        return UINT32_MAX;
    }
    pool->next += pool->step;
    o->entries[handle] = (struct urb_entry){0, 0, 0, 0};
    return handle;
}

void keep_object(struct thread_output *o, const struct object *object)
{
    if (o->objects.count < o->objects.capacity)
        o->objects.objects[o->objects.count++] = *object;
    else
        o->refused = OUTPUT_FULL;
}

static void add_object(struct thread_output *o, const struct output_topology *t, struct primitive *p, uint32_t primitive)
{
    struct object object = {.flags = t->flags, .primitive = primitive};
    for (uint32_t i = 0; i < 3; i++) {
        uint32_t from = i < t->corners ? t->back[i] : t->back[0];
        object.vertex[i] = from == TOPOLOGY_FIRST ? p->first : p->recent[(p->count - 1 - from) % 3];
    }
    if (t->inverts && p->made % 2 == t->inverts % 2)
        object.flags |= OBJECT_INVERTED;
    if (t->line_strip && (p->made || t->continued))
        object.flags |= OBJECT_CONTINUES;
    if (t->polygon)
        object.flags &= ~(uint32_t)((p->made ? EDGE_0 : 0) | EDGE_2);
    keep_object(o, &object);
    p->last = o->objects.count ? &o->objects.objects[o->objects.count - 1] : NULL;
    p->made++;
}

static void add_vertex(struct thread_output *o, struct primitive *p, uint32_t vertex, uint32_t dw2, uint32_t primitive)
{
    const struct output_topology *t = &o->topology[dw2 >> 2 & (TOPOLOGIES - 1)];
    if (!t->minimum) {
        o->refused = 1 + (dw2 >> 2 & (TOPOLOGIES - 1));
        return;
    }
    o->put_out |= 1u << (dw2 >> 2 & (TOPOLOGIES - 1));
    if (dw2 & PRIM_START || !p->next)
        *p = (struct primitive){.next = t->minimum, .first = vertex};
    p->recent[p->count % 3] = vertex;
    if (++p->count == p->next) {
        p->next += t->step;
        add_object(o, t, p, primitive);
    }
    if (dw2 & PRIM_END) {
        if (p->last)
            p->last->flags |= t->polygon ? EDGE_2 : t->line_strip ? OBJECT_LAST : 0;
        if (p->count < t->minimum || (p->count - t->minimum) % t->step) /* G45 4883-4903 */
            o->incomplete |= 1u << (dw2 >> 2 & (TOPOLOGIES - 1));
        *p = (struct primitive){0};
    }
}

/* The objects of a thread that began with an entry; `primitive` is the PrimitiveID of what it got. */
EXPORT void read_output(struct thread_output *o, uint32_t handle, uint32_t primitive)
{
    uint32_t rows = (uint32_t)(o->vertices.stride / URB_ROW);
    struct primitive p = {0};
    do {
        const struct urb_entry *entry = &o->entries[handle];
        o->invocations += entry->flags & URB_COMPLETE && entry->dw2 & COUNT_CLIP; /* G45 4809 */
        o->rewritten |= entry->flags & URB_REWRITTEN;
        if ((entry->flags & (URB_COMPLETE | URB_USED)) == (URB_COMPLETE | URB_USED)) {
            uint32_t vertex = handle / rows;
            const uint8_t *header = o->vertices.entries + vertex * o->vertices.stride;
            memcpy(&o->vertices.positions[vertex], header + 4 * POSITION, sizeof(struct screen_position));
            add_vertex(o, &p, vertex, entry->dw2, primitive);
        }
        handle = entry->next;
    } while (handle && !o->refused);
}

/* After all threads: the vertices are those that were there, and all entries of the pool that were given out. */
void count_vertices(struct thread_output *o)
{
    o->vertices.count = o->pool->next / o->pool->step;
}

/* Sizes and offsets of the structures, for a check against Python's. */
EXPORT int64_t stage_threads_layout(uint64_t *into)
{
    uint64_t sizes[] = {sizeof(struct stage_threads), sizeof(struct urb_entry), sizeof(struct urb_pool), sizeof(struct output_topology),
                        sizeof(struct thread_output), sizeof(struct output_threads), offsetof(struct thread_output, topology)};
    memcpy(into, sizes, sizeof sizes);
    return sizeof sizes / sizeof *sizes;
}
