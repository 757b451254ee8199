/* Intra macroblocks: the modes whose predictions are nearest to the source, with what their bits cost. */
#include "vdenc.h"

enum { NO_16X16 = 1, NO_8X8 = 2, NO_4X4 = 4, MODES = 9, WHOLE_MODES = 4, PREDICTED_BITS = 1, OTHER_BITS = 4, TYPE_BITS = 3 };
static const uint32_t no_way = UINT32_MAX;

static void begin(const struct vdenc *v, struct avc_choice *c, int kind)
{
    c->kind = (uint8_t)kind;
    c->transform8 = kind == INTRA_8X8;
    avc_apply_choice(v->encoder, c);
}

static uint32_t best_16x16(const struct vdenc *v, struct avc_choice *c, const struct avc_edges *edges)
{
    struct avc_decoder *d = v->encoder->d;
    int left = edges->left[0] && edges->left[1];
    uint32_t best = no_way;
    ptrdiff_t stride;
    const uint8_t *source = vdenc_source(v, 0, 0, 0, &stride);
    for (int mode = 0; mode < WHOLE_MODES; mode++) {
        if (v->intra_modes[0] >> mode & 1 || (mode == 0 && !edges->top) || (mode == 1 && !left)
            || (mode == 3 && !(left && edges->top && edges->corner)))
            continue;
        avc_intra_16x16(d->samples[0], d->stride[0], mode, left, edges->top);
        uint32_t cost = vdenc_difference(d->samples[0], d->stride[0], source, stride, 16, 16);
        if (cost < best) {
            best = cost;
            c->intra16_mode = (uint8_t)mode;
        }
    }
    return best;
}

/* Which samples a block of 4x4 or 8x8 can be predicted from, as bits: left, top, corner, right. */
static unsigned edges_of_block(const struct avc_edges *e, int i, int size)
{
    if (size == 8) {
        int x = i & 1, y = i >> 1, corner = x && y ? 1 : x ? e->top : y ? e->left[0] : e->corner;
        int right = i == 0 ? e->top : i == 1 ? e->right : i == 2;
        return (unsigned)((x || e->left[y]) | (y || e->top) << 1 | (corner != 0) << 2 | (right != 0) << 3);
    }
    int x = avc_block_x[i], y = avc_block_y[i];
    int corner = x && y ? 1 : x ? e->top : y ? e->left[(4 * y - 1) >> 3] : e->corner;
    int right = y ? x != 3 && (i & 7) != 3 : x < 3 ? e->top : e->right;
    return (unsigned)((x || e->left[y >> 1]) | (y || e->top) << 1 | (corner != 0) << 2 | (right != 0) << 3);
}

/* The best mode of a block; the macroblock's samples are those of its blocks so far. */
static uint32_t best_mode(const struct vdenc *v, int block, int size, unsigned edges, uint32_t unused, int *found)
{
    struct avc_decoder *d = v->encoder->d;
    int x = 4 * avc_block_x[block], y = 4 * avc_block_y[block], predicted = avc_predicted_mode(d, block);
    uint8_t *to = d->samples[0] + y * d->stride[0] + x;
    uint32_t best = no_way;
    ptrdiff_t stride;
    const uint8_t *source = vdenc_source(v, 0, x, y, &stride);
    int left = edges & 1, top = edges >> 1 & 1, corner = edges >> 2 & 1, right = edges >> 3 & 1;
    for (int mode = 0; mode < MODES; mode++) {
        if ((unused >> mode & 1 && mode != 2) || !avc_has_samples(mode, left, top, corner))
            continue;
        if (size == 8)
            avc_intra_8x8(to, d->stride[0], mode, left, top, corner, right);
        else
            avc_intra_4x4(to, d->stride[0], mode, left, top, corner, right);
        uint32_t cost = vdenc_difference(to, d->stride[0], source, stride, size, size)
                      + v->lambda * (mode == predicted ? PREDICTED_BITS : OTHER_BITS);
        if (cost < best) {
            best = cost;
            *found = mode;
        }
    }
    return best;
}

static uint32_t best_blocks(const struct vdenc *v, struct avc_choice *c, const struct avc_edges *edges, int size)
{
    struct avc_decoder *d = v->encoder->d;
    uint32_t sum = 0;
    for (int i = 0; i < 16; i += size == 8 ? 4 : 1) {
        int mode = 2;
        sum += best_mode(v, i, size, edges_of_block(edges, size == 8 ? i >> 2 : i, size), v->intra_modes[size == 8 ? 1 : 2], &mode);
        for (int j = 0; j < size * size / 16; j++) {
            int at = avc_raster(i) + (size == 8 ? 4 * (j >> 1) + (j & 1) : 0);
            c->modes[at] = d->mb->modes[at] = (int8_t)mode;
        }
        if (size == 8)
            avc_code_intra_8x8(v->encoder, i >> 2, mode, edges, c->allowed);
        else
            avc_code_intra_4x4(v->encoder, i, mode, edges, c->allowed);
    }
    return sum;
}

static void best_chroma(const struct vdenc *v, struct avc_choice *c, const struct avc_edges *edges)
{
    struct avc_decoder *d = v->encoder->d;
    int left = edges->left[0] && edges->left[1];
    uint32_t best = no_way;
    c->chroma_mode = 0;
    for (int mode = 0; mode < WHOLE_MODES; mode++) {
        uint32_t cost = v->lambda * (uint32_t)mode;
        if ((v->chroma_modes >> mode & 1 && mode) || (mode == 2 && !edges->top) || (mode == 1 && !left)
            || (mode == 3 && !(left && edges->top && edges->corner)))
            continue;
        for (int plane = 1; plane < PLANES; plane++) {
            ptrdiff_t stride;
            const uint8_t *source = vdenc_source(v, plane, 0, 0, &stride);
            avc_intra_chroma(d->samples[plane], d->stride[plane], mode, edges->left, edges->top);
            cost += vdenc_difference(d->samples[plane], d->stride[plane], source, stride, 8, 8);
        }
        if (cost < best) {
            best = cost;
            c->chroma_mode = (uint8_t)mode;
        }
    }
}

/* The best intra macroblock, with its modes, and what it costs. */
uint32_t vdenc_intra(const struct vdenc *v, struct avc_choice *c)
{
    const struct avc_picture *p = v->encoder->d->avc;
    struct avc_choice blocks = *c;
    uint32_t best = no_way, cost;
    begin(v, c, INTRA_16X16);
    struct avc_edges edges = avc_edges_of(v->encoder->d);
    if (!(v->intra_partitions & NO_16X16))
        best = best_16x16(v, c, &edges);
    best_chroma(v, c, &edges);
    blocks.chroma_mode = c->chroma_mode;
    if (p->transform8 && !(v->intra_partitions & NO_8X8)) {
        begin(v, &blocks, INTRA_8X8);
        cost = best_blocks(v, &blocks, &edges, 8) + TYPE_BITS * v->lambda;
        if (cost < best) {
            best = cost;
            *c = blocks;
        }
    }
    if (!(v->intra_partitions & NO_4X4) || best == no_way) {
        begin(v, &blocks, INTRA_4X4);
        cost = best_blocks(v, &blocks, &edges, 4) + TYPE_BITS * v->lambda;
        if (cost < best) {
            best = cost;
            *c = blocks;
        }
    }
    return best;
}
