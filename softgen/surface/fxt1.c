/* FXT1: blocks of 8x4 texels in 16 bytes, as two halves of 4x4 (public: GL_3DFX_texture_compression_FXT1).
 *
 * Bits 127:125 are the mode. Colours are 5 bits a channel, blue lowest; a texel's index chooses one of them or a mixture. Channels are
 * returned as 8-bit numbers; fractions are rounded to the nearest.
 */
#include "coded.h"

enum { RIGHT = 16 }; /* texels of the left half */

struct color { uint32_t b, g, r, a; };

static uint32_t five(uint32_t value) { return ((value & 31) * 510 + 31) / 62; }

static uint32_t six(uint32_t value, uint32_t low) { return (((value & 31) << 1 | (low & 1)) * 510 + 63) / 126; }

static struct color color_at(const uint32_t *words, uint32_t first)
{
    return (struct color){five(bits_at(words, first, 5)), five(bits_at(words, first + 5, 5)), five(bits_at(words, first + 10, 5)), 255};
}

/* `part` of `whole` on the way from a to b. */
static struct color mixed(struct color a, struct color b, uint32_t part, uint32_t whole)
{
    uint32_t rest = whole - part, half = whole / 2;
    return (struct color){(a.b * rest + b.b * part + half) / whole, (a.g * rest + b.g * part + half) / whole,
                          (a.r * rest + b.r * part + half) / whole, (a.a * rest + b.a * part + half) / whole};
}

static const struct color transparent;

/* Seven colours between two; the eighth index is transparent. */
static struct color high(const uint32_t *words, uint32_t texel)
{
    uint32_t index = bits_at(words, 3 * texel, 3);
    return index == 7 ? transparent : mixed(color_at(words, 96), color_at(words, 111), index, 6);
}

/* Four colours for the whole block. */
static struct color chroma(const uint32_t *words, uint32_t texel)
{
    return color_at(words, 64 + 15 * bits_at(words, 2 * texel, 2));
}

/* Two colours for each half, greens of 6 bits; three colours and transparent, or four. */
static struct color mixed_mode(const uint32_t *words, uint32_t texel)
{
    uint32_t right = texel >= RIGHT, first = right ? 94 : 64, index = bits_at(words, 2 * texel, 2);
    uint32_t low = bits_at(words, 125 + right, 1), select = bits_at(words, right ? 33 : 1, 1);
    struct color a = color_at(words, first), b = color_at(words, first + 15);
    b.g = six(bits_at(words, first + 20, 5), low);
    if (!bits_at(words, 124, 1)) {
        a.g = six(bits_at(words, first + 5, 5), low ^ select);
        return mixed(a, b, index, 3);
    }
    if (index == 3)
        return transparent;
    if (index != 1)
        return index ? b : a;
    return (struct color){(a.b + b.b) / 2, (a.g + b.g) / 2, (a.r + b.r) / 2, 255};
}

/* Colours with alpha: three of them and transparent, or four between one of the half and one of the block. */
static struct color alpha(const uint32_t *words, uint32_t texel)
{
    uint32_t right = texel >= RIGHT, index = bits_at(words, 2 * texel, 2);
    if (bits_at(words, 124, 1)) {
        struct color a = color_at(words, right ? 94 : 64), b = color_at(words, 79);
        a.a = five(bits_at(words, right ? 119 : 109, 5)), b.a = five(bits_at(words, 114, 5));
        return mixed(a, b, index, 3);
    }
    if (index == 3)
        return transparent;
    struct color found = color_at(words, 64 + 15 * index);
    found.a = five(bits_at(words, 109 + 5 * index, 5));
    return found;
}

void decode_fxt1(const uint32_t *words, uint32_t x, uint32_t y, uint32_t *rgba)
{
    uint32_t texel = (x & 4 ? RIGHT : 0) + (y & 3) * 4 + (x & 3), mode = bits_at(words, 125, 3);
    struct color found = mode < 2 ? high(words, texel) : mode == 2 ? chroma(words, texel) : mode == 3 ? alpha(words, texel) : mixed_mode(words, texel);
    rgba[0] = found.r, rgba[1] = found.g, rgba[2] = found.b, rgba[3] = found.a;
}
