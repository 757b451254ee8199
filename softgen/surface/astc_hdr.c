/* Endpoints of high dynamic range in ASTC blocks, and their conversion to half floats (Khronos data format specification 1.3, ASTC: HDR
 * endpoint modes 2, 3, 7, 11, 14 and 15). An endpoint has 12 bits: 5 of exponent, 7 of mantissa; interpolated, it has 16.
 */
#include "astc.h"

enum { HIGHEST = 0xfff, ONE = 0x780 };

static int32_t clamped(int32_t value) { return value < 0 ? 0 : value > HIGHEST ? HIGHEST : value; }

static int32_t bit(int32_t value, int at) { return value >> at & 1; }

static void exchange(int32_t *a, int32_t *b)
{
    int32_t held = *a;
    *a = *b, *b = held;
}

/* Luminance: two values, or a value and a distance. */
static void luminance(const int32_t *v, int small, struct ends *e)
{
    int32_t low, high;
    if (small) {
        int fine = v[0] >> 7;
        low = fine ? (v[1] & 0xe0) << 4 | (v[0] & 0x7f) << 2 : (v[1] & 0xf0) << 4 | (v[0] & 0x7f) << 1;
        high = clamped(low + (fine ? (v[1] & 0x1f) << 2 : (v[1] & 0x0f) << 1));
    } else if (v[1] >= v[0])
        low = v[0] << 4, high = v[1] << 4;
    else
        low = (v[1] << 4) + 8, high = (v[0] << 4) - 8;
    for (int i = 0; i < 3; i++)
        e->of[0][i] = low, e->of[1][i] = high;
}

/* A colour and what the other lies below it; bits that a mode leaves free lengthen its numbers. */
static void base_and_scale(const int32_t *v, struct ends *e)
{
    static const uint8_t shifts[6] = {1, 1, 2, 3, 4, 5};
    int32_t kind = v[0] >> 6 | (v[1] & 0x80) >> 5 | (v[2] & 0x80) >> 4;
    int32_t major = (kind & 12) != 12 ? kind >> 2 : kind != 15 ? kind & 3 : 0, mode = (kind & 12) != 12 ? kind & 3 : kind != 15 ? 4 : 5;
    int32_t red = v[0] & 0x3f, green = v[1] & 0x1f, blue = v[2] & 0x1f, scale = v[3] & 0x1f, of = 1 << mode;
    int32_t x[7] = {bit(v[1], 6), bit(v[1], 5), bit(v[2], 6), bit(v[2], 5), bit(v[3], 7), bit(v[3], 6), bit(v[3], 5)};
    green |= (of & 0x30 ? x[0] << 6 : 0) | (of & 0x3a ? x[1] << 5 : 0);
    blue |= (of & 0x30 ? x[2] << 6 : 0) | (of & 0x3a ? x[3] << 5 : 0);
    scale |= (of & 0x3d ? x[6] << 5 : 0) | (of & 0x2d ? x[5] << 6 : 0) | (of & 0x04 ? x[4] << 7 : 0);
    red |= (of & 0x3b ? x[4] << 6 : 0) | (of & 0x04 ? x[3] << 6 : 0) | (of & 0x10 ? x[5] << 7 : 0) | (of & 0x0f ? x[2] << 7 : 0)
         | (of & 0x05 ? x[1] << 8 : 0) | (of & 0x0a ? x[0] << 8 : 0) | (of & 0x05 ? x[0] << 9 : 0) | (of & 0x02 ? x[6] << 9 : 0)
         | (of & 0x01 ? x[3] << 10 : 0) | (of & 0x02 ? x[5] << 10 : 0);
    int32_t c[3] = {red << shifts[mode], green << shifts[mode], blue << shifts[mode]}, below = scale << shifts[mode];
    if (mode != 5)
        c[1] = c[0] - c[1], c[2] = c[0] - c[2];
    if (major)
        exchange(&c[0], &c[major]);
    for (int i = 0; i < 3; i++)
        e->of[1][i] = clamped(c[i]), e->of[0][i] = clamped(c[i] - below);
}

static int32_t extended(int32_t value, int bits)
{
    value &= (1 << bits) - 1;
    return value - (bit(value, bits - 1) << bits);
}

/* Two colours: the largest channel, and distances from it. */
static void direct(const int32_t *v, struct ends *e)
{
    static const uint8_t widths[8] = {7, 6, 7, 6, 5, 6, 5, 6};
    int32_t major = v[4] >> 7 | (v[5] & 0x80) >> 6, mode = v[1] >> 7 | (v[2] & 0x80) >> 6 | (v[3] & 0x80) >> 5, of = 1 << mode;
    if (major == 3) {
        for (int end = 0; end < 2; end++)
            e->of[end][0] = v[end] << 4, e->of[end][1] = v[2 + end] << 4, e->of[end][2] = (v[4 + end] & 0x7f) << 5;
        return;
    }
    int32_t a = v[0] | (v[1] & 0x40) << 2, b0 = v[2] & 0x3f, b1 = v[3] & 0x3f, c = v[1] & 0x3f;
    int32_t d0 = extended(v[4], widths[mode]), d1 = extended(v[5], widths[mode]), shift = (mode >> 1) ^ 3;
    int32_t x[6] = {bit(v[2], 6), bit(v[3], 6), bit(v[4], 6), bit(v[5], 6), bit(v[4], 5), bit(v[5], 5)};
    a |= (of & 0xa4 ? x[0] << 9 : 0) | (of & 0x08 ? x[2] << 9 : 0) | (of & 0x50 ? x[4] << 9 : 0) | (of & 0x50 ? x[5] << 10 : 0)
       | (of & 0xa0 ? x[1] << 10 : 0) | (of & 0xc0 ? x[2] << 11 : 0);
    c |= (of & 0x04 ? x[1] << 6 : 0) | (of & 0xe8 ? x[3] << 6 : 0) | (of & 0x20 ? x[2] << 7 : 0);
    b0 |= (of & 0x5b ? x[0] << 6 : 0) | (of & 0x12 ? x[2] << 7 : 0);
    b1 |= (of & 0x5b ? x[1] << 6 : 0) | (of & 0x12 ? x[3] << 7 : 0);
    int32_t unit = 1 << shift;
    e->of[1][0] = clamped(a * unit), e->of[1][1] = clamped((a - b0) * unit), e->of[1][2] = clamped((a - b1) * unit);
    e->of[0][0] = clamped((a - c) * unit), e->of[0][1] = clamped((a - b0 - c - d0) * unit), e->of[0][2] = clamped((a - b1 - c - d1) * unit);
    for (int end = 0; end < 2 && major; end++)
        exchange(&e->of[end][0], &e->of[end][major]);
}

static void alpha(int32_t first, int32_t second, struct ends *e)
{
    int32_t mode = bit(first, 7) | bit(second, 7) << 1;
    first &= 0x7f, second &= 0x7f;
    if (mode == 3) {
        e->of[0][3] = first << 5, e->of[1][3] = second << 5;
        return;
    }
    first |= (second << (mode + 1)) & 0x780;
    int32_t low = first << (4 - mode);
    e->of[0][3] = low, e->of[1][3] = clamped(low + extended(second, 6 - mode) * (1 << (4 - mode)));
}

/* Returns which channels have a high dynamic range, as bits; 0: the mode is another one. */
uint32_t hdr_ends(const int32_t *v, uint32_t mode, struct ends *e)
{
    e->of[0][3] = e->of[1][3] = ONE;
    switch (mode) {
    case 2: case 3: luminance(v, mode == 3, e); return 15;
    case 7: base_and_scale(v, e); return 15;
    case 11: direct(v, e); return 15;
    case 14: direct(v, e), e->of[0][3] = v[6], e->of[1][3] = v[7]; return 7;
    case 15: direct(v, e), alpha(v[6], v[7], e); return 15;
    default: return 0;
    }
}

/* The half float of an interpolated endpoint; infinity is the largest number. */
uint32_t hdr_half(uint32_t value)
{
    uint32_t mantissa = value & 0x7ff, steep = mantissa < 512 ? 3 * mantissa : mantissa < 1536 ? 4 * mantissa - 512 : 5 * mantissa - 2048;
    uint32_t found = (value >> 11 << 10) + (steep >> 3);
    return found >= 0x7c00 ? 0x7bff : found;
}

/* The half float of a fraction of 65536, rounded toward zero; 0xffff is 1. */
uint32_t unorm_half(uint32_t value)
{
    if (value == 0xffff)
        return 0x3c00;
    if (value < 4) /* below the least normal number, 2^-14 */
        return value << 8;
    uint32_t top = 31 - (uint32_t)__builtin_clz(value), rest = value & ((1u << top) - 1);
    return (top - 1) << 10 | (top >= 10 ? rest >> (top - 10) : rest << (10 - top));
}
