/* How far blocks of samples are from each other: sums of absolute differences, plain and after a Hadamard transform. */
#include <stdlib.h>

#include "vdenc.h"

uint32_t vdenc_sad(const uint8_t *a, ptrdiff_t a_stride, const uint8_t *b, ptrdiff_t b_stride, int width, int height)
{
    uint32_t sum = 0;
    for (int y = 0; y < height; y++, a += a_stride, b += b_stride)
        for (int x = 0; x < width; x++)
            sum += (uint32_t)abs(a[x] - b[x]);
    return sum;
}

static uint32_t hadamard_4x4(const uint8_t *a, ptrdiff_t a_stride, const uint8_t *b, ptrdiff_t b_stride)
{
    int rows[4][4], sum = 0;
    for (int y = 0; y < 4; y++, a += a_stride, b += b_stride) {
        int d0 = a[0] - b[0], d1 = a[1] - b[1], d2 = a[2] - b[2], d3 = a[3] - b[3];
        int s0 = d0 + d3, s1 = d1 + d2, s2 = d1 - d2, s3 = d0 - d3;
        rows[y][0] = s0 + s1;
        rows[y][1] = s3 + s2;
        rows[y][2] = s0 - s1;
        rows[y][3] = s3 - s2;
    }
    for (int x = 0; x < 4; x++) {
        int s0 = rows[0][x] + rows[3][x], s1 = rows[1][x] + rows[2][x], s2 = rows[1][x] - rows[2][x], s3 = rows[0][x] - rows[3][x];
        sum += abs(s0 + s1) + abs(s3 + s2) + abs(s0 - s1) + abs(s3 - s2);
    }
    return (uint32_t)sum / 2;
}

uint32_t vdenc_difference(const uint8_t *a, ptrdiff_t a_stride, const uint8_t *b, ptrdiff_t b_stride, int width, int height)
{
    uint32_t sum = 0;
    for (int y = 0; y < height; y += 4)
        for (int x = 0; x < width; x += 4)
            sum += hadamard_4x4(a + y * a_stride + x, a_stride, b + y * b_stride + x, b_stride);
    return sum;
}
