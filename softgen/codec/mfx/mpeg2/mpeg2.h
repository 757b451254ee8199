/* MPEG-2 slices, as state.py hands them over, and what the parts of the decoder share. Sections are those of ISO/IEC 13818-2. */
#ifndef SOFTGEN_CODEC_MPEG2_H
#define SOFTGEN_CODEC_MPEG2_H

#include "../../bits/mpeg2_codes.h"
#include "../../codec.h"
#include "../../transform/transform.h"
#include "../../../walk.h"

enum { TOP_FIELD = 1, BOTTOM_FIELD = 2, FRAME_PICTURE = 3 }; /* picture_structure */
enum { I_PICTURE = 1, P_PICTURE = 2, B_PICTURE = 3 };
enum { ONE_FIELD = 1, WHOLE = 2, HALVES = 2, DUAL_PRIME = 3 }; /* motion type: WHOLE in frame, HALVES (16x8) in field pictures */
enum { QUANT = MPEG2_QUANT, FORWARD = MPEG2_FORWARD, BACKWARD = MPEG2_BACKWARD, PATTERN = MPEG2_PATTERN, INTRA = MPEG2_INTRA };
enum { /* error bits (KBL 14027-14050) */
    CONCEALED_MACROBLOCKS = 1 << 0, MISSING_MACROBLOCKS = 1 << 1, PREMATURE_END = 1 << 2, SLICE_OUT_OF_BOUND = 1 << 3,
    MISSING_END_OF_BLOCK = 1 << 5,
};

struct mpeg2_slice {
    struct picture *picture;
    struct bits bits; /* at the first macroblock_address_increment */
    uint8_t matrix[2][64]; /* intra, the others; raster order */
    uint8_t f_code[2][2];
    uint32_t intra_dc_precision, structure, top_field_first, frame_pred_frame_dct, concealment_mv, q_scale_type, intra_vlc, alternate_scan;
    uint32_t type; /* picture_coding_type */
    uint32_t row, quantiser_code;
    uint32_t reserved;
};

/* Where a command has a field: the 64 bits from `dword` on, shifted to the right and masked (FieldPlace of command.py). */
struct mpeg2_place {
    uint32_t dword, shift;
    uint64_t mask;
};

/* Slices of the open picture, executed in a walk over a batch (walked_slices.c). */
struct mpeg2_walked {
    const struct mpeg2_slice *parameters; /* a slice without data */
    uint8_t *room; /* where the data of a slice is copied to, */
    uint64_t room_size; /* with so many bytes and STREAM_PADDING more */
    uint64_t bases; /* MFX_IND_OBJ_BASE_ADDR_STATE: its first dword in struct latches */
    struct mpeg2_place base, upper_bound; /* of that */
    struct mpeg2_place length, start, bit_offset, row, quantiser, last; /* of MFD_MPEG2_BSD_OBJECT; start: from the base on */
    uint64_t nanoseconds; /* of all slices in the walk */
    uint32_t slices; /* how many that were, and those that were begun */
    uint32_t begun; /* the slice under way has been read: what it meets now it meets while it is decoded */
};

/* A macroblock: what prediction needs of it. */
struct mpeg2_motion {
    int modes; /* FORWARD, BACKWARD */
    int type; /* motion type */
    int vector[2][2][2], select[2][2], dual[2]; /* [first or second][forward or backward][x, y]; dual: dmvector */
};

struct mpeg2_decoder {
    struct mpeg2_slice *slice;
    struct bits bits;
    int predictor[2][2][2]; /* PMV */
    int dc[PLANES];
    int scale; /* quantiser_scale */
    int field_dct;
    struct mpeg2_motion motion;
};

/* block.c: a block's coefficients, dequantised; whether it is well formed. */
int mpeg2_intra_block(struct mpeg2_decoder *d, int plane, int16_t out[64]);
int mpeg2_inter_block(struct mpeg2_decoder *d, int16_t out[64]);

/* A coefficient that is not the DC of an intra block, by its level and raster position (7.4.2.3, 7.4.3). */
static inline int16_t mpeg2_dequantised(const struct mpeg2_slice *s, int scale, int intra, int position, int level)
{
    int doubled = intra ? 2 * level : 2 * level + (level > 0) - (level < 0);
    return (int16_t)clamp(doubled * s->matrix[!intra][position] * scale / 32, -2048, 2047);
}

/* motion.c */
int mpeg2_vectors(struct mpeg2_decoder *d, int direction);
void mpeg2_reset_vectors(struct mpeg2_decoder *d);

/* slice.c: quantiser_scale by its code. */
int mpeg2_scale(const struct mpeg2_slice *s, unsigned code);

/* slice.c: a whole slice; entry. */
ENTRY int64_t mpeg2_decode(struct mpeg2_slice *s, void *record);

/* predict.c: whether all references exist. */
int mpeg2_predict(struct mpeg2_decoder *d, unsigned x, unsigned y);

#endif
