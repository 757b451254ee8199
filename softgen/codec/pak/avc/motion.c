/* Motion of macroblocks to encode: reference indices, and vectors as they differ from their predictions (7.3.5.1, 8.4.1). */
#include <stdlib.h>
#include <string.h>

#include "write.h"

enum { SHAPE_8X8 = 3 };

static void keep_change(struct avc_encoder *e, int list, int x, int y, int width, int height, const int prediction[2])
{
    struct avc_mb *mb = e->d->mb;
    int first = y + (x >> 2);
    for (int axis = 0; axis < 2; axis++) {
        int change = mb->vector[list][first][axis] - prediction[axis], size = abs(change);
        e->change[list][first][axis] = (int16_t)change;
        for (int i = 0; i < width * height; i++)
            mb->change[list][first + i / width * 4 + i % width][axis] = (uint8_t)(size < 127 ? size : 127);
    }
}

typedef void part_function(struct avc_encoder *e, int list, int x, int y, int width, int height); /* samples */

static void each_sub_part(struct avc_encoder *e, int list, int quarter, part_function *function)
{
    static const uint8_t widths[4] = {8, 8, 4, 4}, heights[4] = {8, 4, 8, 4};
    int width = widths[e->d->now.sub[quarter]], height = heights[e->d->now.sub[quarter]];
    for (int y = 0; y < 8; y += height)
        for (int x = 0; x < 8; x += width)
            function(e, list, 8 * (quarter & 1) + x, 8 * (quarter >> 1) + y, width, height);
}

/* Calls a function for the parts of a macroblock that use a list, in the order of the stream. */
static void each_part(struct avc_encoder *e, int list, part_function *function)
{
    const struct avc_decoder *d = e->d;
    int shape = d->now.shape, width = shape == 2 ? 8 : 16, height = shape == 1 ? 8 : 16;
    for (int q = 0; q < 4 && shape == SHAPE_8X8; q++)
        if (d->now.uses[q] >> list & 1)
            each_sub_part(e, list, q, function);
    for (int part = 0; part < (shape == SHAPE_8X8 ? 0 : shape ? 2 : 1); part++) {
        int x = shape == 2 ? 8 * part : 0, y = shape == 1 ? 8 * part : 0;
        if (d->now.uses[(y >> 2) + (x >> 3)] >> list & 1)
            function(e, list, x, y, width, height);
    }
}

static void predict_part(struct avc_encoder *e, int list, int x, int y, int width, int height)
{
    struct avc_decoder *d = e->d;
    int index = d->mb->index[list][(y >> 3) * 2 + (x >> 3)], prediction[2];
    if (d->now.shape == 1 || d->now.shape == 2)
        avc_predict_half(d, list, index, x, y, d->now.shape, prediction);
    else
        avc_predict_vector(d, list, index, x, y, width, prediction);
    keep_change(e, list, x, y, width / 4, height / 4, prediction);
}

/* Motion of the current macroblock as it was chosen, and how it differs from what is predicted. */
void avc_set_motion(struct avc_encoder *e, const struct avc_choice *c)
{
    struct avc_decoder *d = e->d;
    d->mb->direct = c->direct;
    if (c->direct & 15)
        avc_direct(d, c->direct & 15);
    for (int i = 0; i < 4; i++) {
        d->now.sub[i] = c->sub[i];
        d->now.uses[i] = c->uses[i];
    }
    d->now.shape = c->shape;
    for (int list = 0; list < AVC_LISTS; list++)
        for (int i = 0; i < 16; i++) {
            int q = (i >> 3) * 2 + ((i & 3) >> 1);
            if (c->uses[q] >> list & 1) {
                d->mb->index[list][q] = c->index[list][q];
                memcpy(d->mb->vector[list][i], c->vector[list][i], sizeof c->vector[list][i]);
            }
        }
    for (int list = 0; list < (d->type == B_SLICE ? 2 : 1); list++)
        each_part(e, list, predict_part);
    avc_set_pictures(d);
}

void avc_put_indices(struct avc_encoder *e, int list)
{
    const struct avc_decoder *d = e->d;
    int shape = d->now.shape, most = (int)(e->slice->counts[list] << (d->avc->mbaff && d->field)) - 1;
    for (int part = 0; part < (shape == 0 ? 1 : shape == SHAPE_8X8 ? 4 : 2) && most > 0; part++) {
        int first = shape == 1 ? 2 * part : part, index = d->mb->index[list][first];
        if (!(d->now.uses[first] >> list & 1))
            continue;
        if (d->avc->cabac)
            cabac_put_index(e, list, first, index);
        else if (most == 1)
            writer_bits(e->writer, !index, 1);
        else
            writer_ue(e->writer, (uint32_t)index);
    }
}

static void put_change(struct avc_encoder *e, int list, int x, int y, int width, int height)
{
    (void)width;
    (void)height;
    for (int axis = 0; axis < 2; axis++) {
        int change = e->change[list][y + (x >> 2)][axis];
        if (e->d->avc->cabac)
            cabac_put_change(e, list, x, y, axis, change);
        else
            writer_se(e->writer, change);
    }
}

void avc_put_changes(struct avc_encoder *e, int list)
{
    each_part(e, list, put_change);
}
