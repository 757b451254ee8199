/* The arithmetic decoder of H.264 (9.3.1.2, 9.3.3.2) and HEVC. Past the end of its data it reads zeros; `at` says how far it is. */
#ifndef SOFTGEN_CODEC_CABAC_AVC_H
#define SOFTGEN_CODEC_CABAC_AVC_H

#include "reader.h"

/* `value` has `spare` bits below the nine that are compared with `range`. */
struct cabac {
    const uint8_t *data;
    uint64_t size, at; /* bytes */
    uint32_t range;
    int32_t spare;
    uint64_t value;
};

extern const uint8_t avc_lps_range[64][4];
extern const uint8_t avc_next_state[2][128]; /* after the less and the more probable symbol; a state is 2 pStateIdx + valMPS */

ENTRY void cabac_start(struct cabac *c, const uint8_t *data, uint64_t size, uint64_t at);
uint8_t cabac_context(int m, int n, int qp);

static inline void cabac_refill(struct cabac *c)
{
    uint64_t word = 0;
    if (c->at + 4 <= c->size) {
        uint32_t raw;
        memcpy(&raw, c->data + c->at, 4);
        word = __builtin_bswap32(raw);
    } else
        for (int i = 0; i < 4; i++)
            word = word << 8 | (c->at + (uint64_t)i < c->size ? c->data[c->at + (uint64_t)i] : 0);
    c->at += 4;
    c->value = c->value << 32 | word;
    c->spare += 32;
}

/* Without a branch on the symbol, which no host predicts: `less` has all bits where it is the less probable one. */
static inline int cabac_bit(struct cabac *c, uint8_t *state)
{
    unsigned s = *state, lps = avc_lps_range[s >> 1][c->range >> 6 & 3], range = c->range - lps;
    uint64_t scaled = (uint64_t)range << c->spare, less = -(uint64_t)(c->value >= scaled);
    c->value -= scaled & less;
    range ^= (range ^ lps) & (unsigned)less;
    *state = avc_next_state[1 + (int)less][s];
    int shift = __builtin_clz(range) - 23;
    c->range = range << shift;
    c->spare -= shift;
    if (c->spare < 0)
        cabac_refill(c);
    return (int)((s ^ (unsigned)less) & 1);
}

static inline int cabac_bypass(struct cabac *c)
{
    if (--c->spare < 0)
        cabac_refill(c);
    uint64_t scaled = (uint64_t)c->range << c->spare;
    if (c->value < scaled)
        return 0;
    c->value -= scaled;
    return 1;
}

static inline int cabac_end(struct cabac *c)
{
    c->range -= 2;
    uint64_t scaled = (uint64_t)c->range << c->spare;
    if (c->value >= scaled)
        return 1;
    int shift = __builtin_clz(c->range) - 23;
    c->range <<= shift;
    c->spare -= shift;
    if (c->spare < 0)
        cabac_refill(c);
    return 0;
}

/* Where samples begin that follow as they are, after `cabac_end` has answered 1: a coder ends with just the bits that were read (9.3.4.5). */
static inline uint64_t cabac_position(const struct cabac *c)
{
    return c->at - (uint64_t)(c->spare >> 3);
}

/* Whether more has been read than there is. */
static inline int cabac_overrun(const struct cabac *c)
{
    return c->at > c->size + 8;
}

#endif
