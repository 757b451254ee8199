/* The boolean decoder of VP8 (RFC 6386 7.3) and VP9 (9.2). Past the end of its data it reads zeros; `at` says how far it is. */
#ifndef SOFTGEN_CODEC_BOOL_CODER_H
#define SOFTGEN_CODEC_BOOL_CODER_H

#include "reader.h"

/* `value` has `spare` bits below the eight that are compared with `range`. */
struct bools {
    const uint8_t *data;
    uint64_t size, at; /* bytes */
    uint64_t value;
    int32_t spare;
    uint32_t range;
};

static inline void bools_refill(struct bools *b)
{
    uint64_t word = 0;
    if (b->at + 4 <= b->size) {
        uint32_t raw;
        memcpy(&raw, b->data + b->at, 4);
        word = __builtin_bswap32(raw);
    } else
        for (uint64_t i = b->at; i < b->at + 4; i++)
            word = word << 8 | (i < b->size ? b->data[i] : 0);
    b->at += 4;
    b->value = b->value << 32 | word;
    b->spare += 32;
}

/* At the first byte of a coder's data. */
static inline void bools_start(struct bools *b, const uint8_t *data, uint64_t size)
{
    *b = (struct bools){.data = data, .size = size, .spare = -8, .range = 255};
    bools_refill(b);
}

/* Amid a coder's data: `value` is compared next, `used` bits of the first byte are in it. */
static inline void bools_resume(struct bools *b, const uint8_t *data, uint64_t size, unsigned value, unsigned range, unsigned used)
{
    unsigned left = 8 - used, byte = size ? data[0] : 0;
    *b = (struct bools){.data = data, .size = size, .at = 1, .spare = (int32_t)left, .range = range};
    b->value = (uint64_t)value << left | (byte & ((1u << left) - 1));
}

static inline int bools_read(struct bools *b, unsigned probability)
{
    unsigned split = 1 + (((b->range - 1) * probability) >> 8);
    uint64_t scaled = (uint64_t)split << b->spare;
    int bit = b->value >= scaled;
    b->value -= bit ? scaled : 0;
    b->range = bit ? b->range - split : split;
    int shift = __builtin_clz(b->range) - 24;
    b->range <<= shift;
    b->spare -= shift;
    if (b->spare < 0)
        bools_refill(b);
    return bit;
}

/* A number of equally probable bits, the highest first. */
static inline unsigned bools_literal(struct bools *b, unsigned count)
{
    unsigned value = 0;
    while (count--)
        value = value << 1 | (unsigned)bools_read(b, 128);
    return value;
}

/* A leaf of a tree: positive entries are the next pair of branches, others a leaf's number, negated. */
static inline int bools_tree(struct bools *b, const int8_t *tree, const uint8_t *probabilities)
{
    int at = 0;
    do
        at = tree[at + bools_read(b, probabilities[at >> 1])];
    while (at > 0);
    return -at;
}

/* Whether more has been read than there is. */
static inline int bools_overrun(const struct bools *b)
{
    return b->at > b->size + 12;
}

#endif
