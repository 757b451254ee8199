/* Inverse transforms of VP8 (RFC 6386 14.3, 14.4). */
#include "transform.h"

enum { COSINE = 20091, SINE = 35468 }; /* sqrt(2) cos(pi/8) - 1 and sqrt(2) sin(pi/8), in 1/65536 */

static int by_cosine(int x)
{
    return x + (x * COSINE >> 16);
}

static int by_sine(int x)
{
    return x * SINE >> 16;
}

/* The second-order transform: DC coefficients of 16 blocks. */
void vp8_luma_dc(const int16_t in[16], int16_t blocks[][16])
{
    int t[16];
    for (int i = 0; i < 4; i++) {
        int a = in[i] + in[12 + i], b = in[4 + i] + in[8 + i], c = in[4 + i] - in[8 + i], d = in[i] - in[12 + i];
        t[i] = a + b, t[4 + i] = c + d, t[8 + i] = a - b, t[12 + i] = d - c;
    }
    for (int i = 0; i < 16; i += 4) {
        int a = t[i] + t[i + 3], b = t[i + 1] + t[i + 2], c = t[i + 1] - t[i + 2], d = t[i] - t[i + 3];
        blocks[i][0] = (int16_t)((a + b + 3) >> 3), blocks[i + 1][0] = (int16_t)((c + d + 3) >> 3);
        blocks[i + 2][0] = (int16_t)((a - b + 3) >> 3), blocks[i + 3][0] = (int16_t)((d - c + 3) >> 3);
    }
}

static void butterfly(int out[4], int x0, int x1, int x2, int x3)
{
    int a = x0 + x2, b = x0 - x2, c = by_sine(x1) - by_cosine(x3), d = by_cosine(x1) + by_sine(x3);
    out[0] = a + d, out[1] = b + c, out[2] = b - c, out[3] = a - d;
}

static void add_dc(uint8_t *to, ptrdiff_t stride, int dc)
{
    for (int y = 0; y < 4; y++, to += stride)
        for (int x = 0; x < 4; x++)
            to[x] = clamp_sample(to[x] + dc);
}

/* A block added to samples, and cleared. */
void vp8_add_4x4(uint8_t *to, ptrdiff_t stride, int16_t block[16])
{
    int t[4][4], is_dc = 1;
    for (int i = 1; i < 16; i++)
        is_dc &= !block[i];
    if (is_dc)
        add_dc(to, stride, (block[0] + 4) >> 3);
    else {
        for (int x = 0; x < 4; x++)
            butterfly(t[x], block[x], block[4 + x], block[8 + x], block[12 + x]);
        for (int y = 0; y < 4; y++, to += stride) {
            int row[4];
            butterfly(row, t[0][y], t[1][y], t[2][y], t[3][y]);
            for (int x = 0; x < 4; x++)
                to[x] = clamp_sample(to[x] + ((row[x] + 4) >> 3));
        }
    }
    for (int i = 0; i < 16; i++)
        block[i] = 0;
}
