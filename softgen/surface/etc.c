/* ETC1, ETC2 and EAC (Khronos data format specification 1.3, ETC1 to EAC). Blocks are big-endian; texels count down the columns. */
#include "coded.h"

enum { SUBTILE_MODIFIERS = 2 };
static const uint8_t modifiers[8][SUBTILE_MODIFIERS] = {{2, 8}, {5, 17}, {9, 29}, {13, 42}, {18, 60}, {24, 80}, {33, 106}, {47, 183}};
static const uint8_t distances[8] = {3, 6, 11, 16, 23, 32, 41, 64};
static const int8_t eac_modifiers[16][8] = {
    {-3, -6, -9, -15, 2, 5, 8, 14}, {-3, -7, -10, -13, 2, 6, 9, 12}, {-2, -5, -8, -13, 1, 4, 7, 12}, {-2, -4, -6, -13, 1, 3, 5, 12},
    {-3, -6, -8, -12, 2, 5, 7, 11}, {-3, -7, -9, -11, 2, 6, 8, 10}, {-4, -7, -8, -11, 3, 6, 7, 10}, {-3, -5, -8, -11, 2, 4, 7, 10},
    {-2, -6, -8, -10, 1, 5, 7, 9}, {-2, -5, -8, -10, 1, 4, 7, 9}, {-2, -4, -8, -10, 1, 3, 7, 9}, {-2, -5, -7, -10, 1, 4, 6, 9},
    {-3, -4, -7, -10, 2, 3, 6, 9}, {-1, -2, -3, -10, 0, 1, 2, 9}, {-4, -6, -8, -9, 3, 5, 7, 8}, {-3, -5, -7, -9, 2, 4, 6, 8},
};

static int32_t clamped(int32_t value, int32_t low, int32_t high)
{
    return value < low ? low : value > high ? high : value;
}

/* A block as its specification counts bits: `high` are bits 63 to 32. */
struct etc_block { uint32_t high, low; };

static struct etc_block etc_block_of(const uint32_t *words)
{
    return (struct etc_block){__builtin_bswap32(words[0]), __builtin_bswap32(words[1])};
}

/* The index of a texel: its bit of the upper plane, then of the lower. */
static uint32_t index_of(const struct etc_block *b, uint32_t x, uint32_t y)
{
    uint32_t texel = x * 4 + y;
    return (b->low >> (16 + texel) & 1) << 1 | (b->low >> texel & 1);
}

static void put(uint32_t *rgba, const int32_t *color, int32_t more)
{
    for (int i = 0; i < 3; i++)
        rgba[i] = (uint32_t)clamped(color[i] + more, 0, 255);
}

/* Two halves of a block, each with a colour and a table of what is added to it. `keeps`: index 0 adds nothing (a block with holes). */
static void decode_halves(const struct etc_block *b, const int32_t color[2][3], uint32_t x, uint32_t y, int keeps, uint32_t *rgba)
{
    uint32_t second = b->high & 1 ? y >= 2 : x >= 2, index = index_of(b, x, y);
    int32_t size = modifiers[b->high >> (second ? 2 : 5) & 7][index & 1];
    put(rgba, color[second], keeps && !(index & 1) ? 0 : index & 2 ? -size : size);
}

static void decode_t(const struct etc_block *b, uint32_t index, uint32_t *rgba)
{
    uint32_t h = b->high, red = (h >> 27 & 3) << 2 | (h >> 24 & 3);
    int32_t first[3] = {(int32_t)red * 17, (int32_t)(h >> 20 & 15) * 17, (int32_t)(h >> 16 & 15) * 17};
    int32_t second[3] = {(int32_t)(h >> 12 & 15) * 17, (int32_t)(h >> 8 & 15) * 17, (int32_t)(h >> 4 & 15) * 17};
    int32_t distance = distances[(h >> 2 & 3) << 1 | (h & 1)];
    put(rgba, index ? second : first, index == 1 ? distance : index == 3 ? -distance : 0);
}

static void decode_h(const struct etc_block *b, uint32_t index, uint32_t *rgba)
{
    uint32_t h = b->high, first[3] = {h >> 27 & 15, (h >> 24 & 7) << 1 | (h >> 20 & 1), (h >> 19 & 1) << 3 | (h >> 15 & 7)};
    uint32_t second[3] = {h >> 11 & 15, h >> 7 & 15, h >> 3 & 15};
    uint32_t ordered = (first[0] << 8 | first[1] << 4 | first[2]) >= (second[0] << 8 | second[1] << 4 | second[2]);
    int32_t distance = distances[(h >> 2 & 1) << 2 | (h & 1) << 1 | ordered], color[3];
    for (int i = 0; i < 3; i++)
        color[i] = (int32_t)(index & 2 ? second : first)[i] * 17;
    put(rgba, color, index & 1 ? -distance : distance);
}

static int32_t from_6(uint32_t v) { return (int32_t)(v << 2 | v >> 4); }
static int32_t from_7(uint32_t v) { return (int32_t)(v << 1 | v >> 6); }

static void decode_planar(const struct etc_block *b, uint32_t x, uint32_t y, uint32_t *rgba)
{
    uint32_t h = b->high, l = b->low;
    int32_t origin[3] = {from_6(h >> 25 & 63), from_7((h >> 24 & 1) << 6 | (h >> 17 & 63)),
                         from_6((h >> 16 & 1) << 5 | (h >> 11 & 3) << 3 | (h >> 7 & 7))};
    int32_t across[3] = {from_6((h >> 2 & 31) << 1 | (h & 1)), from_7(l >> 25 & 127), from_6(l >> 19 & 63)};
    int32_t down[3] = {from_6(l >> 13 & 63), from_7(l >> 6 & 127), from_6(l & 63)};
    for (int i = 0; i < 3; i++) {
        int32_t sum = (int32_t)x * (across[i] - origin[i]) + (int32_t)y * (down[i] - origin[i]) + 4 * origin[i] + 2;
        rgba[i] = (uint32_t)clamped(sum >> 2, 0, 255);
    }
}

/* A block with two colours of 4 bits, or with one of 5 bits and a difference; in ETC2 differences that lead outside mean other modes. */
static void decode_color(const uint32_t *words, uint32_t x, uint32_t y, int second_version, int holes, uint32_t *rgba)
{
    struct etc_block b = etc_block_of(words);
    uint32_t h = b.high, flag = h >> 1 & 1, index = index_of(&b, x, y);
    int32_t color[2][3], outside = -1;
    for (int i = 2; i >= 0; i--) {
        uint32_t held = h >> (24 - 8 * i) & 0xff;
        int32_t base = (int32_t)(held >> 3), other = base + (int32_t)((held & 7) ^ 4) - 4;
        if (flag || holes) {
            outside = other < 0 || other > 31 ? i : outside;
            color[0][i] = base << 3 | base >> 2, color[1][i] = (other & 31) << 3 | (other & 31) >> 2;
        } else {
            color[0][i] = (int32_t)(held >> 4) * 17, color[1][i] = (int32_t)(held & 15) * 17;
        }
    }
    rgba[3] = 1;
    if (holes && !flag && index == 2 && outside != 2) { /* planar blocks have none */
        rgba[0] = rgba[1] = rgba[2] = rgba[3] = 0;
        return;
    }
    if (!second_version || outside < 0)
        decode_halves(&b, color, x, y, holes && !flag, rgba);
    else if (outside == 0)
        decode_t(&b, index, rgba);
    else if (outside == 1)
        decode_h(&b, index, rgba);
    else
        decode_planar(&b, x, y, rgba);
}

void decode_etc1(const uint32_t *words, uint32_t x, uint32_t y, uint32_t *rgba)
{
    decode_color(words, x & 3, y & 3, 0, 0, rgba);
}

void decode_etc2(const uint32_t *words, uint32_t x, uint32_t y, uint32_t *rgba)
{
    decode_color(words, x & 3, y & 3, 1, 0, rgba);
}

void decode_etc2_punchthrough(const uint32_t *words, uint32_t x, uint32_t y, uint32_t *rgba)
{
    decode_color(words, x & 3, y & 3, 1, 1, rgba);
}

/* -- EAC: a value, a multiplier, a table and an index of 3 bits for each texel ------------------------------------------------------------ */

struct eac_value { int32_t base, step, multiplier; };

static struct eac_value eac_value_of(const uint32_t *words, uint32_t x, uint32_t y)
{
    struct etc_block b = etc_block_of(words);
    uint64_t all = (uint64_t)b.high << 32 | b.low;
    int32_t step = eac_modifiers[b.high >> 16 & 15][all >> (45 - 3 * ((x & 3) * 4 + (y & 3))) & 7];
    return (struct eac_value){(int32_t)(b.high >> 24), step, (int32_t)(b.high >> 20 & 15)};
}

void decode_etc2_alpha(const uint32_t *words, uint32_t x, uint32_t y, uint32_t *rgba)
{
    struct eac_value alpha = eac_value_of(words, x, y);
    decode_color(words + 2, x & 3, y & 3, 1, 0, rgba);
    rgba[3] = (uint32_t)clamped(alpha.base + alpha.step * alpha.multiplier, 0, 255);
}

static uint32_t eac_11(const uint32_t *words, uint32_t x, uint32_t y, int is_signed)
{
    struct eac_value v = eac_value_of(words, x, y);
    int32_t step = v.multiplier ? v.step * v.multiplier * 8 : v.step;
    if (!is_signed)
        return (uint32_t)clamped(v.base * 8 + 4 + step, 0, 2047);
    int32_t base = (int8_t)v.base < -127 ? -127 : (int8_t)v.base;
    return (uint32_t)clamped(base * 8 + step, -1023, 1023) & 0x7ff;
}

static void decode_eac_11(const uint32_t *words, uint32_t x, uint32_t y, int is_signed, int two, uint32_t *rgba)
{
    rgba[0] = eac_11(words, x, y, is_signed);
    rgba[1] = two ? eac_11(words + 2, x, y, is_signed) : 0;
    rgba[2] = 0;
    rgba[3] = 1;
}

void decode_eac(const uint32_t *words, uint32_t x, uint32_t y, uint32_t *rgba) { decode_eac_11(words, x, y, 0, 0, rgba); }
void decode_eac_two(const uint32_t *words, uint32_t x, uint32_t y, uint32_t *rgba) { decode_eac_11(words, x, y, 0, 1, rgba); }
void decode_eac_signed(const uint32_t *words, uint32_t x, uint32_t y, uint32_t *rgba) { decode_eac_11(words, x, y, 1, 0, rgba); }
void decode_eac_signed_two(const uint32_t *words, uint32_t x, uint32_t y, uint32_t *rgba) { decode_eac_11(words, x, y, 1, 1, rgba); }
