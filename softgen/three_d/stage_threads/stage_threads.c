/* Stages whose work threads do, in bulk: payloads are written, a batch of threads runs, what they put out is collected.
 *
 * Payloads of GS, CLIP and SF threads (G45 1489-1491, 1555-1561): header, padding up to the dispatch GRF start, constants, vertices. */
#include "stage_threads.h"

#include <string.h>

enum { SCRATCH_DWORD = 5, R0_2 = 8 };

static void write_vertex(const struct stage_threads *s, uint8_t *to, uint32_t vertex)
{
    uint32_t there = s->stride > s->read_offset ? (uint32_t)s->stride - s->read_offset : 0;
    uint32_t bytes = there < s->read_bytes ? there : s->read_bytes; /* past the entry is undefined (G45 1594-1597): zero here */
    memcpy(to, s->entries + vertex * s->stride + s->read_offset, bytes);
    memset(to + bytes, 0, s->read_bytes - bytes);
}

/* Whether all that write_stage_payload writes for so many vertices is in a thread's registers. */
static int stage_payload_fits(const struct stage_threads *s, uint32_t vertices)
{
    uint64_t constants = (uint64_t)s->constant_offset + s->constant_bytes, end = s->vertex_offset + (uint64_t)vertices * s->read_bytes;
    return s->header_bytes <= sizeof s->header && constants <= THREADS_PAYLOAD && end <= THREADS_PAYLOAD;
}

void write_stage_payload(const struct stage_threads *s, uint8_t *payload, uint32_t slot, uint32_t handle, const uint32_t *vertex,
                         uint32_t vertices)
{
    uint32_t scratch = s->header[SCRATCH_DWORD] + slot * s->scratch_step + (slot & s->thread_mask);
    memcpy(payload, s->header, s->header_bytes);
    memcpy(payload, &handle, sizeof handle);
    memcpy(payload + 4 * SCRATCH_DWORD, &scratch, sizeof scratch);
    if (s->constant_offset > s->header_bytes)
        memset(payload + s->header_bytes, 0, s->constant_offset - s->header_bytes);
    if (s->constant_bytes)
        memcpy(payload + s->constant_offset, s->constants, s->constant_bytes);
    for (uint32_t i = 0; i < THREAD_VERTICES; i++)
        if (i < vertices)
            write_vertex(s, payload + s->vertex_offset + i * s->read_bytes, vertex[i]);
}

/* A thread for an object of the part under way: 0 if there is no entry for what it puts out. */
uint32_t start_thread(struct output_threads *t, const struct stage_threads *s, const uint32_t *vertex, uint32_t vertices, uint32_t r0_2)
{
    uint32_t handle = first_entry(t->output), thread = (uint32_t)t->batch;
    if (handle == UINT32_MAX)
        return 0;
    uint8_t *payload = threads_payload(s->head.worker, thread);
    write_stage_payload(s, payload, s->head.first_slot + thread, handle, vertex, vertices);
    memcpy(payload + R0_2, &r0_2, sizeof r0_2);
    t->handle[t->batch++] = handle;
    t->threads++;
    return 1;
}

/* Batch after batch of threads with up to `vertices` vertices. `write` writes the payloads of the next one, `capacity` threads at most: how
 * many, or less than 0 if nothing is left. `collect`, if there is one, is called before it: it takes what the batch before put out. */
int64_t run_stage_threads(struct stage_threads *s, uint32_t vertices, void *record, int64_t (*write)(void *loop, uint64_t capacity),
                          void (*collect)(void *loop))
{
    if (!stage_payload_fits(s, vertices))
        return THREADS_TOO_LONG;
    struct threads_worker *worker = s->head.worker;
    uint64_t capacity = threads_capacity(worker) < STAGE_BATCH ? threads_capacity(worker) : STAGE_BATCH;
    int64_t why = threads_pending(worker) ? threads_resume(worker, record) : THREADS_DONE;
    while (why == THREADS_DONE) {
        if (collect)
            collect(s);
        int64_t threads = write(s, capacity);
        if (threads < 0)
            break;
        if (threads)
            why = threads_run(worker, record, (uint64_t)threads, NULL);
    }
    return why;
}
