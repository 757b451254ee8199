/* The forward DCT of JPEG and MPEG-2 pictures (T.81 A.3.3): a product with a matrix of 13 fractional bits, across, then down.
 *
 * Its coefficients are 8 times those of the standard, within 1 of the exact transform; the standards leave its arithmetic open. */
#include "transform.h"

enum { CONSTANT_BITS = 13, ROW_BITS = 4, DCT_BITS = 3 }; /* fractional bits of constants, and of what passes and the result keep */

/* sqrt(2 / 8) cos((2 x + 1) u pi / 16), of u = 0 over sqrt(2). */
static const int16_t basis[8][8] = {
    {2896, 2896, 2896, 2896, 2896, 2896, 2896, 2896},
    {4017, 3406, 2276, 799, -799, -2276, -3406, -4017},
    {3784, 1567, -1567, -3784, -3784, -1567, 1567, 3784},
    {3406, -799, -4017, -2276, 2276, 4017, 799, -3406},
    {2896, -2896, -2896, 2896, 2896, -2896, -2896, 2896},
    {2276, -4017, 799, 3406, -3406, -799, 4017, -2276},
    {1567, -3784, 3784, -1567, -1567, 3784, -3784, 1567},
    {799, -2276, 3406, -4017, 4017, -3406, 2276, -799},
};

static int32_t rounded(int32_t value, unsigned bits)
{
    return (value + (1 << (bits - 1))) >> bits;
}

/* A block of samples or differences, as coefficients in raster order. */
void forward_dct(int32_t out[64], const int16_t in[64])
{
    int32_t rows[64];
    for (int y = 0; y < 8; y++)
        for (int u = 0; u < 8; u++) {
            int32_t sum = 0;
            for (int x = 0; x < 8; x++)
                sum += basis[u][x] * in[8 * y + x];
            rows[8 * y + u] = rounded(sum, CONSTANT_BITS - ROW_BITS);
        }
    for (int v = 0; v < 8; v++)
        for (int u = 0; u < 8; u++) {
            int32_t sum = 0;
            for (int y = 0; y < 8; y++)
                sum += basis[v][y] * rows[8 * y + u];
            out[8 * v + u] = rounded(sum, CONSTANT_BITS + ROW_BITS - DCT_BITS);
        }
}
