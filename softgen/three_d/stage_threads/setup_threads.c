/* SF threads: one for each setup record; they write its coefficients into a primitive URB entry (G45 5816-5999). */
#include "../draw/draw.h"

#include "stage_threads.h"

#include <stddef.h>
#include <string.h>

enum { R1 = 32, R2 = 64 };
enum { ATTRIBUTES = 8, ROWS = 3, GROUP = 4 }; /* of a block of coefficients: attributes; rows Cx, Cy, Co; floats of an attribute as they are read */

static int64_t write(void *loop, uint64_t capacity)
{
    struct setup_threads *s = loop;
    uint64_t first = __atomic_fetch_add(s->next, capacity, __ATOMIC_RELAXED);
    if (first >= s->count)
        return -1;
    uint64_t threads = capacity < s->count - first ? capacity : s->count - first;
    for (uint64_t i = 0; i < threads; i++) {
        const struct sf_input *input = &s->inputs[first + i];
        uint8_t *payload = threads_payload(s->stage.head.worker, i);
        s->records[first + i].attributes = (first + i) * s->entry_bytes;
        write_stage_payload(&s->stage, payload, s->stage.head.first_slot + (uint32_t)i,
                            (uint32_t)((first + i) * s->entry_bytes / URB_ROW), input->vertex, input->vertices);
        memcpy(payload + R1, input->r1, sizeof input->r1);
        memcpy(payload + R2, input->r2, sizeof input->r2);
    }
    return (int64_t)threads;
}

EXPORT int64_t run_setup_threads(struct setup_threads *s, void *record)
{
    return run_stage_threads(&s->stage, OBJECT_VERTICES, record, write, NULL);
}

/* Entries of rows Cx, Cy and Co of eight attributes (G45 6034-6043), as groups (Cx, Cy, 0, Co) of each attribute (G45 6048-6059). */
EXPORT void transpose_coefficients(const struct setup_threads *s)
{
    uint64_t blocks = s->entry_bytes / (ATTRIBUTES * GROUP * sizeof(float));
    for (uint64_t record = 0; record < s->count; record++) {
        const float *from = (const float *)(s->primitives + record * s->entry_bytes);
        float *to = (float *)(s->transposed + record * s->entry_bytes);
        for (uint64_t i = 0; i < blocks; i++, from += ATTRIBUTES * ROWS)
            for (int attribute = 0; attribute < ATTRIBUTES; attribute++, to += GROUP)
                to[0] = from[attribute], to[1] = from[ATTRIBUTES + attribute], to[2] = 0, to[3] = from[2 * ATTRIBUTES + attribute];
    }
}

/* The depth of pixels is as the threads' coefficients have it: Cx, Cy, nothing and Co, from the start vertex on (G45 6003, 6636-6640). */
static void read_depth(const struct setup_threads *s, const uint8_t *entries)
{
    for (uint64_t i = 0; i < s->count; i++) {
        struct setup_record *r = &s->records[i];
        float c[4];
        memcpy(c, entries + r->attributes + s->depth_at, sizeof c);
        r->z = (struct plane){c[3] - (double)c[0] * r->x_start - (double)c[1] * r->y_start + s->inputs[i].depth_offset, c[0], c[1]};
    }
}

/* -- the stage ----------------------------------------------------------------------------------------------------------------------- */

static int64_t begin_setup_threads(struct draw *d, struct stage *stage)
{
    struct setup_threads *s = stage->loop;
    const struct geometry *g = stage->plan;
    s->inputs = g->sf_inputs;
    s->records = d->records->records;
    s->count = d->records->count;
    *s->next = 0;
    s->stage.entries = g->vertices->entries;
    s->stage.stride = g->vertices->stride;
    return share_stage(d, stage, s->count / d->share_vertices);
}

EXPORT int64_t stage_setup_threads(struct draw *d, struct stage *stage, void *record)
{
    struct setup_threads *s = stage->loop;
    int64_t why = stage->begun ? THREADS_DONE : begin_setup_threads(d, stage);
    stage->begun = 1;
    if (why == THREADS_DONE)
        why = run_threads(d, stage, record);
    if (why != THREADS_DONE)
        return why;
    stage->begun = 0;
    if (s->transposed)
        transpose_coefficients(s);
    d->records->attributes = s->transposed ? s->transposed : s->primitives;
    read_depth(s, d->records->attributes);
    return THREADS_DONE;
}

EXPORT int64_t setup_threads_size(void)
{
    return sizeof(struct setup_threads);
}
