/* DS: domain shader threads, which make vertices of the points of patches (domain_shader.py). */
#include "tessellation.h"

#include "../draw/draw.h"

#include <stddef.h>
#include <string.h>

enum { ROW = 64, VERTEX_HEADER = 16, CHANNELS = 8 };

static void put(uint8_t *at, uint32_t value)
{
    memcpy(at, &value, sizeof value);
}

static void put_coordinate(uint8_t *at, float value)
{
    memcpy(at, &value, sizeof value);
}

/* Where a point has its coordinates: SIMD8 threads a register for each one, others all of them in a half of a register. */
static void write_point(const struct domain_shader *d, uint8_t *payload, uint32_t lane, uint32_t vertex)
{
    const float *point = d->work->points[vertex];
    uint32_t at = lane * (d->simd8 ? 4 : 16);
    put_coordinate(payload + d->u_offset + at, point[0]);
    put_coordinate(payload + d->v_offset + at, point[1]);
    put_coordinate(payload + d->w_offset + at, d->compute_w ? 1 - (point[0] + point[1]) : 0);
    put(payload + d->handle_offset + 4 * lane, d->vertex_row + (uint32_t)(vertex * d->stride / ROW));
}

/* A thread that has fewer points than lanes has its last one again in the others, which are off. */
static uint32_t write_payload(const struct domain_shader *d, uint8_t *payload, uint32_t slot, const struct point_group *group)
{
    write_patch_header(&d->common, payload, slot);
    for (uint32_t lane = 0; lane < d->lanes; lane++)
        write_point(d, payload, lane, group->first + (lane < group->count ? lane : group->count - 1));
    put(payload + d->patch_offset, group->patch);
    put(payload + d->primitive_offset, group->primitive);
    if (d->read_bytes)
        read_entry(payload + d->common.data_offset, d->patches + (uint64_t)group->patch * ROW, d->patch_stride, d->read_offset,
                   d->read_bytes);
    for (uint32_t i = 0; i < group->count; i++) /* kernels may leave the vertex header alone */
        memset(d->entries + (group->first + i) * d->stride, 0, VERTEX_HEADER);
    return (1u << CHANNELS / d->lanes * group->count) - 1;
}

static int fits(const struct domain_shader *d)
{
    uint64_t fixed = d->handle_offset + 4 * (uint64_t)d->lanes, points = d->w_offset + 4 * (uint64_t)POINT_GROUP;
    return patch_header_fits(&d->common, fixed > points ? fixed : points, d->read_bytes);
}

EXPORT int64_t run_domain_shader(struct domain_shader *d, void *record)
{
    if (!fits(d))
        return THREADS_TOO_LONG;
    struct threads_worker *worker = d->head.worker;
    uint64_t end = d->work->group_count, capacity = threads_capacity(worker) < PATCH_BATCH ? threads_capacity(worker) : PATCH_BATCH;
    int64_t why = threads_pending(worker) ? threads_resume(worker, record) : THREADS_DONE;
    while (why == THREADS_DONE) {
        uint64_t first = __atomic_fetch_add(d->next, capacity, __ATOMIC_RELAXED);
        if (first >= end)
            break;
        uint64_t threads = end - first < capacity ? end - first : capacity;
        uint32_t partial = 0;
        for (uint32_t i = 0; i < threads; i++) {
            d->masks[i] = write_payload(d, threads_payload(worker, i), d->head.first_slot + i, &d->work->groups[first + i]);
            partial |= d->masks[i] ^ 0xff;
        }
        why = threads_run(worker, record, threads, partial ? d->masks : NULL);
    }
    return why;
}

/* -- the stage ----------------------------------------------------------------------------------------------------------------------- */

static int64_t begin_domain(struct draw *d, struct stage *s)
{
    struct domain_shader *loop = s->loop;
    *loop->next = 0;
    if (loop->counts)
        d->counts[DS_INVOCATIONS] += d->chunk.vertices->count;
    return share_stage(d, s, loop->work->group_count / d->share_vertices);
}

EXPORT int64_t stage_domain(struct draw *d, struct stage *s, void *record)
{
    int64_t why = s->begun ? THREADS_DONE : begin_domain(d, s);
    s->begun = 1;
    if (why == THREADS_DONE)
        why = run_threads(d, s, record);
    if (why == THREADS_DONE)
        s->begun = 0;
    return why;
}
