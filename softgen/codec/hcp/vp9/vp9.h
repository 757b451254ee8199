/* VP9 pictures, as state.py hands them over, and what the parts of the decoder share. Sections are those of the VP9 specification. */
#ifndef SOFTGEN_CODEC_VP9_H
#define SOFTGEN_CODEC_VP9_H

#include "../../bits/bool_coder.h"
#include "../../codec.h"
#include "../../transform/transform.h"

enum { VP9_MODES = 10, VP9_SEGMENTS = 8, VP9_REFERENCES = 3, VP9_MOTION_BYTES = 9, VP9_PROBABILITY_BYTES = 2048 };
enum { MOST_TILE_COLUMNS = 64, MOST_TILE_ROWS = 4, SUPERBLOCK = 8 /* units of 8x8 samples */ };
enum vp9_reference { NO_SECOND = -1, VP9_INTRA, VP9_LAST, VP9_GOLDEN, VP9_ALTREF };
enum vp9_block_size { BLOCK_4X4, BLOCK_4X8, BLOCK_8X4, BLOCK_8X8, BLOCK_64X64 = 12, BLOCK_SIZES };
enum vp9_transform_size { TX_4X4, TX_8X8, TX_16X16, TX_32X32, TX_SELECT };
enum vp9_mode { DC_MODE, V_MODE, H_MODE, D45_MODE, D135_MODE, D117_MODE, D153_MODE, D207_MODE, D63_MODE, TM_MODE,
                NEAREST_MODE, NEAR_MODE, ZERO_MODE, NEW_MODE };
enum vp9_filter { FILTER_REGULAR, FILTER_SMOOTH, FILTER_SHARP, FILTER_BILINEAR, FILTER_SWITCHABLE, FILTER_CONTEXTS = 4 };
enum vp9_compound { SINGLE, COMPOUND, COMPOUND_SELECT };
enum { VP9_HEADER_ERROR = 1 << 0, VP9_PREMATURE_END = 1 << 3, VP9_CONCEALED = 1 << 4 }; /* HCP_CABAC_STATUS */

/* In eighths of a luma sample. */
union vp9_vector {
    struct {
        int16_t y, x;
    };
    uint32_t both;
};

/* The buffer that drivers fill and read: its layout is theirs. */
struct vp9_probabilities {
    uint8_t tx_8[2][1], tx_16[2][2], tx_32[2][3], reserved[52];
    uint8_t coefficients[4][2][2][99]; /* of a band 6 contexts, of the first 3 */
    uint8_t reserved2[16], skip[3];
    uint8_t inter_mode[7][3], filter[4][2], inter[4], compound[5], single[5][2], compound_reference[5], y_mode[4][9], partition[16][3];
    uint8_t joint[3];
    struct {
        uint8_t sign, classes[10], class0, bits[10];
    } component[2];
    struct {
        uint8_t class0[2][3], other[3];
    } fraction[2];
    struct {
        uint8_t class0, other;
    } eighth[2];
    uint8_t reserved3[47];
    uint8_t uv_mode[10][9], segment_tree[7], segment_predicted[3], reserved4[28];
};

struct vp9_counts {
    uint32_t tx_8[2][2], tx_16[2][3], tx_32[2][4];
    uint32_t coefficients[4][2][2][36][4]; /* zero, one, more, none */
    uint32_t more[4][2][2][36]; /* how often it was asked whether there are more */
    uint32_t skip[3][2], inter_mode[7][4], filter[4][3], inter[4][2], compound[5][2], single[5][2][2], compound_reference[5][2];
    uint32_t y_mode[4][10], uv_mode[10][10], partition[16][4], joint[4];
    struct {
        uint32_t sign[2], classes[11], class0[2], bits[10][2], class0_fraction[2][4], fraction[4], class0_eighth[2], eighth[2];
    } component[2];
};

/* A block of the partition. */
struct vp9_block {
    uint8_t size, segment, skip, tx;
    int8_t reference[2]; /* enum vp9_reference */
    uint8_t filter, mode, uv_mode, segment_predicted;
    uint8_t level; /* of the loop filter */
    uint8_t reserved;
    uint8_t sub_modes[4]; /* of its four 4x4 luma blocks, or all the same */
    union vp9_vector vectors[4][2];
};

/* Motion of 8x8 samples, as it is kept for the next picture. */
struct vp9_motion {
    union vp9_vector vectors[2];
    uint8_t references; /* two nibbles; 0: none */
} __attribute__((packed));

struct vp9_reference_picture {
    struct surface surface;
    struct frame frame; /* widths and heights: its own */
    uint32_t scale[2], step[2]; /* x, y: in 1/16384; sixteenths of a sample */
    uint64_t *areas; /* as those of struct reference */
    uint32_t state; /* enum reference_state */
    uint32_t is_scaled;
};

struct vp9_segment {
    uint32_t skip, has_reference, reference;
    uint8_t levels[4][2]; /* of the loop filter, by reference and whether the block has motion */
    uint32_t scale[2][2]; /* luma, chroma; DC, AC */
};

struct vp9_tile {
    struct bools bools;
    uint32_t first_column, end_column;
};

struct vp9_picture {
    struct picture *picture;
    uint8_t *data;
    uint64_t size;
    struct vp9_block *blocks; /* one for each 8x8 */
    struct vp9_block **grid; /* the block that has each 8x8; null: none yet */
    struct vp9_motion *motion, *earlier; /* own, of the previous picture; null */
    uint8_t *segments, *earlier_segments; /* of each 8x8 */
    uint8_t *above_nonzero[PLANES]; /* of each column of 4 samples */
    uint8_t *above_partition; /* of each column of 8 samples */
    struct vp9_probabilities *probabilities;
    struct vp9_counts *counts;
    struct vp9_reference_picture references[VP9_REFERENCES];
    struct vp9_segment segment[VP9_SEGMENTS];
    uint32_t width, height; /* luma samples */
    uint32_t header_bytes, depth;
    uint32_t intra_only, lossless, segmentation, update_map, temporal_update, level, sharpness, filter, high_precision, refresh, adapt;
    uint32_t after_key, sign_bias[4], tile_rows, tile_columns; /* log2 */
    uint32_t first_tile, end_tile; /* columns of tiles that this host thread decodes */
    uint32_t divided; /* among host threads, which have their own copies of this structure */
    uint32_t next_row, *filtered; /* of the first copy: the next row of superblocks to filter; superblocks that were filtered, by row */
    /* from here on C's own */
    uint32_t columns, rows; /* in units of 8x8 */
    uint32_t tx_mode, compound, fixed_reference, variable_reference[2];
    struct vp9_probabilities before;
    uint8_t left_nonzero[PLANES][16], left_partition[SUPERBLOCK];
    struct vp9_tile tiles[MOST_TILE_COLUMNS], *tile;
    uint32_t row, tile_row, broken, phase; /* progress */
    uint32_t reach; /* of the coefficients of a block: their positions, or'ed */
    int32_t coefficients[32 * 32];
};

/* Arguments of entries. */
struct vp9_load {
    struct vp9_picture *picture;
    uint32_t first, step; /* of its references, each `step`th */
};

struct vp9_join {
    struct vp9_picture *picture, *part;
};

/* Where a block is decoded. */
struct vp9_place {
    struct vp9_block *block;
    const struct vp9_block *above, *left; /* null where there is none */
    unsigned x, y; /* in units of 8x8 */
    unsigned width, height; /* of the block within the picture, in units of 8x8 */
};

static inline unsigned log2_width(unsigned size) /* of 4 samples */
{
    return "\0\0\1\1\1\2\2\2\3\3\3\4\4"[size];
}

static inline unsigned log2_height(unsigned size)
{
    return "\0\1\0\1\2\1\2\3\2\3\4\3\4"[size];
}

static inline unsigned units_across(unsigned size)
{
    return size < BLOCK_8X8 ? 1 : 1u << log2_width(size) >> 1;
}

static inline unsigned units_down(unsigned size)
{
    return size < BLOCK_8X8 ? 1 : 1u << log2_height(size) >> 1;
}

static inline int is_inter(const struct vp9_block *b)
{
    return b->reference[0] > VP9_INTRA;
}

static inline int is_compound(const struct vp9_block *b)
{
    return b->reference[1] > VP9_INTRA;
}

static inline unsigned largest_transform(unsigned size)
{
    unsigned w = log2_width(size), h = log2_height(size), least = w < h ? w : h;
    return least > TX_32X32 ? TX_32X32 : least;
}

static inline unsigned chroma_transform(const struct vp9_block *b)
{
    unsigned most = b->size < BLOCK_8X8 ? 0 : largest_transform(b->size) - (b->size != BLOCK_64X64);
    return b->tx < most ? b->tx : most;
}

static inline uint16_t *samples_at(const struct plane *p, unsigned x, unsigned y)
{
    return (uint16_t *)(void *)p->samples + (size_t)y * p->stride + x;
}

/* tables.c */
extern const uint8_t vp9_key_modes[VP9_MODES][VP9_MODES][VP9_MODES - 1];
extern const int16_t *const vp9_scans[4][4];
extern const int16_t vp9_filters[4][16][8];
void vp9_tail(uint8_t probability, uint8_t tail[8]);

/* trees.c */
extern const int8_t vp9_mode_tree[], vp9_segment_tree[], vp9_inter_mode_tree[], vp9_partition_tree[], vp9_filter_tree[], vp9_joint_tree[],
    vp9_class_tree[], vp9_fraction_tree[];

/* header.c: whether the compressed header is legal. */
int vp9_header(struct vp9_picture *p);

/* adapt.c */
void vp9_adapt(struct vp9_picture *p);

/* modes.c */
void vp9_modes(struct vp9_picture *p, struct bools *b, const struct vp9_place *at);

/* contexts.c: contexts of how blocks refer to pictures */
unsigned vp9_inter_context(const struct vp9_place *at);
unsigned vp9_compound_context(const struct vp9_picture *p, const struct vp9_place *at);
unsigned vp9_compound_reference_context(const struct vp9_picture *p, const struct vp9_place *at);
unsigned vp9_last_context(const struct vp9_place *at);
unsigned vp9_golden_context(const struct vp9_place *at);

/* vectors.c: the modes and vectors of a block that refers to other pictures. */
void vp9_vectors(struct vp9_picture *p, struct bools *b, const struct vp9_place *at);

/* tokens.c: coefficients of a transform block, dequantised; how many there are. */
unsigned vp9_tokens(struct vp9_picture *p, struct bools *b, const struct vp9_block *block, int plane, unsigned tx, unsigned type, unsigned context);

/* intra.c: (x, y) in samples of the plane. */
struct vp9_edges {
    unsigned x, y, has_above, has_left, has_right;
};
void vp9_intra(const struct vp9_picture *p, int plane, unsigned tx, int mode, const struct vp9_edges *edges);

/* predict.c: whether the references exist. */
int vp9_predict(struct vp9_picture *p, const struct vp9_place *at);
const struct frame *vp9_reference(struct vp9_picture *p, int index);

/* reconstruct.c: samples of a block whose modes are known. */
void vp9_reconstruct(struct vp9_picture *p, struct bools *b, const struct vp9_place *at);

/* filter.c: the loop filter of a row of superblocks, behind that of the row above if that is another thread's. */
void vp9_filter(struct vp9_picture *p, unsigned row);

/* edges.c: edges of 8 samples: across (vertical) or down. */
struct vp9_limits {
    int edge, inner, variance, shift;
};
void vp9_filter_edge(uint16_t *at, ptrdiff_t along, ptrdiff_t across, int width, const struct vp9_limits *limits);

#endif
