/* Predictions of MPEG-2: blocks of reference fields and frames in half samples (7.6.4 to 7.6.7). */
#include "../../block_fetch.h"
#include "../../sample_lanes.h"
#include "mpeg2.h"

/* Samples that are predicted from, or predicted: a plane, or the rows of one parity. */
struct view {
    uint8_t *samples;
    int stride, width, height;
};

static struct view view_of(const struct plane *p, int fields, int parity)
{
    return (struct view){p->samples + (parity ? p->stride : 0), (int)p->stride * fields, (int)p->width, (int)p->height / fields};
}

/* A block displaced by whole samples and halves: put, or averaged with what is there. */
static INLINE void interpolate(uint8_t *out, ptrdiff_t out_stride, const uint8_t *p, ptrdiff_t stride, int half_x, int half_y, int average,
                               int width, int height)
{
    for (int j = 0, step = lanes_height(width); j < height; j += step, p += step * stride, out += step * out_stride) {
        lanes value = lanes_rows(p, stride, width);
        if (half_x && half_y)
            value = (value + lanes_rows(p + 1, stride, width) + lanes_rows(p + stride, stride, width)
                     + lanes_rows(p + stride + 1, stride, width) + 2) >> 2;
        else if (half_x | half_y)
            value = lanes_mean(value, lanes_rows(half_x ? p + 1 : p + stride, stride, width));
        if (average)
            value = lanes_mean(lanes_rows(out, out_stride, width), value);
        lanes_put_rows(out, out_stride, width, lanes_narrow(value));
    }
}

VECTORIZED static void interpolate_block(uint8_t *out, ptrdiff_t out_stride, const uint8_t *p, ptrdiff_t stride, int half_x, int half_y,
                                         int average, int width, int height)
{
    if (width == 16)
        interpolate(out, out_stride, p, stride, half_x, half_y, average, 16, height);
    else
        interpolate(out, out_stride, p, stride, half_x, half_y, average, 8, height);
}

/* A block at (x, y) displaced by half samples, put or averaged with what is there. */
static void block(const struct view *to, const struct view *from, int x, int y, int mx, int my, int width, int height, int average)
{
    uint8_t room[FETCH_STRIDE * 18];
    int half_x = mx & 1, half_y = my & 1;
    ptrdiff_t stride;
    struct sample_view v = {from->samples, from->stride, from->width, from->height};
    const uint8_t *p = fetch_block(&v, x + (mx >> 1), y + (my >> 1), width + half_x, height + half_y, room, &stride);
    interpolate_block(to->samples + (ptrdiff_t)y * to->stride + x, to->stride, p, stride, half_x, half_y, average, width, height);
}

struct request {
    unsigned index; /* of the reference */
    int from_fields, from_parity, to_fields, to_parity; /* views of the reference and of the picture */
    int x, y, rows; /* in luma samples of the picture's view */
    const int *vector;
    int average;
};

/* Whether there is a reference. */
static int predict_planes(struct mpeg2_decoder *d, const struct request *r)
{
    int x = r->x + (r->vector[0] >> 1), y = (r->y + (r->vector[1] >> 1)) * r->from_fields;
    const struct frame *reference = reference_block(d->slice->picture, r->index, x, y, 16, r->rows * r->from_fields);
    for (int plane = 0; reference && plane < PLANES; plane++) {
        int chroma = plane > 0, mx = chroma ? r->vector[0] / 2 : r->vector[0], my = chroma ? r->vector[1] / 2 : r->vector[1];
        struct view to = view_of(&d->slice->picture->frame.plane[plane], r->to_fields, r->to_parity);
        struct view from = view_of(&reference->plane[plane], r->from_fields, r->from_parity);
        block(&to, &from, r->x >> chroma, r->y >> chroma, mx, my, 16 >> chroma, r->rows >> chroma, r->average);
    }
    return reference != NULL;
}

/* The second vector of dual prime prediction (7.6.3.6): `m` times the first, halved, and corrected. */
static void dual_vector(const struct mpeg2_motion *motion, int m, int e, int out[2])
{
    for (int t = 0; t < 2; t++) {
        int scaled = motion->vector[0][0][t] * m;
        out[t] = ((scaled + (motion->vector[0][0][t] > 0)) >> 1) + motion->dual[t] + (t ? e : 0);
    }
}

static int frame_dual(struct mpeg2_decoder *d, struct request *r, unsigned mb_y)
{
    int second[2], first = d->slice->top_field_first != 0;
    for (int parity = 0; parity < 2; parity++) {
        *r = (struct request){.index = r->index, .from_fields = 2, .from_parity = parity, .to_fields = 2, .to_parity = parity,
                              .x = r->x, .y = (int)mb_y * 8, .rows = 8, .vector = d->motion.vector[0][0]};
        if (!predict_planes(d, r))
            return 0;
        dual_vector(&d->motion, parity == !first ? 1 : 3, parity ? 1 : -1, second);
        r->from_parity = !parity;
        r->vector = second;
        r->average = 1;
        predict_planes(d, r);
    }
    return 1;
}

static int frame_picture(struct mpeg2_decoder *d, int s, unsigned mb_x, unsigned mb_y, int average)
{
    const struct mpeg2_motion *m = &d->motion;
    struct request r = {.index = (unsigned)s, .from_fields = 1, .to_fields = 1, .x = (int)mb_x * 16,
                        .y = (int)mb_y * 16, .rows = 16, .vector = m->vector[0][s], .average = average};
    if (m->type == DUAL_PRIME)
        return frame_dual(d, &r, mb_y);
    if (m->type == WHOLE)
        return predict_planes(d, &r);
    for (int field = 0; field < 2; field++) {
        r = (struct request){.index = (unsigned)s, .from_fields = 2, .from_parity = m->select[field][s], .to_fields = 2,
                             .to_parity = field, .x = r.x, .y = (int)mb_y * 8, .rows = 8, .vector = m->vector[field][s], .average = average};
        if (!predict_planes(d, &r))
            return 0;
    }
    return 1;
}

/* References of field pictures: forward top, backward top, forward bottom, backward bottom. */
static int field_part(struct mpeg2_decoder *d, struct request *r, int s, int parity)
{
    r->index = (unsigned)(s + 2 * parity);
    r->from_fields = 2;
    r->from_parity = parity;
    return predict_planes(d, r);
}

static int field_picture(struct mpeg2_decoder *d, int s, unsigned mb_x, unsigned mb_y, int average)
{
    const struct mpeg2_motion *m = &d->motion;
    int own = d->slice->structure == BOTTOM_FIELD, second[2];
    struct request r = {.to_fields = 1, .x = (int)mb_x * 16, .y = (int)mb_y * 16, .rows = 16, .vector = m->vector[0][s], .average = average};
    if (m->type == ONE_FIELD)
        return field_part(d, &r, s, m->select[0][s]);
    if (m->type == DUAL_PRIME) {
        if (!field_part(d, &r, 0, own))
            return 0;
        dual_vector(m, 1, own ? 1 : -1, second);
        r.vector = second;
        r.average = 1;
        return field_part(d, &r, 0, !own);
    }
    for (int half = 0; half < 2; half++, r.y += 8) {
        r.rows = 8;
        r.vector = m->vector[half][s];
        if (!field_part(d, &r, s, m->select[half][s]))
            return 0;
    }
    return 1;
}

int mpeg2_predict(struct mpeg2_decoder *d, unsigned x, unsigned y)
{
    int average = 0;
    for (int s = 0; s < 2; s++) {
        if (!(d->motion.modes & (s ? BACKWARD : FORWARD)))
            continue;
        if (!(d->slice->structure == FRAME_PICTURE ? frame_picture : field_picture)(d, s, x, y, average))
            return 0;
        average = 1;
    }
    return 1;
}
