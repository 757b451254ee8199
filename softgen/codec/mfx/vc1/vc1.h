/* VC-1 pictures, as state.py hands them over, and what the parts of the decoder share. Sections are those of SMPTE 421M. */
#ifndef SOFTGEN_CODEC_VC1_H
#define SOFTGEN_CODEC_VC1_H

#include "../../bits/reader.h"
#include "../../codec.h"
#include "../../transform/transform.h"
#include "codes.h"

enum { VC1_BLOCKS = 6, VC1_MB_BYTES = 256, VC1_MOTION_BYTES = 4 };
enum vc1_picture_type { VC1_I, VC1_P, VC1_B, VC1_BI };
enum vc1_mv_mode { MIXED_MV, ONE_MV, HALF_PEL, HALF_PEL_BILINEAR };
enum { /* bits of a macroblock's bit planes */
    PLANE_DIRECT = 1, PLANE_SKIP = 2, PLANE_MIXED = 4, PLANE_AC_PREDICTION = 2, PLANE_OVERLAP = 4,
};
enum vc1_overlap { OVERLAP_NONE, OVERLAP_ALL, OVERLAP_SELECTED, OVERLAP_INTRA };
enum vc1_quantisers { ONE_QUANTISER, EDGES, DIFFERENCES, TWO_QUANTISERS };
enum { VC1_CONCEALED = 1 << 0, VC1_PREMATURE_END = 1 << 2, VC1_BAD_CODE = 1 << 5 }; /* error bits, as those of the other standards */

struct vc1_mb {
    int16_t dc[VC1_BLOCKS], ac[VC1_BLOCKS][2][8]; /* quantised; the first column, the first row */
    int16_t vectors[2][4][2]; /* [forward, backward][block][x, y], in quarters of a sample */
    int16_t chroma[2]; /* the forward vector of chroma */
    uint32_t coded; /* 4 bits for each block: its 4x4 parts, the first highest */
    int8_t quantiser; /* negative: not the picture's, so without its half step */
    uint8_t intra, pattern; /* bits of blocks */
    uint8_t overlap; /* OVERFLAGS */
    uint8_t transforms[8];
};

struct vc1_picture {
    struct picture *picture;
    struct vc1_mb *mbs;
    int16_t *samples[PLANES]; /* of intra blocks before overlap smoothing, which are those of the frame less 128; null: there is none */
    const uint8_t *planes; /* bit planes of each macroblock */
    const int16_t (*direct)[2]; /* vectors of the backward reference's macroblocks, or null */
    int16_t (*motion)[2]; /* the same of this picture, or null */
    uint8_t *slice_start; /* of each row of macroblocks */
    uint8_t lut[2][2][256]; /* [forward, backward][luma, chroma]: samples of references, where `mapped` */
    uint32_t mapped[2];
    uint32_t edge[2]; /* luma samples of references, beyond which the last one is repeated */
    uint32_t type, advanced, rounding, mode, range, fast_chroma; /* range: of vectors */
    uint32_t quantiser, alternative, half_step, uniform, implicit, quantisers, edges;
    uint32_t overlap, loop_filter, b_fraction;
    uint32_t raw_skip, raw_mixed, raw_direct, raw_overlap, raw_ac_prediction;
    uint32_t vector_table, pattern_table, luma_set, chroma_set, dc_table;
    uint32_t frame_transform, transform; /* whether there is one for all, and which: 8x8, 8x4, 4x8, 4x4 */
    uint32_t reserved;
};

struct vc1_slice {
    struct vc1_picture *picture;
    struct bits bits;
    struct vc1_escape escape;
    uint32_t first, row, end; /* rows of macroblocks */
    uint32_t reserved;
};

/* A slice while it is decoded: the macroblock at (x, y), and those beside it in the slice or null. */
struct vc1_decoder {
    struct vc1_picture *p;
    struct vc1_slice *slice;
    struct bits *bits;
    struct vc1_mb *mb, *left, *above, *corner;
    unsigned x, y, intra_set, inter_set, step; /* step: which tables the quantiser selects */
    int ac_prediction;
};

/* block.c: a block's coefficients, dequantised, in raster order; whether it is well formed. */
int vc1_intra_block(struct vc1_decoder *d, int block, int coded, int16_t out[64]);
int vc1_has_neighbours(const struct vc1_decoder *d, int block); /* that an intra block is predicted from */
/* Adds a block's residual to the picture. `macroblock_type`: TTMB, or -1 where the block says it. */
int vc1_inter_block(struct vc1_decoder *d, int block, int macroblock_type, int first);

/* macroblock.c: whether it is well formed. */
int vc1_macroblock(struct vc1_decoder *d);

/* motion.c */
int vc1_read_difference(struct vc1_decoder *d, int difference[2], int *coded, int *intra);
void vc1_predict_vector(struct vc1_decoder *d, int block, int whole, const int difference[2]);
void vc1_direct_vectors(struct vc1_decoder *d);
void vc1_predict_b_vector(struct vc1_decoder *d, int direction, const int difference[2]);

/* predict.c: whether the references exist. */
int vc1_predict_whole(struct vc1_decoder *d, int direction, int average);
int vc1_predict_luma_block(struct vc1_decoder *d, int block);
int vc1_predict_four_chroma(struct vc1_decoder *d);

/* overlap.c, filter.c: of a whole picture. */
void vc1_smooth_overlaps(struct vc1_picture *p);
void vc1_loop_filter(struct vc1_picture *p);

static inline uint8_t *vc1_place(const struct vc1_decoder *d, int block, size_t *stride)
{
    const struct plane *plane = &d->p->picture->frame.plane[block < 4 ? 0 : block - 3];
    size_t size = block < 4 ? 16 : 8, x = block < 4 ? 8 * (block & 1) : 0, y = block < 4 ? 4 * (block & 2) : 0;
    *stride = plane->stride;
    return plane->samples + (d->y * size + y) * plane->stride + d->x * size + x;
}

#endif
