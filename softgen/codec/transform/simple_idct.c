/* The integer inverse DCT that the pictures of MPEG-2 and JPEG are compared in.
 *
 * Both standards leave the arithmetic open within IEEE 1180. The constants and roundings here are those of the transform that ffmpeg
 * calls "simple", its default, so that decoded frames are equal bit for bit. */
#include <string.h>

#include "../codec.h"
#include "../sample_lanes.h"
#include "transform.h"

const uint8_t zigzag_scan[64] = {
    0, 1, 8, 16, 9, 2, 3, 10, 17, 24, 32, 25, 18, 11, 4, 5, 12, 19, 26, 33, 40, 48, 41, 34, 27, 20, 13, 6, 7, 14, 21, 28,
    35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23, 30, 37, 44, 51, 58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63};

enum { C1 = 22725, C2 = 21407, C3 = 19266, C4 = 16383, C5 = 12873, C6 = 8867, C7 = 4520 }; /* cos(i pi / 16) sqrt(2) 2^14; C4 less one */
enum { SIDE = 8, ROW_SHIFT = 11, COLUMN_SHIFT = 20, DC_SHIFT = 3 };

/* A row or column of the block, and one in the middle of a transform: all rows, then all columns are transformed at once. */
typedef int16_t line __attribute__((vector_size(2 * SIDE)));
typedef int32_t wide __attribute__((vector_size(4 * SIDE)));

/* Eight values, with `round` in the units of the constant part, before the shift: sums of even and odd parts. */
static INLINE void eight(const wide x[SIDE], int round, wide even[4], wide odd[4])
{
    wide middle = C4 * x[0] + round;
    even[0] = middle + C4 * x[4] + C2 * x[2] + C6 * x[6];
    even[1] = middle - C4 * x[4] + C6 * x[2] - C2 * x[6];
    even[2] = middle - C4 * x[4] - C6 * x[2] + C2 * x[6];
    even[3] = middle + C4 * x[4] - C2 * x[2] - C6 * x[6];
    odd[0] = C1 * x[1] + C3 * x[3] + C5 * x[5] + C7 * x[7];
    odd[1] = C3 * x[1] - C7 * x[3] - C1 * x[5] - C5 * x[7];
    odd[2] = C5 * x[1] - C1 * x[3] + C7 * x[5] + C3 * x[7];
    odd[3] = C7 * x[1] - C5 * x[3] + C3 * x[5] - C1 * x[7];
}

static INLINE void pass(line x[SIDE], int round, int shift)
{
    wide in[SIDE], even[4], odd[4];
    for (int i = 0; i < SIDE; i++)
        in[i] = __builtin_convertvector(x[i], wide);
    eight(in, round, even, odd);
    for (int i = 0; i < 4; i++) {
        x[i] = __builtin_convertvector((even[i] + odd[i]) >> shift, line);
        x[SIDE - 1 - i] = __builtin_convertvector((even[i] - odd[i]) >> shift, line);
    }
}

/* Three times each puts elements of lines that are half of the rest apart beside one another. */
static INLINE void transpose(line x[SIDE])
{
    for (int i = 0; i < 3; i++) {
        line next[SIDE];
        for (int j = 0; j < 4; j++) {
            next[2 * j] = __builtin_shuffle(x[j], x[j + 4], (line){0, 8, 1, 9, 2, 10, 3, 11});
            next[2 * j + 1] = __builtin_shuffle(x[j], x[j + 4], (line){4, 12, 5, 13, 6, 14, 7, 15});
        }
        memcpy(x, next, sizeof next);
    }
}

VECTORIZED void simple_idct(int16_t block[64])
{
    line x[SIDE];
    memcpy(x, block, sizeof x);
    transpose(x);
    line dc = x[0] << DC_SHIFT, is_dc = (x[1] | x[2] | x[3] | x[4] | x[5] | x[6] | x[7]) == 0; /* rows that have one value alone */
    pass(x, 1 << (ROW_SHIFT - 1), ROW_SHIFT);
    for (int i = 0; i < SIDE; i++)
        x[i] = (dc & is_dc) | (x[i] & ~is_dc);
    transpose(x);
    pass(x, C4 * ((1 << (COLUMN_SHIFT - 1)) / C4), COLUMN_SHIFT);
    memcpy(block, x, sizeof x);
}

/* Two rows of samples at once. */
VECTORIZED void put_block(uint8_t *to, size_t stride, const int16_t block[64])
{
    for (int y = 0; y < SIDE; y += 2, to += 2 * stride) {
        lanes value;
        memcpy(&value, block + SIDE * y, sizeof value);
        lanes_put_rows(to, (ptrdiff_t)stride, SIDE, lanes_saturated(value));
    }
}

/* A residual beyond 255 does what 255 does, and no sum leaves 16 bits. */
VECTORIZED void add_block(uint8_t *to, size_t stride, const int16_t block[64])
{
    for (int y = 0; y < SIDE; y += 2, to += 2 * stride) {
        lanes value;
        memcpy(&value, block + SIDE * y, sizeof value);
        value = lanes_clamp(value, lanes_of(-255), lanes_of(255)) + lanes_rows(to, (ptrdiff_t)stride, SIDE);
        lanes_put_rows(to, (ptrdiff_t)stride, SIDE, lanes_saturated(value));
    }
}
