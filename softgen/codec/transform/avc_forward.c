/* The forward transforms of H.264: those whose inverses 8.5 defines, in integers. Blocks are in raster order, in place. */
#include "transform.h"

static void four(int32_t *x, int step)
{
    int32_t a = x[0] + x[3 * step], b = x[step] + x[2 * step], c = x[step] - x[2 * step], d = x[0] - x[3 * step];
    x[0] = a + b;
    x[step] = 2 * d + c;
    x[2 * step] = a - b;
    x[3 * step] = d - 2 * c;
}

void avc_forward_4x4(int32_t block[16])
{
    for (int i = 0; i < 4; i++)
        four(block + 4 * i, 1);
    for (int i = 0; i < 4; i++)
        four(block + i, 4);
}

static void eight(int32_t *x, int step)
{
    int32_t s0 = x[0] + x[7 * step], s1 = x[step] + x[6 * step], s2 = x[2 * step] + x[5 * step], s3 = x[3 * step] + x[4 * step];
    int32_t d0 = x[0] - x[7 * step], d1 = x[step] - x[6 * step], d2 = x[2 * step] - x[5 * step], d3 = x[3 * step] - x[4 * step];
    int32_t a0 = s0 + s3, a1 = s1 + s2, a2 = s0 - s3, a3 = s1 - s2;
    int32_t a4 = d1 + d2 + (d0 >> 1) + d0, a5 = d0 - d3 - ((d2 >> 1) + d2), a6 = d0 + d3 - ((d1 >> 1) + d1), a7 = d1 - d2 + (d3 >> 1) + d3;
    x[0] = a0 + a1;
    x[step] = a4 + (a7 >> 2);
    x[2 * step] = a2 + (a3 >> 1);
    x[3 * step] = a5 + (a6 >> 2);
    x[4 * step] = a0 - a1;
    x[5 * step] = a6 - (a5 >> 2);
    x[6 * step] = (a2 >> 1) - a3;
    x[7 * step] = (a4 >> 2) - a7;
}

void avc_forward_8x8(int32_t block[64])
{
    for (int i = 0; i < 8; i++)
        eight(block + 8 * i, 1);
    for (int i = 0; i < 8; i++)
        eight(block + i, 8);
}
