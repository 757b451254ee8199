/* Motion of other pictures (8.5.3.2.8, 8.5.3.2.9) and what is kept of a picture for those to come: 16 bytes for 16x16 samples.
 *
 * Two vectors, the distances of their references when the picture was decoded, and flags: lists 0 and 1 are used, theirs are long-term
 * references. All zero: there is no motion. */
#include <stdlib.h>
#include <string.h>

#include "hevc.h"

enum { DISTANCES = 8, FLAGS = 10, LONG_TERM = 2 };

static unsigned stride_of(const struct hevc_picture *p)
{
    return (p->width + 15) >> 4;
}

static void keep_one(const struct hevc_picture *p, int x, int y, uint8_t *to)
{
    const struct hevc_motion *m = &p->motions[hevc_block_at(p, x, y)];
    memset(to, 0, HEVC_MOTION_BYTES);
    if (hevc_cu_at(p, x, y)->kind != CU_INTER)
        return;
    memcpy(to, m->vector, sizeof m->vector);
    for (int list = 0; list < HEVC_LISTS; list++)
        if (m->index[list] >= 0 && m->store[list] >= 0) {
            to[DISTANCES + list] = (uint8_t)p->distance[m->store[list]];
            to[FLAGS] |= (uint8_t)(1 << list | (p->long_term[m->store[list]] << LONG_TERM << list));
        }
}

void hevc_keep_motion(struct hevc_picture *p)
{
    uint8_t *to = p->motion;
    for (int y = 0; to && y < (int)p->height; y += 16)
        for (int x = 0; x < (int)p->width; x += 16, to += HEVC_MOTION_BYTES)
            keep_one(p, x, y, to);
}

/* A vector over `other` as one over `distance`. */
void hevc_scale_vector(int16_t out[2], const int16_t vector[2], int distance, int other)
{
    int td = clamp(other, -128, 127), tb = clamp(distance, -128, 127);
    int factor = td ? clamp((tb * ((16384 + (abs(td) >> 1)) / td) + 32) >> 6, -4096, 4095) : 256;
    for (int i = 0; i < 2; i++) {
        int product = factor * vector[i], size = (abs(product) + 127) >> 8;
        out[i] = (int16_t)clamp(product < 0 ? -size : size, INT16_MIN, INT16_MAX);
    }
}

static int motion_at(const struct hevc_decoder *d, const uint8_t *motion, int x, int y, int list, int index, int16_t out[2])
{
    const struct hevc_slice *s = d->slice;
    const struct hevc_reference *r = &s->list[list][index];
    const uint8_t *from = motion + HEVC_MOTION_BYTES * ((size_t)(y >> 4) * stride_of(d->hevc) + (size_t)(x >> 4));
    int lists = from[FLAGS] & 3, chosen = lists == 3 ? s->low_delay ? list : (int)s->collocated_from_0 : lists >> 1;
    int16_t vector[2];
    if (!lists || (from[FLAGS] >> LONG_TERM >> chosen & 1) != r->long_term)
        return 0;
    memcpy(vector, from + 4 * chosen, sizeof vector);
    int distance = (int8_t)from[DISTANCES + chosen];
    if (r->long_term || distance == r->distance)
        memcpy(out, vector, sizeof vector);
    else
        hevc_scale_vector(out, vector, r->distance, distance);
    return 1;
}

/* The vector of the collocated picture below and right of a block, else at its centre; whether there is one. */
int hevc_temporal(const struct hevc_decoder *d, const struct hevc_block *b, int list, int index, int16_t out[2])
{
    const struct hevc_picture *p = d->hevc;
    int x = b->x + b->width, y = b->y + b->height;
    const uint8_t *motion = d->slice->temporal ? p->collocated[d->slice->collocated] : NULL;
    if (!motion)
        return 0;
    if (b->y >> p->log2_ctb == y >> p->log2_ctb && x < (int)p->width && y < (int)p->height && motion_at(d, motion, x, y, list, index, out))
        return 1;
    return motion_at(d, motion, b->x + (b->width >> 1), b->y + (b->height >> 1), list, index, out);
}
