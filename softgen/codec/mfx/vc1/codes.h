/* Variable-length codes of VC-1's macroblocks. All readers answer NO_CODE where there is no such code. */
#ifndef SOFTGEN_CODEC_VC1_CODES_H
#define SOFTGEN_CODEC_VC1_CODES_H

#include "../../bits/vlc.h"

enum { VC1_SETS = 8, VC1_ESCAPE = 0x7000, VC1_DC_ESCAPE = 119 };
enum vc1_transform { TT_8X8, TT_8X4_BOTTOM, TT_8X4_TOP, TT_8X4, TT_4X8_RIGHT, TT_4X8_LEFT, TT_4X8, TT_4X4 };

struct vc1_coefficient {
    int last, run, level;
};

/* Lengths of escape mode 3, which a slice's first such coefficient brings. */
struct vc1_escape {
    uint32_t level_bits, run_bits;
    uint32_t fine; /* of small quantisers, and where macroblocks have their own (table 59) */
    uint32_t reserved;
};

/* macroblock_codes.c */
int vc1_build(struct vlc_entry *table, int room, int first, const struct vlc_code *codes, int count); /* of those that are not too long */
int vc1_read_code(struct bits *b, const struct vlc_entry *table, int first, const struct vlc_code *codes, int count);
int vc1_read_intra_pattern(struct bits *b);
int vc1_read_pattern(struct bits *b, unsigned table);
int vc1_read_vector(struct bits *b, unsigned table); /* 37: with coefficients to come */
int vc1_read_mb_transform(struct bits *b, unsigned table);
int vc1_read_block_transform(struct bits *b, unsigned table);
int vc1_read_subblocks(struct bits *b, unsigned table);
int vc1_read_dc(struct bits *b, unsigned table, int chroma);

/* coefficient_codes.c: whether there is such a code. Coding sets: motion high, low, rate mid, high; each of intra blocks, then of others. */
int vc1_read_coefficient(struct bits *b, unsigned set, struct vc1_escape *e, struct vc1_coefficient *c);

#endif
