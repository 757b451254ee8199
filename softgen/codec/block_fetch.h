/* Blocks of reference planes: where they are, or a copy whose samples beyond an edge are the edge's. */
#ifndef SOFTGEN_CODEC_BLOCK_FETCH_H
#define SOFTGEN_CODEC_BLOCK_FETCH_H

#include <string.h>

#include "codec.h"

enum { FETCH_STRIDE = 32 }; /* of a copy */

/* Samples of which a block may be: a plane, or the rows of one parity. */
struct sample_view {
    const uint8_t *samples;
    ptrdiff_t stride;
    int width, height;
};

/* `room` has FETCH_STRIDE samples for each of `rows`. */
static inline const uint8_t *fetch_block(const struct sample_view *v, int x, int y, int columns, int rows, uint8_t *room, ptrdiff_t *stride)
{
    if (x >= 0 && y >= 0 && x + columns <= v->width && y + rows <= v->height) {
        *stride = v->stride;
        return v->samples + y * v->stride + x;
    }
    int left = clamp(-x, 0, columns), right = clamp(x + columns - v->width, 0, columns), between = columns - left - right;
    for (int j = 0; j < rows; j++) {
        const uint8_t *row = v->samples + clamp(y + j, 0, v->height - 1) * v->stride;
        uint8_t *to = room + j * FETCH_STRIDE;
        memset(to, row[0], (size_t)left);
        if (between > 0)
            memcpy(to + left, row + x + left, (size_t)between);
        memset(to + columns - right, row[v->width - 1], (size_t)right);
    }
    *stride = FETCH_STRIDE;
    return room;
}

#endif
