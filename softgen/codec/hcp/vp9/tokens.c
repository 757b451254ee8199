/* Coefficients (6.4.24, 9.3.3): tokens, dequantised. */
#include "vp9.h"

enum { ZERO, ONE, MORE, NONE }; /* counts */

static const uint8_t bands_4x4[16] = {0, 1, 1, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 5, 5, 5};
static const uint8_t bands[21] = {0, 1, 1, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4};
static const uint8_t extra[5][6] = {{159}, {165, 145}, {173, 148, 140}, {176, 155, 140, 135}, {180, 157, 141, 134, 130}};
static const uint8_t extra_6[18] = {255, 255, 254, 254, 254, 252, 249, 243, 230, 196, 177, 153, 140, 133, 130, 129};

static int more_bits(struct bools *b, const uint8_t *probabilities, unsigned count)
{
    int value = 0;
    for (unsigned i = 0; i < count; i++)
        value = value << 1 | bools_read(b, probabilities[i]);
    return value;
}

/* A number of at least two; `energy`: of its token, for contexts. */
static int large(struct bools *b, uint8_t probability, unsigned depth, uint8_t *energy)
{
    uint8_t p[8];
    vp9_tail(probability, p);
    if (!bools_read(b, p[0])) {
        *energy = 2;
        if (!bools_read(b, p[1]))
            return 2;
        *energy = 3;
        return 3 + bools_read(b, p[2]);
    }
    *energy = 4;
    if (!bools_read(b, p[3]))
        return bools_read(b, p[4]) ? 7 + more_bits(b, extra[1], 2) : 5 + more_bits(b, extra[0], 1);
    *energy = 5;
    if (!bools_read(b, p[5]))
        return bools_read(b, p[6]) ? 19 + more_bits(b, extra[3], 4) : 11 + more_bits(b, extra[2], 3);
    if (!bools_read(b, p[7]))
        return 35 + more_bits(b, extra[4], 5);
    unsigned bits = 14 + (depth - 8);
    return 67 + more_bits(b, extra_6 + 16 - bits, bits);
}

/* The energy above and to the left of a coefficient; where ADST is used in one direction alone, along it alone. */
static unsigned context_at(const uint8_t *energy, unsigned position, unsigned log2_size, unsigned type)
{
    unsigned size = 1u << log2_size, x = position & (size - 1), y = position >> log2_size;
    unsigned above = y ? energy[position - size] : 0, left = x ? energy[position - 1] : 0;
    if (!y || (x && type == 1))
        above = left;
    else if (!x || type == 2)
        left = above;
    return (1 + above + left) >> 1;
}

unsigned vp9_tokens(struct vp9_picture *p, struct bools *stream, const struct vp9_block *block, int plane, unsigned tx, unsigned type, unsigned context)
{
    const uint8_t *probabilities = p->probabilities->coefficients[tx][plane > 0][is_inter(block)];
    uint32_t(*counts)[4] = p->counts->coefficients[tx][plane > 0][is_inter(block)], *asked = p->counts->more[tx][plane > 0][is_inter(block)];
    const int16_t *scan = vp9_scans[tx][type];
    const uint32_t *scale = p->segment[block->segment].scale[plane > 0];
    unsigned count = 16u << 2 * tx, at = 0, log2_size = tx + 2;
    uint8_t energy[1024];
    unsigned reach = 0;
    int may_end = 1;
    struct bools b = *stream;
    type = tx == TX_32X32 ? 0 : type;
    for (; at < count; at++) {
        unsigned band = tx == TX_4X4 ? bands_4x4[at] : at < 21 ? bands[at] : 5, position = (unsigned)scan[at];
        if (at)
            context = context_at(energy, position, log2_size, type);
        unsigned index = 6 * band + context;
        const uint8_t *from = probabilities + 3 * (band ? index - 3 : index);
        if (may_end) {
            asked[index]++;
            if (!bools_read(&b, from[0])) {
                counts[index][NONE]++;
                break;
            }
        }
        may_end = bools_read(&b, from[1]);
        energy[position] = (uint8_t)may_end;
        if (!may_end) {
            counts[index][ZERO]++;
            continue;
        }
        int value = 1;
        if (bools_read(&b, from[2])) {
            counts[index][MORE]++;
            value = large(&b, from[2], p->depth, &energy[position]);
        } else
            counts[index][ONE]++;
        value = (int)(((int64_t)value * scale[at > 0]) >> (tx == TX_32X32));
        unsigned turned = (position & ((1u << log2_size) - 1)) << log2_size | position >> log2_size; /* transforms take column by column */
        p->coefficients[turned] = bools_read(&b, 128) ? -value : value;
        reach |= turned;
    }
    *stream = b;
    p->reach = reach;
    return at;
}
