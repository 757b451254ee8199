/* HEVC pictures and slices, as state.py hands them over, and what the parts of the decoder share. Sections are those of H.265.
 *
 * Samples have 16 bits in host memory whatever their depth. A picture is parsed and reconstructed block by block; both in-loop filters run
 * over the whole picture when its last slice has been decoded. */
#ifndef SOFTGEN_CODEC_HEVC_H
#define SOFTGEN_CODEC_HEVC_H

#include "../../bits/cabac_avc.h"
#include "../../codec.h"

enum { HEVC_LISTS = 2, HEVC_MOST_INDEX = 16, HEVC_STORES = 8, HEVC_COLUMNS = 20, HEVC_ROWS = 24, HEVC_MOST_CTB = 64 };
enum { HEVC_MOTION_BYTES = 16, HEVC_SCALES = 16 + 64 + 256 + 1024 };
enum { HEVC_B, HEVC_P, HEVC_I };
enum { CU_NONE, CU_INTRA, CU_INTER };
enum { INTRA_PLANAR, INTRA_DC, INTRA_HORIZONTAL = 10, INTRA_VERTICAL = 26, INTRA_DIAGONAL = 34 };
enum { PART_2NX2N, PART_2NXN, PART_NX2N, PART_NXN, PART_2NXNU, PART_2NXND, PART_NLX2N, PART_NRX2N };
enum { /* marks of 4x4 blocks: edges at their left and top, of transform and of prediction blocks; the transform block has coefficients */
    TRANSFORM_LEFT = 1, TRANSFORM_TOP = 2, MOTION_LEFT = 4, MOTION_TOP = 8, HAS_COEFFICIENTS = 16,
};
enum { /* HCP_CABAC_STATUS: the bits that drivers look at are 0x879; which is which no public text says */
    HEVC_BAD_SYNTAX = 1 << 3, HEVC_CONCEALED = 1 << 0,
};

enum context { /* the first of each syntax element */
    SAO_MERGE, SAO_TYPE, SPLIT_CU, TRANSQUANT_BYPASS = SPLIT_CU + 3, CU_SKIP, QP_DELTA = CU_SKIP + 3, PRED_MODE = QP_DELTA + 2, PART_MODE,
    INTRA_MPM = PART_MODE + 4, CHROMA_MODE, MERGE_FLAG, MERGE_INDEX, INTER_LISTS, REFERENCE = INTER_LISTS + 5, VECTOR_0 = REFERENCE + 2,
    VECTOR_1, VECTOR_PREDICTOR, ROOT_CBF, SPLIT_TRANSFORM, CBF_LUMA = SPLIT_TRANSFORM + 3, CBF_CHROMA = CBF_LUMA + 2,
    TRANSFORM_SKIP = CBF_CHROMA + 4, LAST_X = TRANSFORM_SKIP + 2, LAST_Y = LAST_X + 18, SUB_BLOCK = LAST_Y + 18, SIGNIFICANT = SUB_BLOCK + 4,
    GREATER_1 = SIGNIFICANT + 42, GREATER_2 = GREATER_1 + 24, HEVC_CONTEXTS = GREATER_2 + 6,
};

/* Motion of a 4x4 block. */
struct hevc_motion {
    int16_t vector[HEVC_LISTS][2];
    int8_t index[HEVC_LISTS]; /* reference index; negative: the list is not used */
    int8_t store[HEVC_LISTS]; /* frame store that the index names */
};

/* What is known of an 8x8 block while its picture is decoded. */
struct hevc_cu {
    uint8_t kind, skip, depth, exact; /* exact: in-loop filters leave its samples alone */
    int8_t qp;
};

struct hevc_sao {
    uint8_t type[PLANES], place[PLANES]; /* place: the first band, or the direction of edges */
    int16_t offset[PLANES][4];
};

struct hevc_ctb {
    int32_t slice; /* address of the first CTB of its slice; -1: not decoded */
    int8_t beta, tc; /* offsets of the deblocking filter */
    uint8_t unfiltered, across; /* slice_deblocking_filter_disabled_flag, slice_loop_filter_across_slices_enabled_flag */
    struct hevc_sao sao;
};

struct hevc_picture {
    struct picture *picture;
    uint8_t *room; /* hevc_room bytes, zero */
    uint32_t width, height; /* luma samples */
    uint32_t log2_ctb, log2_cu, log2_transform, log2_most_transform, log2_pcm, log2_most_pcm, depth_luma, depth_chroma, pcm_luma, pcm_chroma;
    uint32_t depth_intra, depth_inter, delta_qp_depth, log2_merge;
    uint32_t strong_smoothing, bypass, amp, transform_skip, weighted, weighted_b, tiling, wavefront, sign_hiding, constrained_intra;
    uint32_t pcm_unfiltered, delta_qp, pcm, sao, across_tiles, has_scales;
    int32_t chroma_offset[2];
    uint32_t columns, rows; /* of tiles */
    uint16_t column_start[HEVC_COLUMNS + 1], row_start[HEVC_ROWS + 1]; /* in CTBs; then the picture's end */
    uint16_t reserved[2];
    uint8_t matrix[4][6][64], dc[2][6]; /* by size and kind: intra Y, Cb, Cr, inter; raster. DC of 16x16 and 32x32 */
    uint8_t scale[6][HEVC_SCALES]; /* ScalingFactor (7.4.5) of all sizes, one behind the other */
    const uint8_t *collocated[HEVC_STORES]; /* motion of each frame store, HEVC_MOTION_BYTES for 16x16 samples; may be null */
    uint8_t *motion; /* of this picture; may be null */
    /* places in `room` */
    struct hevc_ctb *ctbs; /* raster */
    struct hevc_cu *cus; /* 8x8 */
    struct hevc_motion *motions; /* 4x4 */
    uint8_t *modes, *marks; /* 4x4: luma intra mode; edges */
    int32_t *to_scan, *to_raster; /* CTB addresses in the order of tiles, and back */
    uint16_t *tiles; /* of CTBs, raster */
    uint16_t *copy; /* samples before SAO, of the largest plane */
    uint32_t across, down; /* CTBs */
    uint32_t cus_across, blocks_across; /* 8x8 and 4x4 blocks of a row */
    int16_t distance[HEVC_STORES]; /* of struct hevc_reference, and whether it is a long-term one, by frame store */
    uint8_t long_term[HEVC_STORES];
    uint32_t filtered, uses_sao; /* filtered: some slice has the deblocking filter */
};

struct hevc_reference {
    int8_t store, long_term;
    int16_t distance; /* order count of the picture less that of the reference, within -128 to 127 */
};

struct hevc_weight {
    int16_t weight[PLANES], offset[PLANES];
};

struct hevc_decoder;

struct hevc_slice {
    struct hevc_picture *hevc;
    uint8_t *data; /* payload: emulation bytes removed */
    uint64_t size, start; /* bytes; where slice data begins */
    uint32_t type, dependent, first_x, first_y, counts[HEVC_LISTS], weight_shift[2];
    int32_t qp, chroma_offset[2], beta, tc;
    uint32_t temporal, collocated, collocated_from_0, low_delay, merge_count, cabac_init, mvd_1_zero, sao_luma, sao_chroma, across;
    uint32_t unfiltered;
    struct hevc_reference list[HEVC_LISTS][HEVC_MOST_INDEX];
    struct hevc_weight weight[HEVC_LISTS][HEVC_MOST_INDEX];
    struct hevc_decoder *decoder; /* progress, and what a dependent slice takes on from the one before */
    uint32_t begun, reserved;
};

/* A prediction block, in luma samples. */
struct hevc_block {
    int x, y, width, height, part;
    int cu_x, cu_y, cu_size, part_mode;
};

struct hevc_decoder {
    struct cabac cabac;
    uint8_t contexts[HEVC_CONTEXTS];
    uint8_t at_second_ctb[HEVC_CONTEXTS], at_slice_end[HEVC_CONTEXTS]; /* stored contexts: of the row above, of the slice before */
    struct hevc_slice *slice;
    struct hevc_picture *hevc;
    int scan; /* the current CTB in the order of tiles */
    int ctb_x, ctb_y, address, slice_address;
    struct hevc_ctb *ctb;
    int qp, group_qp, group_delta, delta_coded; /* luma QP; predicted for the quantisation group; CuQpDeltaVal, IsCuQpDeltaCoded */
    int error, has_stored;
    struct { /* coding unit */
        int x, y, log2, intra, part_mode, bypass, most_depth, chroma_mode, merge;
        int modes[4];
    } cu;
    int16_t coefficients[32 * 32];
    int16_t residual[32 * 32];
    int16_t predicted[HEVC_LISTS][HEVC_MOST_CTB * HEVC_MOST_CTB];
    int16_t rows[(HEVC_MOST_CTB + 7) * HEVC_MOST_CTB]; /* after the horizontal filter */
    uint16_t room[(HEVC_MOST_CTB + 7) * (HEVC_MOST_CTB + 16)]; /* samples of a reference beyond its edge */
};

static inline int hevc_bit(struct hevc_decoder *d, int context)
{
    return cabac_bit(&d->cabac, &d->contexts[context]);
}

static inline uint16_t *hevc_samples(const struct plane *p, int x, int y)
{
    return (uint16_t *)(void *)p->samples + (ptrdiff_t)y * p->stride + x;
}

static inline struct hevc_cu *hevc_cu_at(const struct hevc_picture *p, int x, int y)
{
    return &p->cus[(size_t)(y >> 3) * p->cus_across + (size_t)(x >> 3)];
}

static inline size_t hevc_block_at(const struct hevc_picture *p, int x, int y)
{
    return (size_t)(y >> 2) * p->blocks_across + (size_t)(x >> 2);
}

static inline struct hevc_ctb *hevc_ctb_at(const struct hevc_picture *p, int x, int y)
{
    return &p->ctbs[(size_t)(y >> p->log2_ctb) * p->across + (size_t)(x >> p->log2_ctb)];
}

/* Where a 4x4 block comes among those of its CTB: x and y interleaved. */
static inline unsigned hevc_order(int x, int y)
{
    unsigned v = ((unsigned)x >> 2 & 15) | ((unsigned)y >> 2 & 15) << 16;
    v = (v | v << 2) & 0x00330033;
    v = (v | v << 1) & 0x00550055;
    return (v & 0xFFFF) | v >> 15;
}

/* Whether the block at (x, y) has been decoded before that at (from_x, from_y), which is in the current CTB, and is in the same slice and
 * tile (6.4.1). */
static inline int hevc_available(const struct hevc_decoder *d, int from_x, int from_y, int x, int y)
{
    const struct hevc_picture *p = d->hevc;
    if (x < 0 || y < 0 || x >= (int)p->width || y >= (int)p->height)
        return 0;
    int ctb_x = x >> p->log2_ctb, ctb_y = y >> p->log2_ctb, address = ctb_y * (int)p->across + ctb_x;
    if (address == d->address)
        return hevc_order(x, y) <= hevc_order(from_x, from_y);
    return p->ctbs[address].slice == d->slice_address && p->tiles[address] == p->tiles[d->address] && p->to_scan[address] < d->scan;
}

static inline int hevc_clip(int value, int depth)
{
    return clamp(value, 0, (1 << depth) - 1);
}

static inline int hevc_depth(const struct hevc_picture *p, int component)
{
    return (int)(component ? p->depth_chroma : p->depth_luma);
}

/* tables.c */
extern const uint8_t hevc_context_init[3][HEVC_CONTEXTS];
extern const uint8_t hevc_diagonal[3][64]; /* positions y << 4 | x of up-right diagonal scans of 2, 4 and 8 */
extern const uint8_t hevc_chroma_qp[58];

/* syntax.c */
void hevc_contexts(struct hevc_decoder *d);
void hevc_read_sao(struct hevc_decoder *d);
int hevc_qp_delta(struct hevc_decoder *d);
int hevc_part_mode(struct hevc_decoder *d, int log2);
int hevc_merge_index(struct hevc_decoder *d);
int hevc_inter_lists(struct hevc_decoder *d, int width, int height, int depth);
int hevc_reference_index(struct hevc_decoder *d, int count);
void hevc_vector_difference(struct hevc_decoder *d, int out[2]);
unsigned hevc_bypass_bits(struct hevc_decoder *d, int count);

/* coding_unit.c, transform_unit.c */
void hevc_coding_tree(struct hevc_decoder *d);
void hevc_set_qp(struct hevc_decoder *d);
void hevc_transform_tree(struct hevc_decoder *d);

/* residual.c: the coefficients of a block, transformed and added to its samples */
void hevc_residual(struct hevc_decoder *d, int x, int y, int log2, int component, int mode);

/* intra.c: x and y in samples of the component */
void hevc_intra(struct hevc_decoder *d, int x, int y, int log2, int component, int mode);

/* merge.c, vector.c, temporal.c, predict.c */
void hevc_merge(struct hevc_decoder *d, const struct hevc_block *b, int index, struct hevc_motion *out);
void hevc_predict_vector(struct hevc_decoder *d, const struct hevc_block *b, int list, int index, int choice, int16_t out[2]);
const struct hevc_motion *hevc_neighbour(const struct hevc_decoder *d, const struct hevc_block *b, int x, int y);
int hevc_temporal(const struct hevc_decoder *d, const struct hevc_block *b, int list, int index, int16_t out[2]);
void hevc_scale_vector(int16_t out[2], const int16_t vector[2], int distance, int other);
void hevc_keep_motion(struct hevc_picture *p);
void hevc_inter(struct hevc_decoder *d, const struct hevc_block *b, const struct hevc_motion *m);

/* deblock.c, sao.c: the whole picture */
void hevc_deblock(struct hevc_picture *p);
void hevc_sao(struct hevc_picture *p);

#endif
