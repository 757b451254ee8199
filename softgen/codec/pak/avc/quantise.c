/* The residual of macroblocks: forward transforms, quantisation, and the decoder's own reconstruction (8.5).
 *
 * A level is (|coefficient| factor + offset) >> shift, H.264's reference quantiser with the reciprocals of MFX_FQM_STATE and the offset of
 * MFX_AVC_SLICE_STATE; a step's third or sixth where that gives none. */
#include <stdlib.h>
#include <string.h>

#include "../../transform/transform.h"
#include "avc_pak.h"

enum { SHIFT_4X4 = 27, SHIFT_8X8 = 28 };

/* 2^20 over the norm of a 4x4 position's basis and its weight, rounded; 2^24 of an 8x8 one. */
static uint32_t inverse4(int qp, int at)
{
    static const uint32_t norms[3] = {80, 100, 125}; /* tenths */
    int x = at & 3, y = at >> 2;
    uint32_t divisor = norms[(x & 1) + (y & 1)] * avc_weight4(qp, at);
    return (uint32_t)(((10ull << 20) + divisor / 2) / divisor);
}

static uint32_t inverse8(int qp, int at)
{
    static const uint64_t norms[8] = {8000000, 9031250, 5000000, 9031250, 8000000, 9031250, 5000000, 9031250}; /* millionths */
    uint64_t divisor = norms[at & 7] * norms[at >> 3] / 1000000 * avc_weight8(qp, at);
    return (uint32_t)(((1000000ull << 24) + divisor / 2) / divisor);
}

void avc_quantisers(struct avc_encoder *e)
{
    for (int qp = 0; qp < 6; qp++) {
        for (int m = 0; m < 6; m++)
            for (int i = 0; i < 16; i++) /* reciprocals stand column by column */
                e->factors4[m][qp][i] = inverse4(qp, i) * e->reciprocals[m / 3][16 * (m % 3) + 4 * (i & 3) + (i >> 2)];
        for (int m = 0; m < 2; m++)
            for (int i = 0; i < 64; i++)
                e->factors8[m][qp][i] = inverse8(qp, i) * e->reciprocals[2 + m][8 * (i & 7) + (i >> 3)];
    }
}

static int level_of(const struct avc_encoder *e, int value, uint32_t factor, int shift)
{
    uint64_t offset = ((uint64_t)(is_intra(e->d->mb) ? e->round_intra : e->round_inter) << shift) / AVC_PARTS;
    uint64_t level = ((uint64_t)abs(value) * factor + offset) >> shift;
    int found = level > AVC_MOST_LEVEL ? AVC_MOST_LEVEL : (int)level;
    return value < 0 ? -found : found;
}

static int scaled(int level, uint32_t scale, int shift)
{
    return (level * (int)scale + (shift ? 1 << (shift - 1) : 0)) >> shift;
}

static void residual_of(const struct avc_encoder *e, int plane, int x, int y, int size, int32_t *out)
{
    const struct avc_decoder *d = e->d;
    const struct plane *p = &e->source->plane[plane];
    int side = plane ? 8 : 16;
    const uint8_t *from = p->samples + ((size_t)d->y * side + y) * p->stride + d->x * side + x;
    const uint8_t *predicted = d->samples[plane] + y * d->stride[plane] + x;
    for (int j = 0; j < size; j++, from += p->stride, predicted += d->stride[plane])
        for (int i = 0; i < size; i++)
            out[size * j + i] = from[i] - predicted[i];
}

/* Levels of a transformed 4x4 block from position `first` of the scan on, and their coefficients; how many are not zero. */
static int quantise4(struct avc_encoder *e, int at, const int32_t *block, int matrix, int qp, int first, int allowed)
{
    struct avc_decoder *d = e->d;
    int count = 0, shift = qp < 24 ? 4 - qp / 6 : 0;
    for (int i = first; i < 16; i++) {
        int place = avc_scan4[d->field][i];
        int level = allowed ? level_of(e, block[place], e->factors4[matrix][qp % 6][place], SHIFT_4X4 + qp / 6) : 0;
        e->levels[at][i] = level;
        d->coefficients[at][place] = scaled(level, d->avc->scale4[matrix][qp][place], shift);
        count += level != 0;
    }
    d->mb->count[at < 16 ? avc_raster(at) : at] = (uint8_t)count;
    return count;
}

static int quantise8(struct avc_encoder *e, int quarter, const int32_t block[64], int allowed)
{
    struct avc_decoder *d = e->d;
    int matrix = !is_intra(d->mb), qp = d->qp, shift = qp < 36 ? 6 - qp / 6 : 0, count = 0, each[4] = {0};
    int32_t *out = d->coefficients[4 * quarter];
    for (int i = 0; i < 64; i++) {
        int place = avc_scan8[d->field][i];
        int level = allowed ? level_of(e, block[place], e->factors8[matrix][qp % 6][place], SHIFT_8X8 + qp / 6) : 0;
        e->levels8[quarter][i] = level;
        out[place] = scaled(level, d->avc->scale8[matrix][qp][place], shift);
        count += level != 0;
        each[i & 3] += level != 0;
    }
    for (int i = 0; i < 4; i++)
        d->mb->count[avc_raster(4 * quarter + i)] = (uint8_t)(d->avc->cabac ? count : each[i]);
    return count;
}

/* -- intra ---------------------------------------------------------------------------------------------------------- */

void avc_code_intra_4x4(struct avc_encoder *e, int i, int mode, const struct avc_edges *edges, uint32_t allowed)
{
    struct avc_decoder *d = e->d;
    int x = avc_block_x[i], y = avc_block_y[i], left = x || edges->left[y >> 1], top = y || edges->top;
    int corner = x && y ? 1 : x ? edges->top : y ? edges->left[(4 * y - 1) >> 3] : edges->corner;
    int right = y ? x != 3 && (i & 7) != 3 : x < 3 ? edges->top : edges->right;
    uint8_t *to = d->samples[0] + 4 * y * d->stride[0] + 4 * x;
    int32_t block[16];
    avc_intra_4x4(to, d->stride[0], mode, left, top, corner, right);
    residual_of(e, 0, 4 * x, 4 * y, 4, block);
    avc_forward_4x4(block);
    if (quantise4(e, i, block, 0, d->qp, 0, allowed >> i & 1))
        avc_add_4x4(to, d->stride[0], d->coefficients[i]);
}

void avc_code_intra_8x8(struct avc_encoder *e, int i, int mode, const struct avc_edges *edges, uint32_t allowed)
{
    struct avc_decoder *d = e->d;
    int x = i & 1, y = i >> 1, left = x || edges->left[y], top = y || edges->top;
    int corner = x && y ? 1 : x ? edges->top : y ? edges->left[0] : edges->corner, right = i == 0 ? edges->top : i == 1 ? edges->right : i == 2;
    uint8_t *to = d->samples[0] + 8 * y * d->stride[0] + 8 * x;
    int32_t block[64];
    avc_intra_8x8(to, d->stride[0], mode, left, top, corner, right);
    residual_of(e, 0, 8 * x, 8 * y, 8, block);
    avc_forward_8x8(block);
    if (quantise8(e, i, block, (allowed >> 4 * i & 15) == 15))
        avc_add_8x8(to, d->stride[0], d->coefficients[4 * i]);
}

/* -- what is predicted as a whole ----------------------------------------------------------------------------------- */

/* DC of Intra_16x16, of which `block` has the coefficients of each 4x4 block. */
static void luma_dc(struct avc_encoder *e, const int32_t block[16][16], int allowed)
{
    struct avc_decoder *d = e->d;
    int32_t dc[16];
    int qp = d->qp, count = 0;
    for (int i = 0; i < 16; i++)
        dc[avc_raster(i)] = block[i][0];
    avc_luma_dc(dc);
    for (int i = 0; i < 16; i++) { /* the transform is four times that which quantisers are made for, the step twice as large */
        int place = avc_scan4[d->field][i];
        int level = allowed ? level_of(e, dc[place], e->factors4[0][qp % 6][0], SHIFT_4X4 + 2 + qp / 6) : 0;
        e->dc[0][i] = d->dc[0][place] = level;
        count += level != 0;
    }
    if (!count)
        return;
    d->mb->dc |= 1;
    avc_scale_luma_dc(d);
}

static void drop_levels(struct avc_encoder *e, int at)
{
    memset(e->levels[at], 0, sizeof e->levels[at]);
    memset(e->d->coefficients[at], 0, sizeof e->d->coefficients[at]);
}

static void luma_4x4(struct avc_encoder *e, uint32_t allowed)
{
    struct avc_decoder *d = e->d;
    int32_t block[16][16];
    int whole = d->mb->kind == INTRA_16X16, pattern = 0;
    for (int i = 0; i < 16; i++) {
        residual_of(e, 0, 4 * avc_block_x[i], 4 * avc_block_y[i], 4, block[i]);
        avc_forward_4x4(block[i]);
        drop_levels(e, i);
        if (quantise4(e, i, block[i], is_intra(d->mb) ? 0 : 3, d->qp, whole, allowed >> i & 1))
            pattern |= whole ? 15 : 1 << (i >> 2);
    }
    d->mb->pattern |= (uint8_t)pattern;
    if (whole)
        luma_dc(e, (const int32_t(*)[16])block, allowed >> 24 & 1);
}

/* Luma of a macroblock that is predicted as a whole: its samples hold the prediction. They are left to avc_reconstruct. */
void avc_code_luma(struct avc_encoder *e, uint32_t allowed)
{
    struct avc_decoder *d = e->d;
    if (!d->mb->transform8) {
        luma_4x4(e, allowed);
        return;
    }
    for (int i = 0; i < 4; i++) {
        int32_t block[64];
        residual_of(e, 0, 8 * (i & 1), 8 * (i >> 1), 8, block);
        avc_forward_8x8(block);
        if (quantise8(e, i, block, (allowed >> 4 * i & 15) == 15))
            d->mb->pattern |= (uint8_t)(1 << i);
    }
}

static void chroma_dc(struct avc_encoder *e, int plane, const int32_t block[4][16], int matrix, int qp, int allowed)
{
    struct avc_decoder *d = e->d;
    int32_t dc[4] = {block[0][0], block[1][0], block[2][0], block[3][0]};
    int count = 0;
    avc_chroma_dc(dc);
    for (int i = 0; i < 4; i++) {
        int level = allowed ? level_of(e, dc[i], e->factors4[matrix][qp % 6][0], SHIFT_4X4 + 1 + qp / 6) : 0;
        e->dc[plane][i] = d->dc[plane][i] = level;
        count += level != 0;
    }
    if (!count)
        return;
    d->mb->dc |= (uint8_t)(1 << plane);
    avc_scale_chroma_dc(d, plane);
}

/* Both planes of chroma, whose samples hold the prediction. */
void avc_code_chroma(struct avc_encoder *e, uint32_t allowed)
{
    struct avc_decoder *d = e->d;
    int ac = 0;
    for (int plane = 1; plane < PLANES; plane++) {
        int qp = chroma_qp(d->avc, d->qp, plane - 1), matrix = (is_intra(d->mb) ? 0 : 3) + plane;
        int32_t block[4][16];
        for (int i = 0; i < 4; i++) {
            int at = 12 + 4 * plane + i;
            residual_of(e, plane, 4 * (i & 1), 4 * (i >> 1), 4, block[i]);
            avc_forward_4x4(block[i]);
            drop_levels(e, at);
            ac |= quantise4(e, at, block[i], matrix, qp, 1, allowed >> at & 1);
        }
        chroma_dc(e, plane, (const int32_t(*)[16])block, matrix, qp, allowed >> (24 + plane) & 1);
    }
    d->mb->pattern |= (uint8_t)((ac ? 2 : d->mb->dc >> 1 ? 1 : 0) << 4);
}
