/* Slice data to encode: its first bits and its last ones, macroblocks between (7.3.4). */
#include <string.h>

#include "write.h"

/* Samples of macroblocks that the source ends in are those of its last column and row. */
static void pad(struct avc_encoder *e)
{
    for (int i = 0; i < PLANES; i++) {
        const struct plane *p = &e->source->plane[i];
        unsigned size = i ? 8 : 16, width = e->slice->avc->width * size, height = e->slice->avc->height * size;
        for (unsigned y = 0; y < p->height && p->width < width; y++)
            memset(p->samples + (size_t)y * p->stride + p->width, p->samples[(size_t)y * p->stride + p->width - 1], width - p->width);
        for (unsigned y = p->height; y < height; y++)
            memcpy(p->samples + (size_t)y * p->stride, p->samples + (size_t)(p->height - 1) * p->stride, width);
    }
}

/* The source's samples: all rows, or those of the field. */
static const struct frame *view(struct avc_encoder *e)
{
    const struct avc_picture *avc = e->slice->avc;
    const struct frame *whole = reference_frame(e->source_picture, 0);
    if (!avc->field || !whole)
        return whole;
    for (int i = 0; i < PLANES; i++) {
        struct plane *p = &e->field_rows.plane[i];
        *p = whole->plane[i];
        p->samples += avc->bottom ? p->stride : 0;
        p->stride *= 2;
        p->height = (p->height + !avc->bottom) / 2;
    }
    return &e->field_rows;
}

/* The slice's first macroblock is next: contexts, QP, alignment. */
void avc_begin_slice(struct avc_encoder *e)
{
    struct avc_slice *s = e->slice;
    struct avc_decoder *d = e->d;
    memset(d, 0, sizeof *d);
    d->slice = s;
    d->avc = s->avc;
    d->type = (int)s->type;
    d->number = (int)++s->avc->slices;
    d->qp = (int)s->qp;
    d->x = s->first_x;
    d->y = s->first_y;
    d->field = (int)d->avc->field;
    e->writer->escape = NAL_ESCAPE;
    e->begun = 1;
    e->source = view(e);
    pad(e);
    avc_quantisers(e);
    if (!d->avc->cabac)
        return;
    writer_align(e->writer, 1);
    cabac_contexts(d);
    cabac_write_start(&e->cabac, e->writer);
}

/* The stop bit: the arithmetic encoder's last bit is one already. */
static void end_slice(struct avc_encoder *e)
{
    if (!e->d->avc->cabac) {
        if (e->skip_run)
            writer_ue(e->writer, e->skip_run);
        writer_bits(e->writer, 1, 1);
    }
    writer_align(e->writer, 0);
}

/* The current macroblock is written: end_of_slice_flag; goes to the next one. Whether there is any. */
int avc_next_macroblock(struct avc_encoder *e)
{
    struct avc_decoder *d = e->d;
    unsigned x = d->x + 1 < d->avc->width ? d->x + 1 : 0, y = d->y + !x;
    int last = y >= d->avc->height || (y == e->end_y && x == e->end_x);
    d->avc->picture->state[(size_t)d->y * d->avc->width + d->x] = DECODED;
    if (d->avc->cabac)
        cabac_write_end(&e->cabac, last);
    if (last) {
        end_slice(e);
        return 0;
    }
    d->x = x;
    d->y = y;
    return 1;
}
