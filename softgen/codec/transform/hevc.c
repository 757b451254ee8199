/* The inverse transforms of HEVC (hevc.h). A sum is that of even and of odd basis functions: the second half of a row mirrors the first. */
#include "hevc.h"

enum { MOST = 32, FIRST_SHIFT = 7 };

/* transMatrix of 8.6.4.2: the first halves of the rows of the DCT of 32; smaller ones are every second, fourth, eighth row of it. */
static const int8_t basis[32][16] = {
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

/* Columns: each output row is a sum of input rows. */
static void down(int16_t *out, const int16_t *in, int log2, int columns, int rows)
{
    int size = 1 << log2, step = MOST >> log2;
    for (int y = 0; y < size >> 1; y++) {
        int even[MOST] = {0}, odd[MOST] = {0};
        for (int k = 0; k < rows; k++) {
            int factor = basis[k * step][y], *sum = k & 1 ? odd : even;
            const int16_t *row = in + (k << log2);
            for (int x = 0; x < columns; x++)
                sum[x] += factor * row[x];
        }
        for (int x = 0; x < columns; x++) {
            out[(y << log2) + x] = narrow((even[x] + odd[x] + (1 << (FIRST_SHIFT - 1))) >> FIRST_SHIFT);
            out[((size - 1 - y) << log2) + x] = narrow((even[x] - odd[x] + (1 << (FIRST_SHIFT - 1))) >> FIRST_SHIFT);
        }
    }
}

/* Rows: each is a sum of basis functions. */
static void across(int16_t *out, const int16_t *in, int log2, int columns, int shift)
{
    int size = 1 << log2, step = MOST >> log2, half = size >> 1, round = 1 << (shift - 1);
    for (int y = 0; y < size; y++, in += size, out += size) {
        int even[MOST / 2] = {0}, odd[MOST / 2] = {0};
        for (int k = 0; k < columns; k++) {
            int *sum = k & 1 ? odd : even, factor = in[k];
            const int8_t *row = basis[k * step];
            for (int x = 0; x < half; x++)
                sum[x] += factor * row[x];
        }
        for (int x = 0; x < half; x++) {
            out[x] = narrow((even[x] + odd[x] + round) >> shift);
            out[size - 1 - x] = narrow((even[x] - odd[x] + round) >> shift);
        }
    }
}

void hevc_transform(int16_t *out, const int16_t *in, int log2, int columns, int rows, int shift)
{
    int16_t between[MOST * MOST];
    down(between, in, log2, columns, rows);
    across(out, between, log2, columns, shift);
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
