/* Predicted motion vectors (8.5.3.2.6, 8.5.3.2.7): candidates at the left, above, and of the collocated picture. */
#include <string.h>

#include "hevc.h"

/* The vector of a block beside that refers to the same picture. */
static int same_picture(const struct hevc_decoder *d, const struct hevc_motion *m, int list, int index, int16_t out[2])
{
    int store = d->slice->list[list][index].store;
    for (int i = 0; i < HEVC_LISTS; i++) {
        int other = i ? !list : list;
        if (m && m->index[other] >= 0 && m->store[other] == store) {
            memcpy(out, m->vector[other], sizeof m->vector[other]);
            return 1;
        }
    }
    return 0;
}

/* A vector to another picture, scaled by the distances of both, where both are of the same kind. */
static int other_picture(const struct hevc_decoder *d, const struct hevc_motion *m, int list, int index, int16_t out[2])
{
    const struct hevc_reference *r = &d->slice->list[list][index];
    const struct hevc_picture *p = d->hevc;
    for (int i = 0; i < HEVC_LISTS; i++) {
        int other = i ? !list : list;
        if (!m || m->index[other] < 0 || m->store[other] < 0 || p->long_term[m->store[other]] != r->long_term)
            continue;
        memcpy(out, m->vector[other], sizeof m->vector[other]);
        if (!r->long_term)
            hevc_scale_vector(out, m->vector[other], r->distance, p->distance[m->store[other]]);
        return 1;
    }
    return 0;
}

void hevc_predict_vector(struct hevc_decoder *d, const struct hevc_block *b, int list, int index, int choice, int16_t out[2])
{
    int right = b->x + b->width, below = b->y + b->height, has_a = 0, has_b = 0, count = 0;
    const struct hevc_motion *a[2] = {hevc_neighbour(d, b, b->x - 1, below), hevc_neighbour(d, b, b->x - 1, below - 1)};
    const struct hevc_motion *above[3] = {hevc_neighbour(d, b, right, b->y - 1), hevc_neighbour(d, b, right - 1, b->y - 1),
                                          hevc_neighbour(d, b, b->x - 1, b->y - 1)};
    int16_t vector_a[2], vector_b[2], candidates[3][2] = {{0}};
    int scaled = a[0] || a[1];
    for (int i = 0; i < 2 && !has_a; i++)
        has_a = same_picture(d, a[i], list, index, vector_a);
    for (int i = 0; i < 2 && !has_a; i++)
        has_a = other_picture(d, a[i], list, index, vector_a);
    for (int i = 0; i < 3 && !has_b; i++)
        has_b = same_picture(d, above[i], list, index, vector_b);
    if (!scaled && has_b) {
        has_a = 1;
        memcpy(vector_a, vector_b, sizeof vector_a);
    }
    if (!scaled) {
        has_b = 0;
        for (int i = 0; i < 3 && !has_b; i++)
            has_b = other_picture(d, above[i], list, index, vector_b);
    }
    if (has_a)
        memcpy(candidates[count++], vector_a, sizeof vector_a);
    if (has_b && !(has_a && !memcmp(vector_a, vector_b, sizeof vector_a)))
        memcpy(candidates[count++], vector_b, sizeof vector_b);
    if (count < 2)
        hevc_temporal(d, b, list, index, candidates[count]);
    memcpy(out, candidates[choice], sizeof candidates[choice]);
}
