/* Filters across an edge (8.8.2): of 8 samples along it, all at once, up to 7 on either side change. */
#include "vp9.h"

#define INLINE inline __attribute__((always_inline))
#ifdef __x86_64__
#define VECTORIZED __attribute__((target_clones("arch=x86-64-v3", "default")))
#else
#define VECTORIZED
#endif

enum { ALONG = 8, MOST_REACH = 8 };

/* The samples along an edge; p[-1] and p[0] are those beside it, p[-2] and p[1] the next ones. As masks: all bits or none. */
typedef int16_t line __attribute__((vector_size(16)));

static INLINE line choose(line mask, line a, line b)
{
    return (mask & a) | (~mask & b);
}

static INLINE line limited(line x, int low, int high)
{
    line l = (line){0} + (int16_t)low, h = (line){0} + (int16_t)high;
    x = choose(x < l, l, x);
    return choose(x > h, h, x);
}

static INLINE line distance(line a, line b)
{
    line d = a - b;
    return choose(d < 0, -d, d);
}

static INLINE int any(line mask)
{
    uint64_t parts[2];
    memcpy(parts, &mask, sizeof parts);
    return (parts[0] | parts[1]) != 0;
}

/* -- samples -------------------------------------------------------------------------------------------------------- */

static INLINE void transpose(line s[ALONG])
{
    const line low = {0, 8, 1, 9, 2, 10, 3, 11}, high = {4, 12, 5, 13, 6, 14, 7, 15};
    for (int round = 0; round < 3; round++) {
        line t[ALONG];
        for (int i = 0; i < 4; i++) {
            t[2 * i] = __builtin_shuffle(s[i], s[i + 4], low);
            t[2 * i + 1] = __builtin_shuffle(s[i], s[i + 4], high);
        }
        memcpy(s, t, sizeof t);
    }
}

/* Loads or stores eight samples on each of eight rows. */
static INLINE void copy_rows(uint16_t *at, ptrdiff_t stride, line *s, int is_store)
{
    for (int i = 0; i < ALONG; i++, at += stride)
        if (is_store)
            memcpy(at, &s[i], sizeof *s);
        else
            memcpy(&s[i], at, sizeof *s);
}

/* Loads or stores `reach` samples on either side; at a vertical edge, those of a row are across it. */
static INLINE void copy(uint16_t *at, ptrdiff_t along, ptrdiff_t across, line *p, int reach, int is_store)
{
    if (along == 1) {
        for (int i = -reach; i < reach; i++)
            if (is_store)
                memcpy(at + i * across, &p[i], sizeof *p);
            else
                memcpy(&p[i], at + i * across, sizeof *p);
        return;
    }
    for (int first = -reach; first < reach; first += ALONG) {
        if (is_store)
            transpose(p + first);
        copy_rows(at + first, along, p + first, is_store);
        if (!is_store)
            transpose(p + first);
    }
}

/* -- filters -------------------------------------------------------------------------------------------------------- */

/* Whether samples `first` to `last` - 1 on either side are near those beside the edge. */
static INLINE line is_flat(const line *p, int first, int last, int most)
{
    line far = {0};
    for (int i = first; i < last; i++)
        far |= (distance(p[i], p[0]) > (int16_t)most) | (distance(p[-1 - i], p[-1]) > (int16_t)most);
    return ~far;
}

static INLINE line is_filtered(const line *p, const struct vp9_limits *l)
{
    line far = distance(p[-1], p[0]) * 2 + (distance(p[-2], p[1]) >> 1) > (int16_t)l->edge;
    for (int i = 0; i < 3; i++)
        far |= (distance(p[i + 1], p[i]) > (int16_t)l->inner) | (distance(p[-2 - i], p[-1 - i]) > (int16_t)l->inner);
    return ~far;
}

static INLINE void narrow(const line *p, line *to, line wanted, const struct vp9_limits *l)
{
    int low = -(128 << l->shift), high = (128 << l->shift) - 1, most = (256 << l->shift) - 1;
    line varied = (distance(p[-2], p[-1]) > (int16_t)l->variance) | (distance(p[1], p[0]) > (int16_t)l->variance);
    line filter = limited((limited(p[-2] - p[1], low, high) & varied) + 3 * (p[0] - p[-1]), low, high);
    line after = limited(filter + 4, low, high) >> 3, before = limited(filter + 3, low, high) >> 3, outer = ((after + 1) >> 1) & ~varied;
    to[0] = choose(wanted, limited(p[0] - after, 0, most), to[0]);
    to[-1] = choose(wanted, limited(p[-1] + before, 0, most), to[-1]);
    to[1] = choose(wanted, limited(p[1] - outer, 0, most), to[1]);
    to[-2] = choose(wanted, limited(p[-2] + outer, 0, most), to[-2]);
}

/* Averages of the 2 * `reach` - 1 samples around each, itself counted twice; the outermost samples go on. */
static INLINE void wide(const line *p, line *to, line wanted, int reach)
{
    int shift = reach == 4 ? 3 : 4;
    line sum = p[-reach] * (int16_t)reach + (int16_t)(1 << shift >> 1);
    for (int i = 1 - reach; i < 0; i++)
        sum += p[i];
    for (int i = 1 - reach; i < reach - 1; i++) {
        int next = i + reach - 1, last = i - reach;
        sum += p[next < reach ? next : reach - 1] - p[last > -reach ? last : -reach];
        to[i] = choose(wanted, (sum + p[i]) >> shift, to[i]);
    }
}

VECTORIZED void vp9_filter_edge(uint16_t *at, ptrdiff_t along, ptrdiff_t across, int width, const struct vp9_limits *l)
{
    line before[2 * MOST_REACH], after[2 * MOST_REACH], *p = before + MOST_REACH, *to = after + MOST_REACH, flat = {0}, flatter = {0};
    int reach = width == 16 ? 8 : 4;
    copy(at, along, across, p, reach, 0);
    line wanted = is_filtered(p, l);
    if (!any(wanted))
        return;
    if (width >= 8)
        flat = wanted & is_flat(p, 1, 4, 1 << l->shift);
    if (width == 16 && any(flat))
        flatter = flat & is_flat(p, 4, 8, 1 << l->shift);
    memcpy(to - reach, p - reach, 2 * (size_t)reach * sizeof *p);
    if (any(wanted & ~flat))
        narrow(p, to, wanted & ~flat, l);
    if (any(flat & ~flatter))
        wide(p, to, flat & ~flatter, 4);
    if (any(flatter))
        wide(p, to, flatter, 8);
    copy(at, along, across, to, any(flatter) ? 8 : 4, 1);
}
