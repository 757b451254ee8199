/* Luma samples at quarter positions (8.4.2.2.1): six taps at halves, means between. */
#include "avc.h"

enum { SIDE = 16, TAPS = 5, WIDE = SIDE + TAPS };

static inline int six(int a, int b, int c, int d, int e, int f)
{
    return a - 5 * b + 20 * c + 20 * d - 5 * e + f;
}

static void copy(uint8_t *to, ptrdiff_t to_stride, const uint8_t *from, ptrdiff_t stride, int width, int height)
{
    for (int y = 0; y < height; y++)
        for (int x = 0; x < width; x++)
            to[y * to_stride + x] = from[y * stride + x];
}

/* Between two columns, and between two rows. */
static void half_x(uint8_t *to, ptrdiff_t to_stride, const uint8_t *p, ptrdiff_t stride, int width, int height)
{
    for (int y = 0; y < height; y++, p += stride)
        for (int x = 0; x < width; x++)
            to[y * to_stride + x] = clamp_sample((six(p[x - 2], p[x - 1], p[x], p[x + 1], p[x + 2], p[x + 3]) + 16) >> 5);
}

static void half_y(uint8_t *to, ptrdiff_t to_stride, const uint8_t *p, ptrdiff_t stride, int width, int height)
{
    for (int y = 0; y < height; y++, p += stride)
        for (int x = 0; x < width; x++) {
            int sum = six(p[x - 2 * stride], p[x - stride], p[x], p[x + stride], p[x + 2 * stride], p[x + 3 * stride]);
            to[y * to_stride + x] = clamp_sample((sum + 16) >> 5);
        }
}

static void middle(uint8_t *to, ptrdiff_t to_stride, const uint8_t *p, ptrdiff_t stride, int width, int height)
{
    int16_t rows[WIDE * SIDE];
    p -= 2 * stride;
    for (int y = 0; y < height + TAPS; y++, p += stride)
        for (int x = 0; x < width; x++)
            rows[y * SIDE + x] = (int16_t)six(p[x - 2], p[x - 1], p[x], p[x + 1], p[x + 2], p[x + 3]);
    for (int y = 0; y < height; y++)
        for (int x = 0; x < width; x++) {
            const int16_t *r = rows + y * SIDE + x;
            int sum = six(r[0], r[SIDE], r[2 * SIDE], r[3 * SIDE], r[4 * SIDE], r[5 * SIDE]);
            to[y * to_stride + x] = clamp_sample((sum + 512) >> 10);
        }
}

static void mean(uint8_t *to, ptrdiff_t to_stride, const uint8_t *other, int width, int height)
{
    for (int y = 0; y < height; y++)
        for (int x = 0; x < width; x++)
            to[y * to_stride + x] = (uint8_t)((to[y * to_stride + x] + other[y * SIDE + x] + 1) >> 1);
}

/* A block at (fx, fy) quarters from `from`, which has two samples before it and three behind in each direction. */
void avc_interpolate(uint8_t *to, ptrdiff_t to_stride, const uint8_t *from, ptrdiff_t stride, int fx, int fy, int width, int height)
{
    uint8_t other[SIDE * SIDE];
    const uint8_t *right = from + (fx == 3), *below = from + (fy == 3 ? stride : 0);
    if (!fx && !fy)
        copy(to, to_stride, from, stride, width, height);
    else if (!fy) {
        half_x(to, to_stride, from, stride, width, height);
        copy(other, SIDE, right, stride, width, height);
    } else if (!fx) {
        half_y(to, to_stride, from, stride, width, height);
        copy(other, SIDE, below, stride, width, height);
    } else if (fx == 2 || fy == 2) {
        middle(to, to_stride, from, stride, width, height);
        if (fx == 2)
            half_x(other, SIDE, below, stride, width, height);
        else
            half_y(other, SIDE, right, stride, width, height);
    } else {
        half_x(to, to_stride, below, stride, width, height);
        half_y(other, SIDE, right, stride, width, height);
    }
    if ((fx | fy) & 1)
        mean(to, to_stride, other, width, height);
}
