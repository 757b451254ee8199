/* VERTICES: vertex shader threads, with payloads of a chunk's vertices, batch by batch (SIMD4x2: G45 2972-3050); or fetched vertices. */
#include "../draw/draw.h"

#include "vertex_fetch.h"

#include <stddef.h>
#include <string.h>

enum { BATCH = 64, ROW = 64, VERTEX_HEADER = 16, HEADER = 16, SCRATCH_DWORD = 5 }; /* HEADER: dwords of r0 and r1 */

struct vertex_shader {
    struct stage_loop head;
    const struct vertex_fetch *fetch;
    struct vertex_ids ids;
    uint8_t *entries;
    uint64_t stride; /* of entries */
    uint64_t end; /* vertices of the chunk */
    uint64_t *next; /* the next vertex, shared by all loops */
    const uint8_t *constants;
    uint32_t constant_offset, constant_bytes; /* in a payload */
    uint32_t attribute_offset;
    uint32_t lanes, lane_stride; /* of a payload's vertices; bytes between their components */
    uint32_t vertices; /* that a thread gets, at most */
    uint32_t handle_offset, header_bytes; /* the first handle, of `lanes` dwords; r0, or r0 and r1 */
    uint32_t scratch_step, thread_mask; /* scratch space of a thread; bits of its number in the header */
    uint32_t header[HEADER];
    uint32_t masks[BATCH];
};

/* r0 (and r1), constants; those registers between them and the data that state leaves free are zero. */
static void write_header(const struct vertex_shader *v, uint8_t *payload, uint32_t slot)
{
    uint32_t scratch = v->header[SCRATCH_DWORD] + slot * v->scratch_step + (slot & v->thread_mask);
    memcpy(payload, v->header, v->header_bytes);
    memcpy(payload + 4 * SCRATCH_DWORD, &scratch, sizeof scratch);
    if (v->constant_offset > v->header_bytes)
        memset(payload + v->header_bytes, 0, v->constant_offset - v->header_bytes);
    if (v->constant_bytes)
        memcpy(payload + v->constant_offset, v->constants, v->constant_bytes);
}

/* A thread that has fewer vertices than lanes has its last one again in the others, which are off. */
static uint32_t write_payload(const struct vertex_shader *v, uint8_t *payload, uint32_t slot, uint64_t first)
{
    uint64_t left = v->end - first;
    uint32_t count = left < v->vertices ? (uint32_t)left : v->vertices;
    write_header(v, payload, slot);
    uint32_t vertex[FETCH_GROUP], instance[FETCH_GROUP], primitive[FETCH_GROUP];
    for (uint32_t lane = 0; lane < v->lanes; lane++) {
        uint64_t entry = first + (lane < count ? lane : count - 1);
        uint32_t handle = (uint32_t)(entry * v->stride / ROW);
        memcpy(payload + v->handle_offset + 4 * lane, &handle, sizeof handle);
        vertex[lane] = v->ids.vertex[entry];
        instance[lane] = v->ids.instance[entry];
        primitive[lane] = v->ids.primitive[entry];
    }
    fetch_group(v->fetch, (struct vertex_ids){vertex, instance, primitive}, v->lanes, payload + v->attribute_offset, v->lane_stride);
    for (uint32_t lane = 0; lane < count; lane++) /* kernels may leave the vertex header alone */
        memset(v->entries + (first + lane) * v->stride, 0, VERTEX_HEADER);
    uint32_t channels = 8 / v->lanes * count;
    return (1u << channels) - 1;
}

/* Whether all that write_payload writes is in a thread's registers. */
static int fits(const struct vertex_shader *v)
{
    uint64_t handles = (uint64_t)v->handle_offset + 4 * (uint64_t)v->lanes;
    uint64_t constants = (uint64_t)v->constant_offset + v->constant_bytes;
    uint64_t end = v->attribute_offset + fetch_extent(v->fetch, v->lanes, v->lane_stride);
    return v->header_bytes <= sizeof v->header && handles <= THREADS_PAYLOAD && constants <= THREADS_PAYLOAD && end <= THREADS_PAYLOAD;
}

EXPORT int64_t run_vertex_shader(struct vertex_shader *v, void *record)
{
    if (!fits(v))
        return THREADS_TOO_LONG;
    struct threads_worker *worker = v->head.worker;
    int64_t why = threads_pending(worker) ? threads_resume(worker, record) : THREADS_DONE;
    while (why == THREADS_DONE) {
        uint64_t threads = threads_capacity(worker) < BATCH ? threads_capacity(worker) : BATCH;
        uint64_t first = __atomic_fetch_add(v->next, threads * v->vertices, __ATOMIC_RELAXED);
        if (first >= v->end)
            break;
        uint64_t needed = (v->end - first + v->vertices - 1) / v->vertices;
        if (threads > needed)
            threads = needed;
        uint32_t partial = 0;
        for (uint64_t i = 0; i < threads; i++) {
            v->masks[i] = write_payload(v, threads_payload(worker, i), v->head.first_slot + (uint32_t)i, first + i * v->vertices);
            partial |= v->masks[i] ^ 0xff;
        }
        why = threads_run(worker, record, threads, partial ? v->masks : NULL);
    }
    return why;
}

/* -- the stage ----------------------------------------------------------------------------------------------------------------------- */

struct vertex_stage {
    uint64_t *count, *next; /* of the loop: vertices of the chunk, and the first that no thread has; NULL where they are only fetched */
    uint64_t per_thread; /* vertices */
    uint64_t counts; /* statistics are wanted */
    struct fetch_run edges; /* of edge flags; without a fetch: there are none */
};

static int64_t begin_vertices(struct draw *d, struct stage *s)
{
    const struct vertex_stage *plan = s->plan;
    uint64_t count = *plan->count = d->chunk.vertices->count;
    d->loops = 1;
    if (!plan->next)
        return THREADS_DONE;
    *plan->next = 0;
    if (plan->counts)
        d->counts[VS_INVOCATIONS] += count;
    return share_stage(d, s, (count + plan->per_thread - 1) / plan->per_thread / d->share_vertices);
}

EXPORT int64_t stage_vertices(struct draw *d, struct stage *s, void *record)
{
    struct vertex_stage *plan = s->plan;
    int64_t why = s->begun ? THREADS_DONE : begin_vertices(d, s);
    s->begun = 1;
    if (why == THREADS_DONE)
        why = run_threads(d, s, record);
    if (why != THREADS_DONE)
        return why;
    s->begun = 0;
    if (plan->edges.fetch) {
        plan->edges.count = d->chunk.vertices->count;
        plan->edges.objects = d->chunk.objects;
        mark_edges(&plan->edges);
    }
    return THREADS_DONE;
}

/* Sizes of the structures, for a check against Python's. */
EXPORT int64_t vertex_shader_layout(uint64_t *into)
{
    uint64_t sizes[] = {sizeof(struct vertex_shader), sizeof(struct vertex_stage)};
    memcpy(into, sizes, sizeof sizes);
    return sizeof sizes / sizeof *sizes;
}
