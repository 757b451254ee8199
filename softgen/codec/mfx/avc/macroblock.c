/* The syntax of a macroblock (7.3.5): its type, predictions, pattern and QP, in either kind of codes. */
#include <string.h>

#include "avc.h"

enum { LIST0 = 1, LIST1 = 2, BOTH = 3, SHAPE_8X8 = 3, FIRST_B_INTRA = 23, FIRST_P_INTRA = 5, PCM_TYPE = 25, PCM_BYTES = 384 };
enum { ALL_DIRECT = 31 };

/* Lists of the two parts of B macroblocks 4 to 21, by pairs of types (table 7-14). */
const uint8_t avc_b_parts[9][2] = {{LIST0, LIST0}, {LIST1, LIST1}, {LIST0, LIST1}, {LIST1, LIST0}, {LIST0, BOTH},
                                      {LIST1, BOTH},  {BOTH, LIST0},  {BOTH, LIST1},  {BOTH, BOTH}};
/* Shape and lists of sub-macroblocks of B slices (table 7-18); shapes: 8x8, 8x4, 4x8, 4x4. */
const uint8_t avc_b_sub[13][2] = {{0, 0},     {0, LIST0}, {0, LIST1}, {0, BOTH}, {1, LIST0}, {2, LIST0}, {1, LIST1},
                                     {2, LIST1}, {1, BOTH},  {2, BOTH},  {3, LIST0}, {3, LIST1}, {3, BOTH}};

static int failed(struct avc_decoder *d, uint32_t error)
{
    d->error |= error;
    return 0;
}

static void clear(struct avc_mb *mb, uint32_t slice, int field)
{
    memset(mb, 0, sizeof *mb);
    memset(mb->index, NO_INDEX, sizeof mb->index);
    memset(mb->picture, NO_PICTURE, sizeof mb->picture);
    mb->slice = slice;
    mb->field = (uint8_t)field;
}

/* The current macroblock, of which nothing is known yet. */
void avc_begin_mb(struct avc_decoder *d)
{
    struct avc_mb *mb = d->mb;
    clear(mb, (uint32_t)d->number, d->field);
    mb->filter = (uint8_t)d->slice->filter;
    mb->filter_alpha = (int8_t)d->slice->filter_alpha;
    mb->filter_beta = (int8_t)d->slice->filter_beta;
    mb->qp = (int8_t)d->qp;
    memset(&d->now, 0, sizeof d->now);
}

/* -- intra ---------------------------------------------------------------------------------------------------------- */

/* The mode that a block's neighbour gives; -1: there is none, so that DC is predicted (8.3.1.1). */
static int neighbour_mode(const struct avc_decoder *d, int x, int y)
{
    struct avc_place p = avc_luma(d, x, y);
    if (!p.mb || (!is_intra(p.mb) && d->avc->constrained_intra))
        return -1;
    if (p.mb->kind != INTRA_4X4 && p.mb->kind != INTRA_8X8)
        return 2;
    return p.mb->modes[(p.y >> 2) * 4 + (p.x >> 2)];
}

/* The mode that is predicted for a block. */
int avc_predicted_mode(const struct avc_decoder *d, int block)
{
    int x = avc_block_x[block], y = avc_block_y[block], a = neighbour_mode(d, 4 * x - 1, 4 * y), b = neighbour_mode(d, 4 * x, 4 * y - 1);
    return a < 0 || b < 0 ? 2 : a < b ? a : b;
}

static void read_mode(struct avc_decoder *d, int block, int size)
{
    int x = avc_block_x[block], y = avc_block_y[block], predicted = avc_predicted_mode(d, block);
    int rest = d->avc->cabac ? cabac_intra_mode(d) : bits_read(&d->bits, 1) ? -1 : (int)bits_read(&d->bits, 3);
    int mode = rest < 0 ? predicted : rest + (rest >= predicted);
    for (int i = 0; i < size * size; i++)
        d->mb->modes[(y + i / size) * 4 + x + i % size] = (int8_t)mode;
}

static int intra_modes(struct avc_decoder *d)
{
    if (d->mb->kind == INTRA_4X4)
        for (int i = 0; i < 16; i++)
            read_mode(d, i, 1);
    if (d->mb->kind == INTRA_8X8)
        for (int i = 0; i < 16; i += 4)
            read_mode(d, i, 2);
    if (d->avc->monochrome)
        return 1;
    uint32_t mode = d->avc->cabac ? (uint32_t)cabac_chroma_mode(d) : bits_ue(&d->bits);
    d->mb->chroma_mode = (uint8_t)mode;
    return mode < 4 || failed(d, AVC_BAD_MODE);
}

static int pcm(struct avc_decoder *d)
{
    uint64_t at = d->avc->cabac ? cabac_position(&d->cabac) : (d->bits.at + 7) >> 3, size = d->avc->monochrome ? 256 : PCM_BYTES;
    if (at + size > d->slice->size)
        return failed(d, AVC_BAD_TYPE);
    const uint8_t *from = d->slice->data + at;
    for (int i = 0; i < (d->avc->monochrome ? 1 : PLANES); i++)
        for (int y = 0, n = i ? 8 : 16; y < n; y++, from += n)
            memcpy(d->samples[i] + y * d->stride[i], from, (size_t)n);
    memset(d->mb->count, 16, sizeof d->mb->count);
    d->mb->qp = 0;
    d->mb->dc = 7;
    d->mb->pattern = 0x2f;
    d->last_delta = 0;
    if (d->avc->cabac)
        cabac_start(&d->cabac, d->slice->data, d->slice->size, at + size);
    else
        d->bits.at = 8 * (at + size);
    return 1;
}

/* -- inter ---------------------------------------------------------------------------------------------------------- */

static int sub_types(struct avc_decoder *d)
{
    for (int i = 0; i < 4; i++) {
        uint32_t type = d->avc->cabac ? (uint32_t)cabac_sub_type(d) : bits_ue(&d->bits);
        if (type > (d->type == P_SLICE ? 3 : 12))
            return failed(d, AVC_BAD_TYPE);
        d->now.sub[i] = d->type == P_SLICE ? (int)type : avc_b_sub[type][0];
        d->now.uses[i] = d->type == P_SLICE ? LIST0 : avc_b_sub[type][1];
        d->mb->direct |= (uint8_t)(!d->now.uses[i] << i);
    }
    if (d->mb->direct)
        avc_direct(d, d->mb->direct);
    return 1;
}

static void parts(struct avc_decoder *d, int shape, int first, int second)
{
    d->now.shape = shape;
    for (int i = 0; i < 4; i++)
        d->now.uses[i] = (shape == 1 ? i >> 1 : shape == 2 ? i & 1 : 0) ? second : first;
}

/* A macroblock of a P or B slice that is not intra; whether sub-macroblocks let an 8x8 transform be. */
static int inter_types(struct avc_decoder *d, int type)
{
    if (d->type == P_SLICE) {
        parts(d, type < 3 ? type : SHAPE_8X8, LIST0, LIST0);
        d->now.first_only = type == 4;
        return type < 3 || sub_types(d);
    }
    if (!type) {
        d->mb->direct = ALL_DIRECT;
        d->now.shape = SHAPE_8X8;
        avc_direct(d, 15);
        return 1;
    }
    if (type == 22) {
        d->now.shape = SHAPE_8X8;
        return sub_types(d);
    }
    if (type < 4)
        parts(d, 0, type, type);
    else
        parts(d, 1 + (type & 1), avc_b_parts[(type - 4) >> 1][0], avc_b_parts[(type - 4) >> 1][1]);
    return 1;
}

/* Whether no part is smaller than the 8x8 transform. */
int avc_is_coarse(const struct avc_decoder *d)
{
    for (int i = 0; i < 4; i++)
        if (d->now.sub[i] || (d->mb->direct >> i & 1 && !d->avc->inference8))
            return 0;
    return 1;
}

/* -- both ----------------------------------------------------------------------------------------------------------- */

static int read_pattern(struct avc_decoder *d)
{
    uint32_t limit = d->avc->monochrome ? 16 : 48, code;
    if (d->avc->cabac) {
        d->mb->pattern = (uint8_t)cabac_pattern(d);
        return 1;
    }
    code = bits_ue(&d->bits);
    if (code >= limit)
        return failed(d, AVC_BAD_PATTERN);
    d->mb->pattern = (d->avc->monochrome ? avc_luma_pattern[!is_intra(d->mb)] : avc_pattern[!is_intra(d->mb)])[code];
    return 1;
}

static int read_transform8(struct avc_decoder *d)
{
    return d->avc->cabac ? cabac_transform8(d) : (int)bits_read(&d->bits, 1);
}

static int read_qp(struct avc_decoder *d)
{
    int delta = d->avc->cabac ? cabac_qp_delta(d) : bits_se(&d->bits);
    if (delta < -26 || delta > 25)
        return failed(d, AVC_BAD_PATTERN);
    d->last_delta = delta;
    d->qp = (d->qp + delta + 52) % 52;
    return 1;
}

static int read_residual(struct avc_decoder *d)
{
    d->last_delta = d->mb->pattern || d->mb->kind == INTRA_16X16 ? d->last_delta : 0;
    if (d->mb->pattern || d->mb->kind == INTRA_16X16) {
        if (!read_qp(d) || !avc_residual(d))
            return failed(d, AVC_BAD_COEFFICIENT);
    }
    d->mb->qp = (int8_t)d->qp;
    return 1;
}

static int intra(struct avc_decoder *d, int type)
{
    if (type > PCM_TYPE)
        return failed(d, AVC_BAD_TYPE);
    d->mb->kind = type == PCM_TYPE ? INTRA_PCM : type ? INTRA_16X16 : INTRA_4X4;
    if (type == PCM_TYPE)
        return pcm(d);
    if (!type && d->avc->transform8 && read_transform8(d)) {
        d->mb->transform8 = 1;
        d->mb->kind = INTRA_8X8;
    }
    if (!intra_modes(d))
        return 0;
    if (type) {
        d->now.intra16_mode = (type - 1) & 3;
        d->mb->pattern = (uint8_t)((type >= 13 ? 15 : 0) | ((type - 1) / 4 % 3) << 4);
        if (d->avc->monochrome && d->mb->pattern >> 4)
            return failed(d, AVC_BAD_TYPE);
    } else if (!read_pattern(d))
        return 0;
    return read_residual(d) && avc_reconstruct(d);
}

static int inter(struct avc_decoder *d, int type)
{
    d->mb->kind = INTER;
    if (!inter_types(d, type) || !avc_motion(d) || !read_pattern(d))
        return 0;
    if (d->mb->pattern & 15 && d->avc->transform8 && avc_is_coarse(d))
        d->mb->transform8 = (uint8_t)read_transform8(d);
    return read_residual(d) && avc_inter(d) && avc_reconstruct(d);
}

/* The current macroblock, from mb_type on; whether it is well formed. */
int avc_macroblock(struct avc_decoder *d)
{
    avc_begin_mb(d);
    d->mb->kind = INTER; /* so far */
    if (d->type == I_SLICE)
        d->mb->kind = INTRA_4X4;
    uint32_t type = d->avc->cabac ? (uint32_t)cabac_mb_type(d) : bits_ue(&d->bits);
    uint32_t first = d->type == I_SLICE ? 0 : d->type == P_SLICE ? FIRST_P_INTRA : FIRST_B_INTRA;
    if (type > first + PCM_TYPE)
        return failed(d, AVC_BAD_TYPE);
    return type >= first ? intra(d, (int)(type - first)) : inter(d, (int)type);
}

/* The current macroblock, of which the stream has nothing: P_Skip or B_Skip. */
void avc_skipped(struct avc_decoder *d)
{
    avc_begin_mb(d);
    d->mb->kind = INTER;
    d->mb->skip = 1;
    d->last_delta = 0;
    if (d->type == B_SLICE) {
        d->mb->direct = ALL_DIRECT;
        d->now.shape = SHAPE_8X8;
        avc_direct(d, 15);
    } else
        avc_skip_motion(d);
    avc_set_pictures(d);
    avc_inter(d);
}
