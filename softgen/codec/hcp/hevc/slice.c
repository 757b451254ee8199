/* Slice segments: coding tree blocks in the order of tiles, and where the arithmetic decoder and its contexts begin again (9.3.1). */
#include <string.h>

#include "hevc.h"

static void enter(struct hevc_decoder *d, int scan)
{
    struct hevc_picture *p = d->hevc;
    d->scan = scan;
    d->address = p->to_raster[scan];
    d->ctb_x = d->address % (int)p->across;
    d->ctb_y = d->address / (int)p->across;
    d->ctb = &p->ctbs[d->address];
}

static int begins_tile(const struct hevc_decoder *d)
{
    const struct hevc_picture *p = d->hevc;
    return !d->scan || p->tiles[d->address] != p->tiles[p->to_raster[d->scan - 1]];
}

/* Whether the current block is the first or, with `column` 1, the second of a row of its tile. */
static int in_column(const struct hevc_decoder *d, int column)
{
    const struct hevc_picture *p = d->hevc;
    if (d->ctb_x < column || p->tiles[d->address] != p->tiles[d->address - column])
        return 0;
    return d->ctb_x == column || p->tiles[d->address] != p->tiles[d->address - column - 1];
}

/* Contexts at the beginning of a row in wavefront order: those after the second block of the row above, if that is of this slice. */
static void begin_row(struct hevc_decoder *d)
{
    const struct hevc_picture *p = d->hevc;
    int size = 1 << p->log2_ctb, x = d->ctb_x << p->log2_ctb, y = d->ctb_y << p->log2_ctb;
    d->qp = d->slice->qp;
    if (hevc_available(d, x, y, x + size, y - size) && d->has_stored)
        memcpy(d->contexts, d->at_second_ctb, sizeof d->contexts);
    else
        hevc_contexts(d);
}

static void begin(struct hevc_slice *s)
{
    struct hevc_decoder *d = s->decoder;
    int dependent = s->dependent && d->hevc; /* on a slice before */
    d->slice = s;
    d->hevc = s->hevc;
    d->error = 0;
    for (int i = 0; i < HEVC_LISTS * HEVC_MOST_INDEX; i++) {
        const struct hevc_reference *r = &s->list[i / HEVC_MOST_INDEX][i % HEVC_MOST_INDEX];
        if (r->store >= 0) {
            d->hevc->distance[r->store] = r->distance;
            d->hevc->long_term[r->store] = (uint8_t)r->long_term;
        }
    }
    cabac_start(&d->cabac, s->data, s->size, s->start);
    enter(d, s->hevc->to_scan[s->first_y * s->hevc->across + s->first_x]);
    if (!dependent) {
        d->slice_address = d->address;
        d->qp = s->qp;
    }
    if (begins_tile(d) || !dependent) {
        d->qp = s->qp;
        hevc_contexts(d);
    }
    if (!begins_tile(d)) {
        if (d->hevc->wavefront && in_column(d, 0))
            begin_row(d);
        else if (dependent)
            memcpy(d->contexts, d->at_slice_end, sizeof d->contexts);
    }
    s->begun = 1;
}

/* A substream of its own begins with the current block, if a tile or, in wavefront order, a row does. */
static void begin_substream(struct hevc_decoder *d)
{
    const struct hevc_picture *p = d->hevc;
    int tile = begins_tile(d), row = p->wavefront && in_column(d, 0);
    if (!tile && !row)
        return;
    if (!cabac_end(&d->cabac)) {
        d->error = 1;
        return;
    }
    cabac_start(&d->cabac, d->cabac.data, d->cabac.size, cabac_position(&d->cabac));
    if (row && !tile) {
        begin_row(d);
        return;
    }
    d->qp = d->slice->qp;
    hevc_contexts(d);
}

static void describe(struct hevc_decoder *d)
{
    const struct hevc_slice *s = d->slice;
    d->ctb->slice = d->slice_address;
    d->ctb->beta = (int8_t)s->beta;
    d->ctb->tc = (int8_t)s->tc;
    d->ctb->unfiltered = (uint8_t)s->unfiltered;
    d->ctb->across = (uint8_t)s->across;
    d->hevc->filtered |= !s->unfiltered;
}

/* The current block; whether it is well formed. */
static int block(struct hevc_decoder *d)
{
    describe(d);
    if (d->hevc->sao)
        hevc_read_sao(d);
    hevc_coding_tree(d);
    if (d->hevc->wavefront && in_column(d, 1)) {
        memcpy(d->at_second_ctb, d->contexts, sizeof d->contexts);
        d->has_stored = 1;
    }
    return !d->error && !cabac_overrun(&d->cabac);
}

static void give_up(struct hevc_decoder *d)
{
    d->hevc->picture->errors |= HEVC_BAD_SYNTAX;
    d->ctb->slice = -1;
}

/* Entry: blocks up to the end of a row; answers how many rows may be left. */
ENTRY int64_t hevc_decode(struct hevc_slice *s, void *record)
{
    struct hevc_decoder *d = s->decoder;
    int blocks = (int)(s->hevc->across * s->hevc->down);
    (void)record;
    if (!s->begun)
        begin(s);
    for (;;) {
        if (!block(d)) {
            give_up(d);
            return 0;
        }
        if (cabac_end(&d->cabac)) {
            memcpy(d->at_slice_end, d->contexts, sizeof d->contexts);
            return 0;
        }
        if (d->scan + 1 >= blocks)
            return 0;
        enter(d, d->scan + 1);
        begin_substream(d);
        if (d->error) {
            give_up(d);
            return 0;
        }
        if (!d->ctb_x)
            return 1 + (int64_t)(s->hevc->down) - d->ctb_y;
    }
}
