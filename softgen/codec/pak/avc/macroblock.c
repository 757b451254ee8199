/* Macroblocks as they were decided: motion, samples, and their syntax in either kind of codes (7.3.5). */
#include <stdlib.h>
#include <string.h>

#include "../../mfx/avc/cabac_contexts.h"
#include "write.h"

enum { ALL_DIRECT = 31, SHAPE_8X8 = 3, FIRST_B_INTRA = 23, FIRST_P_INTRA = 5, B_8X8 = 22, PCM_PATTERN = 0x2f };

/* -- types ---------------------------------------------------------------------------------------------------------- */

static int b_type(const struct avc_decoder *d)
{
    const int *uses = d->now.uses;
    if (d->mb->direct == ALL_DIRECT)
        return 0;
    if (d->now.shape == SHAPE_8X8)
        return B_8X8;
    if (!d->now.shape)
        return uses[0];
    for (int i = 0; i < 9; i++)
        if (avc_b_parts[i][0] == uses[0] && avc_b_parts[i][1] == uses[3])
            return 4 + 2 * i + d->now.shape - 1;
    return 4;
}

static int b_sub_type(const struct avc_decoder *d, int quarter)
{
    for (int i = 1; i < 13; i++)
        if (avc_b_sub[i][0] == d->now.sub[quarter] && avc_b_sub[i][1] == d->now.uses[quarter])
            return i;
    return 0;
}

static int intra_type(const struct avc_decoder *d)
{
    const struct avc_mb *mb = d->mb;
    if (mb->kind == INTRA_PCM)
        return AVC_INTRA_PCM_TYPE;
    return mb->kind == INTRA_16X16 ? 1 + d->now.intra16_mode + 4 * (mb->pattern >> 4) + (mb->pattern & 15 ? 12 : 0) : 0;
}

static void put_type(struct avc_encoder *e)
{
    const struct avc_decoder *d = e->d;
    int first = d->type == I_SLICE ? 0 : d->type == P_SLICE ? FIRST_P_INTRA : FIRST_B_INTRA;
    int type = is_intra(d->mb) ? first + intra_type(d) : d->type == B_SLICE ? b_type(d) : d->now.shape;
    if (d->avc->cabac)
        cabac_put_type(e, type);
    else
        writer_ue(e->writer, (uint32_t)type);
}

static void put_sub_types(struct avc_encoder *e)
{
    for (int i = 0; i < 4; i++) {
        int type = e->d->type == B_SLICE ? b_sub_type(e->d, i) : e->d->now.sub[i];
        if (e->d->avc->cabac)
            cabac_put_sub_type(e, type);
        else
            writer_ue(e->writer, (uint32_t)type);
    }
}

/* -- residual ------------------------------------------------------------------------------------------------------- */

static void put_block(struct avc_encoder *e, int category, int plane, int block, const int32_t *levels, int most)
{
    int x = plane ? 4 * (block & 1) : 4 * avc_block_x[block], y = plane ? 4 * (block >> 1) : 4 * avc_block_y[block];
    if (e->d->avc->cabac)
        cabac_put_block(e, category, plane, block, levels, most);
    else
        cavlc_put_block(e, category == CHROMA_DC ? -1 : avc_nearby_count(e->d, plane, x, y), levels, most);
}

static void put_luma_8x8(struct avc_encoder *e, int quarter)
{
    int32_t part[16];
    if (e->d->avc->cabac) {
        cabac_put_block(e, LUMA_8X8, 0, 4 * quarter, e->levels8[quarter], 64);
        return;
    }
    for (int i = 0; i < 4; i++) {
        for (int j = 0; j < 16; j++)
            part[j] = e->levels8[quarter][4 * j + i];
        put_block(e, LUMA_4X4, 0, 4 * quarter + i, part, 16);
    }
}

static void put_residual(struct avc_encoder *e)
{
    const struct avc_mb *mb = e->d->mb;
    int whole = mb->kind == INTRA_16X16;
    if (whole)
        put_block(e, LUMA_DC, 0, 0, e->dc[0], 16);
    for (int i = 0; i < 16; i++) {
        if (!(mb->pattern >> (i >> 2) & 1))
            continue;
        if (!mb->transform8)
            put_block(e, whole ? LUMA_AC : LUMA_4X4, 0, i, e->levels[i] + whole, 16 - whole);
        else if (!(i & 3))
            put_luma_8x8(e, i >> 2);
    }
    for (int plane = 1; plane < PLANES && mb->pattern >> 4; plane++)
        put_block(e, CHROMA_DC, plane, 0, e->dc[plane], 4);
    for (int plane = 1; plane < PLANES && mb->pattern >> 5; plane++)
        for (int i = 0; i < 4; i++)
            put_block(e, CHROMA_AC, plane, i, e->levels[12 + 4 * plane + i] + 1, 15);
}

/* mb_qp_delta and what follows, where anything does. */
static void put_coefficients(struct avc_encoder *e, int qp_before)
{
    struct avc_decoder *d = e->d;
    if (!d->mb->pattern && d->mb->kind != INTRA_16X16) {
        d->last_delta = 0;
        d->qp = qp_before;
        d->mb->qp = (int8_t)qp_before;
        return;
    }
    int delta = d->qp - qp_before;
    delta += delta < -26 ? 52 : delta > 25 ? -52 : 0;
    if (d->avc->cabac)
        cabac_put_qp_delta(e, delta);
    else
        writer_se(e->writer, delta);
    d->last_delta = delta;
    put_residual(e);
}

/* -- syntax --------------------------------------------------------------------------------------------------------- */

static void put_skip(struct avc_encoder *e, int skip)
{
    if (e->d->type == I_SLICE)
        return;
    if (e->d->avc->cabac) {
        cabac_put_skip(e, skip);
        return;
    }
    if (skip) {
        e->skip_run++;
        return;
    }
    writer_ue(e->writer, e->skip_run);
    e->skip_run = 0;
}

static void put_pattern(struct avc_encoder *e)
{
    if (e->d->avc->cabac)
        cabac_put_pattern(e, e->d->mb->pattern);
    else
        cavlc_put_pattern(e, e->d->mb->pattern);
}

static void put_transform8(struct avc_encoder *e)
{
    if (e->d->avc->cabac)
        cabac_put_transform8(e, e->d->mb->transform8);
    else
        writer_bits(e->writer, e->d->mb->transform8, 1);
}

static void put_mode(struct avc_encoder *e, int block)
{
    struct avc_decoder *d = e->d;
    int mode = d->mb->modes[avc_raster(block)], predicted = avc_predicted_mode(d, block), rest = mode == predicted ? -1 : mode - (mode > predicted);
    if (d->avc->cabac)
        cabac_put_intra_mode(e, rest);
    else {
        writer_bits(e->writer, rest < 0, 1);
        writer_bits(e->writer, (uint32_t)rest, rest < 0 ? 0 : 3);
    }
}

static void put_intra(struct avc_encoder *e)
{
    struct avc_decoder *d = e->d;
    if (d->mb->kind != INTRA_16X16 && d->avc->transform8)
        put_transform8(e);
    for (int i = 0; i < 16 && d->mb->kind != INTRA_16X16; i += d->mb->kind == INTRA_8X8 ? 4 : 1)
        put_mode(e, i);
    if (d->avc->cabac)
        cabac_put_chroma_mode(e, d->mb->chroma_mode);
    else
        writer_ue(e->writer, d->mb->chroma_mode);
    if (d->mb->kind != INTRA_16X16)
        put_pattern(e);
}

static void put_inter(struct avc_encoder *e)
{
    struct avc_decoder *d = e->d;
    int lists = d->type == B_SLICE ? 2 : 1, direct = d->mb->direct == ALL_DIRECT;
    if (d->now.shape == SHAPE_8X8 && !direct)
        put_sub_types(e);
    for (int list = 0; list < lists; list++)
        avc_put_indices(e, list);
    for (int list = 0; list < lists; list++)
        avc_put_changes(e, list);
    put_pattern(e);
    if (d->mb->pattern & 15 && d->avc->transform8 && avc_is_coarse(d))
        put_transform8(e);
}

static void put_samples(struct avc_encoder *e)
{
    struct avc_decoder *d = e->d;
    struct writer *w = e->writer;
    writer_align(w, 0);
    for (int plane = 0; plane < (d->avc->monochrome ? 1 : PLANES); plane++)
        for (int y = 0, n = plane ? 8 : 16; y < n; y++)
            for (int x = 0; x < n; x++)
                writer_bits(w, d->samples[plane][y * d->stride[plane] + x], 8);
    if (d->avc->cabac)
        cabac_write_start(&e->cabac, w);
}

/* -- samples -------------------------------------------------------------------------------------------------------- */

static void copy_samples(struct avc_encoder *e)
{
    struct avc_decoder *d = e->d;
    for (int plane = 0; plane < (d->avc->monochrome ? 1 : PLANES); plane++)
        for (int y = 0, n = plane ? 8 : 16; y < n; y++)
            memcpy(d->samples[plane] + y * d->stride[plane],
                   e->source->plane[plane].samples + ((size_t)d->y * n + y) * e->source->plane[plane].stride + d->x * n, (size_t)n);
    memset(d->mb->count, 16, sizeof d->mb->count);
    d->mb->qp = 0;
    d->mb->dc = 7;
    d->mb->pattern = PCM_PATTERN;
}

static void code_intra_luma(struct avc_encoder *e, const struct avc_edges *edges, uint32_t allowed)
{
    struct avc_decoder *d = e->d;
    if (d->mb->kind == INTRA_16X16) {
        avc_intra_16x16(d->samples[0], d->stride[0], d->now.intra16_mode, edges->left[0] && edges->left[1], edges->top);
        avc_code_luma(e, allowed);
        return;
    }
    for (int i = 0; i < 16; i += d->mb->kind == INTRA_8X8 ? 4 : 1) {
        if (d->mb->kind == INTRA_8X8)
            avc_code_intra_8x8(e, i >> 2, d->mb->modes[avc_raster(i)], edges, allowed);
        else
            avc_code_intra_4x4(e, i, d->mb->modes[avc_raster(i)], edges, allowed);
        for (int j = 0; j < 4 && d->mb->kind == INTRA_8X8; j++)
            d->mb->pattern |= (uint8_t)(d->mb->count[avc_raster(i + j)] ? 1 << (i >> 2) : 0);
        d->mb->pattern |= (uint8_t)(d->mb->count[avc_raster(i)] ? 1 << (i >> 2) : 0);
    }
}

static void code_intra(struct avc_encoder *e, uint32_t allowed)
{
    struct avc_decoder *d = e->d;
    struct avc_edges edges = avc_edges_of(d);
    code_intra_luma(e, &edges, allowed);
    for (int plane = 1; plane < PLANES; plane++)
        avc_intra_chroma(d->samples[plane], d->stride[plane], d->mb->chroma_mode, edges.left, edges.top);
    avc_code_chroma(e, allowed);
    avc_add_residual(d);
}

static int code_inter(struct avc_encoder *e, uint32_t allowed)
{
    struct avc_decoder *d = e->d;
    if (!avc_inter(d))
        return 0;
    avc_code_luma(e, allowed);
    avc_code_chroma(e, allowed);
    if (!(d->mb->pattern & 15))
        d->mb->transform8 = 0;
    avc_add_residual(d);
    return 1;
}

/* Whether nothing tells the macroblock from one that the stream leaves out (P_Skip, B_Skip). */
static int is_skipped(struct avc_encoder *e)
{
    struct avc_decoder *d = e->d;
    struct avc_mb kept = *d->mb;
    if (d->mb->kind != INTER || d->mb->pattern || d->type == I_SLICE)
        return 0;
    if (d->type == B_SLICE)
        return d->mb->direct == ALL_DIRECT;
    if (d->now.shape || d->mb->index[0][0])
        return 0;
    avc_skip_motion(d);
    int same = !memcmp(kept.vector[0][0], d->mb->vector[0][0], sizeof kept.vector[0][0]);
    *d->mb = kept;
    return same;
}

void avc_apply_choice(struct avc_encoder *e, const struct avc_choice *c)
{
    struct avc_decoder *d = e->d;
    avc_begin_mb(d);
    d->mb->kind = c->kind;
    d->mb->transform8 = c->transform8;
    d->mb->chroma_mode = is_intra(d->mb) ? c->chroma_mode : 0;
    memcpy(d->mb->modes, c->modes, sizeof d->mb->modes);
    d->now.intra16_mode = c->intra16_mode;
    if (c->kind == INTER)
        avc_set_motion(e, c);
}

static void put_macroblock(struct avc_encoder *e, int qp_before)
{
    struct avc_decoder *d = e->d;
    put_type(e);
    if (d->mb->kind == INTRA_PCM) {
        put_samples(e);
        d->last_delta = 0;
        return;
    }
    if (is_intra(d->mb))
        put_intra(e);
    else
        put_inter(e);
    put_coefficients(e, qp_before);
}

/* The current macroblock (avc_enter), as it was decided; whether all references of direct prediction exist. */
int avc_encode_macroblock(struct avc_encoder *e, const struct avc_choice *c)
{
    struct avc_decoder *d = e->d;
    int qp_before = d->qp, skip;
    d->qp = c->qp;
    avc_apply_choice(e, c);
    if (c->kind == INTRA_PCM)
        copy_samples(e);
    else if (c->kind == INTER) {
        if (!code_inter(e, c->allowed))
            return 0;
    } else
        code_intra(e, c->allowed);
    skip = !c->keep_skip && is_skipped(e);
    put_skip(e, skip);
    d->mb->skip = (uint8_t)skip;
    if (skip) {
        memset(d->mb->change, 0, sizeof d->mb->change);
        d->last_delta = 0;
        d->qp = qp_before;
        d->mb->qp = (int8_t)qp_before;
    } else {
        if (c->kind == INTRA_PCM)
            d->qp = qp_before;
        put_macroblock(e, qp_before);
    }
    e->macroblocks++;
    e->qp_sum += (uint32_t)d->qp;
    return 1;
}
