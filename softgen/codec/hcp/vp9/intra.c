/* Intra prediction (8.5.1): edges above, to the left, and to the right of those above. */
#include "vp9.h"

enum { MOST = 32 };

/* Samples around a block; what lies outside has fixed values. */
struct around {
    uint16_t left[MOST];
    uint16_t row[1 + 2 * MOST + 1]; /* the corner, above, to the right of it; the last once more */
};

static unsigned least(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

static void fill(uint16_t *to, unsigned count, uint16_t value)
{
    for (unsigned i = 0; i < count; i++)
        to[i] = value;
}

/* The picture ends at a multiple of 8 luma samples: beyond, its last samples go on. */
static void gather(const struct vp9_picture *p, int plane, unsigned size, const struct vp9_edges *e, struct around *a)
{
    const struct plane *from = &p->picture->frame.plane[plane];
    unsigned end_x = p->columns * (plane ? 4 : 8), end_y = p->rows * (plane ? 4 : 8), middle = 1u << (p->depth - 1);
    uint16_t *above = a->row + 1;
    if (e->has_left)
        for (unsigned i = 0; i < size; i++)
            a->left[i] = *samples_at(from, e->x - 1, least(e->y + i, end_y - 1));
    else
        fill(a->left, size, (uint16_t)(middle + 1));
    if (!e->has_above) {
        fill(a->row, 2 * size + 2, (uint16_t)(middle - 1));
        return;
    }
    const uint16_t *line = samples_at(from, 0, e->y - 1);
    unsigned there = least(size == 4 && e->has_right ? 8 : size, end_x - e->x);
    memcpy(above, line + e->x, there * sizeof *above);
    fill(above + there, 2 * size + 1 - there, above[there - 1]);
    a->row[0] = e->has_left ? line[e->x - 1] : (uint16_t)(middle + 1);
}

/* -- modes ---------------------------------------------------------------------------------------------------------- */

static uint16_t two(unsigned a, unsigned b)
{
    return (uint16_t)((a + b + 1) >> 1);
}

static uint16_t three(unsigned a, unsigned b, unsigned c)
{
    return (uint16_t)((a + 2 * b + c + 2) >> 2);
}

static void dc(uint16_t *to, size_t stride, unsigned size, const struct around *a, const struct vp9_edges *e, unsigned depth)
{
    unsigned sum = 0, count = size * (e->has_above + e->has_left);
    for (unsigned i = 0; i < size; i++)
        sum += (e->has_above ? a->row[1 + i] : 0u) + (e->has_left ? a->left[i] : 0u);
    uint16_t value = (uint16_t)(count ? (sum + (count >> 1)) / count : 1u << (depth - 1));
    for (unsigned y = 0; y < size; y++)
        fill(to + y * stride, size, value);
}

static void straight(uint16_t *to, size_t stride, unsigned size, const struct around *a, int is_vertical)
{
    for (unsigned y = 0; y < size; y++)
        if (is_vertical)
            memcpy(to + y * stride, a->row + 1, size * sizeof *to);
        else
            fill(to + y * stride, size, a->left[y]);
}

static void true_motion(uint16_t *to, size_t stride, unsigned size, const struct around *a, unsigned depth)
{
    int most = (1 << depth) - 1;
    for (unsigned y = 0; y < size; y++)
        for (unsigned x = 0; x < size; x++)
            to[y * stride + x] = (uint16_t)clamp(a->left[y] + a->row[1 + x] - a->row[0], 0, most);
}

/* 45 and 63 degrees: from above and to the right. */
static void from_right(uint16_t *to, size_t stride, unsigned size, const uint16_t *above, int is_steep)
{
    for (unsigned y = 0; y < size; y++)
        for (unsigned x = 0; x < size; x++) {
            const uint16_t *at = above + x + (is_steep ? y >> 1 : y);
            to[y * stride + x] = is_steep && !(y & 1) ? two(at[0], at[1]) : three(at[0], at[1], at[2]);
        }
    if (!is_steep)
        to[(size - 1) * stride + size - 1] = above[2 * size - 1];
}

/* 207 degrees: from the left and below. */
static void from_below(uint16_t *to, size_t stride, unsigned size, const uint16_t *left)
{
    uint16_t line[MOST + 2 + MOST];
    memcpy(line, left, size * sizeof *line);
    fill(line + size, size + 2, left[size - 1]);
    for (unsigned y = 0; y < size; y++)
        for (unsigned x = 0; x < size; x++) {
            const uint16_t *at = line + least(y + (x >> 1), size - 1);
            to[y * stride + x] = x & 1 ? three(at[0], at[1], at[2]) : two(at[0], at[1]);
        }
}

/* 117, 135, 153 degrees: along a line from the lowest sample to the left over the corner to the last one above. */
static void from_corner(uint16_t *to, size_t stride, unsigned size, const struct around *a, int mode)
{
    uint16_t line[2 * MOST + 1];
    const uint16_t *corner = line + size;
    for (unsigned i = 0; i < size; i++)
        line[size - 1 - i] = a->left[i];
    memcpy(line + size, a->row, (size + 1) * sizeof *line);
    for (int y = 0; y < (int)size; y++)
        for (int x = 0; x < (int)size; x++) {
            int along = mode == D117_MODE ? 2 * x - y : mode == D153_MODE ? 2 * y - x : 0; /* below zero: on the other edge */
            const uint16_t *at;
            uint16_t *sample = &to[(size_t)y * stride + (unsigned)x];
            if (mode == D135_MODE) {
                at = corner + x - y;
                *sample = three(at[-1], at[0], at[1]);
            } else if (mode == D117_MODE) {
                at = along >= -1 ? corner + x - (y >> 1) : corner - (y - 2 * x - 1);
                *sample = along >= 0 && !(y & 1) ? two(at[0], at[1]) : three(at[-1], at[0], at[1]);
            } else {
                at = along >= -1 ? corner - y + (x >> 1) : corner + (x - 2 * y - 1);
                *sample = along >= 0 && !(x & 1) ? two(at[0], at[-1]) : three(at[-1], at[0], at[1]);
            }
        }
}

void vp9_intra(const struct vp9_picture *p, int plane, unsigned tx, int mode, const struct vp9_edges *edges)
{
    const struct plane *of = &p->picture->frame.plane[plane];
    uint16_t *to = samples_at(of, edges->x, edges->y);
    unsigned size = 4u << tx;
    struct around a;
    gather(p, plane, size, edges, &a);
    switch (mode) {
    case DC_MODE:
        dc(to, of->stride, size, &a, edges, p->depth);
        break;
    case V_MODE:
    case H_MODE:
        straight(to, of->stride, size, &a, mode == V_MODE);
        break;
    case TM_MODE:
        true_motion(to, of->stride, size, &a, p->depth);
        break;
    case D45_MODE:
    case D63_MODE:
        from_right(to, of->stride, size, a.row + 1, mode == D63_MODE);
        break;
    case D207_MODE:
        from_below(to, of->stride, size, a.left);
        break;
    default:
        from_corner(to, of->stride, size, &a, mode);
    }
}
