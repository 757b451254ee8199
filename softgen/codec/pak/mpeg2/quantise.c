/* Levels of MPEG-2 blocks, and the samples that a decoder makes of them (7.4, annex A). */
#include <stdlib.h>
#include <string.h>

#include "mpeg2_pak.h"

enum { DCT_UNIT = 8, MOST_LEVEL = 2047, RECIPROCAL_BITS = 16 }; /* forward_dct: 8 times the standard's coefficients */

/* The rows of a block in a plane: every second one with a field DCT. */
static size_t place(const struct mpeg2_encoder *e, const struct plane *plane, int block, size_t *stride)
{
    *stride = plane->stride;
    if (block >= 4)
        return (size_t)8 * e->y * plane->stride + 8 * e->x;
    size_t start = (size_t)16 * e->y * plane->stride + 16 * e->x + 8 * (block & 1);
    *stride <<= e->d.field_dct;
    return start + (size_t)(block >> 1) * plane->stride * (e->d.field_dct ? 1 : 8);
}

/* Samples of the source; sizes of planes end where the source does, whose last samples are repeated. */
static void source_block(const struct mpeg2_encoder *e, int block, int16_t out[64])
{
    const struct plane *plane = &e->source->plane[block < 4 ? 0 : block - 3];
    size_t stride, at = place(e, plane, block, &stride);
    for (unsigned y = 0; y < 8; y++)
        for (unsigned x = 0; x < 8; x++) {
            size_t row = at / plane->stride + y * (stride / plane->stride), column = at % plane->stride + x;
            row = row < plane->height ? row : plane->height - 1;
            column = column < plane->width ? column : plane->width - 1;
            out[8 * y + x] = plane->samples[row * plane->stride + column];
        }
}

/* A coefficient is level x matrix x quantiser_scale / 16 (7.4.2.3). */
static int level_of(const struct mpeg2_encoder *e, int coefficient, int position, int intra)
{
    int64_t unit = (int64_t)e->d.scale << RECIPROCAL_BITS, product = 2 * (int64_t)abs(coefficient) * e->reciprocals[!intra][position];
    int64_t level = (product + e->rounding[!intra][position != 0] * unit / MPEG2_EIGHTHS) / unit;
    level = level > MOST_LEVEL ? MOST_LEVEL : level;
    return (int)(coefficient < 0 ? -level : level);
}

static int intra_dc(const struct mpeg2_encoder *e, int coefficient)
{
    int step = DCT_UNIT * (8 >> e->slice->intra_dc_precision);
    return clamp((coefficient + step / 2) / step, 0, (256 << e->slice->intra_dc_precision) - 1);
}

/* Inverse quantisation and mismatch control, as block.c has them; whether there are coefficients. */
static int dequantise(const struct mpeg2_encoder *e, const int16_t levels[64], int intra, int16_t out[64])
{
    const uint8_t *scan = e->slice->alternate_scan ? mpeg2_alternate_scan : zigzag_scan;
    int sum = 0, any = 0;
    memset(out, 0, 64 * sizeof *out);
    for (int i = 0; i < 64; i++) {
        any |= levels[i];
        if (i || !intra)
            out[scan[i]] = mpeg2_dequantised(e->slice, e->d.scale, intra, scan[i], levels[i]);
        else
            out[0] = (int16_t)(levels[0] * (8 >> e->slice->intra_dc_precision));
        sum += out[scan[i]];
    }
    out[63] ^= (int16_t)(~sum & 1);
    return any != 0;
}

static void code_block(struct mpeg2_encoder *e, struct mpeg2_coded *c, int block, int intra, unsigned allowed)
{
    const uint8_t *scan = e->slice->alternate_scan ? mpeg2_alternate_scan : zigzag_scan;
    const struct plane *plane = &e->slice->picture->frame.plane[block < 4 ? 0 : block - 3];
    int16_t samples[64], found[64];
    int32_t coefficients[64];
    size_t stride;
    uint8_t *to = plane->samples + place(e, plane, block, &stride);
    source_block(e, block, samples);
    for (int i = 0; i < 64 && !intra; i++)
        samples[i] = (int16_t)(samples[i] - to[(size_t)(i >> 3) * stride + (i & 7)]);
    forward_dct(coefficients, samples);
    for (int i = 0; i < 64; i++)
        c->levels[block][i] = (int16_t)(allowed >> (5 - block) & 1 ? level_of(e, coefficients[scan[i]], scan[i], intra) : 0);
    if (intra)
        c->levels[block][0] = (int16_t)intra_dc(e, coefficients[0]);
    if (!dequantise(e, c->levels[block], intra, found) && !intra)
        return;
    c->pattern |= 1 << (5 - block);
    simple_idct(found);
    (intra ? put_block : add_block)(to, stride, found);
}

void mpeg2_code_blocks(struct mpeg2_encoder *e, struct mpeg2_coded *c, int intra, unsigned allowed)
{
    c->pattern = 0;
    for (int block = 0; block < 6; block++)
        code_block(e, c, block, intra, allowed);
}
