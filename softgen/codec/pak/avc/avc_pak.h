/* H.264 slices to encode: what a macroblock is to be, and the encoder that writes it (sections are those of H.264).
 *
 * The encoder keeps the decoder's state of a picture (mfx/avc/avc.h), so that contexts, predictions and samples are the decoder's own:
 * what it reconstructs is what a decoder makes of the stream. */
#ifndef SOFTGEN_CODEC_AVC_PAK_H
#define SOFTGEN_CODEC_AVC_PAK_H

#include "../../bits/cabac_write.h"
#include "../../mfx/avc/avc.h"

enum { AVC_PARTS = 48, AVC_MOST_LEVEL = 2063 }; /* of a quantiser's step; the largest level that codes of all profiles can express */
enum { AVC_INTRA_PCM_TYPE = 25 };

/* A macroblock, as a search or a command decides. Blocks are in raster order, 4 across. */
struct avc_choice {
    uint8_t kind, intra16_mode, chroma_mode, transform8; /* kind: enum avc_kind */
    uint8_t shape, direct, keep_skip, qp; /* shape as in struct avc_decoder; direct: a bit for each 8x8 block; keep_skip: no conversion to skip */
    uint8_t sub[4], uses[4];
    int8_t modes[16];
    int8_t index[AVC_LISTS][4];
    int16_t vector[AVC_LISTS][16][2];
    uint32_t allowed; /* coded bits: 16 of luma, 4 of Cb, 4 of Cr by coding order, then DC of luma, Cb, Cr; 0: its coefficients are zero */
};

struct avc_encoder { /* up to `reciprocals` Python fills it */
    struct avc_slice *slice;
    struct avc_decoder *d;
    struct writer *writer;
    struct picture *source_picture; /* its reference 0 is the source */
    uint32_t round_intra, round_inter; /* in AVC_PARTS of a step */
    uint32_t end_x, end_y; /* the next slice's first macroblock */
    uint32_t begun, skip_run, macroblocks, qp_sum;
    uint64_t bits; /* of slice data */
    uint16_t reciprocals[4][64]; /* MFX_FQM_STATE by kind */
    const struct frame *source;
    struct frame field_rows; /* of the source */
    uint32_t factors4[6][6][16], factors8[2][6][64]; /* by matrix and QP modulo 6; raster; 27 and 28 fractional bits at QP 0 */
    struct cabac_writer cabac;
    int32_t levels[AVC_BLOCKS][16], levels8[4][64], dc[3][16]; /* in the order of the scan; DC of chroma in raster order */
    int16_t change[AVC_LISTS][16][2]; /* mvd, at the first block of each part */
};

/* quantise.c: the residual of a macroblock: levels, and what a decoder makes of them in the samples */
void avc_quantisers(struct avc_encoder *e);
void avc_code_intra_4x4(struct avc_encoder *e, int block, int mode, const struct avc_edges *edges, uint32_t allowed);
void avc_code_intra_8x8(struct avc_encoder *e, int quarter, int mode, const struct avc_edges *edges, uint32_t allowed);
void avc_code_luma(struct avc_encoder *e, uint32_t allowed);
void avc_code_chroma(struct avc_encoder *e, uint32_t allowed);

/* macroblock.c: samples and syntax of a macroblock */
int avc_encode_macroblock(struct avc_encoder *e, const struct avc_choice *c);
/* What of it is set before its samples: the current macroblock is as `c` says. Motion is as predicted for `c`. */
void avc_apply_choice(struct avc_encoder *e, const struct avc_choice *c);

/* slice.c */
void avc_begin_slice(struct avc_encoder *e);
int avc_next_macroblock(struct avc_encoder *e);

#endif
