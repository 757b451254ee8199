/* Decoders over lanes, as compiled programs and the interpreter call them (coded.py): in are the lanes of each dword of the blocks, then
 * those of x and y; out are those of red, green, blue and alpha. */
#include "coded.h"

enum { WORDS = 4, CHANNELS = 4 };

static void decode_lanes(decoder *decode, uint32_t words, const uint32_t *in, uint32_t *out, uint32_t lanes)
{
    for (uint32_t lane = 0; lane < lanes; lane++) {
        uint32_t block[WORDS] = {0}, rgba[CHANNELS];
        for (uint32_t i = 0; i < words; i++)
            block[i] = in[i * lanes + lane];
        decode(block, in[words * lanes + lane], in[(words + 1) * lanes + lane], rgba);
        for (uint32_t i = 0; i < CHANNELS; i++)
            out[i * lanes + lane] = rgba[i];
    }
}

#define OVER_LANES(name, words) \
    void surface_##name(const uint32_t *in, uint32_t *out, uint32_t lanes) { decode_lanes(decode_##name, words, in, out, lanes); }

OVER_LANES(bc7, 4)
OVER_LANES(bc6h_signed, 4)
OVER_LANES(bc6h_unsigned, 4)
OVER_LANES(etc1, 2)
OVER_LANES(etc2, 2)
OVER_LANES(etc2_punchthrough, 2)
OVER_LANES(etc2_alpha, 4)
OVER_LANES(fxt1, 4)
OVER_LANES(eac, 2)
OVER_LANES(eac_two, 4)
OVER_LANES(eac_signed, 2)
OVER_LANES(eac_signed_two, 4)
