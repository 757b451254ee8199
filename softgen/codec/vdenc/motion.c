/* Motion: vectors whose blocks are nearest to the source, with what their bits cost; how a macroblock is divided. */
#include <stdlib.h>
#include <string.h>

#include "vdenc.h"

enum { NO_16X16 = 1, LIST0 = 1, SHAPES = 4, MOST_STEPS = 16, SHAPE_BITS = 2 };

struct part {
    int x, y, width, height; /* samples of the macroblock */
};

struct search {
    const struct vdenc *v;
    const struct frame *from;
    struct part part;
    int16_t predicted[2];
    int exact; /* costs after a transform */
};

static uint32_t bits_of(int change)
{
    unsigned code = change > 0 ? 2u * (unsigned)change : 2u * (unsigned)-change + 1;
    return 2 * (31 - (unsigned)__builtin_clz(code)) + 1;
}

static uint32_t cost_of(const struct search *s, const int16_t vector[2])
{
    uint8_t room[16 * 16];
    ptrdiff_t stride;
    const struct part *p = &s->part;
    const uint8_t *source = vdenc_source(s->v, 0, p->x, p->y, &stride);
    avc_luma_prediction(s->v->encoder->d, s->from, p->x, p->y, p->width, p->height, vector, room);
    uint32_t rate = s->v->lambda * (bits_of(vector[0] - s->predicted[0]) + bits_of(vector[1] - s->predicted[1]));
    return rate + (s->exact ? vdenc_difference : vdenc_sad)(room, 16, source, stride, p->width, p->height);
}

static int is_allowed(const struct vdenc *v, const int16_t vector[2])
{
    const struct avc_decoder *d = v->encoder->d;
    int16_t position[2] = {(int16_t)(64 * d->x), (int16_t)(64 * d->y)}, size[2] = {(int16_t)(64 * d->avc->width), (int16_t)(64 * d->avc->height)};
    for (int i = 0; i < 2; i++) {
        int to = position[i] + vector[i];
        if (abs(vector[i]) >= v->range[i] || to < -96 || to > size[i] + 32) /* not far from the picture's edges */
            return 0;
    }
    return 1;
}

static void consider(const struct search *s, int x, int y, int16_t best[2], uint32_t *cost)
{
    int16_t vector[2] = {(int16_t)x, (int16_t)y};
    if (!is_allowed(s->v, vector))
        return;
    uint32_t found = cost_of(s, vector);
    if (found < *cost) {
        *cost = found;
        memcpy(best, vector, sizeof vector);
    }
}

/* Moves by `step` quarter samples as long as that is nearer. */
static void walk(const struct search *s, int step, int corners, int most, int16_t best[2], uint32_t *cost)
{
    for (int i = 0; i < most; i++) {
        int16_t centre[2] = {best[0], best[1]};
        for (int dy = -1; dy <= 1; dy++)
            for (int dx = -1; dx <= 1; dx++)
                if ((dx || dy) && (corners || !dx || !dy))
                    consider(s, centre[0] + step * dx, centre[1] + step * dy, best, cost);
        if (centre[0] == best[0] && centre[1] == best[1])
            return;
    }
}

/* The best vector of a part; `best` holds one to begin with. */
static uint32_t search(struct search *s, int16_t best[2])
{
    int16_t start[2] = {(int16_t)((best[0] + 2) & ~3), (int16_t)((best[1] + 2) & ~3)};
    uint32_t cost = UINT32_MAX;
    s->exact = 0;
    memset(best, 0, 2 * sizeof *best);
    consider(s, 0, 0, best, &cost);
    consider(s, start[0], start[1], best, &cost);
    consider(s, (s->predicted[0] + 2) & ~3, (s->predicted[1] + 2) & ~3, best, &cost);
    for (int step = 32; step >= 4; step /= 2)
        walk(s, step, 0, step == 4 ? MOST_STEPS : 4, best, &cost);
    s->exact = 1;
    cost = cost_of(s, best);
    if (s->v->subpel)
        walk(s, 2, 1, 2, best, &cost);
    if (s->v->subpel == 3) {
        walk(s, 1, 1, 2, best, &cost);
        consider(s, s->predicted[0], s->predicted[1], best, &cost);
    }
    return cost;
}

static void set_vector(struct avc_choice *c, const struct part *p, const int16_t vector[2])
{
    for (int i = 0; i < 16; i++) {
        int x = 4 * (i & 3), y = 4 * (i >> 2);
        if (x >= p->x && x < p->x + p->width && y >= p->y && y < p->y + p->height)
            memcpy(c->vector[0][i], vector, 2 * sizeof *vector);
    }
}

/* A macroblock divided in a shape, from one reference; `whole`: the vector of all of it, where the search begins. */
static uint32_t divided(const struct vdenc *v, struct avc_choice *c, struct search *s, int shape, int16_t whole[2])
{
    static const uint8_t counts[SHAPES] = {1, 2, 2, 4};
    int width = shape > 1 ? 8 : 16, height = shape & 1 ? 8 : 16;
    uint32_t sum = v->lambda * (uint32_t)(shape * SHAPE_BITS);
    c->shape = (uint8_t)shape;
    for (int i = 0; i < counts[shape]; i++) {
        int16_t best[2] = {whole[0], whole[1]};
        s->part = (struct part){shape > 1 ? 8 * (i & 1) : 0, shape == 1 ? 8 * i : shape == 3 ? 8 * (i >> 1) : 0, width, height};
        sum += search(s, best);
        set_vector(c, &s->part, best);
        if (!shape)
            memcpy(whole, best, sizeof best);
    }
    return sum;
}

static uint32_t from_reference(const struct vdenc *v, struct avc_choice *best, int index, uint32_t cost)
{
    struct avc_decoder *d = v->encoder->d;
    struct avc_reference room;
    const struct avc_reference *r = avc_reference(d, 0, index, &room);
    const struct frame *from = r ? reference_frame(d->avc->picture, (unsigned)r->store) : NULL;
    int predicted[2];
    if (!from)
        return cost;
    avc_predict_vector(d, 0, index, 0, 0, 16, predicted);
    struct search s = {v, from, {0, 0, 16, 16}, {(int16_t)predicted[0], (int16_t)predicted[1]}, 0};
    int16_t whole[2] = {s.predicted[0], s.predicted[1]};
    for (int shape = 0; shape < SHAPES; shape++) {
        struct avc_choice c = *best;
        if (shape && v->shapes >> shape & 1)
            continue;
        memset(c.index, NO_INDEX, sizeof c.index);
        memset(c.index[0], index, sizeof c.index[0]);
        uint32_t found = divided(v, &c, &s, shape, whole) + v->lambda * (uint32_t)index;
        if (found < cost && !(shape == 0 && v->shapes & NO_16X16)) {
            cost = found;
            *best = c;
        }
    }
    return cost;
}

/* The best inter macroblock of a P slice, and what it costs; UINT32_MAX: there is none. */
uint32_t vdenc_inter(const struct vdenc *v, struct avc_choice *c)
{
    uint32_t cost = UINT32_MAX;
    avc_begin_mb(v->encoder->d);
    v->encoder->d->mb->kind = INTER;
    c->kind = INTER;
    c->transform8 = (uint8_t)v->encoder->d->avc->transform8;
    memset(c->uses, LIST0, sizeof c->uses);
    for (unsigned i = 0; i < v->references; i++)
        cost = from_reference(v, c, (int)i, cost);
    return cost;
}
