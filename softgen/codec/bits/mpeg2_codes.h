/* Codes of MPEG-2 slices (ISO/IEC 13818-2, annex B): macroblock addresses and types, patterns, vectors, coefficients. */
#ifndef SOFTGEN_CODEC_MPEG2_CODES_H
#define SOFTGEN_CODEC_MPEG2_CODES_H

#include "vlc.h"

enum { MPEG2_QUANT = 1, MPEG2_FORWARD = 2, MPEG2_BACKWARD = 4, MPEG2_PATTERN = 8, MPEG2_INTRA = 16 }; /* macroblock_type */
enum { COEFFICIENT_ESCAPE = 0x4000, END_OF_BLOCK = 0x4001, ADDRESS_ESCAPE = 34, ADDRESS_STUFFING = 35 };
enum { MPEG2_COEFFICIENT_FIRST = 9, MPEG2_COEFFICIENT_ROOM = 1024 };

extern const uint8_t mpeg2_alternate_scan[64];
extern struct vlc_entry mpeg2_coefficient_tables[2][MPEG2_COEFFICIENT_ROOM]; /* B.14; B.15, of intra blocks with intra_vlc_format */

unsigned mpeg2_read_increment(struct bits *b); /* macroblock_address_increment; 0 where there is no such code */
int mpeg2_read_type(struct bits *b, unsigned picture_coding_type); /* NO_CODE where there is none */
int mpeg2_read_pattern(struct bits *b); /* coded_block_pattern_420; NO_CODE where there is none */
int mpeg2_read_dc(struct bits *b, int chroma, int *difference); /* whether it is well formed */
/* A motion vector, likewise: from its predictors, which it replaces (6.2.5.2, 7.6.3). `halved`: it counts rows of fields and the predictors
 * rows of frames; `dual`: where each dmvector goes, or null. */
int mpeg2_read_vector(struct bits *b, const uint8_t f_code[2], int halved, int predictor[2], int vector[2], int *dual);

/* The code of a value, to write it; length 0 where there is none. Coefficients: 64 x run + level without its sign. */
enum mpeg2_table { MPEG2_INCREMENT, MPEG2_PATTERNS, MPEG2_VECTORS, MPEG2_DC_LUMA, MPEG2_DC_CHROMA, MPEG2_LEVELS, MPEG2_INTRA_LEVELS,
                   MPEG2_TYPES_OF_I, MPEG2_TYPES_OF_P, MPEG2_TYPES_OF_B };
struct vlc_code mpeg2_code_of(enum mpeg2_table table, int value);

/* run and signed level; 0 at the end of the block, -1 where there is no such code. The longest one has 24 bits. */
static inline int mpeg2_read_coefficient(struct bits *b, const struct vlc_entry *table, int *run, int *level)
{
    uint32_t word = bits_peek32(b);
    struct vlc_entry e = vlc_find(word, table, MPEG2_COEFFICIENT_FIRST);
    b->at += (unsigned)e.length;
    if (e.value == END_OF_BLOCK)
        return 0;
    if (e.value == NO_CODE)
        return -1;
    word <<= e.length;
    if (e.value == COEFFICIENT_ESCAPE) {
        b->at += 18;
        *run = (int)(word >> 26);
        *level = (int32_t)(word << 6) >> 20;
        return *level & 0x7ff ? 1 : -1; /* 0 and -2048 are forbidden (7.2.2.3) */
    }
    int negative = (int)(word >> 31);
    b->at++;
    *run = e.value >> 6;
    *level = ((e.value & 63) ^ -negative) + negative;
    return 1;
}

/* Whether a slice has no macroblock left: no start of a code follows. */
static inline int mpeg2_at_end(const struct bits *b)
{
    return bits_left(b) <= 0 || !bits_peek(b, 23);
}

#endif
