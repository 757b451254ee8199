/* Decoders of compressed blocks: one texel of a block of 8 or 16 bytes, as the numbers that its format's channels hold.
 *
 * Words are the block's dwords, x and y the texel's place in it. Any words are legal: what an encoder may not write decodes to something,
 * too, as the formats' specifications say.
 */
#ifndef SOFTGEN_SURFACE_CODED_H
#define SOFTGEN_SURFACE_CODED_H

#include <stdint.h>

typedef void decoder(const uint32_t *words, uint32_t x, uint32_t y, uint32_t *rgba);

decoder decode_bc7, decode_bc6h_signed, decode_bc6h_unsigned;
decoder decode_etc1, decode_etc2, decode_etc2_punchthrough, decode_etc2_alpha;
decoder decode_fxt1;
decoder decode_eac, decode_eac_two, decode_eac_signed, decode_eac_signed_two;

/* Bits of a block, counted from its lowest; at most 32. */
static inline uint32_t bits_at(const uint32_t *words, uint32_t first, uint32_t count)
{
    uint64_t low = words[first >> 5] | (uint64_t)(first >> 5 < 3 ? words[(first >> 5) + 1] : 0) << 32;
    return (uint32_t)(low >> (first & 31) & (((uint64_t)1 << count) - 1));
}

#endif
