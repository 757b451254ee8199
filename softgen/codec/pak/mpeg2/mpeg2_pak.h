/* MPEG-2 slices to encode, as state.py hands them over. Sections are those of ISO/IEC 13818-2.
 *
 * The encoder keeps the decoder's state of a slice (mfx/mpeg2/mpeg2.h), so that predictors and predictions are the decoder's own. */
#ifndef SOFTGEN_CODEC_MPEG2_PAK_H
#define SOFTGEN_CODEC_MPEG2_PAK_H

#include "../../bits/writer.h"
#include "../../mfx/mpeg2/mpeg2.h"

enum mpeg2_pak_error { MPEG2_PAK_FINE, MPEG2_PAK_BAD_TYPE, MPEG2_PAK_FIELDS, MPEG2_PAK_BAD_VECTOR, MPEG2_PAK_BAD_SCALE, MPEG2_PAK_NO_REFERENCE,
                       MPEG2_PAK_ACROSS_ROWS };
enum { MPEG2_EIGHTHS = 8 }; /* of a quantiser's step */

/* MFC_MPEG2_PAK_OBJECT: its dwords from the second on. */
struct mpeg2_object {
    uint32_t dwords[8];
};

struct mpeg2_encoder { /* up to `reciprocals` Python fills it */
    struct mpeg2_slice *slice; /* parameters of the picture */
    struct writer *writer;
    struct picture *source_picture; /* its reference 0 is the source */
    const struct mpeg2_object *objects;
    uint32_t count, next, error; /* error: of object `next` */
    uint32_t x, y; /* of the next macroblock */
    uint32_t no_first_header, intra_slice_flag, intra_slice;
    uint32_t rounding[2][2]; /* [intra, others][DC, AC], in MPEG2_EIGHTHS */
    uint64_t bits; /* of slice data */
    uint16_t reciprocals[2][64]; /* 65536 over the matrices, raster order */
    const struct frame *source;
    struct mpeg2_decoder d;
    uint32_t slice_code, skipped, begun, reserved; /* the quantiser in force, macroblocks that wait to be skipped */
};

/* A macroblock: what is to be written of it. */
struct mpeg2_coded {
    int type; /* macroblock_type */
    int pattern;
    int16_t levels[6][64]; /* in the order of the scan */
};

/* quantise.c: levels of blocks, and what a decoder makes of them in the frame. Non-intra predictions are in the frame already. */
void mpeg2_code_blocks(struct mpeg2_encoder *e, struct mpeg2_coded *c, int intra, unsigned allowed);

/* write.c */
void mpeg2_write_slice_header(struct mpeg2_encoder *e, unsigned row, unsigned code);
void mpeg2_write_macroblock(struct mpeg2_encoder *e, const struct mpeg2_coded *c, unsigned code);
int mpeg2_in_range(const struct mpeg2_encoder *e, int direction);

#endif
