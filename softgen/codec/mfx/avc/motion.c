/* Reference indices and motion vectors (8.4.1): what the stream has of them, and what is predicted. */
#include <string.h>

#include "avc.h"

enum { NOT_AVAILABLE = -2 };

static int coding_order(int x, int y) /* of a 4x4 block */
{
    return (x & 1) | (y & 1) << 1 | (x & 2) << 1 | (y & 2) << 2;
}

/* The reference of an index, as the current macroblock counts: fields of the frames of a list in field macroblocks of an MBAFF frame.
 * Null: there is none. */
const struct avc_reference *avc_reference(const struct avc_decoder *d, int list, int index, struct avc_reference *room)
{
    int split = d->avc->mbaff && d->field;
    if (index < 0 || index >> split >= AVC_MOST_INDEX)
        return NULL;
    const struct avc_reference *r = &d->slice->list[list][index >> split];
    if (r->store < 0)
        return NULL;
    if (!split)
        return r;
    *room = *r;
    room->parity = (int8_t)((d->y & 1) == (unsigned)(index & 1) ? TOP_PARITY : BOTTOM_PARITY);
    return room;
}

/* The motion of the block at a place, in rows of the current macroblock. */
struct avc_place_motion avc_beside(const struct avc_decoder *d, struct avc_place p, int list)
{
    struct avc_place_motion found = {NOT_AVAILABLE, {0, 0}};
    if (!p.mb)
        return found;
    found.index = p.mb->index[list][(p.y >> 3) * 2 + (p.x >> 3)];
    if (found.index < 0)
        return found;
    const int16_t *vector = p.mb->vector[list][(p.y >> 2) * 4 + (p.x >> 2)];
    found.vector[0] = vector[0];
    found.vector[1] = vector[1];
    if (d->avc->mbaff && p.mb->field != d->field) {
        found.vector[1] = d->field ? vector[1] / 2 : vector[1] * 2;
        found.index = d->field ? found.index * 2 : found.index >> 1;
    }
    return found;
}

/* A neighbour of a part whose first block is (x, y) in samples; what comes later in the stream is not available. */
static struct avc_place_motion near(const struct avc_decoder *d, int list, int x, int y, int at_x, int at_y)
{
    struct avc_place p = avc_luma(d, at_x, at_y);
    if (p.mb == d->mb && at_x >= 0 && at_y >= 0 && coding_order(at_x >> 2, at_y >> 2) > coding_order(x >> 2, y >> 2))
        p.mb = NULL;
    return avc_beside(d, p, list);
}

static int median(int a, int b, int c)
{
    return a > b ? (b > c ? b : a > c ? c : a) : (a > c ? a : b > c ? c : b);
}

struct nearby {
    struct avc_place_motion a, b, c;
};

static struct nearby nearby(struct avc_decoder *d, int list, int x, int y, int width)
{
    struct nearby n = {near(d, list, x, y, x - 1, y), near(d, list, x, y, x, y - 1), near(d, list, x, y, x + width, y - 1)};
    if (n.c.index == NOT_AVAILABLE)
        n.c = near(d, list, x, y, x - 1, y - 1);
    return n;
}

static void predicted(const struct nearby *n, int index, int out[2])
{
    int same = (n->a.index == index) + (n->b.index == index) + (n->c.index == index);
    const struct avc_place_motion *only = NULL;
    if (n->b.index == NOT_AVAILABLE && n->c.index == NOT_AVAILABLE && n->a.index != NOT_AVAILABLE)
        only = &n->a;
    else if (same == 1)
        only = n->a.index == index ? &n->a : n->b.index == index ? &n->b : &n->c;
    for (int i = 0; i < 2; i++)
        out[i] = only ? only->vector[i] : median(n->a.vector[i], n->b.vector[i], n->c.vector[i]);
}

/* The median prediction (8.4.1.3) of a part at (x, y). */
void avc_predict_vector(struct avc_decoder *d, int list, int index, int x, int y, int width, int out[2])
{
    struct nearby n = nearby(d, list, x, y, width);
    predicted(&n, index, out);
}

/* The prediction of a part of a macroblock in two halves: of the neighbour it touches, where that has the same reference. */
void avc_predict_half(struct avc_decoder *d, int list, int index, int x, int y, int shape, int out[2])
{
    struct nearby n = nearby(d, list, x, y, shape == 1 ? 16 : 8);
    const struct avc_place_motion *from = shape == 1 ? (y ? &n.a : &n.b) : (x ? &n.c : &n.a);
    if (from->index != index)
        predicted(&n, index, out);
    else {
        out[0] = from->vector[0];
        out[1] = from->vector[1];
    }
}

/* -- from the stream ------------------------------------------------------------------------------------------------ */

static int read_index(struct avc_decoder *d, int list, int quarter, int most)
{
    if (d->avc->cabac)
        return cabac_index(d, list, quarter);
    if (most == 1)
        return !bits_read(&d->bits, 1);
    uint32_t index = bits_ue(&d->bits);
    return index > (uint32_t)most ? -1 : (int)index;
}

static int last_quarter(int shape, int part) /* quarters of a part: part, and what is below or beside it */
{
    return shape == 0 ? 15 : shape == 1 ? 3 << (2 * part) : shape == 2 ? 5 << part : 1 << part;
}

static int indices(struct avc_decoder *d, int list)
{
    int shape = d->now.shape, split = d->avc->mbaff && d->field, most = ((int)d->slice->counts[list] << split) - 1;
    for (int part = 0; part < (shape == 0 ? 1 : shape == 3 ? 4 : 2); part++) {
        int first = shape == 1 ? 2 * part : part, quarters = last_quarter(shape, part), index = 0;
        if (!(d->now.uses[first] >> list & 1))
            continue;
        if (most > 0 && !d->now.first_only)
            index = read_index(d, list, first, most);
        if (index < 0 || index > most) {
            d->error |= AVC_BAD_INDEX;
            return 0;
        }
        for (int q = 0; q < 4; q++)
            if (quarters >> q & 1)
                d->mb->index[list][q] = (int8_t)index;
    }
    return 1;
}

static void read_vector(struct avc_decoder *d, int list, int x, int y, int width, int height, const int prediction[2])
{
    for (int axis = 0; axis < 2; axis++) {
        int change = d->avc->cabac ? cabac_change(d, list, x, y, axis) : bits_se(&d->bits), size = change < 0 ? -change : change;
        for (int i = 0; i < width * height; i++) {
            int at = ((y >> 2) + i / width) * 4 + (x >> 2) + i % width;
            d->mb->vector[list][at][axis] = (int16_t)(prediction[axis] + change);
            d->mb->change[list][at][axis] = (uint8_t)(size < 127 ? size : 127);
        }
    }
}

static void sub_vectors(struct avc_decoder *d, int list, int quarter)
{
    static const uint8_t widths[4] = {8, 8, 4, 4}, heights[4] = {8, 4, 8, 4};
    int shape = d->now.sub[quarter], width = widths[shape], height = heights[shape], prediction[2];
    for (int y = 0; y < 8; y += height)
        for (int x = 0; x < 8; x += width) {
            int left = 8 * (quarter & 1) + x, top = 8 * (quarter >> 1) + y;
            avc_predict_vector(d, list, d->mb->index[list][quarter], left, top, width, prediction);
            read_vector(d, list, left, top, width / 4, height / 4, prediction);
        }
}

static void vectors(struct avc_decoder *d, int list)
{
    int shape = d->now.shape, prediction[2];
    if (shape == 3) {
        for (int q = 0; q < 4; q++)
            if (d->now.uses[q] >> list & 1)
                sub_vectors(d, list, q);
        return;
    }
    for (int part = 0; part < (shape ? 2 : 1); part++) {
        int x = shape == 2 ? 8 * part : 0, y = shape == 1 ? 8 * part : 0, first = (y >> 2) + (x >> 3);
        if (!(d->now.uses[first] >> list & 1))
            continue;
        if (shape)
            avc_predict_half(d, list, d->mb->index[list][first], x, y, shape, prediction);
        else
            avc_predict_vector(d, list, d->mb->index[list][0], 0, 0, 16, prediction);
        read_vector(d, list, x, y, shape == 2 ? 2 : 4, shape == 1 ? 2 : 4, prediction);
    }
}

/* Which pictures the blocks refer to, for the deblocking filter and for pictures to come. */
void avc_set_pictures(struct avc_decoder *d)
{
    struct avc_reference room;
    for (int list = 0; list < AVC_LISTS; list++)
        for (int q = 0; q < 4; q++) {
            const struct avc_reference *r = avc_reference(d, list, d->mb->index[list][q], &room);
            d->mb->picture[list][q] = (int8_t)(r ? 4 * r->store + r->parity : NO_PICTURE);
        }
}

/* Indices and vectors of the current macroblock; those of direct blocks are known. */
int avc_motion(struct avc_decoder *d)
{
    int lists = d->type == B_SLICE ? 2 : 1;
    for (int list = 0; list < lists; list++)
        if (!indices(d, list))
            return 0;
    for (int list = 0; list < lists; list++)
        vectors(d, list);
    avc_set_pictures(d);
    return 1;
}

/* Of spatial direct prediction (8.4.1.2.2): the smallest index of the neighbours, and the vector predicted for it. */
int avc_spatial(struct avc_decoder *d, int list, int vector[2])
{
    struct nearby n = nearby(d, list, 0, 0, 16);
    unsigned smallest = (unsigned)n.a.index; /* as unsigned numbers, those that are none are the greatest */
    smallest = (unsigned)n.b.index < smallest ? (unsigned)n.b.index : smallest;
    smallest = (unsigned)n.c.index < smallest ? (unsigned)n.c.index : smallest;
    vector[0] = vector[1] = 0;
    if ((int)smallest < 0)
        return NO_INDEX;
    predicted(&n, (int)smallest, vector);
    return (int)smallest;
}

/* P_Skip (8.4.1.1): the first reference, without motion where a neighbour is absent or has none either. */
void avc_skip_motion(struct avc_decoder *d)
{
    struct nearby n = nearby(d, 0, 0, 0, 16);
    int vector[2] = {0, 0};
    const struct avc_place_motion *a = &n.a, *b = &n.b;
    if (a->index != NOT_AVAILABLE && b->index != NOT_AVAILABLE && !(!a->index && !a->vector[0] && !a->vector[1])
        && !(!b->index && !b->vector[0] && !b->vector[1]))
        predicted(&n, 0, vector);
    for (int i = 0; i < 16; i++) {
        d->mb->vector[0][i][0] = (int16_t)vector[0];
        d->mb->vector[0][i][1] = (int16_t)vector[1];
    }
    memset(d->mb->index[0], 0, sizeof d->mb->index[0]);
}
