/* MFC_MPEG2_PAK_OBJECT: what a macroblock is to be, its samples, and whether it is skipped (6.2.5, 7.6.6). */
#include <string.h>

#include "mpeg2_pak.h"

enum { INTRA_TYPE = 26, LIST_0 = 1, LIST_1, BOTH, ALL_BLOCKS = 63 };

static unsigned field(const struct mpeg2_object *o, unsigned dword, unsigned high, unsigned low)
{
    return o->dwords[dword - 1] >> low & ((2u << (high - low)) - 1);
}

static void reset_dc(struct mpeg2_decoder *d)
{
    for (int i = 0; i < PLANES; i++)
        d->dc[i] = 1 << (7 + d->slice->intra_dc_precision);
}

/* Prediction modes and vectors of an object that is not intra. */
static enum mpeg2_pak_error read_motion(struct mpeg2_encoder *e, const struct mpeg2_object *o)
{
    struct mpeg2_motion *m = &e->d.motion;
    unsigned type = field(o, 1, 12, 8);
    if (e->slice->type == I_PICTURE || type < LIST_0 || type > BOTH || (e->slice->type == P_PICTURE && type != LIST_0))
        return MPEG2_PAK_BAD_TYPE;
    m->modes = (type != LIST_1 ? FORWARD : 0) | (type != LIST_0 ? BACKWARD : 0);
    m->type = WHOLE;
    for (unsigned direction = 0; direction < 2; direction++) {
        m->vector[0][direction][0] = (int16_t)field(o, 5 + direction, 15, 0);
        m->vector[0][direction][1] = (int16_t)field(o, 5 + direction, 31, 16);
        if (m->modes & (direction ? BACKWARD : FORWARD) && !mpeg2_in_range(e, (int)direction))
            return MPEG2_PAK_BAD_VECTOR;
    }
    return mpeg2_predict(&e->d, e->x, e->y) ? MPEG2_PAK_FINE : MPEG2_PAK_NO_REFERENCE;
}

/* Whether a macroblock without coefficients may be left out of the stream: it is not the first or the last one of its slice. */
static int may_skip(const struct mpeg2_encoder *e, const struct mpeg2_object *o, int modes_before)
{
    const struct mpeg2_decoder *d = &e->d;
    if (field(o, 4, 25, 25) || field(o, 4, 30, 30) || field(o, 4, 31, 31))
        return 0;
    if (e->slice->type == P_PICTURE)
        return !d->motion.vector[0][0][0] && !d->motion.vector[0][0][1];
    if (d->motion.modes != modes_before)
        return 0;
    for (int s = 0; s < 2; s++)
        if (d->motion.modes & (s ? BACKWARD : FORWARD) && memcmp(d->motion.vector[0][s], d->predictor[0][s], sizeof d->predictor[0][s]))
            return 0;
    return 1;
}

static void skip(struct mpeg2_encoder *e)
{
    e->skipped++;
    reset_dc(&e->d);
    if (e->slice->type == P_PICTURE)
        mpeg2_reset_vectors(&e->d);
}

static enum mpeg2_pak_error encode(struct mpeg2_encoder *e, const struct mpeg2_object *o, unsigned code)
{
    struct mpeg2_decoder *d = &e->d;
    struct mpeg2_coded c = {0};
    int intra = (int)field(o, 1, 13, 13), modes_before = d->motion.modes, still;
    if (intra && field(o, 1, 12, 8) != INTRA_TYPE)
        return MPEG2_PAK_BAD_TYPE;
    enum mpeg2_pak_error error = intra ? MPEG2_PAK_FINE : read_motion(e, o);
    if (error != MPEG2_PAK_FINE)
        return error;
    mpeg2_code_blocks(e, &c, intra, field(o, 1, 2, 2) ? 0 : field(o, 3, 11, 6) & ALL_BLOCKS);
    if (!intra && !c.pattern && may_skip(e, o, modes_before)) {
        skip(e);
        return MPEG2_PAK_FINE;
    }
    still = e->slice->type == P_PICTURE && c.pattern && !d->motion.vector[0][0][0] && !d->motion.vector[0][0][1];
    c.type = intra ? INTRA : still ? PATTERN : d->motion.modes | (c.pattern ? PATTERN : 0);
    if (code != e->slice_code && c.type & (INTRA | PATTERN)) {
        c.type |= QUANT;
        e->slice_code = code;
    }
    if (intra || still) /* which leave no vectors for those after them (7.6.3.4) */
        mpeg2_reset_vectors(d);
    if (!intra)
        reset_dc(d);
    else
        d->motion.modes = 0;
    mpeg2_write_macroblock(e, &c, code);
    return MPEG2_PAK_FINE;
}

static enum mpeg2_pak_error object(struct mpeg2_encoder *e, const struct mpeg2_object *o)
{
    unsigned code = field(o, 4, 4, 0), first = field(o, 4, 30, 30);
    struct picture *p = e->slice->picture;
    if (!code || (!first && !e->begun))
        return code ? MPEG2_PAK_BAD_TYPE : MPEG2_PAK_BAD_SCALE;
    if (field(o, 1, 14, 14) || (field(o, 1, 15, 15) && e->slice->frame_pred_frame_dct))
        return MPEG2_PAK_FIELDS;
    if (!first && !e->x)
        return MPEG2_PAK_ACROSS_ROWS;
    e->d.field_dct = (int)field(o, 1, 15, 15);
    e->d.scale = mpeg2_scale(e->slice, code);
    if (first) {
        mpeg2_reset_vectors(&e->d);
        reset_dc(&e->d);
        e->d.motion.modes = 0;
        e->skipped = e->x; /* the first increment says where a slice begins */
        e->slice_code = code;
        if (e->begun || !e->no_first_header)
            mpeg2_write_slice_header(e, e->y, code);
        e->begun = 1;
    }
    enum mpeg2_pak_error error = encode(e, o, code);
    if (error == MPEG2_PAK_FINE)
        p->state[(size_t)e->y * p->width + e->x] = DECODED;
    if (field(o, 4, 31, 31))
        writer_align(e->writer, 0);
    return error;
}

/* Entry: objects up to the end of a row of macroblocks; answers how many are left. */
ENTRY int64_t mpeg2_pak(struct mpeg2_encoder *e, void *record)
{
    const struct picture *p = e->slice->picture;
    uint64_t start = writer_position(e->writer);
    (void)record;
    e->d.slice = e->slice;
    e->source = reference_frame(e->source_picture, 0);
    e->writer->escape = NO_ESCAPE;
    while (e->next < e->count && e->y < p->height) {
        e->error = object(e, &e->objects[e->next]);
        if (e->error != MPEG2_PAK_FINE)
            return 0;
        e->next++;
        e->x = e->x + 1 < p->width ? e->x + 1 : 0;
        e->y += !e->x;
        if (!e->x)
            break;
    }
    e->bits += writer_position(e->writer) - start;
    return e->y < p->height ? e->count - e->next : 0;
}
