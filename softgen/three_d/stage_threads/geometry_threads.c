/* GS threads of Gen4.5: one for each object of a draw; what they put out is what CLIP gets (G45 3268-3508). */
#include "stage_threads.h"

#include <stddef.h>

enum { R0_2 = 8, EDGE_V0_V1 = 1 << 8, EDGE_V2_V0 = 1 << 9, POLYGON = 14, TRISTRIP = 5, TRISTRIP_REVERSE = 13 };

struct geometry_threads {
    struct stage_threads stage;
    const struct object_array *objects;
    struct thread_output *output;
    uint64_t from, next; /* objects whose threads are under way; those after them */
    uint64_t batch; /* threads of them */
    uint64_t threads; /* statistics */
    uint32_t whole; /* vertices of an object that two which follow one another make, or 0 */
    uint32_t reorder; /* inverted triangles of strips have their last two vertices exchanged */
    uint32_t topology; /* of the draw, where later stages see another one; else 0 */
    uint32_t reserved;
    uint32_t handle[STAGE_BATCH];
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

static void start(struct geometry_threads *g, const struct object *object)
{
    uint32_t vertex[THREAD_VERTICES], count = vertices_of(g, object, vertex), handle = first_entry(g->output);
    if (handle == UINT32_MAX)
        return;
    uint8_t *payload = threads_payload(g->stage.worker, g->batch);
    write_stage_payload(&g->stage, payload, g->stage.first_slot + (uint32_t)g->batch, handle, vertex, count);
    *(uint32_t *)(payload + R0_2) = topology_bits(g, object);
    g->primitive[g->batch] = object->primitive;
    g->handle[g->batch++] = handle;
    g->threads++;
}

EXPORT int64_t run_geometry_threads(struct geometry_threads *g, void *record)
{
    struct threads_worker *worker = g->stage.worker;
    if (!stage_payload_fits(&g->stage, g->whole ? g->whole : OBJECT_VERTICES))
        return THREADS_TOO_LONG;
    uint64_t capacity = threads_capacity(worker) < STAGE_BATCH ? threads_capacity(worker) : STAGE_BATCH, step = g->whole ? 2 : 1;
    int64_t why = threads_pending(worker) ? threads_resume(worker, record) : THREADS_DONE;
    while (why == THREADS_DONE && !g->output->refused) {
        for (uint64_t i = 0; i < g->batch && !g->output->refused; i++)
            read_output(g->output, g->handle[i], g->primitive[i]);
        g->batch = 0;
        if (g->next + step > g->objects->count)
            break;
        for (; g->next + step <= g->objects->count && g->batch < capacity && !g->output->refused; g->next += step)
            start(g, &g->objects->objects[g->next]);
        if (!g->output->refused)
            why = threads_run(worker, record, g->batch, NULL);
    }
    if (why == THREADS_DONE)
        count_vertices(g->output);
    return why;
}

EXPORT int64_t geometry_threads_size(void)
{
    return sizeof(struct geometry_threads);
}
