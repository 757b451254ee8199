/* The arithmetic encoder of H.264 (9.3.4.2 to 9.3.4.5). */
#ifndef SOFTGEN_CODEC_CABAC_WRITE_H
#define SOFTGEN_CODEC_CABAC_WRITE_H

#include "cabac_avc.h"
#include "writer.h"

struct cabac_writer {
    struct writer *writer;
    uint32_t low, range, outstanding, first; /* first: no bit has been written */
};

static inline void cabac_write_start(struct cabac_writer *c, struct writer *w)
{
    *c = (struct cabac_writer){w, 0, 510, 0, 1};
}

static inline void cabac_carry(struct cabac_writer *c, uint32_t bit)
{
    if (c->first)
        c->first = 0;
    else
        writer_bits(c->writer, bit, 1);
    for (; c->outstanding; c->outstanding--)
        writer_bits(c->writer, !bit, 1);
}

static inline void cabac_shift(struct cabac_writer *c)
{
    if (c->low < 256)
        cabac_carry(c, 0);
    else if (c->low >= 512) {
        c->low -= 512;
        cabac_carry(c, 1);
    } else {
        c->low -= 256;
        c->outstanding++;
    }
    c->low <<= 1;
}

static inline void cabac_renorm(struct cabac_writer *c)
{
    for (; c->range < 256; c->range <<= 1)
        cabac_shift(c);
}

static inline void cabac_write(struct cabac_writer *c, uint8_t *state, int bit)
{
    unsigned s = *state, lps = avc_lps_range[s >> 1][c->range >> 6 & 3], more = (s & 1) == (unsigned)bit;
    c->range -= lps;
    if (!more) {
        c->low += c->range;
        c->range = lps;
    }
    *state = avc_next_state[more][s];
    cabac_renorm(c);
}

static inline void cabac_write_bypass(struct cabac_writer *c, int bit)
{
    c->low <<= 1;
    if (bit)
        c->low += c->range;
    if (c->low >= 1024) {
        cabac_carry(c, 1);
        c->low -= 1024;
    } else if (c->low < 512)
        cabac_carry(c, 0);
    else {
        c->low -= 512;
        c->outstanding++;
    }
}

/* end_of_slice_flag, or the bin before I_PCM. If it is set, all bits are written; the last is 1, the stop bit of a slice. */
static inline void cabac_write_end(struct cabac_writer *c, int bit)
{
    c->range -= 2;
    if (bit) {
        c->low += c->range;
        c->range = 2;
        cabac_renorm(c);
        cabac_carry(c, c->low >> 9 & 1);
        writer_bits(c->writer, (c->low >> 7 & 3) | 1, 2);
    } else
        cabac_renorm(c);
}

#endif
