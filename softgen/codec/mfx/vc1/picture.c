/* VC-1 slices, and what completes a picture. */
#include <string.h>

#include "vc1.h"

enum { ROWS = 16 }; /* of a call */

static const struct vc1_mb *neighbour(const struct vc1_decoder *d, unsigned left, unsigned up)
{
    if (left > d->x || d->y < d->slice->first + up)
        return NULL;
    return d->mb - left - (size_t)up * d->p->picture->width;
}

static void enter(struct vc1_decoder *d, unsigned x, unsigned y)
{
    d->x = x;
    d->y = y;
    d->mb = d->p->mbs + (size_t)y * d->p->picture->width + x;
    d->left = (struct vc1_mb *)neighbour(d, 1, 0);
    d->above = (struct vc1_mb *)neighbour(d, 0, 1);
    d->corner = (struct vc1_mb *)neighbour(d, 1, 1);
    memset(d->mb, 0, sizeof *d->mb);
}

/* A row of macroblocks; whether all of it could be decoded. */
static int decode_row(struct vc1_decoder *d, unsigned y)
{
    struct picture *picture = d->p->picture;
    for (unsigned x = 0; x < picture->width; x++) {
        enter(d, x, y);
        int fine = vc1_macroblock(d), over = bits_left(d->bits) < 0;
        if (!fine || over) {
            picture->errors |= over ? VC1_PREMATURE_END : VC1_BAD_CODE;
            memset(d->mb, 0, sizeof *d->mb);
            return 0;
        }
        picture->state[(size_t)y * picture->width + x] = DECODED;
    }
    return 1;
}

/* Coding sets of coefficients, by the picture's index and the fineness of its quantiser (tables 7.1.1.45). */
static unsigned coding_set(const struct vc1_picture *p, unsigned index)
{
    static const unsigned sets[3] = {0, 0, 4};
    int fine = p->implicit ? p->uniform : p->quantiser <= 8;
    return index ? sets[index] : fine ? 6 : 2;
}

/* Entry: a slice, some rows of macroblocks at a time; answers how many are left. */
ENTRY int64_t vc1_decode(struct vc1_slice *s, void *record)
{
    struct vc1_picture *p = s->picture;
    struct vc1_decoder d = {.p = p, .slice = s, .bits = &s->bits, .step = (p->quantiser > 4) + (p->quantiser > 12)};
    (void)record;
    d.intra_set = coding_set(p, p->luma_set);
    d.inter_set = coding_set(p, p->chroma_set) + 1;
    if (s->row == s->first)
        p->slice_start[s->first] = 1;
    for (unsigned end = s->row + ROWS; s->row < end && s->row < s->end; s->row++)
        if (!decode_row(&d, s->row))
            s->row = s->end - 1;
    return s->end - s->row;
}

/* Macroblocks that could not be decoded are those of the first reference; without one they are grey. */
static void conceal(struct vc1_picture *p)
{
    struct picture *picture = p->picture;
    for (unsigned i = 0; i < picture->width * picture->height; i++)
        if (picture->state[i] != DECODED) {
            memset(&p->mbs[i], 0, sizeof p->mbs[i]);
            conceal_macroblock(picture, i, 0);
            picture->errors |= VC1_CONCEALED;
        }
}

/* Entry: what is left to do when all slices are decoded. */
ENTRY int64_t vc1_close(struct vc1_picture *p, void *record)
{
    struct picture *picture = p->picture;
    (void)record;
    conceal(p);
    p->slice_start[0] = 1;
    if (p->samples[0])
        vc1_smooth_overlaps(p);
    if (picture->surfaces[0].base)
        store_rows(picture, &picture->surfaces[0], 0, picture->height);
    picture->surfaces[0].base = 0;
    if (picture->surfaces[1].base && p->loop_filter)
        vc1_loop_filter(p);
    return 0;
}
