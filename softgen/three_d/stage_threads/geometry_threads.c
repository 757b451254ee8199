/* GS threads of Gen4.5: one for each object of a draw; what they put out is what CLIP gets (G45 3268-3508). */
#include "../draw/draw.h"

#include "stage_threads.h"

#include <stddef.h>
#include <string.h>

enum { EDGE_V0_V1 = 1 << 8, EDGE_V2_V0 = 1 << 9, POLYGON = 14, TRISTRIP = 5, TRISTRIP_REVERSE = 13 };
enum { NO_ENTRY = 1 }; /* vertices that nobody has: a handle is not 0 */

struct geometry_threads {
    struct stage_threads stage;
    struct output_threads out;
    uint32_t whole; /* vertices of an object that two which follow one another make, or 0 */
    uint32_t reorder; /* inverted triangles of strips have their last two vertices exchanged */
    uint32_t topology; /* of the draw, where later stages see another one; else 0 */
    uint32_t counts_threads, counts_clipping; /* GS_INVOCATION_COUNT; messages count CL_INVOCATION_COUNT */
    uint32_t reserved;
    uint32_t primitive[STAGE_BATCH];
};

/* Vertices in the order of the draw; how many. */
static uint32_t vertices_of(const struct geometry_threads *g, const struct object *object, uint32_t vertex[THREAD_VERTICES])
{
    int swap = g->reorder && object->flags & OBJECT_INVERTED;
    for (uint32_t i = 0; i < 3; i++)
        vertex[i] = object->vertex[swap && i ? 3 - i : i];
    for (uint32_t i = 3; i < g->whole; i++)
        vertex[i] = object[1].vertex[i - 3];
    return g->whole ? g->whole : object->flags & OBJECT_VERTICES;
}

/* r0.2 (G45 3383-3389); triangles of a strip say their direction by themselves (G45 3250). */
static uint32_t topology_bits(const struct geometry_threads *g, const struct object *object)
{
    uint32_t topology = g->topology ? g->topology : object->flags >> OBJECT_TOPOLOGY_SHIFT & 31;
    uint32_t edges = object->flags >> OBJECT_EDGES_SHIFT;
    if (topology == TRISTRIP || topology == TRISTRIP_REVERSE)
        return object->flags & OBJECT_INVERTED ? TRISTRIP_REVERSE : TRISTRIP;
    if (topology != POLYGON)
        return topology;
    return topology | (edges & 1 ? EDGE_V0_V1 : 0) | (edges >> 2 & 1 ? EDGE_V2_V0 : 0);
}

/* Objects that a thread gets, each with up to three vertices. */
static uint64_t step_of(const struct geometry_threads *g)
{
    return g->whole ? 2 : 1;
}

static void collect(void *loop)
{
    struct geometry_threads *g = loop;
    for (uint64_t i = 0; i < g->out.batch && !g->out.output->refused; i++)
        read_output(g->out.output, g->out.handle[i], g->primitive[i]);
    g->out.batch = 0;
}

static int64_t write(void *loop, uint64_t capacity)
{
    struct geometry_threads *g = loop;
    struct output_threads *t = &g->out;
    if (t->next == t->end || t->output->refused)
        return -1;
    for (; t->next < t->end && t->batch < capacity; t->next += step_of(g)) {
        const struct object *object = &t->objects->objects[t->next];
        uint32_t vertex[THREAD_VERTICES], count = vertices_of(g, object, vertex);
        g->primitive[t->batch] = object->primitive;
        if (!start_thread(t, &g->stage, vertex, count, topology_bits(g, object)))
            return -1;
    }
    return (int64_t)t->batch;
}

EXPORT int64_t run_geometry_threads(struct geometry_threads *g, void *record)
{
    return run_stage_threads(&g->stage, g->whole ? g->whole : OBJECT_VERTICES, record, write, collect);
}

/* -- the stage ----------------------------------------------------------------------------------------------------------------------- */

static void begin_geometry(struct draw *d, struct stage *s)
{
    struct geometry_threads *g = s->loop;
    struct output_threads *t = &g->out;
    if (!s->more) {
        t->objects = d->chunk.objects;
        t->next = 0;
        g->stage.entries = d->chunk.vertices->entries;
        g->stage.stride = d->chunk.vertices->stride;
    }
    uint64_t most = t->output->vertices.capacity < d->most_vertices ? t->output->vertices.capacity : d->most_vertices;
    uint64_t left = (t->objects->count - t->next) / step_of(g), room = (most - NO_ENTRY) / PER_THREAD;
    uint64_t threads = left < room ? left : room;
    t->end = t->next + threads * step_of(g);
    t->batch = t->threads = 0;
    begin_output(t->output, NO_ENTRY, threads);
    d->loops = 1; /* the order of what they put out counts */
}

EXPORT int64_t stage_geometry(struct draw *d, struct stage *s, void *record)
{
    struct geometry_threads *g = s->loop;
    struct thread_output *o = g->out.output;
    if (!s->begun)
        begin_geometry(d, s);
    s->begun = 1;
    int64_t why = run_threads(d, s, record);
    if (why != THREADS_DONE)
        return why;
    if (o->refused)
        return DRAW_REFUSED;
    s->begun = 0;
    s->more = g->out.next + step_of(g) <= g->out.objects->count;
    count_vertices(o);
    d->counts[GS_INVOCATIONS] += g->counts_threads ? g->out.threads : 0;
    d->counts[CL_INVOCATIONS] += g->counts_clipping ? o->invocations : 0;
    d->chunk = (struct stage_chunk){&o->vertices, &o->objects};
    return o->objects.count ? THREADS_DONE : STAGE_EMPTY;
}

EXPORT int64_t geometry_threads_size(void)
{
    return sizeof(struct geometry_threads);
}
