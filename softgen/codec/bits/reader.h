/* Bits of a stream, most significant first. Past the end there are zeros, and `at` goes on: who reads checks `bits_left`. */
#ifndef SOFTGEN_CODEC_READER_H
#define SOFTGEN_CODEC_READER_H

#include <stdint.h>
#include <string.h>

#ifndef ENTRY
#define ENTRY __attribute__((visibility("default"))) /* called by Python */
#endif

enum { STREAM_PADDING = 16 }; /* zero bytes behind the data */

struct bits {
    const uint8_t *data;
    uint64_t size; /* bytes */
    uint64_t at; /* bits */
};

static inline int64_t bits_left(const struct bits *b)
{
    return (int64_t)(8 * b->size) - (int64_t)b->at;
}

static inline uint32_t bits_peek32(const struct bits *b)
{
    uint64_t byte = b->at >> 3, word;
    memcpy(&word, b->data + (byte < b->size ? byte : b->size), 8);
    return (uint32_t)(__builtin_bswap64(word) << (b->at & 7) >> 32);
}

/* 1 to 32 bits. */
static inline uint32_t bits_peek(const struct bits *b, unsigned count)
{
    return bits_peek32(b) >> (32 - count);
}

static inline void bits_skip(struct bits *b, unsigned count)
{
    b->at += count;
}

/* 0 to 32 bits. */
static inline uint32_t bits_read(struct bits *b, unsigned count)
{
    uint32_t value = count ? bits_peek(b, count) : 0;
    b->at += count;
    return value;
}

/* ue(v) of H.264 9.1; a prefix that is too long reads as the largest number. */
static inline uint32_t bits_ue(struct bits *b)
{
    uint32_t word = bits_peek32(b);
    unsigned zeros = word ? (unsigned)__builtin_clz(word) : 32;
    if (zeros > 15) {
        b->at += zeros > 31 ? 32 : zeros;
        return zeros > 31 ? UINT32_MAX : bits_read(b, zeros + 1) - 1;
    }
    b->at += 2 * zeros + 1;
    return (word >> (31 - 2 * zeros)) - 1;
}

static inline int32_t bits_se(struct bits *b)
{
    uint32_t code = bits_ue(b);
    return code & 1 ? (int32_t)(code / 2 + 1) : -(int32_t)(code / 2);
}

/* Payload of a NAL unit: removes the third byte of 00 00 03; answers the size. The target has as much room as the source. */
ENTRY uint64_t remove_emulation(uint8_t *to, const uint8_t *from, uint64_t size);

#endif
