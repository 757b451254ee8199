/* Luma samples at quarter positions (8.4.2.2.1): six taps at halves, means between; and chroma at eighths (8.4.2.2.2).
 *
 * A vector has a row of 16 samples, or two rows of 8; of narrower blocks it reads 8 as well and keeps fewer. */
#include "../../sample_lanes.h"
#include "avc.h"

enum { SIDE = 16, TAPS = 5, MOST_SUM = 26000 };

/* Samples of a block's rows: of row 0, or of rows 0 and 1. */
static INLINE lanes rows_at(const uint8_t *p, ptrdiff_t stride, int width)
{
    return lanes_widen(lane_bytes_of(p, width == SIDE ? p + 8 : p + stride));
}

static INLINE void put_rows(uint8_t *to, ptrdiff_t stride, int width, lane_bytes bytes)
{
    uint8_t all[LANES];
    memcpy(all, &bytes, sizeof all);
    if (width == SIDE)
        memcpy(to, all, SIDE);
    else {
        memcpy(to, all, (size_t)width);
        memcpy(to + stride, all + 8, (size_t)width);
    }
}

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
    return six(rows_at(p - 2, stride, width), rows_at(p - 1, stride, width), rows_at(p, stride, width), rows_at(p + 1, stride, width),
               rows_at(p + 2, stride, width), rows_at(p + 3, stride, width));
}

static INLINE lanes sum_y(const uint8_t *p, ptrdiff_t stride, int width)
{
    return six(rows_at(p - 2 * stride, stride, width), rows_at(p - stride, stride, width), rows_at(p, stride, width),
               rows_at(p + stride, stride, width), rows_at(p + 2 * stride, stride, width), rows_at(p + 3 * stride, stride, width));
}

/* The middle of four samples, of sums between columns: (a - 5b + 20c + 512) >> 10 without leaving 16 bits, by quarters. The limit of c - b
 * changes no result: beyond it that is 0 or 255 whatever a is. */
static INLINE lanes middle_of(const lanes *sum)
{
    lanes a = sum[0] + sum[5], b = sum[1] + sum[4], c = sum[2] + sum[3];
    lanes quarter = (((a - b) >> 2) + lanes_clamp(c - b, lanes_of(-MOST_SUM), lanes_of(MOST_SUM))) >> 2;
    return lanes_clamp((quarter + c + 32) >> 6, lanes_of(0), lanes_of(255));
}

static INLINE lanes mean(lanes a, lanes b)
{
    return (a + b + 1) >> 1;
}

/* Positions at the middle of columns and rows, or beside it. */
static INLINE void middle(uint8_t *to, ptrdiff_t to_stride, const uint8_t *p, ptrdiff_t stride, int fx, int fy, int width, int height)
{
    lanes sums[SIDE + TAPS];
    int step = width == SIDE ? 1 : 2;
    for (int y = 0; y < height + TAPS - (step - 1); y++)
        sums[y] = sum_x(p + (y - 2) * stride, stride, width);
    for (int y = 0; y < height; y += step) {
        lanes out = middle_of(sums + y);
        if (fy & 1)
            out = mean(out, half_of(sums[y + 2 + (fy == 3)]));
        if (fx & 1)
            out = mean(out, half_of(sum_y(p + y * stride + (fx == 3), stride, width)));
        put_rows(to + y * to_stride, to_stride, width, lanes_narrow(out));
    }
}

static INLINE void block(uint8_t *to, ptrdiff_t to_stride, const uint8_t *p, ptrdiff_t stride, int fx, int fy, int width, int height)
{
    if ((fx == 2 && fy) || (fy == 2 && fx)) {
        middle(to, to_stride, p, stride, fx, fy, width, height);
        return;
    }
    for (int y = 0, step = width == SIDE ? 1 : 2; y < height; y += step, p += step * stride, to += step * to_stride) {
        lanes out = rows_at(p, stride, width);
        if (fx && fy)
            out = mean(half_of(sum_x(p + (fy == 3 ? stride : 0), stride, width)), half_of(sum_y(p + (fx == 3), stride, width)));
        else if (fx)
            out = half_of(sum_x(p, stride, width));
        else if (fy)
            out = half_of(sum_y(p, stride, width));
        if (fx & 1 && !fy)
            out = mean(out, rows_at(p + (fx == 3), stride, width));
        if (fy & 1 && !fx)
            out = mean(out, rows_at(p + (fy == 3 ? stride : 0), stride, width));
        put_rows(to, to_stride, width, lanes_narrow(out));
    }
}

/* A block of 4, 8 or 16 columns at (fx, fy) quarters from `from`, which has two samples before it and three behind in each direction. */
VECTORIZED void avc_interpolate(uint8_t *to, ptrdiff_t to_stride, const uint8_t *from, ptrdiff_t stride, int fx, int fy, int width, int height)
{
    if (width == SIDE)
        block(to, to_stride, from, stride, fx, fy, SIDE, height);
    else if (width == 8)
        block(to, to_stride, from, stride, fx, fy, 8, height);
    else
        block(to, to_stride, from, stride, fx, fy, 4, height);
}

/* A block of chroma of 2, 4 or 8 columns, at (fx, fy) eighths. */
VECTORIZED void avc_interpolate_chroma(uint8_t *to, ptrdiff_t to_stride, const uint8_t *from, ptrdiff_t stride, int fx, int fy, int width,
                                       int height)
{
    lanes here = lanes_of((8 - fx) * (8 - fy)), right = lanes_of(fx * (8 - fy)), below = lanes_of((8 - fx) * fy), both = lanes_of(fx * fy);
    for (int y = 0; y < height; y += 2, from += 2 * stride, to += 2 * to_stride) {
        lanes sum = here * rows_at(from, stride, 8) + right * rows_at(from + 1, stride, 8) + below * rows_at(from + stride, stride, 8)
                  + both * rows_at(from + stride + 1, stride, 8);
        lane_bytes out = lanes_narrow((sum + 32) >> 6);
        if (width == 8)
            put_rows(to, to_stride, 8, out);
        else if (width == 4)
            put_rows(to, to_stride, 4, out);
        else
            put_rows(to, to_stride, 2, out);
    }
}

/* The mean of two predictions of a block, whose second has 16 samples from row to row. */
VECTORIZED void avc_average(uint8_t *to, ptrdiff_t stride, const uint8_t *other, int width, int height)
{
    for (int y = 0, step = width == SIDE ? 1 : 2; y < height; y += step, to += step * stride, other += step * SIDE) {
        lane_bytes out = lanes_narrow(mean(rows_at(to, stride, width), rows_at(other, SIDE, width)));
        if (width == SIDE)
            put_rows(to, stride, SIDE, out);
        else if (width == 8)
            put_rows(to, stride, 8, out);
        else if (width == 4)
            put_rows(to, stride, 4, out);
        else
            put_rows(to, stride, 2, out);
    }
}
