/* Streams that an encoder writes to graphics memory, most significant bit first. What does not fit is counted, and written nowhere. */
#ifndef SOFTGEN_CODEC_WRITER_H
#define SOFTGEN_CODEC_WRITER_H

#include "../codec.h"

enum { WRITER_ROOM = 4096 };
enum escape { NO_ESCAPE, JPEG_ESCAPE, NAL_ESCAPE }; /* bytes that keep data from looking like markers (T.81 B.1.1.5, H.264 7.4.1) */

struct writer {
    struct graphics memory;
    uint64_t base, room; /* where it begins, and how many bytes may stand there */
    uint64_t size; /* bytes so far, waiting ones included */
    uint64_t stored; /* bytes in memory */
    uint32_t held, held_bits; /* bits that are no byte yet */
    uint32_t escape, zeros; /* enum escape; zero bytes at the end of a NAL unit */
    uint32_t waiting, reserved;
    uint8_t bytes[WRITER_ROOM];
};

/* Bytes that a command holds: `bits` of them, of which the first `plain` bytes are not escaped. */
struct insertion {
    struct writer *writer;
    const uint8_t *bytes;
    uint64_t bits;
    uint32_t plain, escape;
};

void writer_flush(struct writer *w);
void writer_byte(struct writer *w, uint8_t byte);

/* 0 to 24 bits. */
static inline void writer_bits(struct writer *w, uint32_t value, unsigned count)
{
    w->held = w->held << count | (value & ((1u << count) - 1));
    for (w->held_bits += count; w->held_bits >= 8; w->held_bits -= 8)
        writer_byte(w, (uint8_t)(w->held >> (w->held_bits - 8)));
}

/* Bits of value `bit` up to the next byte. */
static inline void writer_align(struct writer *w, unsigned bit)
{
    if (w->held_bits)
        writer_bits(w, bit ? 0xff : 0, 8 - w->held_bits);
}

static inline uint64_t writer_position(const struct writer *w) /* bits */
{
    return 8 * w->size + w->held_bits;
}

/* ue(v) and se(v) of H.264 9.1. */
void writer_ue(struct writer *w, uint32_t value);
void writer_se(struct writer *w, int32_t value);

#endif
