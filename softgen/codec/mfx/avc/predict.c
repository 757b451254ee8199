/* Inter prediction: blocks of references, and their weighted sums (8.4.2). */
#include <string.h>

#include "../../block_fetch.h"
#include "avc.h"

enum { EXPLICIT = 1, IMPLICIT = 2, TAPS_BEFORE = 2, TAPS = 5 };

/* A reference's plane: all rows, or those of a field. */
static struct sample_view view_of(const struct plane *p, int parity)
{
    int field = parity != WHOLE_FRAME;
    return (struct sample_view){p->samples + (parity == BOTTOM_PARITY ? p->stride : 0), (ptrdiff_t)p->stride << field, (int)p->width,
                                (int)p->height >> field};
}

struct block { /* in luma samples of the macroblock */
    int x, y, width, height, quarter, first; /* first: 4x4 block, raster */
};

/* Where a block's samples go, or where a prediction of it is kept. */
struct target {
    uint8_t *samples[PLANES];
    ptrdiff_t stride[PLANES];
};

static void luma(const struct avc_decoder *d, const struct frame *f, int parity, const struct block *b, const int16_t *vector,
                 const struct target *to)
{
    uint8_t room[FETCH_STRIDE * (16 + TAPS)];
    struct sample_view v = view_of(&f->plane[0], parity);
    int split = d->avc->mbaff && d->field, top = (int)(d->y >> split) * 16;
    int x = (int)d->x * 16 + b->x + (vector[0] >> 2), y = top + b->y + (vector[1] >> 2);
    ptrdiff_t stride;
    const uint8_t *from = fetch_block(&v, x - TAPS_BEFORE, y - TAPS_BEFORE, b->width + TAPS, b->height + TAPS, room, &stride);
    avc_interpolate(to->samples[0], to->stride[0], from + TAPS_BEFORE * (stride + 1), stride, vector[0] & 3, vector[1] & 3, b->width,
                    b->height);
}

/* A block of luma as a vector predicts it, from a whole frame; 16 samples from row to row. */
void avc_luma_prediction(const struct avc_decoder *d, const struct frame *f, int x, int y, int width, int height, const int16_t vector[2],
                         uint8_t *to)
{
    luma(d, f, WHOLE_FRAME, &(struct block){x, y, width, height, 0, 0}, vector, &(struct target){{to}, {16}});
}

static void chroma(const struct avc_decoder *d, const struct frame *f, int parity, const struct block *b, const int16_t *vector, int plane,
                   const struct target *to)
{
    uint8_t room[FETCH_STRIDE * 9];
    struct sample_view v = view_of(&f->plane[plane], parity);
    int split = d->avc->mbaff && d->field, top = (int)(d->y >> split) * 8, bottom = split ? (int)(d->y & 1) : (int)d->avc->bottom;
    int mx = vector[0], my = vector[1] + (parity == WHOLE_FRAME ? 0 : 2 * (bottom - (parity == BOTTOM_PARITY)));
    int fx = mx & 7, fy = my & 7, width = b->width / 2, height = b->height / 2;
    ptrdiff_t stride;
    const uint8_t *p = fetch_block(&v, (int)d->x * 8 + b->x / 2 + (mx >> 3), top + b->y / 2 + (my >> 3), width + 1, height + 1, room, &stride);
    avc_interpolate_chroma(to->samples[plane], to->stride[plane], p, stride, fx, fy, width, height);
}

/* The reference, of which what a block needs has been read. */
static const struct frame *reference_of(const struct avc_decoder *d, const struct avc_reference *r, const struct block *b, const int16_t *vector)
{
    int split = d->avc->mbaff && d->field, rows = 1 + (r->parity != WHOLE_FRAME), top = (int)(d->y >> split) * 16;
    return reference_block(d->avc->picture, (unsigned)r->store, (int)d->x * 16 + b->x + (vector[0] >> 2), rows * (top + b->y + (vector[1] >> 2)),
                           b->width, rows * b->height);
}

static int predict(struct avc_decoder *d, const struct avc_reference *r, const struct block *b, const int16_t *vector, const struct target *to)
{
    const struct frame *f = reference_of(d, r, b, vector);
    if (!f)
        return 0;
    luma(d, f, r->parity, b, vector, to);
    for (int plane = 1; plane < (d->avc->monochrome ? 1 : PLANES); plane++)
        chroma(d, f, r->parity, b, vector, plane, to);
    return 1;
}

struct weights {
    int weight[2], offset, shift;
};

static void weight_one(const struct target *to, int plane, int width, int height, const struct weights *w)
{
    int round = w->shift ? 1 << (w->shift - 1) : 0;
    if (w->weight[0] == 1 << w->shift && !w->offset) /* as it is */
        return;
    for (int y = 0; y < height; y++) {
        uint8_t *row = to->samples[plane] + y * to->stride[plane];
        for (int x = 0; x < width; x++)
            row[x] = clamp_sample(((row[x] * w->weight[0] + round) >> w->shift) + w->offset);
    }
}

static void weight_two(const struct target *to, const struct target *other, int plane, int width, int height, const struct weights *w)
{
    for (int y = 0; y < height; y++) {
        uint8_t *row = to->samples[plane] + y * to->stride[plane];
        const uint8_t *second = other->samples[plane] + y * other->stride[plane];
        for (int x = 0; x < width; x++) {
            int sum = row[x] * w->weight[0] + second[x] * w->weight[1];
            row[x] = clamp_sample(((sum + (1 << w->shift)) >> (w->shift + 1)) + w->offset);
        }
    }
}

static int weight_of(const struct avc_weight *w, int plane)
{
    return plane == 0 ? w->luma_weight : plane == 1 ? w->cb_weight : w->cr_weight;
}

static int offset_of(const struct avc_weight *w, int plane)
{
    return plane == 0 ? w->luma_offset : plane == 1 ? w->cb_offset : w->cr_offset;
}

/* The weights of the slice for a plane; `second` null: of one reference. */
static struct weights explicit_weights(const struct avc_decoder *d, const struct avc_weight *first, const struct avc_weight *second, int plane)
{
    struct weights w = {{weight_of(first, plane), 0}, offset_of(first, plane), (int)d->slice->weight_shift[plane > 0]};
    if (second) {
        w.weight[1] = weight_of(second, plane);
        w.offset = (w.offset + offset_of(second, plane) + 1) >> 1;
    }
    return w;
}

static struct weights implicit_weights(const struct avc_decoder *d, const struct avc_reference *first, const struct avc_reference *second)
{
    int scale;
    if (!avc_distance_scale(d, first, second, &scale) || second->long_term || scale >> 2 < -64 || scale >> 2 > 128)
        scale = 128;
    return (struct weights){{64 - (scale >> 2), scale >> 2}, 0, 5};
}

static void combine(const struct avc_decoder *d, const struct block *b, const struct avc_reference *const r[2], const struct target *to,
                    const struct target *other)
{
    int mode = d->type == P_SLICE ? (d->avc->weighted ? EXPLICIT : 0) : (int)d->avc->weighted_b, split = d->avc->mbaff && d->field;
    const struct avc_weight *w[2] = {NULL, NULL};
    for (int list = 0; list < 2; list++)
        if (r[list])
            w[list] = &d->slice->weight[list][d->mb->index[list][b->quarter] >> split];
    for (int plane = 0; plane < (d->avc->monochrome ? 1 : PLANES); plane++) {
        int width = plane ? b->width / 2 : b->width, height = plane ? b->height / 2 : b->height;
        struct weights found;
        if (other && mode == EXPLICIT) {
            found = explicit_weights(d, w[0], w[1], plane);
            weight_two(to, other, plane, width, height, &found);
        } else if (other && mode == IMPLICIT) {
            found = implicit_weights(d, r[0], r[1]);
            avc_mix(to->samples[plane], to->stride[plane], other->samples[plane], found.weight[1], width, height);
        } else if (other)
            avc_average(to->samples[plane], to->stride[plane], other->samples[plane], width, height);
        else if (mode == EXPLICIT) {
            found = explicit_weights(d, w[0] ? w[0] : w[1], NULL, plane);
            weight_one(to, plane, width, height, &found);
        }
    }
}

static int inter_block(struct avc_decoder *d, const struct block *b)
{
    uint8_t kept[PLANES][256];
    struct target to, other = {{kept[0], kept[1], kept[2]}, {16, 16, 16}};
    struct avc_reference room[2];
    const struct avc_reference *r[2];
    for (int i = 0; i < PLANES; i++) {
        to.stride[i] = d->stride[i];
        to.samples[i] = d->samples[i] ? d->samples[i] + (b->y >> !!i) * d->stride[i] + (b->x >> !!i) : NULL;
    }
    for (int list = 0; list < 2; list++)
        r[list] = avc_reference(d, list, d->mb->index[list][b->quarter], &room[list]);
    int first = r[0] ? 0 : 1;
    if (!r[first] || !predict(d, r[first], b, d->mb->vector[first][b->first], &to))
        return 0;
    if (!first && r[1] && !predict(d, r[1], b, d->mb->vector[1][b->first], &other))
        return 0;
    combine(d, b, r, &to, !first && r[1] ? &other : NULL);
    return 1;
}

static inline uint32_t vector_of(const struct avc_mb *mb, int list, int block)
{
    uint32_t both;
    memcpy(&both, mb->vector[list][block], sizeof both);
    return both;
}

static inline int same_vectors(const struct avc_mb *mb, int first, int width, int height)
{
    uint32_t different = 0;
    for (int list = 0; list < AVC_LISTS; list++)
        for (int i = 0; i < width * height; i++)
            different |= vector_of(mb, list, first + i / width * 4 + i % width) ^ vector_of(mb, list, first);
    return !different;
}

/* Whether two quarters have the same references. */
static int same_motion(const struct avc_mb *mb, int a, int b)
{
    return mb->index[0][a] == mb->index[0][b] && mb->index[1][a] == mb->index[1][b];
}

/* The prediction of the current macroblock; whether all references exist. */
int avc_inter(struct avc_decoder *d)
{
    const struct avc_mb *mb = d->mb;
    int whole = !memcmp(mb->index[0], mb->index[0] + 1, 3) && !memcmp(mb->index[1], mb->index[1] + 1, 3);
    if (whole && same_vectors(mb, 0, 4, 4))
        return inter_block(d, &(struct block){0, 0, 16, 16, 0, 0});
    if (same_motion(mb, 0, 1) && same_motion(mb, 2, 3) && same_vectors(mb, 0, 4, 2) && same_vectors(mb, 8, 4, 2))
        return inter_block(d, &(struct block){0, 0, 16, 8, 0, 0}) && inter_block(d, &(struct block){0, 8, 16, 8, 2, 8});
    if (same_motion(mb, 0, 2) && same_motion(mb, 1, 3) && same_vectors(mb, 0, 2, 4) && same_vectors(mb, 2, 2, 4))
        return inter_block(d, &(struct block){0, 0, 8, 16, 0, 0}) && inter_block(d, &(struct block){8, 0, 8, 16, 1, 2});
    for (int q = 0; q < 4; q++) {
        int x = 8 * (q & 1), y = 8 * (q >> 1), first = y + (x >> 2);
        if (same_vectors(mb, first, 2, 2)) {
            if (!inter_block(d, &(struct block){x, y, 8, 8, q, first}))
                return 0;
            continue;
        }
        for (int i = 0; i < 4; i++) {
            int dx = i & 1, dy = i >> 1;
            if (!inter_block(d, &(struct block){x + 4 * dx, y + 4 * dy, 4, 4, q, first + 4 * dy + dx}))
                return 0;
        }
    }
    return 1;
}
