/* H.264 pictures and slices, as state.py hands them over, and what the parts of the decoder share. Sections are those of H.264.
 *
 * A picture is a frame or a field; its rows are those of the picture. In an MBAFF frame macroblocks lie in memory as those of a frame do,
 * so the bottom macroblock of a pair is one row of macroblocks below the top one, whether the pair has fields or not. */
#ifndef SOFTGEN_CODEC_AVC_H
#define SOFTGEN_CODEC_AVC_H

#include "../../bits/cabac_avc.h"
#include "../../bits/vlc.h"
#include "../../codec.h"

enum { AVC_CONTEXTS = 460, AVC_LISTS = 2, AVC_MOST_INDEX = 32, AVC_BLOCKS = 24 }; /* AVC_BLOCKS: 4x4 blocks of luma, Cb and Cr */
enum { P_SLICE, B_SLICE, I_SLICE };
enum avc_kind { NOT_DECODED, INTRA_4X4, INTRA_8X8, INTRA_16X16, INTRA_PCM, INTER };
enum parity { WHOLE_FRAME, TOP_PARITY, BOTTOM_PARITY };
enum { AVC_MOTION = 64 }; /* bytes that direct prediction needs of a macroblock */
enum { NO_INDEX = -1, NO_PICTURE = -1 };
enum { /* error bits of the variable-length and of the arithmetic decoder (KBL 1425-1522) */
    AVC_CONCEALED = 1 << 0, AVC_BAD_TYPE = 1 << 3, AVC_BAD_PATTERN = 1 << 4, AVC_BAD_COEFFICIENT = 1 << 5, AVC_BAD_INDEX = 1 << 8,
    AVC_BAD_MODE = 1 << 1,
};

/* What is known of a macroblock while its picture is decoded. Blocks are in raster order, 4 across. */
struct avc_mb {
    uint8_t kind, field, skip, transform8, pattern, chroma_mode, direct; /* direct: a bit for each 8x8 block */
    uint8_t dc; /* coded_block_flag of DC: luma, Cb, Cr */
    int8_t qp, filter_alpha, filter_beta, filter;
    uint32_t slice; /* number; 0: none */
    uint8_t count[AVC_BLOCKS]; /* coefficients */
    int8_t modes[16];
    int8_t index[AVC_LISTS][4], picture[AVC_LISTS][4]; /* reference index; 4 * frame store + parity */
    int16_t vector[AVC_LISTS][16][2];
    uint8_t change[AVC_LISTS][16][2]; /* |mvd| */
};

struct avc_reference {
    int8_t store, parity, long_term, reserved;
};

struct avc_weight {
    int16_t luma_weight, luma_offset, cb_weight, cb_offset, cr_weight, cr_offset;
};

struct avc_picture {
    struct picture *picture;
    struct avc_mb *mbs;
    uint32_t width, height; /* in macroblocks, of the picture */
    uint32_t field, bottom, mbaff, cabac, transform8, constrained_intra, inference8, weighted, weighted_b, monochrome;
    int32_t chroma_offset[2];
    int32_t poc[34]; /* top and bottom of each frame store; of the picture */
    uint16_t ids[MOST_REFERENCES]; /* of the pictures in the frame stores */
    uint8_t matrix4[6][16], matrix8[2][64]; /* raster */
    uint32_t scale4[6][52][16], scale8[2][52][64]; /* LevelScale by matrix and QP, with the shift to the left of large QPs (8.5.9) */
    const uint8_t *collocated[MOST_REFERENCES]; /* motion of each frame store, AVC_MOTION bytes a macroblock of the frame; may be null */
    uint8_t *motion; /* of this picture's frame; may be null */
    uint32_t slices, reserved; /* slices: so far */
};

struct avc_decoder;

struct avc_slice {
    struct avc_picture *avc;
    uint8_t *data; /* payload: emulation bytes removed */
    uint64_t size, start; /* bytes; bit at which slice data begins */
    uint32_t type, counts[AVC_LISTS], weight_shift[2], spatial_direct, filter, cabac_init, qp;
    int32_t filter_alpha, filter_beta;
    uint32_t first_x, first_y; /* macroblocks */
    struct avc_reference list[AVC_LISTS][AVC_MOST_INDEX];
    struct avc_weight weight[AVC_LISTS][AVC_MOST_INDEX];
    struct avc_decoder *decoder; /* progress */
    uint32_t begun, reserved;
};

/* A macroblock beside the current one, and a sample of it. */
struct avc_place {
    const struct avc_mb *mb; /* null: not available */
    int x, y;
};

struct avc_decoder {
    struct avc_slice *slice;
    struct avc_picture *avc;
    struct bits bits;
    struct cabac cabac;
    uint8_t contexts[AVC_CONTEXTS];
    unsigned x, y; /* the current macroblock */
    struct avc_mb *mb;
    const struct avc_mb *beside[4]; /* A, B, C, D: macroblocks, or top macroblocks of pairs; null: not available */
    int field, type; /* of the current macroblock: field_decoding_flag; slice type */
    int qp, last_delta, number; /* number: the slice's */
    int skip_run, skip_read, skip_next; /* mb_skip_run and whether it was read; in MBAFF: mb_skip_flag of the bottom macroblock + 1 */
    int field_read; /* mb_field_decoding_flag of the pair is known */
    uint32_t error;
    struct { /* the macroblock's syntax */
        int intra16_mode, sub[4], shape; /* mb_part shape: 0 16x16, 1 16x8, 2 8x16, 3 8x8 */
        int uses[4]; /* lists of each 8x8 block, as bits */
        int first_only; /* P_8x8ref0 */
    } now;
    int32_t coefficients[AVC_BLOCKS][16];
    int32_t dc[3][16];
    uint8_t *samples[PLANES]; /* of the current macroblock */
    ptrdiff_t stride[PLANES];
};

/* tables */
extern const struct vlc_code avc_coeff_token[4][62], avc_total_zeros[15][16], avc_chroma_zeros[3][4], avc_run_before[7][15];
extern const uint8_t avc_pattern[2][48], avc_luma_pattern[2][16];
extern const int8_t avc_context_init[4][AVC_CONTEXTS][2];
extern const uint8_t avc_significant_8x8[2][63], avc_last_8x8[63];
extern const uint8_t avc_scan4[2][16], avc_scan8[2][64]; /* raster positions in frame and field macroblocks */
extern const uint8_t avc_block_x[16], avc_block_y[16]; /* of 4x4 blocks in coding order, in blocks */
extern const uint8_t avc_chroma_qp[52];
extern const uint8_t avc_b_parts[9][2], avc_b_sub[13][2]; /* lists of the parts of B macroblocks; shapes and lists of sub-macroblocks */

static inline int avc_raster(int block)
{
    return 4 * avc_block_y[block] + avc_block_x[block];
}

static inline int is_intra(const struct avc_mb *mb)
{
    return mb->kind < INTER;
}

static inline int chroma_qp(const struct avc_picture *p, int qp, int plane)
{
    return avc_chroma_qp[clamp(qp + p->chroma_offset[plane], 0, 51)];
}

/* neighbours.c */
void avc_enter(struct avc_decoder *d, unsigned x, unsigned y);
struct avc_place avc_neighbour(const struct avc_decoder *d, int x, int y, int width, int height);
static inline struct avc_place avc_luma(const struct avc_decoder *d, int x, int y)
{
    if ((x | y) >= 0 && x < 16 && y < 16)
        return (struct avc_place){d->mb, x, y};
    return avc_neighbour(d, x, y, 16, 16);
}

/* cavlc.c, cabac.c, cabac_residual.c: syntax elements; negative: no such code */
int cavlc_block(struct avc_decoder *d, int plane, int block, const uint8_t *scan, const uint32_t *scale, int shift, int first, int most,
                int32_t *out);
int cavlc_dc(struct avc_decoder *d, int plane);
int cabac_skip(struct avc_decoder *d);
int cabac_field(struct avc_decoder *d);
int cabac_mb_type(struct avc_decoder *d);
int cabac_sub_type(struct avc_decoder *d);
int cabac_index(struct avc_decoder *d, int list, int quarter);
int cabac_change(struct avc_decoder *d, int list, int x, int y, int axis);
int cabac_intra_mode(struct avc_decoder *d);
int cabac_chroma_mode(struct avc_decoder *d);
int cabac_pattern(struct avc_decoder *d);
int cabac_qp_delta(struct avc_decoder *d);
int cabac_transform8(struct avc_decoder *d);
int cabac_block(struct avc_decoder *d, int category, int plane, int block, const uint8_t *scan, const uint32_t *scale, int shift, int first,
                int most, int32_t *out);
void cabac_contexts(struct avc_decoder *d);

/* cavlc.c: coefficients of the blocks at the left and above (nC) */
int avc_nearby_count(const struct avc_decoder *d, int plane, int x, int y);

/* residual.c: all blocks of a macroblock; whether they are well formed */
int avc_residual(struct avc_decoder *d);
void avc_scales(struct avc_picture *p);
void avc_scale_luma_dc(struct avc_decoder *d);
void avc_scale_chroma_dc(struct avc_decoder *d, int plane);
unsigned avc_weight4(int qp, int at); /* normAdjust of a raster position */
unsigned avc_weight8(int qp, int at);
extern uint8_t avc_interleaved[2][4][16]; /* 8x8 scans of variable-length codes, by parity of the field flag and block */

/* macroblock.c */
int avc_macroblock(struct avc_decoder *d);
void avc_skipped(struct avc_decoder *d);
int avc_is_coarse(const struct avc_decoder *d);
void avc_begin_mb(struct avc_decoder *d);
int avc_predicted_mode(const struct avc_decoder *d, int block);

/* motion.c */
int avc_motion(struct avc_decoder *d);
void avc_skip_motion(struct avc_decoder *d);
void avc_set_pictures(struct avc_decoder *d);
const struct avc_reference *avc_reference(const struct avc_decoder *d, int list, int index, struct avc_reference *room);
struct avc_place_motion {
    int index; /* NO_INDEX: not used; -2: not available */
    int vector[2];
};
struct avc_place_motion avc_beside(const struct avc_decoder *d, struct avc_place place, int list);
int avc_spatial(struct avc_decoder *d, int list, int vector[2]);
void avc_predict_vector(struct avc_decoder *d, int list, int index, int x, int y, int width, int out[2]);

void avc_predict_half(struct avc_decoder *d, int list, int index, int x, int y, int shape, int out[2]);

/* direct.c */
void avc_direct(struct avc_decoder *d, unsigned quarters);
/* How far the picture is between two references, in 256ths; 0: they are equally far, or one of them is long-term (8.4.1.2.3). */
int avc_distance_scale(const struct avc_decoder *d, const struct avc_reference *first, const struct avc_reference *second, int *scale);
void avc_keep_motion(struct avc_picture *p);
int avc_poc(const struct avc_picture *p, const struct avc_reference *r);
int avc_own_poc(const struct avc_decoder *d);

/* predict.c, interpolate.c, intra.c, reconstruct.c */
int avc_inter(struct avc_decoder *d);
void avc_luma_prediction(const struct avc_decoder *d, const struct frame *f, int x, int y, int width, int height, const int16_t vector[2],
                         uint8_t *to);
void avc_interpolate(uint8_t *to, ptrdiff_t to_stride, const uint8_t *from, ptrdiff_t stride, int fx, int fy, int width, int height);
void avc_interpolate_chroma(uint8_t *to, ptrdiff_t to_stride, const uint8_t *from, ptrdiff_t stride, int fx, int fy, int width, int height);
void avc_average(uint8_t *to, ptrdiff_t stride, const uint8_t *other, int width, int height);
void avc_mix(uint8_t *to, ptrdiff_t stride, const uint8_t *other, int weight, int width, int height);
void avc_intra_4x4(uint8_t *to, ptrdiff_t stride, int mode, int left, int top, int corner, int right);
void avc_intra_8x8(uint8_t *to, ptrdiff_t stride, int mode, int left, int top, int corner, int right);
void avc_intra_16x16(uint8_t *to, ptrdiff_t stride, int mode, int left, int top);
void avc_intra_chroma(uint8_t *to, ptrdiff_t stride, int mode, const int left[2], int top);
int avc_reconstruct(struct avc_decoder *d);
void avc_add_residual(struct avc_decoder *d);

/* Which samples beside the current macroblock intra prediction may use; those at the left for its upper and lower half. */
struct avc_edges {
    int left[2], top, corner, right;
};
struct avc_edges avc_edges_of(const struct avc_decoder *d);
int avc_has_samples(int mode, int left, int top, int corner);

/* filter.c */
void avc_filter(struct avc_picture *p);

#endif
