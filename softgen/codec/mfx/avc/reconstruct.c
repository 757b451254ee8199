/* A macroblock's samples: intra prediction, and the residual added (8.3, 8.5). */
#include "../../transform/transform.h"
#include "avc.h"

static int usable(const struct avc_decoder *d, const struct avc_mb *mb)
{
    return mb && (!d->avc->constrained_intra || is_intra(mb));
}

struct avc_edges avc_edges_of(const struct avc_decoder *d)
{
    struct avc_edges e;
    for (int half = 0; half < 2; half++) /* rows of a frame macroblock beside a pair of fields alternate between its macroblocks */
        e.left[half] = usable(d, avc_neighbour(d, -1, 8 * half, 16, 16).mb) && usable(d, avc_neighbour(d, -1, 8 * half + 7, 16, 16).mb);
    e.top = usable(d, avc_neighbour(d, 0, -1, 16, 16).mb);
    e.corner = usable(d, avc_neighbour(d, -1, -1, 16, 16).mb);
    e.right = usable(d, avc_neighbour(d, 16, -1, 16, 16).mb);
    return e;
}

/* Modes that need samples which do not exist are errors. */
int avc_has_samples(int mode, int left, int top, int corner)
{
    static const uint8_t needs[9] = {2, 1, 0, 2, 7, 7, 7, 2, 1}; /* bits: left, top, corner */
    return !(needs[mode] & ~(left | top << 1 | corner << 2));
}

static int intra_4x4(struct avc_decoder *d, const struct avc_edges *e)
{
    for (int i = 0; i < 16; i++) {
        int x = avc_block_x[i], y = avc_block_y[i], left = x || e->left[y >> 1], top = y || e->top;
        int corner = x && y ? 1 : x ? e->top : y ? e->left[(4 * y - 1) >> 3] : e->corner;
        int right = y ? x != 3 && (i & 7) != 3 : x < 3 ? e->top : e->right;
        int mode = d->mb->modes[4 * y + x];
        uint8_t *to = d->samples[0] + 4 * y * d->stride[0] + 4 * x;
        if (!avc_has_samples(mode, left, top, corner))
            return 0;
        avc_intra_4x4(to, d->stride[0], mode, left, top, corner, right);
        if (d->mb->count[4 * y + x])
            avc_add_4x4(to, d->stride[0], d->coefficients[i]);
    }
    return 1;
}

static int intra_8x8(struct avc_decoder *d, const struct avc_edges *e)
{
    for (int i = 0; i < 4; i++) {
        int x = i & 1, y = i >> 1, left = x || e->left[y], top = y || e->top;
        int corner = x && y ? 1 : x ? e->top : y ? e->left[0] : e->corner, right = i == 0 ? e->top : i == 1 ? e->right : i == 2;
        int mode = d->mb->modes[8 * y + 2 * x];
        uint8_t *to = d->samples[0] + 8 * y * d->stride[0] + 8 * x;
        if (!avc_has_samples(mode, left, top, corner))
            return 0;
        avc_intra_8x8(to, d->stride[0], mode, left, top, corner, right);
        if (d->mb->pattern >> i & 1)
            avc_add_8x8(to, d->stride[0], d->coefficients[4 * i]);
    }
    return 1;
}

static int intra_16x16(struct avc_decoder *d, const struct avc_edges *e)
{
    int left = e->left[0] && e->left[1], mode = d->now.intra16_mode;
    if ((mode == 0 && !e->top) || (mode == 1 && !left) || (mode == 3 && !(left && e->top && e->corner)))
        return 0;
    avc_intra_16x16(d->samples[0], d->stride[0], mode, left, e->top);
    return 1;
}

static int intra_chroma(struct avc_decoder *d, const struct avc_edges *e)
{
    int left = e->left[0] && e->left[1], mode = d->mb->chroma_mode;
    if ((mode == 2 && !e->top) || (mode == 1 && !left) || (mode == 3 && !(left && e->top && e->corner)))
        return 0;
    for (int plane = 1; plane < PLANES; plane++)
        avc_intra_chroma(d->samples[plane], d->stride[plane], mode, e->left, e->top);
    return 1;
}

static void add_luma(struct avc_decoder *d)
{
    int all = d->mb->kind == INTRA_16X16 && d->mb->dc & 1;
    if (!(d->mb->pattern & 15) && !all)
        return;
    for (int i = 0; i < 16; i++) {
        int x = avc_block_x[i], y = avc_block_y[i];
        uint8_t *to = d->samples[0] + 4 * y * d->stride[0] + 4 * x;
        if (!d->mb->transform8) {
            if (all || d->mb->count[4 * y + x])
                avc_add_4x4(to, d->stride[0], d->coefficients[i]);
        } else if (!(i & 3) && d->mb->pattern >> (i >> 2) & 1)
            avc_add_8x8(to, d->stride[0], d->coefficients[i]);
    }
}

static void add_chroma(struct avc_decoder *d)
{
    for (int plane = 1; plane < PLANES && d->mb->pattern >> 4; plane++)
        for (int i = 0; i < 4; i++) {
            int at = 12 + 4 * plane + i;
            if (d->mb->dc >> plane & 1 || d->mb->count[at])
                avc_add_4x4(d->samples[plane] + 4 * (i >> 1) * d->stride[plane] + 4 * (i & 1), d->stride[plane], d->coefficients[at]);
        }
}

/* The residual of chroma, and of luma that was predicted as a whole, added to the prediction. */
void avc_add_residual(struct avc_decoder *d)
{
    if (d->mb->kind != INTRA_4X4 && d->mb->kind != INTRA_8X8)
        add_luma(d);
    add_chroma(d);
}

/* Whether all samples that it is predicted from exist. */
int avc_reconstruct(struct avc_decoder *d)
{
    int fine = 1;
    if (is_intra(d->mb)) {
        struct avc_edges e = avc_edges_of(d);
        fine = d->mb->kind == INTRA_4X4 ? intra_4x4(d, &e) : d->mb->kind == INTRA_8X8 ? intra_8x8(d, &e) : intra_16x16(d, &e);
        if (fine && !d->avc->monochrome)
            fine = intra_chroma(d, &e);
    }
    if (!fine) {
        d->error |= AVC_BAD_MODE;
        return 0;
    }
    avc_add_residual(d);
    return 1;
}
