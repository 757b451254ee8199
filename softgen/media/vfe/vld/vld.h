/* The MPEG-2 variable length decoder of Gen4.5's front end: a slice as macroblock threads (G45 8790-9050). Sections are those of
 * ISO/IEC 13818-2. */
#ifndef SOFTGEN_MEDIA_VLD_H
#define SOFTGEN_MEDIA_VLD_H

#include "../../../codec/bits/mpeg2_codes.h"

enum { TOP_FIELD = 1, BOTTOM_FIELD = 2, FRAME_PICTURE = 3 }; /* picture_structure */
enum { I_PICTURE = 1, P_PICTURE = 2, B_PICTURE = 3 };
enum { ONE_FIELD = 1, WHOLE = 2, HALVES = 2, DUAL_PRIME = 3 }; /* motion type: WHOLE in frame, HALVES (16x8) in field pictures */
enum { MOST_MACROBLOCKS = 127, BLOCKS = 6, BLOCK_BYTES = 128, RECORD_BYTES = 32, MOST_COLUMN = 127 };
enum { COMPLETE, BAD_CODE, PAST_ROW, PAST_END }; /* why a slice has ended */

/* A thread: its registers from R1 on are `bytes` at `offset`. */
struct vld_thread {
    uint32_t offset, bytes;
    uint32_t index; /* of the macroblock, for the remap table */
    uint32_t x;
};

struct vld_slice {
    struct bits bits; /* from the first macroblock_address_increment on */
    uint8_t f_code[2][2]; /* [forward, backward][horizontal, vertical] */
    uint32_t intra_dc_precision, structure, top_field_first, frame_pred_frame_dct, concealment_mv, q_scale_type, intra_vlc, alternate_scan;
    uint32_t type; /* picture_coding_type */
    uint32_t x, y, macroblocks, quantiser_code; /* of the first macroblock; at most so many */
    uint32_t reserved;
    uint8_t *data; /* room for MOST_MACROBLOCKS threads with all blocks */
    struct vld_thread *threads;
};

struct vld_motion {
    int modes; /* MPEG2_FORWARD, MPEG2_BACKWARD */
    int type;
    int vector[2][2][2], select[2][2], dual[2]; /* [first or second][forward or backward][x, y]; dual: dmvector */
};

struct vld_decoder {
    const struct vld_slice *slice;
    struct bits bits;
    int predictor[2][2][2]; /* PMV */
    int dc[3];
    unsigned quantiser_code, x, count;
    int field_dct;
    struct vld_motion motion;
    uint8_t *to;
    int result; /* why it has ended */
};

/* motion.c */
int vld_vectors(struct vld_decoder *d, int direction);
void vld_reset_vectors(struct vld_decoder *d);
void vld_implied_motion(struct vld_decoder *d, int modes);
void vld_dual_prime(struct vld_decoder *d);

/* record.c: writes R1 of the macroblock, and its index */
void vld_record(struct vld_decoder *d, int intra, int pattern, uint8_t *to);
unsigned vld_index(const struct vld_decoder *d, int intra, int pattern);

#endif
