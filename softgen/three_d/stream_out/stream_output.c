/* SOL: the vertices of a chunk's objects written to buffers, object by object, and which objects go on to CLIP (BDW 10856-11120).
 *
 * Objects are what strips, fans and loops were made of, without adjacent vertices: buffers get lists of points, lines and triangles. */
#include "../draw/draw.h"

#include "stream_output.h"

#include <string.h>

/* The order of an object's vertices: only triangles of strips have another than the pipeline's (BDW 10938-10958). */
static const uint8_t ORDERS[3][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2}};

static const uint8_t *order_of(const struct stream_plan *p, const struct object *object)
{
    return ORDERS[object->flags & OBJECT_INVERTED ? 1 + p->trailing : 0];
}

static uint32_t stream_of(const struct object *object)
{
    return object->flags >> OBJECT_STREAM_SHIFT & (STREAMS - 1);
}

/* Whether a buffer has room for vertices. What copies reach counts, too: nothing is written past the end of a buffer. */
static int has_room(const struct stream_buffer *b, uint32_t extent, uint32_t vertices)
{
    uint64_t last = b->pitch > extent ? b->pitch : extent;
    return b->offset + (vertices - 1) * b->pitch + last <= b->size;
}

/* An object is written as a whole or not at all: to none of its stream's buffers if one of them is too small (BDW 10476-10486). */
static int fits(const struct stream_plan *p, uint32_t selected, uint32_t vertices)
{
    for (uint32_t n = 0; n < STREAM_BUFFERS; n++)
        if (selected >> n & 1 && !has_room(&p->buffers[n], p->extent[n], vertices))
            return 0;
    return 1;
}

/* A buffer may reach from one part of the address space into the next (graphics_memory.h), where host memory is elsewhere. */
static void copy(const uint64_t *memory, uint64_t address, const uint8_t *from, uint32_t bytes)
{
    uint64_t left = (1ull << 32) - (address & 0xffffffff);
    if (bytes > left) {
        memcpy(graphics_memory(memory, address), from, left);
        memcpy(graphics_memory(memory, address + left), from + left, bytes - left);
        return;
    }
    uint8_t *to = graphics_memory(memory, address);
    switch (bytes) { /* the usual sizes, as single moves */
    case 4: memcpy(to, from, 4); break;
    case 8: memcpy(to, from, 8); break;
    case 12: memcpy(to, from, 12); break;
    case 16: memcpy(to, from, 16); break;
    case 32: memcpy(to, from, 32); break;
    default: memcpy(to, from, bytes);
    }
}

static void write_vertex(struct stream_plan *p, const uint64_t *memory, uint32_t stream, const uint8_t *entry)
{
    static const uint8_t zeros[16 * STREAM_COPIES];
    for (const struct stream_copy *c = p->copies + p->first[stream]; c < p->copies + p->first[stream + 1]; c++) {
        const struct stream_buffer *b = &p->buffers[c->buffer];
        copy(memory, b->address + b->offset + c->place, c->source == STREAM_ZEROS ? zeros : entry + c->source, c->bytes);
    }
    for (uint32_t n = 0; n < STREAM_BUFFERS; n++)
        if (p->selected[stream] >> n & 1)
            p->buffers[n].offset += p->buffers[n].pitch;
}

static void write_objects(struct stream_plan *p, const uint64_t *memory, const struct stage_chunk *chunk)
{
    const struct vertex_array *vertices = chunk->vertices;
    for (uint64_t i = 0; i < chunk->objects->count; i++) {
        const struct object *object = &chunk->objects->objects[i];
        uint32_t stream = stream_of(object), count = object->flags & OBJECT_VERTICES;
        const uint8_t *order = order_of(p, object);
        p->needed[stream]++;
        if (!fits(p, p->selected[stream], count))
            continue;
        for (uint32_t v = 0; v < count; v++)
            write_vertex(p, memory, stream, vertices->entries + object->vertex[order[v]] * vertices->stride);
        p->written[stream]++;
    }
}

/* Leaves the objects of one stream. */
static void select_stream(struct object_array *objects, uint32_t stream)
{
    uint64_t left = 0;
    for (uint64_t i = 0; i < objects->count; i++)
        if (stream_of(&objects->objects[i]) == stream)
            objects->objects[left++] = objects->objects[i];
    objects->count = left;
}

/* -- the stage ----------------------------------------------------------------------------------------------------------------------- */

EXPORT int64_t stage_stream_output(struct draw *d, struct stage *s, void *record)
{
    struct stream_plan *p = s->plan;
    (void)record;
    if (p->enabled) {
        if (!s->used) {
            s->used = 1;
            return DRAW_STREAM_BUFFERS;
        }
        write_objects(p, d->memory, &d->chunk);
        select_stream(d->chunk.objects, p->rendered);
    }
    return p->stops || !d->chunk.objects->count ? STAGE_EMPTY : THREADS_DONE;
}
