/* HS: hull shader threads, which make a patch entry of the vertices of each patch (hull_shader.py).
 *
 * A group's threads have a barrier and the entry in common; a batch has one group if there is more than one thread in it, as threads of
 * other groups must not keep it waiting. */
#include "tessellation.h"

#include "../draw/draw.h"

#include <stddef.h>
#include <string.h>

enum { ROW = 64, PATCH_HANDLE = 0, PRIMITIVE_ID = 4, INSTANCE = 8, REGISTER = 32 }; /* bytes of r0 */
enum { PATCH_HEADER = 64 }; /* bytes of an entry that start as zero: kernels may leave factors alone */

static void put(uint8_t *at, uint32_t value)
{
    memcpy(at, &value, sizeof value);
}

/* The vertices of a patch. */
static const uint32_t *corners_of(const struct hull_shader *h, uint64_t patch)
{
    const struct stage_chunk *chunk = h->chunk;
    return chunk->lists + chunk->objects->objects[h->first + patch].vertex[0] * chunk->list_vertices;
}

static uint32_t vertex_handle(const struct hull_shader *h, uint32_t vertex)
{
    return h->vertex_row + (uint32_t)(vertex * h->chunk->vertices->stride / ROW);
}

static uint32_t patch_handle(const struct hull_shader *h, uint64_t patch)
{
    return h->patch_row + (uint32_t)(patch * h->patches->stride / ROW);
}

/* The vertices' data: of one patch, two slots in a register. */
static void push_vertices(const struct hull_shader *h, uint8_t *payload, const uint32_t *corners)
{
    const struct vertex_array *vertices = h->chunk->vertices;
    for (uint32_t i = 0; i < h->corners; i++)
        read_entry(payload + h->common.data_offset + i * h->read_bytes, vertices->entries + corners[i] * vertices->stride,
                   vertices->stride, h->read_offset, h->read_bytes);
}

static uint32_t write_single(const struct hull_shader *h, uint8_t *payload, uint64_t patch)
{
    const uint32_t *corners = corners_of(h, patch);
    put(payload + PATCH_HANDLE, patch_handle(h, patch));
    put(payload + PRIMITIVE_ID, h->patches->primitives[patch]);
    for (uint32_t i = 0; h->handle_offset && i < h->corners; i++)
        put(payload + h->handle_offset + 4 * i, vertex_handle(h, corners[i]));
    if (h->read_bytes)
        push_vertices(h, payload, corners);
    return 0xff;
}

/* Eight patches, a channel for each; those that are off have the last one. */
static uint32_t write_eight(const struct hull_shader *h, uint8_t *payload, uint64_t patch)
{
    uint64_t left = h->patches->count - patch;
    for (uint32_t lane = 0; lane < POINT_GROUP; lane++) {
        uint64_t number = patch + (lane < left ? lane : left - 1);
        const uint32_t *corners = corners_of(h, number);
        put(payload + REGISTER + 4 * lane, patch_handle(h, number));
        if (h->primitive_offset)
            put(payload + h->primitive_offset + 4 * lane, h->patches->primitives[number]);
        for (uint32_t i = 0; h->handle_offset && i < h->corners; i++)
            put(payload + h->handle_offset + i * REGISTER + 4 * lane, vertex_handle(h, corners[i]));
    }
    return left < POINT_GROUP ? (1u << left) - 1 : 0xff;
}

static uint32_t write_payload(const struct hull_shader *h, uint8_t *payload, uint32_t thread, uint64_t patch)
{
    uint32_t instance = thread % h->instances, slot = h->head.first_slot + thread;
    write_patch_header(&h->common, payload, slot);
    put(payload + INSTANCE, h->common.header[INSTANCE / 4] | instance << h->instance_shift | slot / h->instances % h->barriers << h->barrier_shift);
    return h->lanes > 1 ? write_eight(h, payload, patch) : write_single(h, payload, patch);
}

static int fits(const struct hull_shader *h)
{
    uint64_t handles = h->handle_offset + (uint64_t)h->corners * (h->lanes > 1 ? REGISTER : 4);
    return h->groups * h->instances <= PATCH_BATCH && patch_header_fits(&h->common, handles, (uint64_t)h->corners * h->read_bytes);
}

EXPORT int64_t run_hull_shader(struct hull_shader *h, void *record)
{
    if (!fits(h))
        return THREADS_TOO_LONG;
    struct threads_worker *worker = h->head.worker;
    uint64_t end = (h->patches->count + h->lanes - 1) / h->lanes; /* groups */
    int64_t why = threads_pending(worker) ? threads_resume(worker, record) : THREADS_DONE;
    while (why == THREADS_DONE) {
        uint64_t first = __atomic_fetch_add(h->next, h->groups, __ATOMIC_RELAXED);
        if (first >= end)
            break;
        uint64_t groups = end - first < h->groups ? end - first : h->groups, threads = groups * h->instances;
        uint32_t partial = 0;
        for (uint32_t i = 0; i < threads; i++) {
            h->masks[i] = write_payload(h, threads_payload(worker, i), i, (first + i / h->instances) * h->lanes);
            partial |= h->masks[i] ^ 0xff;
        }
        why = threads_run(worker, record, threads, partial ? h->masks : NULL);
    }
    return why;
}

/* -- the stage ----------------------------------------------------------------------------------------------------------------------- */

/* As many of the patches that are left as there are entries for. */
static int64_t begin_hull(struct draw *d, struct stage *s)
{
    struct hull_input *plan = s->plan;
    struct hull_shader *h = s->loop;
    struct patch_array *patches = h->patches;
    if (!s->more) {
        plan->chunk = d->chunk;
        h->first = 0;
    } else {
        h->first += patches->count;
    }
    if (!plan->chunk.list_vertices) /* objects that are no patches */
        return STAGE_EMPTY;
    const struct object_array *objects = h->chunk->objects;
    uint64_t left = objects->count - h->first;
    patches->count = left < patches->capacity ? (uint32_t)left : patches->capacity;
    s->more = patches->count < left;
    for (uint32_t i = 0; i < patches->count; i++) {
        patches->primitives[i] = objects->objects[h->first + i].primitive;
        memset(patches->entries + i * patches->stride, 0, PATCH_HEADER);
    }
    *h->next = 0;
    if (plan->counts)
        d->counts[HS_INVOCATIONS] += patches->count;
    return share_stage(d, s, (uint64_t)patches->count * h->instances / h->lanes / d->share_vertices);
}

EXPORT int64_t stage_hull(struct draw *d, struct stage *s, void *record)
{
    int64_t why = s->begun ? THREADS_DONE : begin_hull(d, s);
    s->begun = 1;
    if (why == THREADS_DONE)
        why = run_threads(d, s, record);
    if (why == THREADS_DONE || why == STAGE_EMPTY)
        s->begun = 0;
    return why;
}
