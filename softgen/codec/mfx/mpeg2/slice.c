/* Slices of MPEG-2: macroblocks in the order of the stream (6.2.4, 6.2.5). */
#include <string.h>

#include "mpeg2.h"

/* Table 7-6: quantiser_scale by code, where q_scale_type is set. */
static const uint8_t nonlinear_scale[32] = {
    0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 18, 20, 22,
    24, 28, 32, 36, 40, 44, 48, 52, 56, 64, 72, 80, 88, 96, 104, 112,
};

static void reset_dc(struct mpeg2_decoder *d)
{
    for (int i = 0; i < PLANES; i++)
        d->dc[i] = 1 << (7 + d->slice->intra_dc_precision);
}

int mpeg2_scale(const struct mpeg2_slice *s, unsigned code)
{
    return s->q_scale_type ? nonlinear_scale[code & 31] : 2 * (int)code;
}

static void set_scale(struct mpeg2_decoder *d, unsigned code)
{
    d->scale = mpeg2_scale(d->slice, code);
}

static int default_motion(const struct mpeg2_slice *s)
{
    return s->structure == FRAME_PICTURE ? WHOLE : ONE_FIELD;
}

/* A prediction without vectors of its own: from the predictors and the field of the same parity (7.6.6). */
static void implied_motion(struct mpeg2_decoder *d, int modes)
{
    const struct mpeg2_slice *s = d->slice;
    d->motion.modes = modes;
    d->motion.type = default_motion(s);
    for (int direction = 0; direction < 2; direction++) {
        memcpy(d->motion.vector[0][direction], d->predictor[0][direction], sizeof d->predictor[0][direction]);
        d->motion.select[0][direction] = s->structure == BOTTOM_FIELD;
    }
}

static uint8_t *block_place(struct mpeg2_decoder *d, int block, unsigned x, unsigned y, size_t *stride)
{
    struct picture *p = d->slice->picture;
    const struct plane *plane = &p->frame.plane[block < 4 ? 0 : block - 3];
    *stride = plane->stride;
    if (block >= 4)
        return plane->samples + (size_t)8 * y * plane->stride + 8 * x;
    uint8_t *start = plane->samples + (size_t)16 * y * plane->stride + 16 * x + 8 * (block & 1);
    *stride <<= d->field_dct;
    return start + (size_t)(block >> 1) * plane->stride * (d->field_dct ? 1 : 8);
}

static int residual(struct mpeg2_decoder *d, unsigned x, unsigned y, int intra, int pattern)
{
    for (int block = 0; block < 6; block++) {
        int16_t coefficients[64];
        size_t stride;
        if (!(pattern >> (5 - block) & 1))
            continue;
        int plane = block < 4 ? 0 : block - 3, fine = intra ? mpeg2_intra_block(d, plane, coefficients) : mpeg2_inter_block(d, coefficients);
        if (!fine)
            return 0;
        uint8_t *to = block_place(d, block, x, y, &stride);
        simple_idct(coefficients);
        (intra ? put_block : add_block)(to, stride, coefficients);
    }
    return 1;
}

/* The modes of a macroblock that follow its type, and its vectors; whether they are well formed. */
static int modes_and_vectors(struct mpeg2_decoder *d, int type)
{
    const struct mpeg2_slice *s = d->slice;
    int frame = s->structure == FRAME_PICTURE, choice = frame && !s->frame_pred_frame_dct;
    d->motion.modes = type & (FORWARD | BACKWARD);
    d->motion.type = default_motion(s);
    if (d->motion.modes && (!frame || choice))
        d->motion.type = (int)bits_read(&d->bits, 2);
    d->field_dct = choice && type & (INTRA | PATTERN) ? (int)bits_read(&d->bits, 1) : 0;
    if (type & QUANT)
        set_scale(d, bits_read(&d->bits, 5));
    if (type & INTRA) {
        if (!s->concealment_mv)
            mpeg2_reset_vectors(d);
        else if (!mpeg2_vectors(d, 0) || !bits_read(&d->bits, 1))
            return 0;
        return 1;
    }
    if (!d->motion.type)
        return 0;
    if (type & FORWARD && !mpeg2_vectors(d, 0))
        return 0;
    if (type & BACKWARD && !mpeg2_vectors(d, 1))
        return 0;
    if (!d->motion.modes) {
        mpeg2_reset_vectors(d);
        implied_motion(d, FORWARD);
    }
    return 1;
}

static int macroblock(struct mpeg2_decoder *d, unsigned x, unsigned y)
{
    int type = mpeg2_read_type(&d->bits, d->slice->type), pattern = 0;
    if (type == NO_CODE || !modes_and_vectors(d, type))
        return 0;
    if (type & PATTERN && (pattern = mpeg2_read_pattern(&d->bits)) <= 0)
        return 0;
    if (type & INTRA) {
        d->motion.modes = 0;
        return residual(d, x, y, 1, 63);
    }
    reset_dc(d);
    if (!mpeg2_predict(d, x, y))
        return 0;
    return residual(d, x, y, 0, pattern);
}

/* A macroblock of which the stream has nothing: as the one before in a B picture, else without motion (7.6.6). */
static int skipped(struct mpeg2_decoder *d, unsigned x, unsigned y)
{
    reset_dc(d);
    if (d->slice->type == P_PICTURE)
        mpeg2_reset_vectors(d);
    else if (d->slice->type != B_PICTURE || !d->motion.modes)
        return 0;
    implied_motion(d, d->slice->type == P_PICTURE ? FORWARD : d->motion.modes);
    return mpeg2_predict(d, x, y);
}

static void failed(struct picture *p, uint32_t error, unsigned left)
{
    p->errors |= error;
    p->concealed += left;
}

/* A slice is at most a row of macroblocks. */
ENTRY int64_t mpeg2_decode(struct mpeg2_slice *s, void *record)
{
    struct picture *p = s->picture;
    struct mpeg2_decoder d = {.slice = s, .bits = s->bits};
    unsigned x = 0, next = 0;
    (void)record;
    if (s->row >= p->height) {
        failed(p, SLICE_OUT_OF_BOUND, 0);
        return 0;
    }
    uint8_t *state = p->state + (size_t)s->row * p->width;
    reset_dc(&d);
    set_scale(&d, s->quantiser_code);
    for (int first = 1; first || !mpeg2_at_end(&d.bits); first = 0, x = next) {
        unsigned step = mpeg2_read_increment(&d.bits);
        next = x + step;
        if (!step || next > p->width) {
            failed(p, step ? SLICE_OUT_OF_BOUND : MISSING_MACROBLOCKS, p->width - x);
            return 0;
        }
        int fine = 1;
        for (x = first ? next - 1 : x; fine && x < next - 1; x++)
            if ((fine = skipped(&d, x, s->row)))
                state[x] = DECODED;
        if (!fine || !macroblock(&d, next - 1, s->row)) {
            failed(p, bits_left(&d.bits) < 0 ? PREMATURE_END : MISSING_END_OF_BLOCK, p->width - x);
            return 0;
        }
        state[next - 1] = DECODED;
    }
    return 0;
}
