/* Rectangles of one colour: drivers clear surfaces by a pixel shader that gives every pixel what its constants, or the object's attributes,
 * say. One block of such a rectangle has a thread; the rest gets the texel that it wrote.
 *
 * That is what threads of all blocks would leave: each would write the same bytes, whatever came before, in whatever order (one_color.py
 * says which draws are such). Boxes of several records may overlap, as the colour is that of the draw. */
#include "one_color.h"

#include "../draw/draw.h"
#include "pixels.h"

#include <string.h>

enum { BLOCK_MASK = BLOCK - 1 };

/* Whether a polygon covers every pixel of its box: no edge has a corner of the box outside. */
static int is_whole(const struct setup_record *r)
{
    if (r->coverage != COVERAGE_EDGES || r->x0 < 0 || r->y0 < 0)
        return 0;
    for (uint32_t n = 0; n < r->edges; n++) {
        int64_t x = r->edge_dx[n] > 0 ? r->x0 : r->x1 - 1, y = r->edge_dy[n] > 0 ? r->y0 : r->y1 - 1;
        if (r->edge[n] + r->edge_dx[n] * x + r->edge_dy[n] * y < 0)
            return 0;
    }
    return 1;
}

static uint64_t pixels_of(const struct setup_record *r)
{
    return r->x1 > r->x0 && r->y1 > r->y0 ? (uint64_t)(r->x1 - r->x0) * (uint64_t)(r->y1 - r->y0) : 0;
}

/* The end of the block that a pixel is in, if a box goes on there. */
static int32_t block_end(int32_t first, int32_t end)
{
    int32_t after = (first | BLOCK_MASK) + 1;
    return after < end ? after : end;
}

/* Whether threads of all records have the same attributes: then they write the same colour. */
static int is_one(const struct record_array *records, const struct payload_plan *payload)
{
    const uint8_t *first = records->attributes + records->records[0].attributes + payload->attribute_offset;
    for (uint64_t i = 1; i < records->count; i++)
        if (memcmp(records->attributes + records->records[i].attributes + payload->attribute_offset, first, payload->attribute_bytes))
            return 0;
    return 1;
}

void begin_boxes(struct draw *d, struct one_color *o, const struct payload_plan *payload)
{
    struct record_array *records = d->records;
    o->count = o->pixels = 0;
    if (!o->on || !records->count || records->count > MOST_BOXES || !is_one(records, payload) || d->binned_from || d->binned < records->count)
        return;
    for (uint64_t i = 0; i < records->count; i++) {
        struct setup_record *r = &records->records[i];
        uint64_t before = pixels_of(r);
        if (before < LEAST_PIXELS || !is_whole(r))
            continue;
        o->box[o->count].record = (uint32_t)i;
        o->box[o->count].x1 = r->x1;
        o->box[o->count++].y1 = r->y1;
        r->x1 = block_end(r->x0, r->x1);
        r->y1 = block_end(r->y0, r->y1);
        o->pixels += before - pixels_of(r);
    }
}

/* A box of a slice, its first texel included; a slice that there is not counts as the first one, as for writes of threads. */
static void fill_box(struct one_color *o, struct setup_record *r)
{
    struct fill *f = &o->fill;
    uint32_t layer = r->layer;
    if ((uint32_t)r->x0 >= f->width || (uint32_t)r->y0 >= f->height)
        return;
    r->layer = layer < f->slices ? layer : 0;
    memcpy(f->value, texel_of(f, (uint32_t)r->x0, (uint32_t)r->y0, r->layer), f->bytes);
    fill_rectangle(f, r);
    r->layer = layer;
}

void fill_boxes(struct draw *d, struct one_color *o)
{
    o->filling = 1;
    o->fill.table = d->memory;
    for (; o->count; o->count--) {
        struct setup_record *r = &d->records->records[o->box[o->count - 1].record];
        r->x1 = o->box[o->count - 1].x1;
        r->y1 = o->box[o->count - 1].y1;
        fill_box(o, r);
    }
    o->filling = 0;
}
