/* Slices: macroblocks in the order of the stream, and the coefficients of their blocks as they are there (6.2.4 to 6.2.6; G45 8790-8840). */
#include <string.h>

#include "../../../codec/transform/transform.h"
#include "vld.h"

static void reset_dc(struct vld_decoder *d)
{
    memset(d->dc, 0, sizeof d->dc); /* kernels add the middle of the range after the transform (observed: intel-vaapi-driver) */
}

/* The thread of a macroblock whose blocks have been written behind its record. */
static void finish(struct vld_decoder *d, int intra, int pattern, uint8_t *end)
{
    struct vld_thread *thread = &d->slice->threads[d->count++];
    vld_record(d, intra, pattern, d->to);
    *thread = (struct vld_thread){(uint32_t)(d->to - d->slice->data), (uint32_t)(end - d->to), vld_index(d, intra, pattern), d->x};
    d->to = end;
    d->x++;
}

/* A block's coefficients, unscaled, in raster order. */
static int block(struct vld_decoder *d, int intra, int plane, int16_t out[64])
{
    const struct vld_slice *s = d->slice;
    const uint8_t *scan = s->alternate_scan ? mpeg2_alternate_scan : zigzag_scan;
    int i = 0, run, level, found;
    memset(out, 0, BLOCK_BYTES);
    if (intra) {
        int difference;
        if (!mpeg2_read_dc(&d->bits, plane > 0, &difference))
            return 0;
        d->dc[plane] += difference;
        out[i++] = (int16_t)d->dc[plane];
    } else if (bits_peek(&d->bits, 1)) { /* the shortest code of a first coefficient is 1s, as no block is empty (7.2.2.2) */
        out[i++] = bits_read(&d->bits, 2) & 1 ? -1 : 1;
    }
    while ((found = mpeg2_read_coefficient(&d->bits, mpeg2_coefficient_tables[intra && s->intra_vlc], &run, &level)) > 0) {
        i += run;
        if (i > 63 || bits_left(&d->bits) < 0)
            return 0;
        out[scan[i++]] = (int16_t)level;
    }
    return !found;
}

static int blocks(struct vld_decoder *d, int intra, int pattern)
{
    uint8_t *to = d->to + RECORD_BYTES;
    for (int number = 0; number < BLOCKS; number++) {
        int16_t found[64];
        if (!(pattern >> (5 - number) & 1))
            continue;
        if (!block(d, intra, number < 4 ? 0 : number - 3, found))
            return 0;
        memcpy(to, found, BLOCK_BYTES);
        to += BLOCK_BYTES;
    }
    finish(d, intra, pattern, to);
    return 1;
}

static int inter_vectors(struct vld_decoder *d, int type)
{
    if (!d->motion.type)
        return 0;
    for (int s = 0; s < 2; s++)
        if (type & (s ? MPEG2_BACKWARD : MPEG2_FORWARD) && !vld_vectors(d, s))
            return 0;
    if (!d->motion.modes) {
        vld_reset_vectors(d);
        vld_implied_motion(d, MPEG2_FORWARD);
    } else if (d->motion.type == DUAL_PRIME) {
        vld_dual_prime(d);
    }
    return 1;
}

/* The modes of a macroblock that follow its type, and its vectors; whether they are well formed. */
static int modes_and_vectors(struct vld_decoder *d, int type)
{
    const struct vld_slice *s = d->slice;
    int frame = s->structure == FRAME_PICTURE, choice = frame && !s->frame_pred_frame_dct;
    memset(&d->motion, 0, sizeof d->motion);
    d->motion.modes = type & (MPEG2_FORWARD | MPEG2_BACKWARD);
    d->motion.type = frame ? WHOLE : ONE_FIELD;
    if (d->motion.modes && (!frame || choice))
        d->motion.type = (int)bits_read(&d->bits, 2);
    d->field_dct = choice && type & (MPEG2_INTRA | MPEG2_PATTERN) ? (int)bits_read(&d->bits, 1) : 0;
    if (type & MPEG2_QUANT)
        d->quantiser_code = bits_read(&d->bits, 5);
    if (!(type & MPEG2_INTRA))
        return inter_vectors(d, type);
    if (!s->concealment_mv)
        vld_reset_vectors(d);
    else if (!vld_vectors(d, 0) || !bits_read(&d->bits, 1))
        return 0;
    return 1;
}

static int macroblock(struct vld_decoder *d)
{
    int type = mpeg2_read_type(&d->bits, d->slice->type), pattern = 0;
    if (type == NO_CODE || !modes_and_vectors(d, type))
        return 0;
    if (type & MPEG2_PATTERN && (pattern = mpeg2_read_pattern(&d->bits)) <= 0)
        return 0;
    if (type & MPEG2_INTRA) {
        d->motion.modes = 0;
        return blocks(d, 1, 63);
    }
    reset_dc(d);
    return blocks(d, 0, pattern);
}

/* A macroblock of which the stream has nothing: as the one before in a B picture, else without motion (7.6.6). */
static int skipped(struct vld_decoder *d)
{
    int modes = d->slice->type == P_PICTURE ? MPEG2_FORWARD : d->motion.modes;
    reset_dc(d);
    d->field_dct = 0;
    if (d->slice->type == P_PICTURE)
        vld_reset_vectors(d);
    else if (d->slice->type != B_PICTURE || !modes)
        return 0;
    vld_implied_motion(d, modes);
    finish(d, 0, 0, d->to + RECORD_BYTES);
    return 1;
}

static int room(struct vld_decoder *d)
{
    return d->count < d->slice->macroblocks && d->count < MOST_MACROBLOCKS;
}

/* The macroblocks up to one that the stream has, and that; whether the slice goes on. */
static int next_macroblocks(struct vld_decoder *d)
{
    unsigned step = mpeg2_read_increment(&d->bits), first = !d->count;
    if (!step) {
        d->result = bits_left(&d->bits) < 0 ? PAST_END : BAD_CODE;
        return 0;
    }
    for (unsigned i = first ? step : 1; i < step && room(d); i++) /* of the first one the command has the position */
        if (d->x > MOST_COLUMN || !skipped(d)) {
            d->result = d->x > MOST_COLUMN ? PAST_ROW : BAD_CODE;
            return 0;
        }
    if (!room(d))
        return 0;
    if (d->x > MOST_COLUMN) {
        d->result = PAST_ROW;
        return 0;
    }
    if (!macroblock(d) || bits_left(&d->bits) < 0) {
        d->result = bits_left(&d->bits) < 0 ? PAST_END : BAD_CODE;
        return 0;
    }
    return 1;
}

/* Entry: a slice. Answers how many threads it has, and why it has ended in the bits from 16 on. */
ENTRY int64_t vld_decode(struct vld_slice *s)
{
    struct vld_decoder d = {.slice = s, .bits = s->bits, .x = s->x, .quantiser_code = s->quantiser_code, .to = s->data};
    if (s->type < I_PICTURE || s->type > B_PICTURE)
        return BAD_CODE << 16;
    while (room(&d) && (!d.count || !mpeg2_at_end(&d.bits)) && next_macroblocks(&d)) {
    }
    return (int64_t)d.count | (int64_t)d.result << 16;
}
