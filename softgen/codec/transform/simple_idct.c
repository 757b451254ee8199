/* The integer inverse DCT that the pictures of MPEG-2 and JPEG are compared in.
 *
 * Both standards leave the arithmetic open within IEEE 1180. The constants and roundings here are those of the transform that ffmpeg
 * calls "simple", its default, so that decoded frames are equal bit for bit. */
#include <string.h>
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "../codec.h"
#include "../sample_lanes.h"
#include "transform.h"

const uint8_t zigzag_scan[64] = {
    0, 1, 8, 16, 9, 2, 3, 10, 17, 24, 32, 25, 18, 11, 4, 5, 12, 19, 26, 33, 40, 48, 41, 34, 27, 20, 13, 6, 7, 14, 21, 28,
    35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23, 30, 37, 44, 51, 58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63};

enum { C1 = 22725, C2 = 21407, C3 = 19266, C4 = 16383, C5 = 12873, C6 = 8867, C7 = 4520 }; /* cos(i pi / 16) sqrt(2) 2^14; C4 less one */
enum { SIDE = 8, ROW_SHIFT = 11, COLUMN_SHIFT = 20, DC_SHIFT = 3 };

/* A row or column of the block, two of them with their elements beside one another, and half of one in the middle of a transform: all rows,
 * then all columns are transformed at once. */
typedef int16_t line __attribute__((vector_size(2 * SIDE)));
typedef int32_t half __attribute__((vector_size(2 * SIDE)));

/* Of each pair of neighbours, `a` times the first and `b` times the second. */
static INLINE half products(line pairs, int a, int b)
{
#if defined(__SSE2__)
    return (half)_mm_madd_epi16((__m128i)pairs, _mm_set1_epi32((int)((uint32_t)b << 16 | (uint16_t)a)));
#else
    return a * ((half)pairs << 16 >> 16) + b * ((half)pairs >> 16);
#endif
}

/* The low 16 bits of sums, shifted. */
static INLINE line narrowed(half low, half high, int shift)
{
#if defined(__SSE2__)
    int dropped = shift < 16 ? 16 - shift : 0; /* bits above those that are kept */
    return (line)_mm_packs_epi32((__m128i)(low << dropped >> (shift + dropped)), (__m128i)(high << dropped >> (shift + dropped)));
#else
    typedef int16_t part __attribute__((vector_size(SIDE)));
    part parts[2] = {__builtin_convertvector(low >> shift, part), __builtin_convertvector(high >> shift, part)};
    line found;
    memcpy(&found, parts, sizeof found);
    return found;
#endif
}

/* Half of eight lines, from pairs of lines 0 and 4, 2 and 6, 1 and 3, 5 and 7; `round` is in the units of the constant part, before the
 * shift: sums of even and odd parts. */
static INLINE void eight(const line pairs[4], int round, half even[4], half odd[4])
{
    half sum = products(pairs[0], C4, C4) + round, difference = products(pairs[0], C4, -C4) + round;
    half outer = products(pairs[1], C2, C6), inner = products(pairs[1], C6, -C2);
    even[0] = sum + outer;
    even[1] = difference + inner;
    even[2] = difference - inner;
    even[3] = sum - outer;
    odd[0] = products(pairs[2], C1, C3) + products(pairs[3], C5, C7);
    odd[1] = products(pairs[2], C3, -C7) - products(pairs[3], C1, C5);
    odd[2] = products(pairs[2], C5, -C1) + products(pairs[3], C7, C3);
    odd[3] = products(pairs[2], C7, -C5) + products(pairs[3], C3, -C1);
}

static INLINE line interleaved_low(line a, line b)
{
    return __builtin_shuffle(a, b, (line){0, 8, 1, 9, 2, 10, 3, 11});
}

static INLINE line interleaved_high(line a, line b)
{
    return __builtin_shuffle(a, b, (line){4, 12, 5, 13, 6, 14, 7, 15});
}

static INLINE void pass(line x[SIDE], int round, int shift)
{
    static const int first[4] = {0, 2, 1, 5}, second[4] = {4, 6, 3, 7};
    line low[4], high[4];
    half even[2][4], odd[2][4];
    for (int i = 0; i < 4; i++) {
        low[i] = interleaved_low(x[first[i]], x[second[i]]);
        high[i] = interleaved_high(x[first[i]], x[second[i]]);
    }
    eight(low, round, even[0], odd[0]);
    eight(high, round, even[1], odd[1]);
    for (int i = 0; i < 4; i++) {
        x[i] = narrowed(even[0][i] + odd[0][i], even[1][i] + odd[1][i], shift);
        x[SIDE - 1 - i] = narrowed(even[0][i] - odd[0][i], even[1][i] - odd[1][i], shift);
    }
}

/* Three times each puts elements of lines that are half of the rest apart beside one another. */
static INLINE void transpose(line x[SIDE])
{
    for (int i = 0; i < 3; i++) {
        line next[SIDE];
        for (int j = 0; j < 4; j++) {
            next[2 * j] = interleaved_low(x[j], x[j + 4]);
            next[2 * j + 1] = interleaved_high(x[j], x[j + 4]);
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
