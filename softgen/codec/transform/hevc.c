/* The inverse transforms of HEVC (hevc.h). A sum is that of even and of odd basis functions: the second half of a row mirrors the first. */
#include <string.h>

#include "hevc.h"

#define INLINE inline __attribute__((always_inline))
#ifdef __x86_64__
#define VECTORIZED __attribute__((target_clones("arch=x86-64-v3", "default")))
#else
#define VECTORIZED
#endif

enum { MOST = 32, FIRST_SHIFT = 7, LANES = 8 };

typedef int32_t lanes __attribute__((vector_size(4 * LANES)));
typedef int16_t narrow_lanes __attribute__((vector_size(2 * LANES)));

/* transMatrix of 8.6.4.2: the first halves of the rows of the DCT of 32; smaller ones are every second, fourth, eighth row of it. */
static const int32_t basis[32][16] = {
    {64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64},
    {90, 90, 88, 85, 82, 78, 73, 67, 61, 54, 46, 38, 31, 22, 13, 4},
    {90, 87, 80, 70, 57, 43, 25, 9, -9, -25, -43, -57, -70, -80, -87, -90},
    {90, 82, 67, 46, 22, -4, -31, -54, -73, -85, -90, -88, -78, -61, -38, -13},
    {89, 75, 50, 18, -18, -50, -75, -89, -89, -75, -50, -18, 18, 50, 75, 89},
    {88, 67, 31, -13, -54, -82, -90, -78, -46, -4, 38, 73, 90, 85, 61, 22},
    {87, 57, 9, -43, -80, -90, -70, -25, 25, 70, 90, 80, 43, -9, -57, -87},
    {85, 46, -13, -67, -90, -73, -22, 38, 82, 88, 54, -4, -61, -90, -78, -31},
    {83, 36, -36, -83, -83, -36, 36, 83, 83, 36, -36, -83, -83, -36, 36, 83},
    {82, 22, -54, -90, -61, 13, 78, 85, 31, -46, -90, -67, 4, 73, 88, 38},
    {80, 9, -70, -87, -25, 57, 90, 43, -43, -90, -57, 25, 87, 70, -9, -80},
    {78, -4, -82, -73, 13, 85, 67, -22, -88, -61, 31, 90, 54, -38, -90, -46},
    {75, -18, -89, -50, 50, 89, 18, -75, -75, 18, 89, 50, -50, -89, -18, 75},
    {73, -31, -90, -22, 78, 67, -38, -90, -13, 82, 61, -46, -88, -4, 85, 54},
    {70, -43, -87, 9, 90, 25, -80, -57, 57, 80, -25, -90, -9, 87, 43, -70},
    {67, -54, -78, 38, 85, -22, -90, 4, 90, 13, -88, -31, 82, 46, -73, -61},
    {64, -64, -64, 64, 64, -64, -64, 64, 64, -64, -64, 64, 64, -64, -64, 64},
    {61, -73, -46, 82, 31, -88, -13, 90, -4, -90, 22, 85, -38, -78, 54, 67},
    {57, -80, -25, 90, -9, -87, 43, 70, -70, -43, 87, 9, -90, 25, 80, -57},
    {54, -85, -4, 88, -46, -61, 82, 13, -90, 38, 67, -78, -22, 90, -31, -73},
    {50, -89, 18, 75, -75, -18, 89, -50, -50, 89, -18, -75, 75, 18, -89, 50},
    {46, -90, 38, 54, -90, 31, 61, -88, 22, 67, -85, 13, 73, -82, 4, 78},
    {43, -90, 57, 25, -87, 70, 9, -80, 80, -9, -70, 87, -25, -57, 90, -43},
    {38, -88, 73, -4, -67, 90, -46, -31, 85, -78, 13, 61, -90, 54, 22, -82},
    {36, -83, 83, -36, -36, 83, -83, 36, 36, -83, 83, -36, -36, 83, -83, 36},
    {31, -78, 90, -61, 4, 54, -88, 82, -38, -22, 73, -90, 67, -13, -46, 85},
    {25, -70, 90, -80, 43, 9, -57, 87, -87, 57, -9, -43, 80, -90, 70, -25},
    {22, -61, 85, -90, 73, -38, -4, 46, -78, 90, -82, 54, -13, -31, 67, -88},
    {18, -50, 75, -89, 89, -75, 50, -18, -18, 50, -75, 89, -89, 75, -50, 18},
    {13, -38, 61, -78, 88, -90, 85, -73, 54, -31, 4, 22, -46, 67, -82, 90},
    {9, -25, 43, -57, 70, -80, 87, -90, 90, -87, 80, -70, 57, -43, 25, -9},
    {4, -13, 22, -31, 38, -46, 54, -61, 67, -73, 78, -82, 85, -88, 90, -90},
};

static inline int16_t narrow(int value)
{
    return (int16_t)(value < INT16_MIN ? INT16_MIN : value > INT16_MAX ? INT16_MAX : value);
}

static INLINE lanes load(const int16_t *from)
{
    narrow_lanes found;
    memcpy(&found, from, sizeof found);
    return __builtin_convertvector(found, lanes);
}

static INLINE void store(int16_t *to, lanes x)
{
    const lanes low = (lanes){0} + INT16_MIN, high = (lanes){0} + INT16_MAX;
    x = (x & (x > low)) | (low & ~(x > low));
    x = (x & (x < high)) | (high & ~(x < high));
    narrow_lanes found = __builtin_convertvector(x, narrow_lanes);
    memcpy(to, &found, sizeof found);
}

/* Columns: each output row is a sum of input rows. */
static INLINE void down(int16_t *out, const int16_t *in, int log2, int columns, int rows)
{
    int size = 1 << log2, step = MOST >> log2;
    for (int x = 0; x < columns; x += LANES) {
        lanes row[MOST];
        for (int k = 0; k < rows; k++)
            row[k] = load(in + (k << log2) + x);
        for (int y = 0; y < size >> 1; y++) {
            lanes even = {0}, odd = {0};
            for (int k = 0; k < rows; k += 2) {
                even += row[k] * basis[k * step][y];
                odd += row[k + 1] * basis[(k + 1) * step][y];
            }
            even += 1 << (FIRST_SHIFT - 1);
            store(out + (y << log2) + x, (even + odd) >> FIRST_SHIFT);
            store(out + ((size - 1 - y) << log2) + x, (even - odd) >> FIRST_SHIFT);
        }
    }
}

/* Rows of 16 or 32: each is a sum of basis functions. */
static INLINE void across(int16_t *out, const int16_t *in, int log2, int columns, int shift)
{
    const lanes backwards = {7, 6, 5, 4, 3, 2, 1, 0};
    int size = 1 << log2, step = MOST >> log2, parts = (size >> 1) / LANES;
    for (int y = 0; y < size; y++, in += size, out += size) {
        lanes even[2] = {{0}, {0}}, odd[2] = {{0}, {0}};
        for (int k = 0; k < columns; k += 2)
            for (int i = 0; i < parts; i++) {
                lanes a, b;
                memcpy(&a, &basis[k * step][i * LANES], sizeof a);
                memcpy(&b, &basis[(k + 1) * step][i * LANES], sizeof b);
                even[i] += a * in[k];
                odd[i] += b * in[k + 1];
            }
        for (int i = 0; i < parts; i++) {
            even[i] += 1 << (shift - 1);
            store(out + i * LANES, (even[i] + odd[i]) >> shift);
            store(out + size - (i + 1) * LANES, __builtin_shuffle((even[i] - odd[i]) >> shift, backwards));
        }
    }
}

/* Blocks of 4 and 8. */
static INLINE void small(int16_t *out, const int16_t *in, int log2, int columns, int rows, int shift)
{
    int size = 1 << log2, step = MOST >> log2, half = size >> 1;
    int16_t between[LANES * LANES];
    for (int y = 0; y < half; y++) {
        int even[LANES] = {0}, odd[LANES] = {0};
        for (int k = 0; k < rows; k += 2)
            for (int x = 0; x < size; x++) {
                even[x] += basis[k * step][y] * in[(k << log2) + x];
                odd[x] += basis[(k + 1) * step][y] * in[((k + 1) << log2) + x];
            }
        for (int x = 0; x < size; x++) {
            between[(y << log2) + x] = narrow((even[x] + odd[x] + (1 << (FIRST_SHIFT - 1))) >> FIRST_SHIFT);
            between[((size - 1 - y) << log2) + x] = narrow((even[x] - odd[x] + (1 << (FIRST_SHIFT - 1))) >> FIRST_SHIFT);
        }
    }
    for (int y = 0; y < size; y++) {
        const int16_t *from = between + (y << log2);
        int even[LANES / 2] = {0}, odd[LANES / 2] = {0};
        for (int k = 0; k < columns; k += 2)
            for (int x = 0; x < half; x++) {
                even[x] += basis[k * step][x] * from[k];
                odd[x] += basis[(k + 1) * step][x] * from[k + 1];
            }
        for (int x = 0; x < half; x++) {
            out[(y << log2) + x] = narrow((even[x] + odd[x] + (1 << (shift - 1))) >> shift);
            out[(y << log2) + size - 1 - x] = narrow((even[x] - odd[x] + (1 << (shift - 1))) >> shift);
        }
    }
}

VECTORIZED void hevc_transform(int16_t *out, const int16_t *in, int log2, int columns, int rows, int shift)
{
    int16_t between[MOST * MOST];
    switch (log2) { /* each of a size that is known */
    case 2:
        small(out, in, 2, 4, 4, shift);
        break;
    case 3:
        if (columns <= 4 && rows <= 4)
            small(out, in, 3, 4, 4, shift);
        else
            small(out, in, 3, 8, 8, shift);
        break;
    case 4:
        down(between, in, 4, columns, rows);
        across(out, between, 4, columns, shift);
        break;
    default:
        down(between, in, 5, columns, rows);
        across(out, between, 5, columns, shift);
    }
}

int hevc_mean(int coefficient, int shift)
{
    int between = narrow((64 * coefficient + (1 << (FIRST_SHIFT - 1))) >> FIRST_SHIFT);
    return narrow((64 * between + (1 << (shift - 1))) >> shift);
}

static void sine(int16_t *out, const int16_t *in, int step, int next, int shift)
{
    static const int8_t m[4][4] = {{29, 55, 74, 84}, {74, 74, 0, -74}, {84, -29, -74, 55}, {55, -84, 74, -29}};
    for (int line = 0; line < 4; line++)
        for (int i = 0; i < 4; i++) {
            int sum = 1 << (shift - 1);
            for (int k = 0; k < 4; k++)
                sum += m[k][i] * in[line * next + k * step];
            out[line * next + i * step] = narrow(sum >> shift);
        }
}

void hevc_sine_4x4(int16_t out[16], const int16_t in[16], int shift)
{
    int16_t between[16];
    sine(between, in, 4, 1, FIRST_SHIFT);
    sine(out, between, 1, 4, shift);
}

void hevc_no_transform(int16_t *out, const int16_t *in, int size, int shift)
{
    for (int i = 0; i < size * size; i++)
        out[i] = narrow((in[i] * 128 + (1 << (shift - 1))) >> shift);
}
