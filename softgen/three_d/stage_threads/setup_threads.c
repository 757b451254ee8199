/* SF threads: one for each setup record; they write its coefficients into a primitive URB entry (G45 5816-5999). */
#include "stage_threads.h"

#include <stddef.h>
#include <string.h>

enum { R1 = 32, R2 = 64 };

EXPORT int64_t run_setup_threads(struct setup_threads *s, void *record)
{
    struct threads_worker *worker = s->stage.worker;
    if (!stage_payload_fits(&s->stage, OBJECT_VERTICES))
        return THREADS_TOO_LONG;
    int64_t why = threads_pending(worker) ? threads_resume(worker, record) : THREADS_DONE;
    while (why == THREADS_DONE) {
        uint64_t threads = threads_capacity(worker) < STAGE_BATCH ? threads_capacity(worker) : STAGE_BATCH;
        uint64_t first = __atomic_fetch_add(s->next, threads, __ATOMIC_RELAXED);
        if (first >= s->count)
            break;
        if (threads > s->count - first)
            threads = s->count - first;
        for (uint64_t i = 0; i < threads; i++) {
            const struct sf_input *input = &s->inputs[first + i];
            uint8_t *payload = threads_payload(worker, i);
            s->records[first + i].attributes = (first + i) * s->entry_bytes;
            write_stage_payload(&s->stage, payload, s->stage.first_slot + (uint32_t)i, (uint32_t)((first + i) * s->entry_bytes / URB_ROW),
                                input->vertex, input->vertices);
            memcpy(payload + R1, input->r1, sizeof input->r1);
            memcpy(payload + R2, input->r2, sizeof input->r2);
        }
        why = threads_run(worker, record, threads, NULL);
    }
    return why;
}

EXPORT int64_t setup_threads_size(void)
{
    return sizeof(struct setup_threads);
}
