/* BPTC: BC7 and BC6H (Khronos data format specification 1.3, BPTC; ARB_texture_compression_bptc). */
#include "coded.h"

enum { CHANNELS = 4, ALPHA = 3, TEXELS = 16 };

/* Subsets of texels, texel 0 in the lowest bits: one bit each of two, two bits each of three. */
static const uint16_t two_subsets[64] = {
    0xcccc, 0x8888, 0xeeee, 0xecc8, 0xc880, 0xfeec, 0xfec8, 0xec80, 0xc800, 0xffec, 0xfe80, 0xe800, 0xffe8, 0xff00, 0xfff0, 0xf000,
    0xf710, 0x008e, 0x7100, 0x08ce, 0x008c, 0x7310, 0x3100, 0x8cce, 0x088c, 0x3110, 0x6666, 0x366c, 0x17e8, 0x0ff0, 0x718e, 0x399c,
    0xaaaa, 0xf0f0, 0x5a5a, 0x33cc, 0x3c3c, 0x55aa, 0x9696, 0xa55a, 0x73ce, 0x13c8, 0x324c, 0x3bdc, 0x6996, 0xc33c, 0x9966, 0x0660,
    0x0272, 0x04e4, 0x4e40, 0x2720, 0xc936, 0x936c, 0x39c6, 0x639c, 0x9336, 0x9cc6, 0x817e, 0xe718, 0xccf0, 0x0fcc, 0x7744, 0xee22,
};
static const uint32_t three_subsets[64] = {
    0xaa685050, 0x6a5a5040, 0x5a5a4200, 0x5450a0a8, 0xa5a50000, 0xa0a05050, 0x5555a0a0, 0x5a5a5050, 0xaa550000, 0xaa555500, 0xaaaa5500,
    0x90909090, 0x94949494, 0xa4a4a4a4, 0xa9a59450, 0x2a0a4250, 0xa5945040, 0x0a425054, 0xa5a5a500, 0x55a0a0a0, 0xa8a85454, 0x6a6a4040,
    0xa4a45000, 0x1a1a0500, 0x0050a4a4, 0xaaa59090, 0x14696914, 0x69691400, 0xa08585a0, 0xaa821414, 0x50a4a450, 0x6a5a0200, 0xa9a58000,
    0x5090a0a8, 0xa8a09050, 0x24242424, 0x00aa5500, 0x24924924, 0x24499224, 0x50a50a50, 0x500aa550, 0xaaaa4444, 0x66660000, 0xa5a0a5a0,
    0x50a050a0, 0x69286928, 0x44aaaa44, 0x66666600, 0xaa444444, 0x54a854a8, 0x95809580, 0x96969600, 0xa85454a8, 0x80959580, 0xaa141414,
    0x96960000, 0xaaaa1414, 0xa05050a0, 0xa0a5a5a0, 0x96000000, 0x40804080, 0xa9a8a9a8, 0xaaaaaa44, 0x2a4a5254,
};
/* The texel of each further subset whose index has a bit less: of the second of two, of the second and of the third of three. */
static const char anchors[3][65] = {
    "fffffffffffffffff282288f28228822ff6828ff28222ff66268ff22fffff22f",
    "33ff83ff88666533338f336a588685ff8f356a8ff3f5ffff3f55585a5a8dfc33",
    "f883ff38fffffff8f8f3f8f83f6affa8f3faa89a6f8f3668f3ffffffffff3ff8",
};
static const uint8_t weights[3][TEXELS] = {
    {0, 21, 43, 64}, {0, 9, 18, 27, 37, 46, 55, 64}, {0, 4, 9, 13, 17, 21, 26, 30, 34, 38, 43, 47, 51, 55, 60, 64},
};

static uint32_t subset_of(uint32_t subsets, uint32_t partition, uint32_t texel)
{
    return subsets == 1 ? 0 : subsets == 2 ? two_subsets[partition] >> texel & 1 : three_subsets[partition] >> 2 * texel & 3;
}

static uint32_t anchor(uint32_t subsets, uint32_t partition, uint32_t subset)
{
    char digit = subset ? anchors[subsets == 2 ? 0 : subset][partition] : '0';
    return (uint32_t)(digit <= '9' ? digit - '0' : digit - 'a' + 10);
}

/* A texel's index: all have `bits`, anchors one less. */
static uint32_t index_at(const uint32_t *words, uint32_t first, uint32_t bits, uint32_t subsets, uint32_t partition, uint32_t texel)
{
    uint32_t before = 0, is_anchor = 0;
    for (uint32_t subset = 0; subset < subsets; subset++) {
        uint32_t at = anchor(subsets, partition, subset);
        before += at < texel;
        is_anchor |= at == texel;
    }
    return bits_at(words, first + texel * bits - before, bits - is_anchor);
}

/* -- BC7 -------------------------------------------------------------------------------------------------------------------------------- */

static const struct unorm_mode {
    uint8_t subsets, partition_bits, rotates, selects, color_bits, alpha_bits, own_p, shared_p, index_bits, second_bits;
} unorm_modes[8] = {
    {3, 4, 0, 0, 4, 0, 1, 0, 3, 0}, {2, 6, 0, 0, 6, 0, 0, 1, 3, 0}, {3, 6, 0, 0, 5, 0, 0, 0, 2, 0}, {2, 6, 0, 0, 7, 0, 1, 0, 2, 0},
    {1, 0, 1, 1, 5, 6, 0, 0, 2, 3}, {1, 0, 1, 0, 7, 8, 0, 0, 2, 2}, {1, 0, 0, 0, 7, 7, 1, 0, 4, 0}, {2, 6, 0, 0, 5, 5, 1, 0, 2, 0},
};

static uint32_t widened(uint32_t value, uint32_t bits)
{
    return bits >= 8 ? value : value << (8 - bits) | value >> (2 * bits - 8);
}

static uint32_t mixed(uint32_t a, uint32_t b, uint32_t index, uint32_t bits)
{
    uint32_t weight = weights[bits - 2][index];
    return (a * (64 - weight) + b * weight + 32) >> 6;
}

void decode_bc7(const uint32_t *words, uint32_t x, uint32_t y, uint32_t *rgba)
{
    uint32_t number = words[0] & 0xff ? (uint32_t)__builtin_ctz(words[0]) : 8, texel = (y & 3) * 4 + (x & 3), at = number + 1;
    rgba[0] = rgba[1] = rgba[2] = rgba[3] = 0;
    if (number > 7) /* reserved: all zero */
        return;
    const struct unorm_mode *m = &unorm_modes[number];
    uint32_t partition = bits_at(words, at, m->partition_bits);
    at += m->partition_bits;
    uint32_t rotation = m->rotates ? bits_at(words, at, 2) : 0;
    at += 2 * m->rotates;
    uint32_t selection = m->selects ? bits_at(words, at, 1) : 0;
    at += m->selects;
    uint32_t subset = subset_of(m->subsets, partition, texel), ends[2][CHANNELS], ends_of_all = 2 * m->subsets;
    uint32_t p_at = at + ends_of_all * (3 * m->color_bits + m->alpha_bits);
    for (uint32_t end = 0; end < 2; end++) {
        uint32_t here = 2 * subset + end, p_bits = m->own_p | m->shared_p;
        uint32_t p = p_bits ? bits_at(words, p_at + (m->own_p ? here : subset), 1) : 0;
        for (uint32_t channel = 0; channel < CHANNELS; channel++) {
            uint32_t bits = channel == ALPHA ? m->alpha_bits : m->color_bits;
            uint32_t held = bits ? bits_at(words, at + channel * ends_of_all * m->color_bits + here * bits, bits) : 0;
            ends[end][channel] = bits ? widened(p_bits ? held << 1 | p : held, bits + p_bits) : 255;
        }
    }
    uint32_t first = p_at + (m->own_p ? ends_of_all : m->shared_p ? m->subsets : 0);
    uint32_t color = index_at(words, first, m->index_bits, m->subsets, partition, texel), color_bits = m->index_bits;
    uint32_t alpha = color, alpha_bits = color_bits;
    if (m->second_bits) {
        uint32_t second = index_at(words, first + TEXELS * m->index_bits - 1, m->second_bits, 1, 0, texel);
        if (selection)
            color = second, color_bits = m->second_bits;
        else
            alpha = second, alpha_bits = m->second_bits;
    }
    for (uint32_t channel = 0; channel < CHANNELS; channel++)
        rgba[channel] = channel == ALPHA ? mixed(ends[0][ALPHA], ends[1][ALPHA], alpha, alpha_bits)
                                         : mixed(ends[0][channel], ends[1][channel], color, color_bits);
    if (rotation) {
        uint32_t held = rgba[ALPHA];
        rgba[ALPHA] = rgba[rotation - 1];
        rgba[rotation - 1] = held;
    }
}

/* -- BC6H ------------------------------------------------------------------------------------------------------------------------------- */

/* Where the bits of endpoints are: endpoint (w x y z), channel, lowest bit and count, one after another from the mode's bits on. Those with
 * REVERSED have their highest bit first. */
#define BITS(end, channel, low, count) {(end) << 2 | (channel), (low) << 4 | (count)}
#define REVERSED 0x80 /* of the first byte */
enum { W, X, Y, Z };
enum { R, G, B };
struct end_bits { uint8_t where, what; };
static const struct float_mode {
    uint8_t number, number_bits, deltas, two, bits, delta_bits[3];
    struct end_bits parts[24]; /* a count of 0 ends them */
} float_modes[14] = {
    {0, 2, 1, 1, 10, {5, 5, 5}, {BITS(Y, G, 4, 1), BITS(Y, B, 4, 1), BITS(Z, B, 4, 1), BITS(W, R, 0, 10), BITS(W, G, 0, 10), BITS(W, B, 0, 10),
        BITS(X, R, 0, 5), BITS(Z, G, 4, 1), BITS(Y, G, 0, 4), BITS(X, G, 0, 5), BITS(Z, B, 0, 1), BITS(Z, G, 0, 4), BITS(X, B, 0, 5),
        BITS(Z, B, 1, 1), BITS(Y, B, 0, 4), BITS(Y, R, 0, 5), BITS(Z, B, 2, 1), BITS(Z, R, 0, 5), BITS(Z, B, 3, 1)}},
    {1, 2, 1, 1, 7, {6, 6, 6}, {BITS(Y, G, 5, 1), BITS(Z, G, 4, 1), BITS(Z, G, 5, 1), BITS(W, R, 0, 7), BITS(Z, B, 0, 1), BITS(Z, B, 1, 1),
        BITS(Y, B, 4, 1), BITS(W, G, 0, 7), BITS(Y, B, 5, 1), BITS(Z, B, 2, 1), BITS(Y, G, 4, 1), BITS(W, B, 0, 7), BITS(Z, B, 3, 1),
        BITS(Z, B, 5, 1), BITS(Z, B, 4, 1), BITS(X, R, 0, 6), BITS(Y, G, 0, 4), BITS(X, G, 0, 6), BITS(Z, G, 0, 4), BITS(X, B, 0, 6),
        BITS(Y, B, 0, 4), BITS(Y, R, 0, 6), BITS(Z, R, 0, 6)}},
    {2, 5, 1, 1, 11, {5, 4, 4}, {BITS(W, R, 0, 10), BITS(W, G, 0, 10), BITS(W, B, 0, 10), BITS(X, R, 0, 5), BITS(W, R, 10, 1), BITS(Y, G, 0, 4),
        BITS(X, G, 0, 4), BITS(W, G, 10, 1), BITS(Z, B, 0, 1), BITS(Z, G, 0, 4), BITS(X, B, 0, 4), BITS(W, B, 10, 1), BITS(Z, B, 1, 1),
        BITS(Y, B, 0, 4), BITS(Y, R, 0, 5), BITS(Z, B, 2, 1), BITS(Z, R, 0, 5), BITS(Z, B, 3, 1)}},
    {3, 5, 0, 0, 10, {10, 10, 10}, {BITS(W, R, 0, 10), BITS(W, G, 0, 10), BITS(W, B, 0, 10), BITS(X, R, 0, 10), BITS(X, G, 0, 10),
        BITS(X, B, 0, 10)}},
    {6, 5, 1, 1, 11, {4, 5, 4}, {BITS(W, R, 0, 10), BITS(W, G, 0, 10), BITS(W, B, 0, 10), BITS(X, R, 0, 4), BITS(W, R, 10, 1), BITS(Z, G, 4, 1),
        BITS(Y, G, 0, 4), BITS(X, G, 0, 5), BITS(W, G, 10, 1), BITS(Z, G, 0, 4), BITS(X, B, 0, 4), BITS(W, B, 10, 1), BITS(Z, B, 1, 1),
        BITS(Y, B, 0, 4), BITS(Y, R, 0, 4), BITS(Z, B, 0, 1), BITS(Z, B, 2, 1), BITS(Z, R, 0, 4), BITS(Y, G, 4, 1), BITS(Z, B, 3, 1)}},
    {7, 5, 1, 0, 11, {9, 9, 9}, {BITS(W, R, 0, 10), BITS(W, G, 0, 10), BITS(W, B, 0, 10), BITS(X, R, 0, 9), BITS(W, R, 10, 1), BITS(X, G, 0, 9),
        BITS(W, G, 10, 1), BITS(X, B, 0, 9), BITS(W, B, 10, 1)}},
    {10, 5, 1, 1, 11, {4, 4, 5}, {BITS(W, R, 0, 10), BITS(W, G, 0, 10), BITS(W, B, 0, 10), BITS(X, R, 0, 4), BITS(W, R, 10, 1), BITS(Y, B, 4, 1),
        BITS(Y, G, 0, 4), BITS(X, G, 0, 4), BITS(W, G, 10, 1), BITS(Z, B, 0, 1), BITS(Z, G, 0, 4), BITS(X, B, 0, 5), BITS(W, B, 10, 1),
        BITS(Y, B, 0, 4), BITS(Y, R, 0, 4), BITS(Z, B, 1, 1), BITS(Z, B, 2, 1), BITS(Z, R, 0, 4), BITS(Z, B, 4, 1), BITS(Z, B, 3, 1)}},
    {11, 5, 1, 0, 12, {8, 8, 8}, {BITS(W, R, 0, 10), BITS(W, G, 0, 10), BITS(W, B, 0, 10), BITS(X, R, 0, 8), BITS(REVERSED >> 2 | W, R, 10, 2),
        BITS(X, G, 0, 8), BITS(REVERSED >> 2 | W, G, 10, 2), BITS(X, B, 0, 8), BITS(REVERSED >> 2 | W, B, 10, 2)}},
    {14, 5, 1, 1, 9, {5, 5, 5}, {BITS(W, R, 0, 9), BITS(Y, B, 4, 1), BITS(W, G, 0, 9), BITS(Y, G, 4, 1), BITS(W, B, 0, 9), BITS(Z, B, 4, 1),
        BITS(X, R, 0, 5), BITS(Z, G, 4, 1), BITS(Y, G, 0, 4), BITS(X, G, 0, 5), BITS(Z, B, 0, 1), BITS(Z, G, 0, 4), BITS(X, B, 0, 5),
        BITS(Z, B, 1, 1), BITS(Y, B, 0, 4), BITS(Y, R, 0, 5), BITS(Z, B, 2, 1), BITS(Z, R, 0, 5), BITS(Z, B, 3, 1)}},
    {15, 5, 1, 0, 16, {4, 4, 4}, {BITS(W, R, 0, 10), BITS(W, G, 0, 10), BITS(W, B, 0, 10), BITS(X, R, 0, 4), BITS(REVERSED >> 2 | W, R, 10, 6),
        BITS(X, G, 0, 4), BITS(REVERSED >> 2 | W, G, 10, 6), BITS(X, B, 0, 4), BITS(REVERSED >> 2 | W, B, 10, 6)}},
    {18, 5, 1, 1, 8, {6, 5, 5}, {BITS(W, R, 0, 8), BITS(Z, G, 4, 1), BITS(Y, B, 4, 1), BITS(W, G, 0, 8), BITS(Z, B, 2, 1), BITS(Y, G, 4, 1),
        BITS(W, B, 0, 8), BITS(Z, B, 3, 1), BITS(Z, B, 4, 1), BITS(X, R, 0, 6), BITS(Y, G, 0, 4), BITS(X, G, 0, 5), BITS(Z, B, 0, 1),
        BITS(Z, G, 0, 4), BITS(X, B, 0, 5), BITS(Z, B, 1, 1), BITS(Y, B, 0, 4), BITS(Y, R, 0, 6), BITS(Z, R, 0, 6)}},
    {22, 5, 1, 1, 8, {5, 6, 5}, {BITS(W, R, 0, 8), BITS(Z, B, 0, 1), BITS(Y, B, 4, 1), BITS(W, G, 0, 8), BITS(Y, G, 5, 1), BITS(Y, G, 4, 1),
        BITS(W, B, 0, 8), BITS(Z, G, 5, 1), BITS(Z, B, 4, 1), BITS(X, R, 0, 5), BITS(Z, G, 4, 1), BITS(Y, G, 0, 4), BITS(X, G, 0, 6),
        BITS(Z, G, 0, 4), BITS(X, B, 0, 5), BITS(Z, B, 1, 1), BITS(Y, B, 0, 4), BITS(Y, R, 0, 5), BITS(Z, B, 2, 1), BITS(Z, R, 0, 5),
        BITS(Z, B, 3, 1)}},
    {26, 5, 1, 1, 8, {5, 5, 6}, {BITS(W, R, 0, 8), BITS(Z, B, 1, 1), BITS(Y, B, 4, 1), BITS(W, G, 0, 8), BITS(Y, B, 5, 1), BITS(Y, G, 4, 1),
        BITS(W, B, 0, 8), BITS(Z, B, 5, 1), BITS(Z, B, 4, 1), BITS(X, R, 0, 5), BITS(Z, G, 4, 1), BITS(Y, G, 0, 4), BITS(X, G, 0, 5),
        BITS(Z, B, 0, 1), BITS(Z, G, 0, 4), BITS(X, B, 0, 6), BITS(Y, B, 0, 4), BITS(Y, R, 0, 5), BITS(Z, B, 2, 1), BITS(Z, R, 0, 5),
        BITS(Z, B, 3, 1)}},
    {30, 5, 0, 1, 6, {6, 6, 6}, {BITS(W, R, 0, 6), BITS(Z, G, 4, 1), BITS(Z, B, 0, 1), BITS(Z, B, 1, 1), BITS(Y, B, 4, 1), BITS(W, G, 0, 6),
        BITS(Y, G, 5, 1), BITS(Y, B, 5, 1), BITS(Z, B, 2, 1), BITS(Y, G, 4, 1), BITS(W, B, 0, 6), BITS(Z, G, 5, 1), BITS(Z, B, 3, 1),
        BITS(Z, B, 5, 1), BITS(Z, B, 4, 1), BITS(X, R, 0, 6), BITS(Y, G, 0, 4), BITS(X, G, 0, 6), BITS(Z, G, 0, 4), BITS(X, B, 0, 6),
        BITS(Y, B, 0, 4), BITS(Y, R, 0, 6), BITS(Z, R, 0, 6)}},
};

static const struct float_mode *float_mode_of(const uint32_t *words)
{
    for (int i = 0; i < 14; i++)
        if (bits_at(words, 0, float_modes[i].number_bits) == float_modes[i].number)
            return &float_modes[i];
    return 0;
}

static int32_t sign_extended(int32_t value, uint32_t bits)
{
    return (int32_t)((uint32_t)value << (32 - bits)) >> (32 - bits);
}

/* Reads the endpoints and returns where what follows them begins. */
static uint32_t read_ends(const struct float_mode *m, const uint32_t *words, int32_t ends[4][3])
{
    uint32_t at = m->number_bits;
    for (const struct end_bits *part = m->parts; part < m->parts + 24 && part->what & 15; part++) {
        uint32_t low = part->what >> 4, count = part->what & 15, held = bits_at(words, at, count), reversed = 0;
        for (uint32_t i = 0; i < count; i++)
            reversed |= (held >> i & 1) << (count - 1 - i);
        ends[part->where >> 2 & 3][part->where & 3] |= (int32_t)((part->where & REVERSED ? reversed : held) << low);
        at += count;
    }
    return at;
}

/* Endpoints as numbers: deltas added to the first one, signs extended. */
static void transform_ends(const struct float_mode *m, int is_signed, int32_t ends[4][3])
{
    for (uint32_t c = 0; c < 3; c++) {
        ends[0][c] = is_signed ? sign_extended(ends[0][c], m->bits) : ends[0][c];
        for (uint32_t end = 1; end < (m->two ? 4u : 2u); end++) {
            if (m->deltas) {
                ends[end][c] = (ends[0][c] + sign_extended(ends[end][c], m->delta_bits[c])) & ((1 << m->bits) - 1);
                ends[end][c] = is_signed ? sign_extended(ends[end][c], m->bits) : ends[end][c];
            } else if (is_signed) {
                ends[end][c] = sign_extended(ends[end][c], m->bits);
            }
        }
    }
}

static int32_t unquantized(int32_t value, uint32_t bits, int is_signed)
{
    if (!is_signed)
        return bits >= 15 || !value ? value : value == (1 << bits) - 1 ? 0xffff : ((value << 15) + 0x4000) >> (bits - 1);
    int32_t size = value < 0 ? -value : value;
    if (bits >= 16 || !value)
        return value;
    size = size >= (1 << (bits - 1)) - 1 ? 0x7fff : ((size << 15) + 0x4000) >> (bits - 1);
    return value < 0 ? -size : size;
}

/* The bits of a half float. */
static uint32_t finished(int32_t value, int is_signed)
{
    if (!is_signed)
        return (uint32_t)((value * 31) >> 6);
    int32_t size = ((value < 0 ? -value : value) * 31) >> 5;
    return (uint32_t)(value < 0 ? size | 0x8000 : size);
}

static void decode_bc6h(const uint32_t *words, uint32_t x, uint32_t y, int is_signed, uint32_t *rgba)
{
    const struct float_mode *m = float_mode_of(words);
    rgba[0] = rgba[1] = rgba[2] = 0;
    rgba[3] = 0x3c00; /* 1.0 */
    if (!m) /* reserved: black */
        return;
    int32_t ends[4][3] = {{0}};
    uint32_t at = read_ends(m, words, ends), texel = (y & 3) * 4 + (x & 3), subsets = m->two ? 2 : 1, bits = m->two ? 3 : 4;
    uint32_t partition = m->two ? bits_at(words, at, 5) : 0, subset = subset_of(subsets, partition, texel);
    uint32_t index = index_at(words, at + (m->two ? 5 : 0), bits, subsets, partition, texel), weight = weights[bits - 2][index];
    transform_ends(m, is_signed, ends);
    for (uint32_t c = 0; c < 3; c++) {
        int32_t a = unquantized(ends[2 * subset][c], m->bits, is_signed), b = unquantized(ends[2 * subset + 1][c], m->bits, is_signed);
        rgba[c] = finished((a * (64 - (int32_t)weight) + b * (int32_t)weight + 32) >> 6, is_signed);
    }
}

void decode_bc6h_signed(const uint32_t *words, uint32_t x, uint32_t y, uint32_t *rgba)
{
    decode_bc6h(words, x, y, 1, rgba);
}

void decode_bc6h_unsigned(const uint32_t *words, uint32_t x, uint32_t y, uint32_t *rgba)
{
    decode_bc6h(words, x, y, 0, rgba);
}
