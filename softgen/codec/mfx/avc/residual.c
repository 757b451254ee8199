/* The coefficients of a macroblock: what is coded, in which scan, with which scale (7.3.5.3, 8.5). */
#include <string.h>

#include "../../transform/transform.h"
#include "cabac_contexts.h"

const uint8_t avc_scan4[2][16] = {{0, 1, 4, 8, 5, 2, 3, 6, 9, 12, 13, 10, 7, 11, 14, 15}, {0, 4, 1, 8, 12, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15}};
const uint8_t avc_scan8[2][64] = {
    {0, 1, 8, 16, 9, 2, 3, 10, 17, 24, 32, 25, 18, 11, 4, 5, 12, 19, 26, 33, 40, 48, 41, 34, 27, 20, 13, 6, 7, 14, 21, 28,
     35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23, 30, 37, 44, 51, 58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63},
    {0, 8, 16, 1, 9, 24, 32, 17, 2, 25, 40, 48, 56, 33, 10, 3, 18, 41, 49, 57, 26, 11, 4, 19, 34, 42, 50, 58, 27, 12, 5, 20,
     35, 43, 51, 59, 28, 13, 6, 21, 36, 44, 52, 60, 29, 14, 22, 37, 45, 53, 61, 30, 7, 15, 38, 46, 54, 62, 23, 31, 39, 47, 55, 63}};
const uint8_t avc_block_x[16] = {0, 1, 0, 1, 2, 3, 2, 3, 0, 1, 0, 1, 2, 3, 2, 3};
const uint8_t avc_block_y[16] = {0, 0, 1, 1, 0, 0, 1, 1, 2, 2, 3, 3, 2, 2, 3, 3};
const uint8_t avc_chroma_qp[52] = {0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25,
                                   26, 27, 28, 29, 29, 30, 31, 32, 32, 33, 34, 34, 35, 35, 36, 36, 37, 37, 37, 38, 38, 38, 39, 39, 39, 39};
uint8_t avc_interleaved[2][4][16]; /* the scan of 8x8 blocks, of which four blocks of variable-length codes have every fourth place */
static const uint8_t in_order[4] = {0, 1, 2, 3};

__attribute__((constructor)) static void build(void)
{
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 64; j++)
            avc_interleaved[i][j & 3][j >> 2] = avc_scan8[i][j];
}

/* Weights of positions, by QP modulo 6 (8.5.9). */
static const uint8_t norm4[6][3] = {{10, 16, 13}, {11, 18, 14}, {13, 20, 16}, {14, 23, 18}, {16, 25, 20}, {18, 29, 23}};
static const uint8_t norm8[6][6] = {{20, 18, 32, 19, 25, 24}, {22, 19, 35, 21, 28, 26}, {26, 23, 42, 24, 33, 31},
                                    {28, 25, 45, 26, 35, 33}, {32, 28, 51, 30, 40, 38}, {36, 32, 58, 34, 46, 43}};

unsigned avc_weight4(int qp, int at)
{
    int x = at & 3, y = at >> 2;
    return norm4[qp % 6][x & y & 1 ? 1 : (x | y) & 1 ? 2 : 0];
}

unsigned avc_weight8(int qp, int at)
{
    int x = at & 7, y = at >> 3;
    if (!(x & 3) && !(y & 3))
        return norm8[qp % 6][0];
    if (x & y & 1)
        return norm8[qp % 6][1];
    if ((x & 3) == 2 && (y & 3) == 2)
        return norm8[qp % 6][2];
    if ((!(x & 3) && y & 1) || (x & 1 && !(y & 3)))
        return norm8[qp % 6][3];
    if ((!(x & 3) && (y & 3) == 2) || ((x & 3) == 2 && !(y & 3)))
        return norm8[qp % 6][4];
    return norm8[qp % 6][5];
}

void avc_scales(struct avc_picture *p)
{
    for (int qp = 0; qp < 52; qp++) {
        for (int m = 0; m < 6; m++)
            for (int i = 0; i < 16; i++)
                p->scale4[m][qp][i] = avc_weight4(qp, i) * p->matrix4[m][i] << (qp < 24 ? 0 : qp / 6 - 4);
        for (int m = 0; m < 2; m++)
            for (int i = 0; i < 64; i++)
                p->scale8[m][qp][i] = avc_weight8(qp, i) * p->matrix8[m][i] << (qp < 36 ? 0 : qp / 6 - 6);
    }
}

static int block(struct avc_decoder *d, int category, int plane, int number, const uint8_t *scan, const uint32_t *scale, int shift, int first,
                 int most, int32_t *out)
{
    if (d->avc->cabac)
        return cabac_block(d, category, plane, number, scan, scale, shift, first, most, out);
    return cavlc_block(d, plane, number, scan, scale, shift, first, most, out);
}

static int luma_8x8(struct avc_decoder *d, int quarter)
{
    const uint32_t *scale = d->avc->scale8[!is_intra(d->mb)][d->qp];
    int32_t *out = d->coefficients[4 * quarter];
    int shift = d->qp < 36 ? 6 - d->qp / 6 : 0, found = 0;
    if (d->avc->cabac)
        found = cabac_block(d, LUMA_8X8, 0, 4 * quarter, avc_scan8[d->field], scale, shift, 0, 64, out);
    for (int i = 0; i < 4; i++) {
        int count = d->avc->cabac ? found : cavlc_block(d, 0, 4 * quarter + i, avc_interleaved[d->field][i], scale, shift, 0, 16, out);
        if (count < 0)
            return 0;
        d->mb->count[avc_raster(4 * quarter + i)] = (uint8_t)count;
    }
    return 1;
}

static int luma(struct avc_decoder *d)
{
    int whole = d->mb->kind == INTRA_16X16, shift = d->qp < 24 ? 4 - d->qp / 6 : 0;
    const uint32_t *scale = d->avc->scale4[is_intra(d->mb) ? 0 : 3][d->qp];
    for (int i = 0; i < 16; i++) {
        if (!(d->mb->pattern >> (i >> 2) & 1))
            continue;
        if (d->mb->transform8) {
            if (!(i & 3) && !luma_8x8(d, i >> 2))
                return 0;
            continue;
        }
        int count = block(d, whole ? LUMA_AC : LUMA_4X4, 0, i, avc_scan4[d->field], scale, shift, whole, 16 - whole, d->coefficients[i]);
        if (count < 0)
            return 0;
        d->mb->count[avc_raster(i)] = (uint8_t)count;
    }
    return 1;
}

/* Levels of Intra_16x16's DC in `d->dc`, as coefficients of the blocks. */
void avc_scale_luma_dc(struct avc_decoder *d)
{
    const uint32_t *scale = d->avc->scale4[0][d->qp];
    int shift = d->qp < 36 ? 6 - d->qp / 6 : 0;
    avc_luma_dc(d->dc[0]);
    for (int i = 0; i < 16; i++) {
        int value = d->dc[0][avc_raster(i)];
        /* scale4 has the shift of QPs from 24 on already: take it back up to 36 */
        int weight = (int)(scale[0] >> (d->qp < 24 ? 0 : d->qp / 6 - 4));
        d->coefficients[i][0] = shift ? (value * weight + (1 << (shift - 1))) >> shift : value * weight * (1 << (d->qp / 6 - 6));
    }
}

static int luma_dc(struct avc_decoder *d)
{
    memset(d->dc[0], 0, sizeof d->dc[0]);
    int count = d->avc->cabac ? cabac_block(d, LUMA_DC, 0, 0, avc_scan4[d->field], NULL, -1, 0, 16, d->dc[0]) : cavlc_dc(d, 0);
    if (count <= 0)
        return !count;
    d->mb->dc |= 1;
    avc_scale_luma_dc(d);
    return 1;
}

/* The same of a plane of chroma. */
void avc_scale_chroma_dc(struct avc_decoder *d, int plane)
{
    int qp = chroma_qp(d->avc, d->qp, plane - 1), matrix = (is_intra(d->mb) ? 0 : 3) + plane;
    avc_chroma_dc(d->dc[plane]);
    int weight = (int)avc_weight4(qp, 0) * d->avc->matrix4[matrix][0];
    for (int i = 0; i < 4; i++)
        d->coefficients[12 + 4 * plane + i][0] = (d->dc[plane][i] * weight * (1 << (qp / 6))) >> 5;
}

static int chroma_dc(struct avc_decoder *d, int plane)
{
    memset(d->dc[plane], 0, sizeof d->dc[plane]);
    int count = d->avc->cabac ? cabac_block(d, CHROMA_DC, plane, 0, in_order, NULL, -1, 0, 4, d->dc[plane]) : cavlc_dc(d, plane);
    if (count <= 0)
        return !count;
    d->mb->dc |= (uint8_t)(1 << plane);
    avc_scale_chroma_dc(d, plane);
    return 1;
}

static int chroma_ac(struct avc_decoder *d, int plane)
{
    int qp = chroma_qp(d->avc, d->qp, plane - 1), matrix = (is_intra(d->mb) ? 0 : 3) + plane, shift = qp < 24 ? 4 - qp / 6 : 0;
    for (int i = 0; i < 4; i++) {
        int at = 12 + 4 * plane + i;
        int count = block(d, CHROMA_AC, plane, i, avc_scan4[d->field], d->avc->scale4[matrix][qp], shift, 1, 15, d->coefficients[at]);
        if (count < 0)
            return 0;
        d->mb->count[at] = (uint8_t)count;
    }
    return 1;
}

int avc_residual(struct avc_decoder *d)
{
    if (d->mb->kind == INTRA_16X16 && !luma_dc(d))
        return 0;
    if (!luma(d))
        return 0;
    for (int plane = 1; plane < PLANES; plane++)
        if (d->mb->pattern >> 4 && !chroma_dc(d, plane))
            return 0;
    for (int plane = 1; plane < PLANES; plane++)
        if (d->mb->pattern >> 5 && !chroma_ac(d, plane))
            return 0;
    return 1;
}
