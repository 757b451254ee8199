/* Variable-length codes: a table of their first bits, and tables of the rest behind it. */
#ifndef SOFTGEN_CODEC_VLC_H
#define SOFTGEN_CODEC_VLC_H

#include "reader.h"

enum { NO_CODE = -32768, VLC_LONGEST = 17 };

struct vlc_code {
    uint32_t code;
    int16_t length, value;
};

struct vlc_entry {
    int16_t value;
    int16_t length; /* negative: bits of another table, which begins at `value`; 0: no such code */
};

/* Fills a table for codes of which none begins another; answers how many entries it has, or -1 where `room` is too small for them. */
ENTRY int vlc_build(struct vlc_entry *table, int room, int first, const struct vlc_code *codes, int count);

/* A code that a word of the stream begins with: its value and its whole length; 0, and NO_CODE, where there is none. */
static inline struct vlc_entry vlc_find(uint32_t word, const struct vlc_entry *table, int first)
{
    struct vlc_entry e = table[word >> (32 - first)];
    if (e.length < 0) {
        e = table[e.value + (int)(word << first >> (32 + e.length))];
        if (e.length > 0)
            e.length = (int16_t)(e.length + first);
    }
    return e;
}

/* A code's value; NO_CODE where there is none, with nothing read. */
static inline int vlc_read(struct bits *b, const struct vlc_entry *table, int first)
{
    struct vlc_entry e = vlc_find(bits_peek32(b), table, first);
    b->at += (unsigned)e.length;
    return e.value;
}

/* The same as a function of its own. */
ENTRY int vlc_next(struct bits *b, const struct vlc_entry *table, int first);

#endif
