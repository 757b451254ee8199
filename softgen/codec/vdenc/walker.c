/* VDENC's walk over the macroblocks of a slice: each is decided, then encoded (VDENC_WALKER_STATE). */
#include <string.h>

#include "vdenc.h"

enum { ALL_COEFFICIENTS = 0x7ffffff, SCALE = 4 };

static void decide(const struct vdenc *v, struct avc_choice *c)
{
    struct avc_decoder *d = v->encoder->d;
    struct avc_choice inter = {.qp = (uint8_t)d->qp, .allowed = ALL_COEFFICIENTS};
    uint32_t cost;
    *c = inter;
    if (d->type == I_SLICE) {
        vdenc_intra(v, c);
        return;
    }
    cost = vdenc_inter(v, &inter);
    if (vdenc_intra(v, c) + 8 * v->lambda > cost)
        *c = inter;
}

/* Entry: macroblocks up to the end of a row; answers how many rows may be left. */
ENTRY int64_t vdenc_walk(struct vdenc *v, void *record)
{
    struct avc_encoder *e = v->encoder;
    struct avc_choice choice;
    (void)record;
    if (!e->begun)
        avc_begin_slice(e);
    uint64_t start = writer_position(e->writer);
    int more;
    do {
        avc_enter(e->d, e->d->x, e->d->y);
        decide(v, &choice);
        avc_encode_macroblock(e, &choice);
        more = avc_next_macroblock(e);
    } while (more && e->d->x);
    e->bits += writer_position(e->writer) - start;
    return more ? (int64_t)e->d->avc->height - e->d->y : 0;
}

/* Entry: the picture's luma at a quarter of its width and height, means of 4x4 samples, for later searches. */
ENTRY int64_t vdenc_scale(struct vdenc_scaling *s, void *record)
{
    const struct plane *p = &s->picture->frame.plane[0];
    uint8_t row[4096];
    (void)record;
    for (unsigned y = 0; y < p->height / SCALE; y++) {
        unsigned width = p->width / SCALE < sizeof row ? p->width / SCALE : sizeof row;
        for (unsigned x = 0; x < width; x++) {
            unsigned sum = SCALE * SCALE / 2;
            for (unsigned i = 0; i < SCALE * SCALE; i++)
                sum += p->samples[(size_t)(SCALE * y + i / SCALE) * p->stride + SCALE * x + i % SCALE];
            row[x] = (uint8_t)(sum / (SCALE * SCALE));
        }
        write_surface_row(&s->picture->memory, &s->surface, 0, y, row, width);
    }
    return 0;
}
