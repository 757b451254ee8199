/* Intra prediction (8.3): from the samples above and at the left in the picture, before they are filtered. */
#include <string.h>

#include "avc.h"

enum { VERTICAL, HORIZONTAL, DC, DOWN_LEFT, DOWN_RIGHT, VERTICAL_RIGHT, HORIZONTAL_DOWN, VERTICAL_LEFT, HORIZONTAL_UP };
enum { GREY = 128 };

static void fill(uint8_t *to, ptrdiff_t stride, int width, int height, int value)
{
    for (int y = 0; y < height; y++)
        memset(to + y * stride, value, (size_t)width);
}

static int sum_above(const uint8_t *to, ptrdiff_t stride, int count)
{
    int sum = 0;
    for (int i = 0; i < count; i++)
        sum += to[i - stride];
    return sum;
}

static int sum_left(const uint8_t *to, ptrdiff_t stride, int count)
{
    int sum = 0;
    for (int i = 0; i < count; i++)
        sum += to[i * stride - 1];
    return sum;
}

static int filtered(const uint8_t *p, int i)
{
    return (p[i - 1] + 2 * p[i] + p[i + 1] + 2) >> 2;
}

static int mean(const uint8_t *p, int i)
{
    return (p[i] + p[i + 1] + 1) >> 1;
}

/* The directional modes of a block of `n` samples a side. `edge` goes from the lowest sample at the left up to the corner, edge[n], and
 * along the row above to its 2n-th sample; it has a copy of its last sample behind, and a copy of its first before it. */
static void directional(uint8_t *to, ptrdiff_t stride, int n, int mode, const uint8_t *edge)
{
    const uint8_t *corner = edge + n, *top = corner + 1;
    for (int y = 0; y < n; y++)
        for (int x = 0; x < n; x++) {
            int value = 0, z;
            switch (mode) {
            case DOWN_LEFT:
                value = filtered(top, x + y + 1);
                break;
            case DOWN_RIGHT:
                value = filtered(corner, x - y);
                break;
            case VERTICAL_RIGHT:
                z = 2 * x - y;
                value = z < -1 ? filtered(corner, 1 + z) : z & 1 ? filtered(corner, x - (y >> 1)) : mean(corner, x - (y >> 1));
                break;
            case HORIZONTAL_DOWN:
                z = 2 * y - x;
                value = z < -1 ? filtered(corner, -1 - z) : z & 1 ? filtered(corner, -(y - (x >> 1))) : mean(corner, -(y - (x >> 1)) - 1);
                break;
            case VERTICAL_LEFT:
                value = y & 1 ? filtered(top, x + (y >> 1) + 1) : mean(top, x + (y >> 1));
                break;
            default: /* HORIZONTAL_UP */
                z = y + (x >> 1);
                value = z >= n - 1 ? edge[0] : x & 1 ? filtered(edge, n - 2 - z) : mean(edge, n - 2 - z);
            }
            to[y * stride + x] = (uint8_t)value;
        }
}

static void square(uint8_t *to, ptrdiff_t stride, int n, int mode, int left, int top, const uint8_t *edge)
{
    int value = 0, count = (left != 0) + (top != 0);
    if (mode > DC) {
        directional(to, stride, n, mode, edge);
        return;
    }
    for (int i = 0; i < n; i++)
        value += (left ? edge[n - 1 - i] : 0) + (top ? edge[n + 1 + i] : 0);
    value = count ? (value + n * count / 2) / (n * count) : GREY;
    for (int y = 0; y < n; y++)
        for (int x = 0; x < n; x++)
            to[y * stride + x] = mode == DC ? (uint8_t)value : mode == VERTICAL ? edge[n + 1 + x] : edge[n - 1 - y];
}

/* Reads the edge of a block; samples that do not exist are those beside them, or grey. */
static void read_edge(const uint8_t *to, ptrdiff_t stride, int n, int left, int top, int corner, int right, uint8_t *edge)
{
    for (int i = 0; i < n; i++) {
        edge[i] = left ? to[(n - 1 - i) * stride - 1] : GREY;
        edge[n + 1 + i] = top ? to[i - stride] : GREY;
    }
    edge[n] = corner ? to[-stride - 1] : GREY;
    for (int i = n; i < 2 * n; i++)
        edge[n + 1 + i] = right ? to[i - stride] : edge[2 * n];
    edge[-1] = edge[0];
    edge[3 * n + 1] = edge[3 * n];
}

void avc_intra_4x4(uint8_t *to, ptrdiff_t stride, int mode, int left, int top, int corner, int right)
{
    uint8_t room[16];
    read_edge(to, stride, 4, left, top, corner, right, room + 1);
    square(to, stride, 4, mode, left, top, room + 1);
}

/* The edge of an 8x8 block is smoothed (8.3.2.2.1). */
void avc_intra_8x8(uint8_t *to, ptrdiff_t stride, int mode, int left, int top, int corner, int right)
{
    uint8_t room[32], smooth[32], *edge = room + 1, *out = smooth + 1;
    read_edge(to, stride, 8, left, top, corner, right, edge);
    for (int i = 0; i < 25; i++)
        out[i] = (uint8_t)filtered(edge, i);
    if (!corner) {
        out[7] = (uint8_t)((3 * edge[7] + edge[6] + 2) >> 2);
        out[9] = (uint8_t)((3 * edge[9] + edge[10] + 2) >> 2);
    } else if (!left || !top)
        out[8] = (uint8_t)(left ? (3 * edge[8] + edge[7] + 2) >> 2 : top ? (3 * edge[8] + edge[9] + 2) >> 2 : edge[8]);
    out[-1] = out[0];
    out[25] = out[24];
    square(to, stride, 8, mode, left, top, out);
}

static void plane(uint8_t *to, ptrdiff_t stride, int n)
{
    const uint8_t *above = to - stride;
    int h = 0, v = 0, half = n / 2;
    for (int i = 1; i <= half; i++) {
        h += i * (above[half - 1 + i] - above[half - 1 - i]);
        v += i * (to[(half - 1 + i) * stride - 1] - to[(half - 1 - i) * stride - 1]);
    }
    int a = 16 * (to[(n - 1) * stride - 1] + above[n - 1]);
    int b = n == 16 ? (5 * h + 32) >> 6 : (34 * h + 32) >> 6, c = n == 16 ? (5 * v + 32) >> 6 : (34 * v + 32) >> 6;
    for (int y = 0; y < n; y++)
        for (int x = 0; x < n; x++)
            to[y * stride + x] = clamp_sample((a + b * (x - half + 1) + c * (y - half + 1) + 16) >> 5);
}

static void rows_or_columns(uint8_t *to, ptrdiff_t stride, int n, int horizontal)
{
    for (int y = 0; y < n; y++) {
        if (horizontal)
            memset(to + y * stride, to[y * stride - 1], (size_t)n);
        else
            memcpy(to + y * stride, to - stride, (size_t)n);
    }
}

void avc_intra_16x16(uint8_t *to, ptrdiff_t stride, int mode, int left, int top)
{
    if (mode == 3)
        plane(to, stride, 16);
    else if (mode != DC)
        rows_or_columns(to, stride, 16, mode == HORIZONTAL);
    else {
        int sum = (left ? sum_left(to, stride, 16) : 0) + (top ? sum_above(to, stride, 16) : 0);
        fill(to, stride, 16, 16, left && top ? (sum + 16) >> 5 : left || top ? (sum + 8) >> 4 : GREY);
    }
}

/* DC of a 4x4 block of chroma; blocks beside the diagonal prefer the side that they touch (8.3.4.1). */
static int chroma_dc(const uint8_t *to, ptrdiff_t stride, int x, int y, int left, int top)
{
    if (x != y && left && top) {
        left = x < y;
        top = x > y;
    }
    int sum = (left ? sum_left(to + 4 * y * stride, stride, 4) : 0) + (top ? sum_above(to + 4 * x, stride, 4) : 0);
    return left && top ? (sum + 4) >> 3 : left || top ? (sum + 2) >> 2 : GREY;
}

/* `left`: of the upper and of the lower half. */
void avc_intra_chroma(uint8_t *to, ptrdiff_t stride, int mode, const int left[2], int top)
{
    int values[4];
    if (mode == 3)
        plane(to, stride, 8);
    else if (mode)
        rows_or_columns(to, stride, 8, mode == 1);
    else {
        for (int i = 0; i < 4; i++)
            values[i] = chroma_dc(to, stride, i & 1, i >> 1, left[i >> 1], top);
        for (int i = 0; i < 4; i++)
            fill(to + 4 * (i >> 1) * stride + 4 * (i & 1), stride, 4, 4, values[i]);
    }
}
