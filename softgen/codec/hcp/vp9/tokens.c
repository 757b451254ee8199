/* Coefficients (6.4.24, 9.3.3): tokens, dequantised. */
#include "vp9.h"

#define INLINE inline __attribute__((always_inline))
#ifdef __x86_64__
#define VECTORIZED __attribute__((target_clones("arch=x86-64-v3", "default")))
#else
#define VECTORIZED
#endif

enum { ZERO, ONE, MORE, NONE }; /* counts */

static const uint8_t bands_4x4[16] = {0, 1, 1, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 5, 5, 5};
static const uint8_t bands[21] = {0, 1, 1, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4};
static const uint8_t extra[5][6] = {{159}, {165, 145}, {173, 148, 140}, {176, 155, 140, 135}, {180, 157, 141, 134, 130}};
static const uint8_t extra_6[18] = {255, 255, 254, 254, 254, 252, 249, 243, 230, 196, 177, 153, 140, 133, 130, 129};

/* The next coefficient of a scan: its place, those of two whose tokens make its context, and the first context of its band. Places are as
 * transforms have them: column by column. */
struct step {
    uint16_t at, above, left, context;
};
static struct step steps_4[3][16], steps_8[3][64], steps_16[3][256], steps_32[1][1024];
static uint8_t tails[256][8];

static unsigned turned(unsigned position, unsigned log2_size)
{
    return (position & ((1u << log2_size) - 1)) << log2_size | position >> log2_size;
}

/* Contexts come from above and the left of a coefficient; where ADST is used in one direction alone, from along it alone. */
static void set_step(struct step *s, unsigned position, unsigned log2_size, unsigned type)
{
    unsigned size = 1u << log2_size, x = position & (size - 1), y = position >> log2_size;
    unsigned above = y ? position - size : 0, left = x ? position - 1 : 0;
    if (!y || (x && type == 1))
        above = left;
    else if (!x || type == 2)
        left = above;
    s->at = (uint16_t)turned(position, log2_size);
    s->above = (uint16_t)turned(above, log2_size), s->left = (uint16_t)turned(left, log2_size);
}

static void set_steps(struct step *steps, unsigned tx, unsigned type)
{
    for (unsigned i = 0; i < 16u << 2 * tx; i++) {
        set_step(&steps[i], (unsigned)vp9_scans[tx][type][i], tx + 2, type);
        steps[i].context = 6 * (tx == TX_4X4 ? bands_4x4[i] : i < 21 ? bands[i] : 5);
    }
}

/* Fills the tables when the library is loaded. */
__attribute__((constructor)) static void make_tables(void)
{
    for (unsigned type = 0; type < 3; type++) {
        set_steps(steps_4[type], TX_4X4, type);
        set_steps(steps_8[type], TX_8X8, type);
        set_steps(steps_16[type], TX_16X16, type);
    }
    set_steps(steps_32[0], TX_32X32, 0);
    for (unsigned i = 1; i < 256; i++)
        vp9_tail((uint8_t)i, tails[i]);
}

static INLINE int more_bits(struct bools *b, const uint8_t *probabilities, unsigned count)
{
    int value = 0;
    for (unsigned i = 0; i < count; i++)
        value = value << 1 | bools_read(b, probabilities[i]);
    return value;
}

/* A number of at least two; `energy`: of its token, for contexts. */
static INLINE int large(struct bools *b, uint8_t probability, unsigned depth, uint8_t *energy)
{
    const uint8_t *p = tails[probability];
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

VECTORIZED unsigned vp9_tokens(struct vp9_picture *p, struct bools *stream, const struct vp9_block *block, int plane, unsigned tx, unsigned type, unsigned context)
{
    const uint8_t *probabilities = p->probabilities->coefficients[tx][plane > 0][is_inter(block)];
    uint32_t(*counts)[4] = p->counts->coefficients[tx][plane > 0][is_inter(block)], *asked = p->counts->more[tx][plane > 0][is_inter(block)];
    const struct step *const tables[4] = {steps_4[type % 3], steps_8[type % 3], steps_16[type % 3], steps_32[0]}, *steps = tables[tx];
    const uint32_t *scale = p->segment[block->segment].scale[plane > 0];
    unsigned count = 16u << 2 * tx, at = 0, halves = tx == TX_32X32, depth = p->depth, reach = 0;
    uint8_t energy[1024];
    int may_end = 1;
    struct bools b = *stream;
    for (; at < count; at++) {
        const struct step *step = &steps[at];
        if (at)
            context = (1u + energy[step->above] + energy[step->left]) >> 1;
        unsigned index = step->context + context;
        const uint8_t *from = probabilities + 3 * (step->context ? index - 3 : index);
        if (may_end) {
            asked[index]++;
            if (!bools_read(&b, from[0])) {
                counts[index][NONE]++;
                break;
            }
        }
        may_end = bools_read(&b, from[1]);
        energy[step->at] = (uint8_t)may_end;
        if (!may_end) {
            counts[index][ZERO]++;
            continue;
        }
        int value = 1;
        if (bools_read(&b, from[2])) {
            counts[index][MORE]++;
            value = large(&b, from[2], depth, &energy[step->at]);
        } else
            counts[index][ONE]++;
        value = (int)(((int64_t)value * scale[at > 0]) >> halves);
        p->coefficients[step->at] = bools_read(&b, 128) ? -value : value;
        reach |= step->at;
    }
    *stream = b;
    p->reach = reach;
    return at;
}
