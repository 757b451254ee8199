/* Blocks of VC-1: DC and AC prediction of intra blocks, transforms of several sizes (8.1.3, 8.3.6, 8.4.6). */
#include <stdlib.h>
#include <string.h>

#include "vc1.h"

/* DCStepSize by quantiser, and 2^18 by the numbers up to 63 (8.1.3.3, 8.1.3.9). */
static const uint8_t dc_step[32] = {
    0, 2, 4, 8, 8, 8, 9, 9, 10, 10, 11, 11, 12, 12, 13, 13, 14, 14, 15, 15, 16, 16, 17, 17, 18, 18, 19, 19, 20, 20, 21, 21,
};

static int reciprocal(int number)
{
    return (0x40000 + number / 2) / number;
}

/* Raster positions: blocks of P and B pictures; of I pictures without AC prediction, predicted from above, from the left (figure 73 on). */
static const uint8_t scan_8x8[4][64] = {
    {0, 8, 1, 2, 9, 16, 24, 17, 10, 3, 4, 11, 18, 25, 32, 40, 48, 56, 41, 33, 26, 19, 12, 5, 6, 13, 20, 27, 34, 49, 57, 58,
     50, 42, 35, 28, 21, 14, 7, 15, 22, 29, 36, 43, 51, 59, 60, 52, 44, 37, 30, 23, 31, 38, 45, 53, 61, 62, 54, 46, 39, 47, 55, 63},
    {0, 8, 1, 2, 9, 16, 24, 17, 10, 3, 4, 11, 18, 25, 32, 40, 33, 48, 26, 19, 12, 5, 6, 13, 20, 27, 34, 41, 56, 49, 57, 42,
     35, 28, 21, 14, 7, 15, 22, 29, 36, 43, 50, 58, 51, 59, 44, 37, 30, 23, 31, 38, 45, 52, 60, 53, 61, 46, 39, 47, 54, 62, 55, 63},
    {0, 1, 8, 2, 3, 9, 16, 24, 17, 10, 4, 5, 11, 18, 25, 32, 40, 48, 33, 26, 19, 12, 6, 7, 13, 20, 27, 34, 41, 56, 49, 57,
     42, 35, 28, 21, 14, 15, 22, 29, 36, 43, 50, 58, 51, 44, 37, 30, 23, 31, 38, 45, 52, 59, 60, 53, 46, 39, 47, 54, 61, 62, 55, 63},
    {0, 8, 16, 1, 24, 32, 40, 9, 2, 3, 10, 17, 25, 48, 56, 41, 33, 26, 18, 11, 4, 5, 12, 19, 27, 34, 49, 57, 50, 42, 35, 28,
     20, 13, 6, 7, 14, 21, 29, 36, 43, 51, 58, 59, 52, 44, 37, 30, 22, 15, 23, 31, 38, 45, 60, 53, 46, 39, 47, 54, 61, 62, 55, 63},
};
static const uint8_t scan_8x4[2][32] = { /* of simple and main, of advanced profile; rows of 8 */
    {0, 1, 2, 8, 3, 9, 10, 16, 4, 11, 17, 24, 18, 12, 5, 19, 25, 13, 20, 26, 27, 6, 21, 28, 14, 22, 29, 7, 30, 15, 23, 31},
    {0, 8, 1, 16, 2, 9, 10, 3, 24, 17, 4, 11, 18, 12, 5, 19, 25, 13, 20, 26, 27, 6, 21, 28, 14, 22, 29, 7, 30, 15, 23, 31},
};
static const uint8_t scan_4x8[2][32] = {
    {0, 8, 1, 16, 9, 24, 17, 2, 32, 10, 25, 40, 18, 48, 33, 26, 56, 41, 34, 3, 49, 57, 11, 42, 19, 50, 27, 58, 35, 43, 51, 59},
    {0, 1, 8, 2, 9, 16, 17, 24, 10, 32, 25, 18, 40, 3, 33, 26, 48, 11, 56, 41, 34, 49, 57, 42, 19, 50, 27, 58, 35, 43, 51, 59},
};
static const uint8_t scan_4x4[16] = {0, 8, 16, 1, 9, 24, 17, 2, 10, 18, 25, 3, 11, 26, 19, 27};

static int step_of(const struct vc1_picture *p, int quantiser)
{
    return 2 * abs(quantiser) + (quantiser < 0 ? 0 : (int)p->half_step);
}

static int16_t dequantised(const struct vc1_picture *p, int quantiser, int level)
{
    int value = level * step_of(p, quantiser);
    if (!p->uniform && level)
        value += level < 0 ? -abs(quantiser) : abs(quantiser);
    return (int16_t)value;
}

/* -- intra blocks ------------------------------------------------------------------------------------------------------ */

/* A block to the left, above, or beyond the corner: its macroblock, or null where there is none, and its number. */
struct neighbour {
    const struct vc1_mb *mb;
    int block;
};

static struct neighbour to_the_left(const struct vc1_decoder *d, int block)
{
    if (block > 3)
        return (struct neighbour){d->left, block};
    return (struct neighbour){block & 1 ? d->mb : d->left, block ^ 1};
}

static struct neighbour above(const struct vc1_decoder *d, int block)
{
    if (block > 3)
        return (struct neighbour){d->above, block};
    return (struct neighbour){block & 2 ? d->mb : d->above, block ^ 2};
}

static struct neighbour at_the_corner(const struct vc1_decoder *d, int block)
{
    const struct vc1_mb *const of[4] = {d->corner, d->above, d->left, d->mb};
    return (struct neighbour){block > 3 ? d->corner : of[block], block > 3 ? block : block ^ 3};
}

static int is_intra(struct neighbour n)
{
    return n.mb && n.mb->intra >> n.block & 1;
}

int vc1_has_neighbours(const struct vc1_decoder *d, int block)
{
    return is_intra(to_the_left(d, block)) || is_intra(above(d, block));
}

/* I and BI pictures of simple and main profile: blocks outside have a DC of middle grey, and are predicted from (8.1.3.3). */
static int has_outside(const struct vc1_picture *p)
{
    return !p->advanced && (p->type == VC1_I || p->type == VC1_BI);
}

/* A neighbour's DC in steps of this macroblock's quantiser. */
static int dc_of(const struct vc1_decoder *d, struct neighbour n)
{
    if (!n.mb) {
        int step = dc_step[abs(d->mb->quantiser)];
        return has_outside(d->p) && !d->p->overlap ? (1024 + step / 2) / step : 0;
    }
    int own = abs(d->mb->quantiser), other = abs(n.mb->quantiser), dc = n.mb->dc[n.block];
    if (n.mb == d->mb || !other || other == own)
        return dc;
    return (int)((unsigned)dc * dc_step[other] * (unsigned)reciprocal(dc_step[own]) + 0x20000) >> 18;
}

enum direction { NEITHER, LEFT, TOP };

static enum direction predict_dc(const struct vc1_decoder *d, int block, int *dc)
{
    struct neighbour left = to_the_left(d, block), top = above(d, block);
    int outside = has_outside(d->p), has_left = outside || is_intra(left), has_top = outside || is_intra(top);
    int a = dc_of(d, top), b = dc_of(d, at_the_corner(d, block)), c = dc_of(d, left);
    if (has_left && (!has_top || abs(a - b) <= abs(b - c))) {
        *dc = c;
        return LEFT;
    }
    *dc = has_top ? a : 0;
    return has_top ? TOP : NEITHER;
}

static int read_dc(struct vc1_decoder *d, int block, int *difference)
{
    int quantiser = abs(d->mb->quantiser), more = quantiser < 3 ? 3 - quantiser : 0;
    int value = vc1_read_dc(d->bits, d->p->dc_table, block > 3);
    if (value == NO_CODE)
        return 0;
    if (value == VC1_DC_ESCAPE)
        value = (int)bits_read(d->bits, (unsigned)(8 + more));
    else if (value && more)
        value = (value << more) + (int)bits_read(d->bits, (unsigned)more) - ((1 << more) - 1);
    else if (!value) {
        *difference = 0;
        return 1;
    }
    *difference = bits_read(d->bits, 1) ? -value : value;
    return 1;
}

/* Levels in raster order from the `at`-th on; -1 where a code is wrong, else where the last one was. */
static int read_levels(struct vc1_decoder *d, unsigned set, const uint8_t *scan, int at, int count, int16_t *levels)
{
    struct vc1_coefficient c = {0};
    while (!c.last) {
        if (!vc1_read_coefficient(d->bits, set, &d->slice->escape, &c))
            return -1;
        at += c.run;
        if (at >= count)
            break;
        levels[scan[at++]] = (int16_t)c.level;
    }
    return at;
}

/* Adds the first row or column of a neighbour, in steps of this macroblock's quantiser (8.1.3.9). */
static void predict_ac(const struct vc1_decoder *d, int block, enum direction from, int16_t *levels)
{
    struct neighbour n = from == LEFT ? to_the_left(d, block) : above(d, block);
    if (!n.mb)
        return;
    int own = step_of(d->p, d->mb->quantiser) - 1, other = n.mb->quantiser ? step_of(d->p, n.mb->quantiser) - 1 : 0, place = from == LEFT ? 8 : 1;
    const int16_t *ac = n.mb->ac[n.block][from == TOP];
    for (int i = 1; i < 8; i++) {
        int value = ac[i];
        if (n.mb != d->mb && other && other != own)
            value = (int)((unsigned)value * (unsigned)other * (unsigned)reciprocal(own) + 0x20000) >> 18;
        levels[place * i] = (int16_t)(levels[place * i] + value);
    }
}

int vc1_intra_block(struct vc1_decoder *d, int block, int coded, int16_t out[64])
{
    int dc, difference, whole = d->p->type == VC1_I || d->p->type == VC1_BI;
    int16_t levels[64] = {0};
    if (!read_dc(d, block, &difference))
        return 0;
    enum direction from = predict_dc(d, block, &dc);
    const uint8_t *scan = scan_8x8[!whole ? 0 : !d->ac_prediction ? 1 : from == TOP ? 2 : 3];
    d->mb->dc[block] = (int16_t)(dc + difference);
    if (coded && read_levels(d, block < 4 ? d->intra_set : d->inter_set, scan, 1, 64, levels) < 0)
        return 0;
    if (d->ac_prediction && from != NEITHER)
        predict_ac(d, block, from, levels);
    for (int i = 1; i < 8; i++) {
        d->mb->ac[block][0][i] = levels[8 * i];
        d->mb->ac[block][1][i] = levels[i];
    }
    out[0] = (int16_t)(d->mb->dc[block] * dc_step[abs(d->mb->quantiser)]);
    for (int i = 1; i < 64; i++)
        out[i] = dequantised(d->p, d->mb->quantiser, levels[i]);
    return 1;
}

/* -- other blocks ------------------------------------------------------------------------------------------------------ */

static void add(uint8_t *to, size_t stride, const int16_t *residual, int width, int height)
{
    for (int y = 0; y < height; y++, to += stride, residual += 8)
        for (int x = 0; x < width; x++)
            to[x] = clamp_sample(to[x] + residual[x]);
}

/* How a block is transformed, and which of its parts have coefficients, the first in the highest of so many bits; -1: a code is wrong. */
static int read_transform(struct vc1_decoder *d, int macroblock_type, int first, enum vc1_transform *transform)
{
    int type = macroblock_type & 7, for_all = d->p->frame_transform || (macroblock_type != -1 && macroblock_type & 8 && !first);
    if (macroblock_type == -1)
        type = vc1_read_block_transform(d->bits, d->step);
    if (type == NO_CODE)
        return -1;
    int across = type >= TT_8X4_BOTTOM && type <= TT_8X4;
    *transform = type == TT_8X8 || type == TT_4X4 ? (enum vc1_transform)type : across ? TT_8X4 : TT_4X8;
    if (type == TT_8X8)
        return 1;
    if (type == TT_4X4)
        return vc1_read_subblocks(d->bits, d->step);
    if (for_all)
        return !bits_read(d->bits, 1) ? 3 : bits_read(d->bits, 1) ? 2 : 1;
    return type == TT_8X4 || type == TT_4X8 ? 3 : type == TT_8X4_TOP || type == TT_4X8_LEFT ? 2 : 1;
}

/* 4x4 parts by parts of a transform. */
static unsigned quarters(enum vc1_transform transform, int parts)
{
    if (transform == TT_8X8)
        return 15;
    if (transform == TT_4X4)
        return (unsigned)parts;
    return transform == TT_8X4 ? (parts & 2 ? 12u : 0u) | (parts & 1 ? 3u : 0u) : (parts & 2 ? 10u : 0u) | (parts & 1 ? 5u : 0u);
}

int vc1_inter_block(struct vc1_decoder *d, int block, int macroblock_type, int first)
{
    enum vc1_transform transform;
    int parts = read_transform(d, macroblock_type, first, &transform);
    if (parts < 0)
        return 0;
    int width = transform == TT_8X8 || transform == TT_8X4 ? 8 : 4, height = transform == TT_8X8 || transform == TT_4X8 ? 8 : 4;
    int count = 64 / (width * height);
    const uint8_t *scan = transform == TT_8X8 ? scan_8x8[0] : transform == TT_4X4 ? scan_4x4 : (width == 8 ? scan_8x4 : scan_4x8)[d->p->advanced];
    size_t stride;
    uint8_t *to = vc1_place(d, block, &stride);
    for (int part = 0; part < count; part++) {
        int16_t levels[64] = {0}, residual[64];
        int x = width == 4 ? 4 * (part & 1) : 0, y = height == 8 ? 0 : width == 4 ? 2 * (part & 2) : 4 * part;
        if (!(parts >> (count - 1 - part) & 1))
            continue;
        if (read_levels(d, d->inter_set, scan, 0, width * height, levels) < 0)
            return 0;
        for (int i = 0; i < 64; i++)
            levels[i] = dequantised(d->p, d->mb->quantiser, levels[i]);
        vc1_inverse(levels, 8, width, height, residual, 8);
        add(to + (size_t)y * stride + x, stride, residual, width, height);
    }
    d->mb->coded |= quarters(transform, parts) << (4 * block);
    d->mb->transforms[block] = (uint8_t)transform;
    return 1;
}
