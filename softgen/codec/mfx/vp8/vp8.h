/* VP8 pictures, as state.py hands them over, and what the parts of the decoder share. Sections are those of RFC 6386. */
#ifndef SOFTGEN_CODEC_VP8_H
#define SOFTGEN_CODEC_VP8_H

#include "../../bits/bool_coder.h"
#include "../../codec.h"
#include "../../transform/transform.h"

enum { VP8_SEGMENTS = 4, VP8_PARTITIONS = 9, VP8_MB_BYTES = 96, VP8_ABOVE_BYTES = 9 };
enum { INTRA_FRAME, LAST_FRAME, GOLDEN_FRAME, ALTREF_FRAME };
enum { DC_PRED, V_PRED, H_PRED, TM_PRED, B_PRED, ZERO_MV, NEAREST_MV, NEAR_MV, NEW_MV, SPLIT_MV };
enum { B_DC, B_TM, B_VE, B_HE, B_LD, B_RD, B_VR, B_VL, B_HD, B_HU, B_MODES };
enum { VP8_CONCEALED = 1 << 0, VP8_PREMATURE_END = 1 << 2 }; /* error bits, as those of the other standards */

/* A motion vector, in quarters of a luma sample. */
struct vp8_vector {
    int16_t x, y;
};

struct vp8_mb {
    uint8_t mode, uv_mode, reference, segment;
    uint8_t coded; /* it has coefficients */
    uint8_t partitioning; /* of SPLIT_MV */
    uint8_t reserved[10];
    uint8_t sub_modes[16];
    struct vp8_vector vectors[16];
};

struct vp8_picture {
    struct picture *picture;
    struct vp8_mb *mbs; /* with a column to the left and a row above that lie outside */
    uint8_t *above; /* VP8_ABOVE_BYTES for each column: which blocks above have coefficients: 4 of Y, 2 of U, 2 of V, Y2 */
    uint8_t *segments; /* of each macroblock */
    const uint8_t *data[VP8_PARTITIONS];
    uint64_t size[VP8_PARTITIONS];
    uint8_t coefficients[4][8][3][11];
    uint8_t segment_tree[3], skip, intra, last, golden, y_modes[4], uv_modes[3], vectors[2][19]; /* probabilities; vectors: y, x */
    uint8_t reserved[2];
    uint16_t quantisers[VP8_SEGMENTS][3][2]; /* Y, UV, Y2; DC, AC */
    uint8_t levels[VP8_SEGMENTS];
    int8_t reference_delta[4], mode_delta[4];
    uint32_t value, range, used; /* of the boolean decoder where the first macroblock begins */
    uint32_t partitions; /* of coefficients */
    uint32_t key_frame, segmentation, read_segments, skip_enabled, deltas, sharpness, simple_filter, bilinear, full_pixel;
    uint32_t sign_bias[4];
    struct bools header, tokens[VP8_PARTITIONS - 1];
    uint32_t row, broken; /* progress */
};

/* The neighbourhood of coefficients: of the macroblock to the left, as `above`. */
struct vp8_context {
    uint8_t *above;
    uint8_t left[VP8_ABOVE_BYTES];
};

/* tables.c */
extern const uint8_t vp8_key_sub_modes[B_MODES][B_MODES][B_MODES - 1];

/* modes.c: a macroblock's modes and vectors. */
void vp8_modes(struct vp8_picture *p, struct vp8_mb *mb, unsigned x, unsigned y);

/* tokens.c: a macroblock's coefficients, dequantised: 16 of Y, 4 of U, 4 of V, Y2; bits of the blocks that have some. */
uint32_t vp8_tokens(const struct vp8_picture *p, struct bools *b, const struct vp8_mb *mb, struct vp8_context *context, int16_t blocks[25][16]);

/* intra.c */
void vp8_intra_plane(const struct plane *plane, unsigned x, unsigned y, unsigned size, int mode);
void vp8_intra_blocks(const struct plane *plane, unsigned x, unsigned y, const struct vp8_mb *mb, int16_t blocks[25][16], uint32_t coded);

/* predict.c: whether the reference exists. */
int vp8_predict(struct vp8_picture *p, const struct vp8_mb *mb, unsigned x, unsigned y);

/* filter.c */
void vp8_filter(struct vp8_picture *p);

#endif
