/* Contexts of the arithmetic codes of H.264, and what their choice depends on: shared by the decoder and the encoder (9.3.3.1). */
#ifndef SOFTGEN_CODEC_AVC_CABAC_CONTEXTS_H
#define SOFTGEN_CODEC_AVC_CABAC_CONTEXTS_H

#include "avc.h"

enum { /* first contexts (table 9-34) */
    MB_TYPE_I = 3, MB_SKIP_P = 11, MB_TYPE_P = 14, SUB_TYPE_P = 21, MB_SKIP_B = 24, MB_TYPE_B = 27, SUB_TYPE_B = 36, MVD_X = 40, MVD_Y = 47,
    REF_IDX = 54, QP_DELTA = 60, CHROMA_MODE = 64, INTRA_PREDICTED = 68, INTRA_REMAINING = 69, FIELD_FLAG = 70, PATTERN_LUMA = 73,
    PATTERN_CHROMA = 77, TRANSFORM_8X8 = 399,
};
enum { LEFT, ABOVE };
enum { LUMA_DC, LUMA_AC, LUMA_4X4, CHROMA_DC, CHROMA_AC, LUMA_8X8 }; /* ctxBlockCat */

/* The macroblocks at the left and above. */
const struct avc_mb *avc_next_to(const struct avc_decoder *d, int which);
int avc_index_above_zero(const struct avc_decoder *d, struct avc_place p, int list);
int avc_change_at(const struct avc_decoder *d, struct avc_place p, int list, int axis);
int avc_has_chroma_mode(const struct avc_mb *mb);
int avc_without_luma(const struct avc_decoder *d, int x, int y, int so_far);
int avc_chroma_of(const struct avc_mb *mb);

/* cabac_residual.c: first contexts of a block's elements by ctxBlockCat, and how many neighbours have coefficients (A + 2 B). */
extern const uint16_t avc_coded_first[6], avc_significant_first[2][6], avc_last_first[2][6], avc_level_first[6];
int avc_coded_nearby(const struct avc_decoder *d, int category, int plane, int block);

#endif
