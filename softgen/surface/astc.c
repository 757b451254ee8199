/* ASTC, two-dimensional blocks (Khronos data format specification 1.3, ASTC; KHR_texture_compression_astc_hdr).
 *
 * A texel is decoded on its own: the weights that it is between, the endpoints of its partition, one interpolation. Channels are 16-bit
 * numbers: of sRGB formats their top 8 bits count, of other formats of low dynamic range they are fractions of 65536, of those of high
 * dynamic range half floats. What the specification calls an illegal encoding, and high dynamic range where the format has none, is the
 * error colour: opaque magenta.
 */
#include "astc.h"

enum { MOST_WEIGHTS = 64, MOST_VALUES = 18 };

/* -- endpoints -------------------------------------------------------------------------------------------------------------------------- */

static int32_t unquantized_color(uint32_t value, const struct range *r)
{
    uint32_t low = value & ((1u << r->bits) - 1), high = value >> r->bits, a = low & 1 ? 0x1ff : 0, b = 0, c = 0;
    if (!r->trits && !r->quints) {
        uint32_t found = 0;
        for (int32_t at = 8 - r->bits; at > -(int32_t)r->bits; at -= r->bits) /* replicated to 8 bits */
            found |= at >= 0 ? low << at : low >> -at;
        return (int32_t)(found & 0xff);
    }
    uint32_t x = low >> 1;
    if (r->trits)
        switch (r->bits) {
        case 1: c = 204; break;
        case 2: c = 93, b = x << 8 | x << 4 | x << 2 | x << 1; break;
        case 3: c = 44, b = x << 7 | x << 2 | x; break;
        case 4: c = 22, b = x << 6 | x; break;
        case 5: c = 11, b = x << 5 | x >> 2; break;
        default: c = 5, b = x << 4 | x >> 4; break;
        }
    else
        switch (r->bits) {
        case 1: c = 113; break;
        case 2: c = 54, b = x << 8 | x << 3 | x << 2; break;
        case 3: c = 26, b = x << 7 | x << 1 | x >> 1; break;
        case 4: c = 13, b = x << 6 | x >> 1; break;
        default: c = 6, b = x << 5 | x >> 3; break;
        }
    uint32_t t = (high * c + b) ^ a;
    return (int32_t)((a & 0x80) | t >> 2);
}

static void contract_blue(int32_t *color)
{
    color[0] = (color[0] + color[2]) >> 1, color[1] = (color[1] + color[2]) >> 1;
}

/* An offset of 6 bits with a sign, whose top bit is the base's. */
static void transfer_bit(int32_t *offset, int32_t *base)
{
    *base = *base >> 1 | (*offset & 0x80);
    *offset = *offset >> 1 & 0x3f;
    *offset -= *offset & 0x20 ? 0x40 : 0;
}

static struct ends ends_of(const int32_t *values, uint32_t mode, int *legal)
{
    int32_t v[8];
    struct ends e;
    for (int i = 0; i < 8; i++)
        v[i] = values[i];
    if (mode == 5 || mode == 9 || mode == 13)
        for (int i = 0; i < (mode == 5 ? 4 : mode == 9 ? 6 : 8); i += 2)
            transfer_bit(&v[i + 1], &v[i]);
#define ENDS(r0, g0, b0, a0, r1, g1, b1, a1) (struct ends){{{r0, g0, b0, a0}, {r1, g1, b1, a1}}}
    int32_t base, sum;
    switch (mode) {
    case 0: e = ENDS(v[0], v[0], v[0], 255, v[1], v[1], v[1], 255); break;
    case 1: /* base and offset; without a sign, unlike the others */
        base = v[0] >> 2 | (v[1] & 0xc0), sum = base + (v[1] & 0x3f);
        sum = sum > 255 ? 255 : sum;
        e = ENDS(base, base, base, 255, sum, sum, sum, 255);
        break;
    case 4: e = ENDS(v[0], v[0], v[0], v[2], v[1], v[1], v[1], v[3]); break;
    case 5: e = ENDS(v[0], v[0], v[0], v[2], v[0] + v[1], v[0] + v[1], v[0] + v[1], v[2] + v[3]); break;
    case 6: e = ENDS((v[0] * v[3]) >> 8, (v[1] * v[3]) >> 8, (v[2] * v[3]) >> 8, 255, v[0], v[1], v[2], 255); break;
    case 10: e = ENDS((v[0] * v[3]) >> 8, (v[1] * v[3]) >> 8, (v[2] * v[3]) >> 8, v[4], v[0], v[1], v[2], v[5]); break;
    case 8: case 12: {
        int32_t a0 = mode == 12 ? v[6] : 255, a1 = mode == 12 ? v[7] : 255;
        if (v[1] + v[3] + v[5] >= v[0] + v[2] + v[4])
            e = ENDS(v[0], v[2], v[4], a0, v[1], v[3], v[5], a1);
        else {
            e = ENDS(v[1], v[3], v[5], a1, v[0], v[2], v[4], a0);
            contract_blue(e.of[0]), contract_blue(e.of[1]);
        }
        break;
    }
    case 9: case 13: {
        int32_t a0 = mode == 13 ? v[6] : 255, a1 = mode == 13 ? v[6] + v[7] : 255;
        if (v[1] + v[3] + v[5] >= 0)
            e = ENDS(v[0], v[2], v[4], a0, v[0] + v[1], v[2] + v[3], v[4] + v[5], a1);
        else {
            e = ENDS(v[0] + v[1], v[2] + v[3], v[4] + v[5], a1, v[0], v[2], v[4], a0);
            contract_blue(e.of[0]), contract_blue(e.of[1]);
        }
        break;
    }
    default: /* high dynamic range */
        *legal = 0;
        e = ENDS(255, 0, 255, 255, 255, 0, 255, 255);
    }
    for (int end = 0; end < 2; end++)
        for (int i = 0; i < CHANNELS; i++)
            e.of[end][i] = e.of[end][i] < 0 ? 0 : e.of[end][i] > 255 ? 255 : e.of[end][i];
    return e;
}

/* -- partitions ------------------------------------------------------------------------------------------------------------------------- */

static uint32_t hashed(uint32_t p)
{
    p ^= p >> 15;
    p -= p << 17;
    p += p << 7;
    p += p << 4;
    p ^= p >> 5;
    p += p << 16;
    p ^= p >> 7;
    p ^= p >> 3;
    p ^= p << 6;
    p ^= p >> 17;
    return p;
}

static uint32_t partition_of(uint32_t seed, uint32_t x, uint32_t y, uint32_t count, int small)
{
    if (count == 1)
        return 0;
    x <<= small, y <<= small;
    seed += (count - 1) * 1024;
    uint32_t random = hashed(seed), seeds[8];
    for (int i = 0; i < 8; i++) {
        seeds[i] = random >> 4 * i & 15;
        seeds[i] *= seeds[i];
    }
    uint32_t first = seed & 2 ? 4 : 5, second = count == 3 ? 6 : 5, shifts[2];
    shifts[0] = seed & 1 ? first : second, shifts[1] = seed & 1 ? second : first;
    uint32_t sums[4], best = 0;
    for (int i = 0; i < 4; i++)
        sums[i] = (seeds[2 * i] >> shifts[0]) * x + (seeds[2 * i + 1] >> shifts[1]) * y + (random >> (14 - 4 * i)), sums[i] &= 0x3f;
    sums[3] = count < 4 ? 0 : sums[3], sums[2] = count < 3 ? 0 : sums[2];
    for (uint32_t i = 1; i < 4; i++)
        best = sums[i] > sums[best] ? i : best;
    return best;
}

/* -- weights ---------------------------------------------------------------------------------------------------------------------------- */

static uint32_t unquantized_weight(uint32_t value, const struct range *r)
{
    static const uint8_t trits[3] = {0, 32, 63}, quints[5] = {0, 16, 32, 47, 63};
    uint32_t low = value & ((1u << r->bits) - 1), high = value >> r->bits, found = 0;
    if (!r->trits && !r->quints) {
        for (int32_t at = 6 - r->bits; at > -(int32_t)r->bits; at -= r->bits)
            found |= at >= 0 ? low << at : low >> -at;
        found &= 63;
    } else if (!r->bits)
        found = r->trits ? trits[high] : quints[high];
    else {
        uint32_t a = low & 1 ? 0x7f : 0, x = low >> 1, b = 0, c;
        if (r->trits)
            c = r->bits == 1 ? 50 : r->bits == 2 ? 23 : 11, b = r->bits == 2 ? x << 6 | x << 2 | x : r->bits == 3 ? x << 5 | x : 0;
        else
            c = r->bits == 1 ? 28 : 13, b = r->bits == 2 ? x << 6 | x << 1 : 0;
        uint32_t t = (high * c + b) ^ a;
        found = (a & 0x20) | t >> 2;
    }
    return found > 32 ? found + 1 : found;
}

struct block_mode { uint32_t width, height, dual; const struct range *range; };

/* The block mode of 11 bits; 0 where it is reserved. */
static int read_mode(uint32_t mode, struct block_mode *m)
{
    uint32_t r, a = mode >> 5 & 3, high = mode >> 9 & 1, b;
    m->dual = mode >> 10 & 1;
    if (mode & 3) {
        r = (mode & 3) << 1 | (mode >> 4 & 1), b = mode >> 7 & 3;
        switch (mode >> 2 & 3) {
        case 0: m->width = b + 4, m->height = a + 2; break;
        case 1: m->width = b + 8, m->height = a + 2; break;
        case 2: m->width = a + 2, m->height = b + 8; break;
        default:
            if (b & 2)
                m->width = (b & 1) + 2, m->height = a + 2;
            else
                m->width = a + 2, m->height = (b & 1) + 6;
        }
    } else {
        r = (mode >> 2 & 3) << 1 | (mode >> 4 & 1), b = mode >> 9 & 3;
        switch (mode >> 7 & 3) {
        case 0: m->width = 12, m->height = a + 2; break;
        case 1: m->width = a + 2, m->height = 12; break;
        case 2: m->width = a + 6, m->height = b + 6, high = m->dual = 0; break;
        default:
            if (a > 1)
                return 0;
            m->width = a ? 10 : 6, m->height = a ? 6 : 10;
        }
    }
    if (r < 2)
        return 0;
    m->range = &astc_ranges[r - 2 + 6 * high];
    return 1;
}

/* -- texels ----------------------------------------------------------------------------------------------------------------------------- */

static void magenta(uint32_t *rgba, uint32_t profile)
{
    rgba[0] = rgba[2] = rgba[3] = profile == HDR ? 0x3c00 : 0xffff, rgba[1] = 0;
}

/* A block of one colour; its extent may be anything legal. */
static void void_extent(const uint32_t *words, uint32_t profile, uint32_t *rgba)
{
    uint32_t at[4] = {bits_at(words, 12, 13), bits_at(words, 25, 13), bits_at(words, 38, 13), bits_at(words, 51, 13)};
    int all = (at[0] & at[1] & at[2] & at[3]) == 0x1fff, half = (int)bits_at(words, 9, 1);
    if ((half && profile != HDR) || bits_at(words, 10, 2) != 3 || (!all && (at[0] >= at[1] || at[2] >= at[3]))) {
        magenta(rgba, profile);
        return;
    }
    for (uint32_t i = 0; i < CHANNELS; i++) {
        rgba[i] = bits_at(words, 64 + 16 * i, 16);
        rgba[i] = profile == HDR && !half ? unorm_half(rgba[i]) : rgba[i];
    }
}

/* The weight of a texel: four of the grid, with 4 bits of fraction. */
static uint32_t weight_at(const struct block_mode *m, const uint8_t *weights, uint32_t plane, uint32_t x, uint32_t y, uint32_t wide,
                          uint32_t high)
{
    uint32_t planes = 1 + m->dual;
    uint32_t s = ((1024 + wide / 2) / (wide - 1) * x * (m->width - 1) + 32) >> 6;
    uint32_t t = ((1024 + high / 2) / (high - 1) * y * (m->height - 1) + 32) >> 6;
    uint32_t fs = s & 15, ft = t & 15, first = (s >> 4) + (t >> 4) * m->width;
    uint32_t w11 = (fs * ft + 8) >> 4, w10 = ft - w11, w01 = fs - w11, w00 = 16 - fs - ft + w11;
    uint32_t count = m->width * m->height, sum = 8;
    const uint32_t at[4] = {first, first + 1, first + m->width, first + m->width + 1}, parts[4] = {w00, w01, w10, w11};
    for (int i = 0; i < 4; i++)
        if (parts[i] && at[i] < count)
            sum += unquantized_weight(weights[at[i] * planes + plane], m->range) * parts[i];
    return sum >> 4;
}

struct color_modes { uint32_t mode[4], values, above; };

/* The endpoint modes of the partitions, how many numbers they have, and how many bits stand above them, below the weights. */
static struct color_modes read_color_modes(const uint32_t *words, uint32_t partitions, uint32_t weight_bits, uint32_t dual)
{
    struct color_modes c = {{0}, 0, 0};
    uint32_t below = 128 - weight_bits;
    if (partitions == 1)
        c.mode[0] = bits_at(words, 13, 4);
    else {
        uint32_t held = bits_at(words, 23, 6);
        if ((held & 3) == 0)
            for (uint32_t i = 0; i < partitions; i++)
                c.mode[i] = held >> 2;
        else {
            uint32_t more = 3 * partitions - 4;
            c.above = more;
            held |= bits_at(words, below - more, more) << 6;
            for (uint32_t i = 0; i < partitions; i++)
                c.mode[i] = ((held & 3) - 1 + (held >> (2 + i) & 1)) << 2 | (held >> (2 + partitions + 2 * i) & 3);
        }
    }
    for (uint32_t i = 0; i < partitions; i++)
        c.values += 2 * ((c.mode[i] >> 2) + 1);
    c.above += 2 * dual;
    return c;
}

/* The widest range whose sequence fits; 0 where none does. */
static const struct range *color_range(uint32_t values, int32_t room)
{
    for (int i = 20; i >= 4; i--)
        if ((int32_t)sequence_bits(&astc_ranges[i], values) <= room)
            return &astc_ranges[i];
    return 0;
}

static void decode_astc(const uint32_t *words, uint32_t x, uint32_t y, uint32_t wide, uint32_t high, uint32_t profile,
                        uint32_t *rgba)
{
    struct block_mode m;
    if ((words[0] & 0x1ff) == 0x1fc) {
        void_extent(words, profile, rgba);
        return;
    }
    magenta(rgba, profile);
    if (!read_mode(words[0] & 0x7ff, &m))
        return;
    uint32_t partitions = bits_at(words, 11, 2) + 1, count = m.width * m.height * (1 + m.dual), bits = sequence_bits(m.range, count);
    if (m.width > wide || m.height > high || count > MOST_WEIGHTS || bits < 24 || bits > 96 || (partitions == 4 && m.dual))
        return;
    struct color_modes c = read_color_modes(words, partitions, bits, m.dual);
    uint32_t start = partitions == 1 ? 17 : 29;
    const struct range *range = c.values > MOST_VALUES ? 0 : color_range(c.values, 128 - (int32_t)(start + bits + c.above));
    if (!range)
        return;
    uint8_t weights[MOST_WEIGHTS], values[MOST_VALUES];
    int32_t mine[8] = {0};
    read_sequence(words, 0, m.range, count, 1, weights);
    read_sequence(words, start, range, c.values, 0, values);
    uint32_t seed = partitions == 1 ? 0 : bits_at(words, 13, 10), partition = partition_of(seed, x, y, partitions, wide * high < 31), at = 0;
    for (uint32_t i = 0; i < partition; i++)
        at += 2 * ((c.mode[i] >> 2) + 1);
    for (uint32_t i = 0; i < 2 * ((c.mode[partition] >> 2) + 1); i++)
        mine[i] = unquantized_color(values[at + i], range);
    int legal = 1;
    struct ends e;
    uint32_t bright = profile == HDR ? hdr_ends(mine, c.mode[partition], &e) : 0; /* channels of high dynamic range */
    if (!bright)
        e = ends_of(mine, c.mode[partition], &legal);
    uint32_t other = m.dual ? bits_at(words, 128 - bits - c.above, 2) : CHANNELS; /* the channel with weights of its own */
    for (uint32_t i = 0; i < CHANNELS && legal; i++) {
        uint32_t weight = weight_at(&m, weights, i == other, x, y, wide, high), a = (uint32_t)e.of[0][i], b = (uint32_t)e.of[1][i];
        if (bright >> i & 1)
            a <<= 4, b <<= 4;
        else
            a = a << 8 | (profile == SRGB ? 0x80 : a), b = b << 8 | (profile == SRGB ? 0x80 : b);
        rgba[i] = (a * (64 - weight) + b * weight + 32) >> 6;
        if (profile == HDR)
            rgba[i] = bright >> i & 1 ? hdr_half(rgba[i]) : unorm_half(rgba[i]);
    }
}

/* -- over lanes ------------------------------------------------------------------------------------------------------------------------- */

/* in: four dwords of the block, x and y in it, its width and height, the profile; out: 16-bit channels. */
void surface_astc(const uint32_t *in, uint32_t *out, uint32_t lanes)
{
    for (uint32_t lane = 0; lane < lanes; lane++) {
        uint32_t words[4], rgba[CHANNELS], wide = in[6 * lanes + lane], high = in[7 * lanes + lane];
        for (uint32_t i = 0; i < 4; i++)
            words[i] = in[i * lanes + lane];
        decode_astc(words, in[4 * lanes + lane], in[5 * lanes + lane], wide, high, in[8 * lanes + lane], rgba);
        for (uint32_t i = 0; i < CHANNELS; i++)
            out[i * lanes + lane] = rgba[i];
    }
}
