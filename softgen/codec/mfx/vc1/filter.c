/* Overlap smoothing and the loop filter of VC-1 pictures (8.5, 8.6). Both keep within slices. */
#include <stdlib.h>
#include <string.h>

#include "vc1.h"

/* -- overlap smoothing ------------------------------------------------------------------------------------------------- */

/* A block by its place among those of its plane. */
struct site {
    const struct vc1_mb *mb;
    int block;
};

static struct site site_of(const struct vc1_picture *p, int number, unsigned x, unsigned y)
{
    if (number)
        return (struct site){&p->mbs[(size_t)y * p->picture->width + x], number + 3};
    return (struct site){&p->mbs[(size_t)(y >> 1) * p->picture->width + (x >> 1)], (int)(2 * (y & 1) + (x & 1))};
}

static int is_smoothed(const struct vc1_picture *p, struct site a, struct site b)
{
    if (!(a.mb->intra >> a.block & 1) || !(b.mb->intra >> b.block & 1))
        return 0;
    return p->overlap != OVERLAP_SELECTED || (a.mb->overlap && b.mb->overlap);
}

/* Whether the edge above a row of blocks is one of a slice or of the picture. */
static int begins_slice(const struct vc1_picture *p, int number, unsigned row)
{
    return number ? p->slice_start[row] : !(row & 1) && p->slice_start[row >> 1];
}

static void smooth_plane(const struct vc1_picture *p, int number)
{
    unsigned scale = number ? 1 : 2, width = p->picture->width * scale, height = p->picture->height * scale;
    ptrdiff_t stride = p->picture->frame.plane[number].stride;
    for (unsigned y = 0; y < height; y++)
        for (unsigned x = 1; x < width; x++)
            if (is_smoothed(p, site_of(p, number, x - 1, y), site_of(p, number, x, y))) {
                int16_t *at = p->samples[number] + (ptrdiff_t)y * 8 * stride + x * 8;
                vc1_smooth_edge(at - 2, at, 1, stride);
            }
    for (unsigned y = 1; y < height; y++)
        for (unsigned x = 0; x < width; x++)
            if (!begins_slice(p, number, y) && is_smoothed(p, site_of(p, number, x, y - 1), site_of(p, number, x, y))) {
                int16_t *at = p->samples[number] + (ptrdiff_t)y * 8 * stride + x * 8;
                vc1_smooth_edge(at - 2 * stride, at, stride, 1);
            }
}

static void put_plane(const struct vc1_picture *p, int number)
{
    const struct plane *plane = &p->picture->frame.plane[number];
    for (unsigned y = 0; y < plane->height; y++)
        for (unsigned x = 0; x < plane->width; x += 8) {
            struct site s = site_of(p, number, x / 8, y / 8);
            size_t at = (size_t)y * plane->stride + x;
            for (int i = 0; s.mb->intra >> s.block & 1 && i < 8; i++)
                plane->samples[at + (size_t)i] = clamp_sample(p->samples[number][at + (size_t)i] + 128);
        }
}

void vc1_smooth_overlaps(struct vc1_picture *p)
{
    for (int number = 0; number < PLANES; number++) {
        smooth_plane(p, number);
        put_plane(p, number);
    }
}

/* -- loop filter ------------------------------------------------------------------------------------------------------- */

static int activity(const uint8_t *at, ptrdiff_t step)
{
    return (2 * (at[-2 * step] - at[step]) - 5 * (at[-step] - at[0]) + 4) >> 3;
}

/* A line across an edge; whether the other lines of its segment are to be filtered (8.6.4). */
static int filter_line(uint8_t *at, ptrdiff_t step, int quantiser)
{
    int a0 = activity(at, step), size = abs(a0);
    if (size >= quantiser)
        return 0;
    int a1 = abs(activity(at - 2 * step, step)), a2 = abs(activity(at + 2 * step, step)), a3 = a1 < a2 ? a1 : a2;
    int clip = (at[-step] - at[0]) / 2;
    if (a3 >= size || !clip)
        return 0;
    int change = (5 * (size - a3)) >> 3;
    if ((a0 < 0) != (clip < 0)) {
        change = change < abs(clip) ? change : abs(clip);
        change = clip < 0 ? -change : change;
        at[-step] = clamp_sample(at[-step] - change);
        at[0] = clamp_sample(at[0] + change);
    }
    return 1;
}

/* Four lines, of which the third decides. */
static void filter_segment(uint8_t *at, ptrdiff_t across, ptrdiff_t along, int quantiser)
{
    if (filter_line(at + 2 * along, across, quantiser)) {
        filter_line(at, across, quantiser);
        filter_line(at + along, across, quantiser);
        filter_line(at + 3 * along, across, quantiser);
    }
}

/* What decides at the edges of one direction: `horizontal` edges lie between rows. */
struct pass {
    const struct vc1_picture *p;
    const struct plane *plane;
    int number, horizontal;
};

static void filter_part(const struct pass *f, unsigned x, unsigned y)
{
    ptrdiff_t stride = f->plane->stride;
    filter_segment(f->plane->samples + (ptrdiff_t)y * stride + x, f->horizontal ? stride : 1, f->horizontal ? 1 : stride, (int)f->p->quantiser);
}

static const int16_t *vector_of(const struct pass *f, struct site s)
{
    return f->number ? s.mb->chroma : s.mb->vectors[0][s.block];
}

/* Parts of the edge between two blocks that are filtered: bit 1 is the first half, bit 0 the second (8.6.2). */
static unsigned edge_parts(const struct pass *f, struct site before, struct site after)
{
    const int16_t *a = vector_of(f, before), *b = vector_of(f, after);
    if (f->p->type != VC1_P || (before.mb->intra >> before.block & 1) || (after.mb->intra >> after.block & 1) || a[0] != b[0] || a[1] != b[1])
        return 3;
    unsigned near = before.mb->coded >> (4 * before.block) & 15, far = after.mb->coded >> (4 * after.block) & 15;
    if (f->horizontal)
        return (near | far >> 2) & 3;
    unsigned both = (near | far >> 1) & 5;
    return (both >> 1 & 2) | (both & 1);
}

/* Parts of the edge in the middle of a block. */
static unsigned middle_parts(const struct pass *f, struct site s)
{
    unsigned coded = s.mb->coded >> (4 * s.block) & 15;
    int transform = s.mb->transforms[s.block];
    if (f->p->type != VC1_P || (transform != TT_4X4 && transform != (f->horizontal ? TT_8X4 : TT_4X8)))
        return 0;
    if (f->horizontal)
        return (coded & 10 ? 2u : 0u) | (coded & 5 ? 1u : 0u);
    return (coded & 12 ? 2u : 0u) | (coded & 3 ? 1u : 0u);
}

static void filter_parts(const struct pass *f, unsigned parts, unsigned x, unsigned y)
{
    if (parts & 2)
        filter_part(f, x, y);
    if (parts & 1)
        filter_part(f, x + (f->horizontal ? 4 : 0), y + (f->horizontal ? 0 : 4));
}

/* Edges between blocks, then those within. */
static void filter_pass(const struct pass *f)
{
    unsigned width = f->plane->width / 8, height = f->plane->height / 8;
    for (unsigned y = 0; y < height; y++)
        for (unsigned x = 0; x < width; x++) {
            int outside = f->horizontal ? begins_slice(f->p, f->number, y) : !x;
            if (!outside) {
                struct site before = site_of(f->p, f->number, x - !f->horizontal, y - (unsigned)f->horizontal);
                filter_parts(f, edge_parts(f, before, site_of(f->p, f->number, x, y)), 8 * x, 8 * y);
            }
        }
    for (unsigned y = 0; y < height; y++)
        for (unsigned x = 0; x < width; x++)
            filter_parts(f, middle_parts(f, site_of(f->p, f->number, x, y)), 8 * x + (f->horizontal ? 0 : 4), 8 * y + (f->horizontal ? 4 : 0));
}

void vc1_loop_filter(struct vc1_picture *p)
{
    for (int number = 0; number < PLANES; number++)
        for (int horizontal = 1; horizontal >= 0; horizontal--)
            filter_pass(&(struct pass){p, &p->picture->frame.plane[number], number, horizontal});
}
