/* The integer inverse DCT that the pictures of MPEG-2 and JPEG are compared in.
 *
 * Both standards leave the arithmetic open within IEEE 1180. The constants and roundings here are those of the transform that ffmpeg
 * calls "simple", its default, so that decoded frames are equal bit for bit. */
#include <string.h>

#include "../codec.h"
#include "transform.h"

const uint8_t zigzag_scan[64] = {
    0, 1, 8, 16, 9, 2, 3, 10, 17, 24, 32, 25, 18, 11, 4, 5, 12, 19, 26, 33, 40, 48, 41, 34, 27, 20, 13, 6, 7, 14, 21, 28,
    35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23, 30, 37, 44, 51, 58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63};

enum { C1 = 22725, C2 = 21407, C3 = 19266, C4 = 16383, C5 = 12873, C6 = 8867, C7 = 4520 }; /* cos(i pi / 16) sqrt(2) 2^14; C4 less one */
enum { ROW_SHIFT = 11, COLUMN_SHIFT = 20, DC_SHIFT = 3 };

/* Eight values of a row or column, `step` apart, with `round` in the units of the constant part; no shift yet. */
static inline void eight(const int16_t *x, int step, int round, int even[4], int odd[4])
{
    int x0 = x[0], x1 = x[step], x2 = x[2 * step], x3 = x[3 * step], x4 = x[4 * step], x5 = x[5 * step], x6 = x[6 * step], x7 = x[7 * step];
    int middle = C4 * x0 + round;
    even[0] = middle + C4 * x4 + C2 * x2 + C6 * x6;
    even[1] = middle - C4 * x4 + C6 * x2 - C2 * x6;
    even[2] = middle - C4 * x4 - C6 * x2 + C2 * x6;
    even[3] = middle + C4 * x4 - C2 * x2 - C6 * x6;
    odd[0] = C1 * x1 + C3 * x3 + C5 * x5 + C7 * x7;
    odd[1] = C3 * x1 - C7 * x3 - C1 * x5 - C5 * x7;
    odd[2] = C5 * x1 - C1 * x3 + C7 * x5 + C3 * x7;
    odd[3] = C7 * x1 - C5 * x3 + C3 * x5 - C1 * x7;
}

static void row(int16_t *x)
{
    int even[4], odd[4];
    uint64_t low, high;
    memcpy(&low, x, 8);
    memcpy(&high, x + 4, 8);
    if (!high && !(low >> 16)) { /* little-endian: x[0] alone */
        int16_t dc = (int16_t)(x[0] * (1 << DC_SHIFT));
        for (int i = 0; i < 8; i++)
            x[i] = dc;
        return;
    }
    eight(x, 1, 1 << (ROW_SHIFT - 1), even, odd);
    for (int i = 0; i < 4; i++) {
        x[i] = (int16_t)((even[i] + odd[i]) >> ROW_SHIFT);
        x[7 - i] = (int16_t)((even[i] - odd[i]) >> ROW_SHIFT);
    }
}

void simple_idct(int16_t block[64])
{
    for (int i = 0; i < 8; i++)
        row(block + 8 * i);
    for (int i = 0; i < 8; i++) {
        int even[4], odd[4];
        eight(block + i, 8, C4 * ((1 << (COLUMN_SHIFT - 1)) / C4), even, odd);
        for (int j = 0; j < 4; j++) {
            block[8 * j + i] = (int16_t)((even[j] + odd[j]) >> COLUMN_SHIFT);
            block[8 * (7 - j) + i] = (int16_t)((even[j] - odd[j]) >> COLUMN_SHIFT);
        }
    }
}

void put_block(uint8_t *to, size_t stride, const int16_t block[64])
{
    for (int y = 0; y < 8; y++)
        for (int x = 0; x < 8; x++)
            to[(size_t)y * stride + (size_t)x] = clamp_sample(block[8 * y + x]);
}

void add_block(uint8_t *to, size_t stride, const int16_t block[64])
{
    for (int y = 0; y < 8; y++)
        for (int x = 0; x < 8; x++)
            to[(size_t)y * stride + (size_t)x] = clamp_sample(to[(size_t)y * stride + (size_t)x] + block[8 * y + x]);
}
