/* Filters across an edge (8.8.2): of 8 samples along it, up to 7 on either side change. */
#include <stdlib.h>

#include "vp9.h"

enum { ALONG = 8 };

static int round_shift(int value, int shift)
{
    return (value + (1 << (shift - 1))) >> shift;
}

/* Whether samples `first` to `last` - 1 on either side are near those beside the edge. */
static int is_flat(const int *p, int first, int last, int most)
{
    for (int i = first; i < last; i++)
        if (abs(p[i] - p[0]) > most || abs(p[-1 - i] - p[-1]) > most)
            return 0;
    return 1;
}

static int is_filtered(const int *p, const struct vp9_limits *l)
{
    for (int i = 0; i < 3; i++)
        if (abs(p[i + 1] - p[i]) > l->inner || abs(p[-2 - i] - p[-1 - i]) > l->inner)
            return 0;
    return abs(p[-1] - p[0]) * 2 + abs(p[-2] - p[1]) / 2 <= l->edge;
}

static void narrow(const int *p, uint16_t *at, ptrdiff_t across, const struct vp9_limits *l)
{
    int low = -(128 << l->shift), high = (128 << l->shift) - 1, most = (256 << l->shift) - 1;
    int is_varied = abs(p[-2] - p[-1]) > l->variance || abs(p[1] - p[0]) > l->variance;
    int outer = is_varied ? clamp(p[-2] - p[1], low, high) : 0, filter = clamp(outer + 3 * (p[0] - p[-1]), low, high);
    int after = clamp(filter + 4, low, high) >> 3, before = clamp(filter + 3, low, high) >> 3;
    at[0] = (uint16_t)clamp(p[0] - after, 0, most);
    at[-across] = (uint16_t)clamp(p[-1] + before, 0, most);
    if (is_varied)
        return;
    filter = round_shift(after, 1);
    at[across] = (uint16_t)clamp(p[1] - filter, 0, most);
    at[-2 * across] = (uint16_t)clamp(p[-2] + filter, 0, most);
}

/* Averages of the 2 * `reach` - 1 samples around each, itself counted twice; the outermost samples go on. */
static void wide(const int *p, uint16_t *at, ptrdiff_t across, int reach)
{
    int sum = p[-reach] * reach, shift = reach == 4 ? 3 : 4;
    for (int i = 1 - reach; i < 0; i++)
        sum += p[i];
    for (int i = 1 - reach; i < reach - 1; i++) {
        int next = i + reach - 1, last = i - reach;
        sum += p[next < reach ? next : reach - 1] - p[last > -reach ? last : -reach];
        at[i * across] = (uint16_t)round_shift(sum + p[i], shift);
    }
}

void vp9_filter_edge(uint16_t *at, ptrdiff_t along, ptrdiff_t across, int width, const struct vp9_limits *l)
{
    int samples[16], *p = samples + 8, reach = width == 16 ? 8 : 4;
    for (int k = 0; k < ALONG; k++, at += along) {
        for (int i = -reach; i < reach; i++)
            p[i] = at[i * across];
        if (!is_filtered(p, l))
            continue;
        if (width >= 8 && is_flat(p, 1, 4, 1 << l->shift))
            wide(p, at, across, width == 16 && is_flat(p, 4, 8, 1 << l->shift) ? 8 : 4);
        else
            narrow(p, at, across, l);
    }
}
