/* CLIP threads: one for each object that must be clipped; what they put out takes the object's place (G45 4490-4512, 4653-4785). */
#include "stage_threads.h"

#include <stddef.h>

enum { R0_2 = 8 };

/* Objects in a thread's hands; rectangles are software's to keep within limits, and pass. */
static int clipped(const struct clip_threads *c, uint64_t i)
{
    return c->results[i].action == CLIP_MUST && !(c->objects->objects[i].flags & OBJECT_RECTANGLE);
}

/* Objects in their order: those that pass, and what came of those that were clipped. */
static void collect(struct clip_threads *c)
{
    uint64_t thread = 0;
    for (uint64_t i = c->from; i < c->next && !c->output->refused; i++) {
        const struct object *object = &c->objects->objects[i];
        if (clipped(c, i))
            read_output(c->output, c->handle[thread++], object->primitive);
        else if (c->results[i].action != CLIP_DISCARD)
            keep_object(c->output, object);
    }
    c->from = c->next;
    c->batch = 0;
}

static void start(struct clip_threads *c, uint64_t i)
{
    const struct object *object = &c->objects->objects[i];
    uint32_t handle = first_entry(c->output), thread = (uint32_t)c->batch;
    if (handle == UINT32_MAX)
        return;
    uint8_t *payload = threads_payload(c->stage.worker, thread);
    write_stage_payload(&c->stage, payload, c->stage.first_slot + thread, handle, object->vertex, object->flags & OBJECT_VERTICES);
    *(uint32_t *)(payload + R0_2) = c->results[i].outcodes;
    c->handle[c->batch++] = handle;
    c->threads++;
}

EXPORT int64_t run_clip_threads(struct clip_threads *c, void *record)
{
    struct threads_worker *worker = c->stage.worker;
    if (!stage_payload_fits(&c->stage, OBJECT_VERTICES))
        return THREADS_TOO_LONG;
    uint64_t capacity = threads_capacity(worker) < STAGE_BATCH ? threads_capacity(worker) : STAGE_BATCH;
    int64_t why = threads_pending(worker) ? threads_resume(worker, record) : THREADS_DONE;
    while (why == THREADS_DONE && !c->output->refused) {
        collect(c);
        if (c->next == c->objects->count)
            break;
        while (c->next < c->objects->count && c->batch < capacity && !c->output->refused) {
            if (clipped(c, c->next))
                start(c, c->next);
            c->next++;
        }
        if (c->batch && !c->output->refused)
            why = threads_run(worker, record, c->batch, NULL);
    }
    if (why == THREADS_DONE)
        count_vertices(c->output);
    return why;
}

EXPORT int64_t clip_threads_size(void)
{
    return sizeof(struct clip_threads);
}
