/* The integer transforms of H.264 (8.5.10 to 8.5.13); blocks are in raster order and are cleared when they are added. */
#include <string.h>

#include "transform.h"

static inline void four(const int32_t *in, int step, int32_t *out)
{
    int32_t a = in[0] + in[2 * step], b = in[0] - in[2 * step];
    int32_t c = (in[step] >> 1) - in[3 * step], d = in[step] + (in[3 * step] >> 1);
    out[0] = a + d;
    out[step] = b + c;
    out[2 * step] = b - c;
    out[3 * step] = a - d;
}

static inline void inverse_4x4(const int32_t block[16], int32_t all[16])
{
    int32_t rows[16];
    for (int i = 0; i < 4; i++)
        four(block + 4 * i, 1, rows + 4 * i);
    for (int i = 0; i < 4; i++)
        four(rows + i, 4, all + i);
    for (int i = 0; i < 16; i++)
        all[i] = (all[i] + 32) >> 6;
}

void avc_inverse_4x4(const int32_t block[16], int32_t residual[16])
{
    inverse_4x4(block, residual);
}

void avc_add_4x4(uint8_t *to, ptrdiff_t stride, int32_t block[16])
{
    int32_t all[16];
    inverse_4x4(block, all);
    for (int y = 0; y < 4; y++)
        for (int x = 0; x < 4; x++)
            to[y * stride + x] = clamp_sample(to[y * stride + x] + all[4 * y + x]);
    memset(block, 0, 16 * sizeof *block);
}

static inline void eight(const int32_t *in, int step, int32_t *out)
{
    int32_t x0 = in[0], x1 = in[step], x2 = in[2 * step], x3 = in[3 * step], x4 = in[4 * step], x5 = in[5 * step], x6 = in[6 * step],
            x7 = in[7 * step];
    int32_t a0 = x0 + x4, a2 = x0 - x4, a4 = (x2 >> 1) - x6, a6 = x2 + (x6 >> 1);
    int32_t a1 = -x3 + x5 - x7 - (x7 >> 1), a3 = x1 + x7 - x3 - (x3 >> 1), a5 = -x1 + x7 + x5 + (x5 >> 1), a7 = x3 + x5 + x1 + (x1 >> 1);
    int32_t b0 = a0 + a6, b2 = a2 + a4, b4 = a2 - a4, b6 = a0 - a6;
    int32_t b1 = a1 + (a7 >> 2), b7 = a7 - (a1 >> 2), b3 = a3 + (a5 >> 2), b5 = (a3 >> 2) - a5;
    out[0] = b0 + b7;
    out[step] = b2 + b5;
    out[2 * step] = b4 + b3;
    out[3 * step] = b6 + b1;
    out[4 * step] = b6 - b1;
    out[5 * step] = b4 - b3;
    out[6 * step] = b2 - b5;
    out[7 * step] = b0 - b7;
}

static inline void inverse_8x8(const int32_t block[64], int32_t all[64])
{
    int32_t rows[64];
    for (int i = 0; i < 8; i++)
        eight(block + 8 * i, 1, rows + 8 * i);
    for (int i = 0; i < 8; i++)
        eight(rows + i, 8, all + i);
    for (int i = 0; i < 64; i++)
        all[i] = (all[i] + 32) >> 6;
}

void avc_inverse_8x8(const int32_t block[64], int32_t residual[64])
{
    inverse_8x8(block, residual);
}

void avc_add_8x8(uint8_t *to, ptrdiff_t stride, int32_t block[64])
{
    int32_t all[64];
    inverse_8x8(block, all);
    for (int y = 0; y < 8; y++)
        for (int x = 0; x < 8; x++)
            to[y * stride + x] = clamp_sample(to[y * stride + x] + all[8 * y + x]);
    memset(block, 0, 64 * sizeof *block);
}

/* The transform of Intra_16x16 DC coefficients, in place: the same for rows and columns. */
void avc_luma_dc(int32_t dc[16])
{
    for (int pass = 0, step = 1, next = 4; pass < 2; pass++, step = 4, next = 1)
        for (int i = 0; i < 4; i++) {
            int32_t *x = dc + i * next, a = x[0] + x[step], b = x[0] - x[step], c = x[2 * step] + x[3 * step], d = x[2 * step] - x[3 * step];
            x[0] = a + c;
            x[step] = a - c;
            x[2 * step] = b - d;
            x[3 * step] = b + d;
        }
}

void avc_chroma_dc(int32_t dc[4])
{
    int32_t a = dc[0] + dc[1], b = dc[0] - dc[1], c = dc[2] + dc[3], d = dc[2] - dc[3];
    dc[0] = a + c;
    dc[1] = b + d;
    dc[2] = a - c;
    dc[3] = b - d;
}
