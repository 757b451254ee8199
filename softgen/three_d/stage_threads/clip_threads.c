/* CLIP threads: one for each object that must be clipped; what they put out takes the object's place (G45 4490-4512, 4653-4785). */
#include "../draw/draw.h"

#include "stage_threads.h"

#include <stddef.h>
#include <string.h>

/* Objects in a thread's hands; rectangles are software's to keep within limits, and pass. */
static int clipped(const struct clip_threads *c, uint64_t i)
{
    return c->results[i].action == CLIP_MUST && !(c->out.objects->objects[i].flags & OBJECT_RECTANGLE);
}

/* Objects in their order: those that pass, and what came of those that were clipped. */
static void collect(void *loop)
{
    struct clip_threads *c = loop;
    struct output_threads *t = &c->out;
    uint64_t thread = 0;
    for (uint64_t i = t->from; i < t->next && !t->output->refused; i++) {
        const struct object *object = &t->objects->objects[i];
        if (clipped(c, i))
            read_output(t->output, t->handle[thread++], object->primitive);
        else if (c->results[i].action != CLIP_DISCARD)
            keep_object(t->output, object);
    }
    t->from = t->next;
    t->batch = 0;
}

static int64_t write(void *loop, uint64_t capacity)
{
    struct clip_threads *c = loop;
    struct output_threads *t = &c->out;
    if (t->next == t->end || t->output->refused)
        return -1;
    for (; t->next < t->end && t->batch < capacity; t->next++) {
        const struct object *object = &t->objects->objects[t->next];
        if (clipped(c, t->next)
            && !start_thread(t, &c->stage, object->vertex, object->flags & OBJECT_VERTICES, c->results[t->next].outcodes))
            return -1;
    }
    return (int64_t)t->batch;
}

EXPORT int64_t run_clip_threads(struct clip_threads *c, void *record)
{
    return run_stage_threads(&c->stage, OBJECT_VERTICES, record, write, collect);
}

/* -- the stage ----------------------------------------------------------------------------------------------------------------------- */

/* The vertices that objects have before they are clipped, if threads put out longer entries than theirs. */
static void copy_vertices(const struct vertex_array *from, struct vertex_array *to)
{
    for (uint64_t i = 0; i < from->count; i++) {
        memcpy(to->entries + i * to->stride, from->entries + i * from->stride, from->stride);
        memset(to->entries + i * to->stride + from->stride, 0, to->stride - from->stride);
    }
    memcpy(to->positions, from->positions, from->count * sizeof *to->positions);
}

/* The part of the objects for which there is room: those that pass, and what threads put out of the others. */
static uint64_t set_end(struct clip_threads *c)
{
    struct output_threads *t = &c->out;
    uint64_t room = (t->output->vertices.capacity - c->vertices->count) / PER_THREAD, threads = 0, made = 0;
    for (t->end = t->next; t->end < t->objects->count; t->end++) {
        int one = clipped(c, t->end);
        made += one ? PER_THREAD : 1;
        if (threads + (uint64_t)one > room || made > t->output->objects.capacity)
            break;
        threads += (uint64_t)one;
    }
    return threads;
}

/* Vertices stay where they are, or are copied; those that threads put out follow them. */
static void begin_clip(struct draw *d, struct stage *s)
{
    struct clip_threads *c = s->loop;
    struct output_threads *t = &c->out;
    struct geometry *g = s->plan;
    struct vertex_array *made = &t->output->vertices;
    if (!s->more) {
        c->vertices = d->chunk.vertices;
        c->results = g->results;
        t->objects = d->chunk.objects;
        t->from = t->next = 0;
        if (made->entries != c->vertices->entries)
            copy_vertices(c->vertices, made);
        c->stage.entries = made->entries;
        c->stage.stride = made->stride;
    }
    t->batch = t->threads = 0;
    begin_output(t->output, c->vertices->count, set_end(c));
    d->loops = 1; /* the order of what they put out counts */
}

EXPORT int64_t stage_clip_threads(struct draw *d, struct stage *s, void *record)
{
    struct geometry *g = s->plan;
    if (!d->must_clip)
        return THREADS_DONE;
    if (!s->loop)
        return DRAW_NEEDED;
    struct clip_threads *c = s->loop;
    struct thread_output *o = c->out.output;
    if (!s->begun)
        begin_clip(d, s);
    s->begun = 1;
    int64_t why = run_threads(d, s, record);
    if (why != THREADS_DONE)
        return why;
    if (o->refused)
        return DRAW_REFUSED;
    s->begun = 0;
    s->more = c->out.next < c->out.objects->count;
    count_vertices(o);
    d->chunk = (struct stage_chunk){&o->vertices, &o->objects};
    g->results = NULL; /* what the objects are now, all pass */
    return o->objects.count ? THREADS_DONE : STAGE_EMPTY;
}

EXPORT int64_t clip_threads_size(void)
{
    return sizeof(struct clip_threads);
}
