/* Luma samples at quarter positions (8.4.2.2.1): six taps at halves, means between; and chroma at eighths (8.4.2.2.2). */
#include "../../sample_lanes.h"
#include "avc.h"

enum { SIDE = 16, TAPS = 5, MOST_SUM = 26000 };

static INLINE lanes six(lanes a, lanes b, lanes c, lanes d, lanes e, lanes f)
{
    return a + f - 5 * (b + e) + 20 * (c + d);
}

static INLINE lanes half_of(lanes sum)
{
    return lanes_clamp((sum + 16) >> 5, lanes_of(0), lanes_of(255));
}

/* Sums between two columns, and between two rows. */
static INLINE lanes sum_x(const uint8_t *p, ptrdiff_t stride, int width)
{
    return six(lanes_rows(p - 2, stride, width), lanes_rows(p - 1, stride, width), lanes_rows(p, stride, width), lanes_rows(p + 1, stride, width),
               lanes_rows(p + 2, stride, width), lanes_rows(p + 3, stride, width));
}

static INLINE lanes sum_y(const uint8_t *p, ptrdiff_t stride, int width)
{
    return six(lanes_rows(p - 2 * stride, stride, width), lanes_rows(p - stride, stride, width), lanes_rows(p, stride, width),
               lanes_rows(p + stride, stride, width), lanes_rows(p + 2 * stride, stride, width), lanes_rows(p + 3 * stride, stride, width));
}

/* The middle of four samples, of sums between columns: (a - 5b + 20c + 512) >> 10 without leaving 16 bits, by quarters. The limit of c - b
 * changes no result: beyond it that is 0 or 255 whatever a is. */
static INLINE lanes middle_of(const lanes *sum)
{
    lanes a = sum[0] + sum[5], b = sum[1] + sum[4], c = sum[2] + sum[3];
    lanes quarter = (((a - b) >> 2) + lanes_clamp(c - b, lanes_of(-MOST_SUM), lanes_of(MOST_SUM))) >> 2;
    return lanes_clamp((quarter + c + 32) >> 6, lanes_of(0), lanes_of(255));
}

/* Positions at the middle of columns and rows, or beside it. */
static INLINE void middle(uint8_t *to, ptrdiff_t to_stride, const uint8_t *p, ptrdiff_t stride, int fx, int fy, int width, int height)
{
    lanes sums[SIDE + TAPS];
    int step = lanes_height(width);
    for (int y = 0; y < height + TAPS - (step - 1); y++)
        sums[y] = sum_x(p + (y - 2) * stride, stride, width);
    for (int y = 0; y < height; y += step) {
        lanes out = middle_of(sums + y);
        if (fy & 1)
            out = lanes_mean(out, half_of(sums[y + 2 + (fy == 3)]));
        if (fx & 1)
            out = lanes_mean(out, half_of(sum_y(p + y * stride + (fx == 3), stride, width)));
        lanes_put_rows(to + y * to_stride, to_stride, width, lanes_narrow(out));
    }
}

static INLINE void block(uint8_t *to, ptrdiff_t to_stride, const uint8_t *p, ptrdiff_t stride, int fx, int fy, int width, int height)
{
    if ((fx == 2 && fy) || (fy == 2 && fx)) {
        middle(to, to_stride, p, stride, fx, fy, width, height);
        return;
    }
    for (int y = 0, step = lanes_height(width); y < height; y += step, p += step * stride, to += step * to_stride) {
        lanes out = lanes_rows(p, stride, width);
        if (fx && fy)
            out = lanes_mean(half_of(sum_x(p + (fy == 3 ? stride : 0), stride, width)), half_of(sum_y(p + (fx == 3), stride, width)));
        else if (fx)
            out = half_of(sum_x(p, stride, width));
        else if (fy)
            out = half_of(sum_y(p, stride, width));
        if (fx & 1 && !fy)
            out = lanes_mean(out, lanes_rows(p + (fx == 3), stride, width));
        if (fy & 1 && !fx)
            out = lanes_mean(out, lanes_rows(p + (fy == 3 ? stride : 0), stride, width));
        lanes_put_rows(to, to_stride, width, lanes_narrow(out));
    }
}

/* A block of 4, 8 or 16 columns at (fx, fy) quarters from `from`, which has two samples before it and three behind in each direction. */
ENTRY VECTORIZED void avc_interpolate(uint8_t *to, ptrdiff_t to_stride, const uint8_t *from, ptrdiff_t stride, int fx, int fy, int width,
                                      int height)
{
    if (width == SIDE)
        block(to, to_stride, from, stride, fx, fy, SIDE, height);
    else if (width == 8)
        block(to, to_stride, from, stride, fx, fy, 8, height);
    else
        block(to, to_stride, from, stride, fx, fy, 4, height);
}

/* Rows of 2, 4, 8 or 16 samples, each width a copy of its own that the compiler knows. */
static INLINE void put_rows(uint8_t *to, ptrdiff_t stride, int width, lane_bytes out)
{
    if (width == SIDE)
        lanes_put_rows(to, stride, SIDE, out);
    else if (width == 8)
        lanes_put_rows(to, stride, 8, out);
    else if (width == 4)
        lanes_put_rows(to, stride, 4, out);
    else
        lanes_put_rows(to, stride, 2, out);
}

/* A block of chroma of 2, 4 or 8 columns, at (fx, fy) eighths. */
VECTORIZED void avc_interpolate_chroma(uint8_t *to, ptrdiff_t to_stride, const uint8_t *from, ptrdiff_t stride, int fx, int fy, int width,
                                       int height)
{
    lanes here = lanes_of((8 - fx) * (8 - fy)), right = lanes_of(fx * (8 - fy)), below = lanes_of((8 - fx) * fy), both = lanes_of(fx * fy);
    for (int y = 0; y < height; y += 2, from += 2 * stride, to += 2 * to_stride) {
        lanes sum = here * lanes_rows(from, stride, 8) + right * lanes_rows(from + 1, stride, 8) + below * lanes_rows(from + stride, stride, 8)
                  + both * lanes_rows(from + stride + 1, stride, 8);
        lane_bytes out = lanes_narrow((sum + 32) >> 6);
        put_rows(to, to_stride, width, out);
    }
}

/* The mean of two predictions of a block, whose second has 16 samples from row to row. */
VECTORIZED void avc_average(uint8_t *to, ptrdiff_t stride, const uint8_t *other, int width, int height)
{
    for (int y = 0, step = lanes_height(width); y < height; y += step, to += step * stride, other += step * SIDE) {
        lane_bytes out = lanes_narrow(lanes_mean(lanes_rows(to, stride, width), lanes_rows(other, SIDE, width)));
        put_rows(to, stride, width, out);
    }
}

/* The implicitly weighted mean of two predictions, whose weights sum to 64: (64 a + weight (b - a) + 32) / 64 without leaving 16 bits. */
VECTORIZED void avc_mix(uint8_t *to, ptrdiff_t stride, const uint8_t *other, int weight, int width, int height)
{
    for (int y = 0, step = lanes_height(width); y < height; y += step, to += step * stride, other += step * SIDE) {
        lanes a = lanes_rows(to, stride, width), b = lanes_rows(other, SIDE, width);
        lane_bytes out = lanes_saturated(a + (((b - a) * (int16_t)weight + 32) >> 6));
        put_rows(to, stride, width, out);
    }
}
