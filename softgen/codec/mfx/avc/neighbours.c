/* Macroblocks beside the current one (6.4.8 to 6.4.12). */
#include "avc.h"

enum { A, B, C, D };

/* A macroblock of the same slice; null: not available. */
static const struct avc_mb *at(const struct avc_decoder *d, int x, int y)
{
    if (x < 0 || y < 0 || x >= (int)d->avc->width)
        return NULL;
    const struct avc_mb *mb = &d->avc->mbs[(size_t)y * d->avc->width + (size_t)x];
    return mb->slice == (uint32_t)d->number ? mb : NULL;
}

static void set_samples(struct avc_decoder *d)
{
    unsigned field = d->avc->mbaff && d->field, top = field ? d->y & ~1u : d->y;
    for (int i = 0; i < (d->avc->monochrome ? 1 : PLANES); i++) {
        const struct plane *p = &d->avc->picture->frame.plane[i];
        size_t size = i ? 8 : 16;
        d->stride[i] = (ptrdiff_t)p->stride << field;
        d->samples[i] = p->samples + (top * size + (field ? d->y & 1 : 0)) * p->stride + d->x * size;
    }
}

/* Makes a macroblock the current one, with `d->field` as it is. */
void avc_enter(struct avc_decoder *d, unsigned mb_x, unsigned mb_y)
{
    int x = (int)mb_x, y = (int)mb_y, step = 1;
    d->x = mb_x;
    d->y = mb_y;
    d->mb = &d->avc->mbs[(size_t)mb_y * d->avc->width + mb_x];
    if (d->avc->mbaff) {
        y &= ~1;
        step = 2;
    }
    d->beside[A] = at(d, x - 1, y);
    d->beside[B] = at(d, x, y - step);
    d->beside[C] = at(d, x + 1, y - step);
    d->beside[D] = at(d, x - 1, y - step);
    set_samples(d);
}

/* Above a pair's macroblock, in the pair `top` (table 6-4, yN < 0). */
static struct avc_place above(const struct avc_decoder *d, const struct avc_mb *top, int x, int y)
{
    int bottom = d->y & 1;
    if (top && d->field && !bottom) {
        if (!top->field)
            return (struct avc_place){top + d->avc->width, x, 2 * y};
        return (struct avc_place){top, x, y};
    }
    return (struct avc_place){top ? top + d->avc->width : NULL, x, y};
}

/* Left of a macroblock, in the pair `pair` (table 6-4, xN < 0 and 0 <= yN). */
static struct avc_place left(const struct avc_decoder *d, const struct avc_mb *pair, int x, int y, int height)
{
    int bottom = d->y & 1, other;
    if (!pair)
        return (struct avc_place){NULL, x, y};
    if (pair->field == d->field)
        other = bottom;
    else if (d->field) { /* rows of a frame, every second one */
        int row = 2 * y + bottom;
        other = row >= height;
        y = row - (other ? height : 0);
    } else {
        int row = y + (bottom ? height : 0);
        other = row & 1;
        y = row >> 1;
    }
    return (struct avc_place){pair + (other ? d->avc->width : 0), x, y};
}

static struct avc_place in_pairs(const struct avc_decoder *d, int x, int y, int width, int height)
{
    int bottom = d->y & 1, wrapped = x & (width - 1);
    if (y >= 0)
        return left(d, d->beside[A], wrapped, y, height);
    y += height; /* counted from the first row of the macroblock it is in */
    if (bottom && !d->field) {
        if (x >= width)
            return (struct avc_place){NULL, 0, 0};
        if (x >= 0)
            return (struct avc_place){d->mb - d->avc->width, x, y};
        const struct avc_mb *pair = d->beside[A];
        if (pair && pair->field) /* row 15 of the pair */
            return (struct avc_place){pair + d->avc->width, wrapped, y >> 1};
        return (struct avc_place){pair, wrapped, y};
    }
    const struct avc_mb *pair = d->beside[x < 0 ? D : x < width ? B : C];
    struct avc_place found = above(d, pair, wrapped, y - height);
    found.y += height;
    return found;
}

/* The place of a sample relative to the current macroblock, of a plane with `width` by `height` samples a macroblock. */
struct avc_place avc_neighbour(const struct avc_decoder *d, int x, int y, int width, int height)
{
    if (x >= 0 && x < width && y >= 0 && y < height)
        return (struct avc_place){d->mb, x, y};
    if (y >= height || (x >= width && y >= 0))
        return (struct avc_place){NULL, 0, 0};
    if (d->avc->mbaff)
        return in_pairs(d, x, y, width, height);
    return (struct avc_place){d->beside[y >= 0 ? A : x < 0 ? D : x < width ? B : C], x & (width - 1), y & (height - 1)};
}
