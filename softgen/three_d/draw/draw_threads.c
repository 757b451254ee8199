/* The stages of a prepared draw whose work threads do: CLIP and SF of Gen4.5 (clip_threads.c, setup_threads.c). */
#include "draw.h"

#include "../stage_threads/stage_threads.h"

#include <string.h>

int64_t run_clip_threads(struct clip_threads *c, void *record);
int64_t run_setup_threads(struct setup_threads *s, void *record);

void begin_stage_threads(struct draw *d, uint64_t deadline)
{
    const struct prepared_draw *p = d->prepared;
    memset(&d->clip_work, 0, sizeof d->clip_work);
    memset(&d->setup_work, 0, sizeof d->setup_work);
    d->clip_begun = 0;
    begin_workers(p->setup_worker, &p->setup_loops, deadline);
}

/* Whether a vertex of the chunk has another viewport than the first. */
int names_viewport(const struct prepared_draw *p)
{
    const uint8_t *entry = p->vertices->entries;
    uint32_t found = 0, index;
    for (uint64_t i = 0; i < p->vertices->count; i++, entry += p->vertices->stride) {
        memcpy(&index, entry + 4 * HEADER_VIEWPORT, sizeof index);
        found |= index;
    }
    return found != 0;
}

/* -- CLIP ---------------------------------------------------------------------------------------------------------------------------- */

enum { PER_THREAD = 48 }; /* entries of a thread, as in thread_output.py */

/* The vertices of the chunk stay where they are; those that threads put out follow them. Python does what there is no room for. */
static int64_t begin_clip_threads(struct draw *d)
{
    const struct prepared_draw *p = d->prepared;
    struct clip_threads *c = p->clip_loop;
    struct thread_output *o = c->output;
    uint32_t rows = (uint32_t)(p->vertices->stride / URB_ROW);
    uint64_t made = 0;
    for (uint64_t i = 0; i < p->objects->count; i++)
        made += p->geometry->results[i].action == CLIP_MUST ? PER_THREAD : 0;
    uint64_t end = p->vertices->count + made;
    if (!d->clip_begun)
        threads_begin(p->clip_worker, d->deadline);
    d->clip_begun = 1;
    if (end > p->vertices->capacity || p->objects->count + made > o->objects.capacity)
        return DRAW_CLIP_ELSEWHERE;
    memset(p->vertices->entries + p->vertices->count * p->vertices->stride, 0, made * p->vertices->stride);
    c->objects = p->objects;
    c->results = p->geometry->results;
    c->from = c->next = c->batch = c->threads = 0;
    c->stage.entries = p->vertices->entries;
    c->stage.stride = p->vertices->stride;
    o->vertices = *p->vertices;
    o->objects.count = 0;
    o->refused = o->invocations = 0;
    *o->pool = (struct urb_pool){(uint32_t)p->vertices->count * rows, (uint32_t)end * rows, rows, 0};
    return THREADS_DONE;
}

int64_t run_clip_stage(struct draw *d, void *record)
{
    const struct prepared_draw *p = d->prepared;
    struct geometry *g = p->geometry;
    if (!p->clip_loop)
        return DRAW_NO_CLIPPER;
    struct thread_output *o = p->clip_loop->output;
    if (!d->clipping) {
        int64_t why = begin_clip_threads(d);
        if (why != THREADS_DONE)
            return why;
        d->clipping = 1;
    }
    uint64_t began = monotonic_time();
    int64_t why = run_clip_threads(p->clip_loop, record);
    d->clip_work.nanoseconds += monotonic_time() - began;
    if (why != THREADS_DONE)
        return why;
    if (o->refused)
        return DRAW_REFUSED;
    g->vertices = &o->vertices;
    g->objects = &o->objects;
    g->results = NULL; /* what the objects are now, all pass */
    d->stage = STAGE_SETUP;
    return THREADS_DONE;
}

/* -- SF ------------------------------------------------------------------------------------------------------------------------------ */

int64_t begin_setup_threads(struct draw *d)
{
    const struct prepared_draw *p = d->prepared;
    struct setup_threads *s = p->setup_loop;
    const struct vertex_array *vertices = p->geometry->vertices;
    s->inputs = p->geometry->sf_inputs;
    s->records = d->records->records;
    s->count = d->records->count;
    *s->next = 0;
    s->stage.entries = vertices->entries;
    s->stage.stride = vertices->stride;
    d->records->attributes = s->primitives;
    d->stage = STAGE_SETUP_THREADS;
    return share_stage(d, &p->setup_loops, s->count / d->share_vertices);
}

static int64_t run_setup_loop(void *loop, void *record)
{
    return run_setup_threads(loop, record);
}

int64_t run_setup_stage(struct draw *d, void *record)
{
    const struct prepared_draw *p = d->prepared;
    uint64_t began = monotonic_time();
    int64_t why = d->loops > 1 ? run_loops(d, &p->setup_loops, run_setup_loop, p->setup_loop) : run_setup_threads(p->setup_loop, record);
    d->setup_work.nanoseconds += monotonic_time() - began;
    if (why == THREADS_DONE)
        d->stage = STAGE_BIN;
    return why;
}

static const struct shared_loops alone = {0}; /* CLIP threads are not shared: the order of what they put out counts */

void end_stage_threads(struct draw *d)
{
    const struct prepared_draw *p = d->prepared;
    count_work(d->clip_begun ? p->clip_worker : NULL, &alone, &d->clip_work);
    count_work(p->setup_worker, &p->setup_loops, &d->setup_work);
}
