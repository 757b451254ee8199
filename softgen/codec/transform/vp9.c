/* Inverse transforms of VP9 (8.7): DCT, ADST and WHT, rows first; eight rows or columns at a time. */
#include <string.h>

#include "transform.h"

#define INLINE inline __attribute__((always_inline))
#ifdef __x86_64__
#define VECTORIZED __attribute__((target_clones("arch=x86-64-v3", "default")))
#else
#define VECTORIZED
#endif

enum { ADST_DOWN = 1, ADST_ACROSS = 2, COSINE = 11585 /* of a quarter turn */ };

typedef int32_t small_lanes __attribute__((vector_size(16)));
typedef int32_t narrow_lanes __attribute__((vector_size(32)));
typedef int64_t wide_lanes __attribute__((vector_size(64)));
typedef int64_t half_lanes __attribute__((vector_size(32)));

#define element int32_t
#define LANES 4
#define lanes small_lanes
#define NAME(f) f##_small
#include "vp9_lanes.h"
#undef LANES
#undef lanes
#undef NAME
#define LANES 8
#define lanes narrow_lanes
#define NAME(f) f##_narrow
#include "vp9_lanes.h"
#undef lanes
#undef element
#undef NAME
#define element int64_t
#define lanes wide_lanes
#define NAME(f) f##_wide
#include "vp9_lanes.h"
#undef LANES
#undef lanes
#undef NAME
#define LANES 4
#define lanes half_lanes
#define NAME(f) f##_half
#include "vp9_lanes.h"

static INLINE void add_samples(uint16_t *to, ptrdiff_t stride, int size, int shift, int most, const int32_t *residual)
{
    for (int y = 0; y < size; y++, to += stride, residual += size)
        for (int x = 0; x < size; x++)
            to[x] = (uint16_t)clamp(to[x] + ((residual[x] + (1 << shift >> 1)) >> shift), 0, most);
}

static INLINE void add_value(uint16_t *to, ptrdiff_t stride, int size, int value, int most)
{
    for (int y = 0; y < size; y++, to += stride)
        for (int x = 0; x < size; x++)
            to[x] = (uint16_t)clamp(to[x] + value, 0, most);
}

/* DCT of a block whose first coefficient alone is not zero; sums of 8-bit samples fit into 32 bits. */
VECTORIZED static void add_mean(uint16_t *to, ptrdiff_t stride, const int32_t *block, const struct vp9_transform *t)
{
    int64_t value = block[0];
    for (int i = 0; i < 2; i++) {
        value = (value * COSINE + 8192) >> 14;
        value = t->depth == 8 ? (int32_t)value : value;
    }
    int shift = t->size < 2 ? (int)t->size + 4 : 6, most = (1 << t->depth) - 1, residual = ((int32_t)value + (1 << shift >> 1)) >> shift;
    switch (t->size) { /* each of a size that is known */
    case 0:
        return add_value(to, stride, 4, residual, most);
    case 1:
        return add_value(to, stride, 8, residual, most);
    case 2:
        return add_value(to, stride, 16, residual, most);
    default:
        return add_value(to, stride, 32, residual, most);
    }
}

/* Sums of products fit into 32 bits where samples have 8. `used`: columns and rows that may have coefficients. */
VECTORIZED static void add_narrow(uint16_t *to, ptrdiff_t stride, const int32_t *block, const struct vp9_transform *t, int used)
{
    int32_t residual[1024];
    switch (t->size) {
    case 0:
        residual_small(block, residual, t, 2, 4);
        return add_samples(to, stride, 4, 4, 255, residual);
    case 1:
        residual_narrow(block, residual, t, 3, 8);
        return add_samples(to, stride, 8, 5, 255, residual);
    case 2:
        if (used <= 8)
            residual_narrow(block, residual, t, 4, 8);
        else
            residual_narrow(block, residual, t, 4, 16);
        return add_samples(to, stride, 16, 6, 255, residual);
    default:
        if (used <= 8)
            residual_narrow(block, residual, t, 5, 8);
        else
            residual_narrow(block, residual, t, 5, 32);
        return add_samples(to, stride, 32, 6, 255, residual);
    }
}

VECTORIZED static void add_wide(uint16_t *to, ptrdiff_t stride, const int32_t *block, const struct vp9_transform *t)
{
    int64_t from[1024], sums[1024];
    int32_t residual[1024];
    int log2_size = (int)t->size + 2, size = 1 << log2_size, count = 1 << 2 * log2_size;
    for (int i = 0; i < count; i++)
        from[i] = block[i];
    switch (t->size) {
    case 0:
        residual_half(from, sums, t, 2, 4);
        break;
    case 1:
        residual_wide(from, sums, t, 3, 8);
        break;
    case 2:
        residual_wide(from, sums, t, 4, 16);
        break;
    default:
        residual_wide(from, sums, t, 5, 32);
    }
    for (int i = 0; i < count; i++)
        residual[i] = (int32_t)sums[i];
    add_samples(to, stride, size, t->size < 2 ? (int)t->size + 4 : 6, (1 << t->depth) - 1, residual);
}

/* The lossless transform: Walsh-Hadamard. */
static void wht(const int32_t *from, int step, int32_t *to, int shift)
{
    int a = from[0] >> shift, c = from[step] >> shift, d = from[2 * step] >> shift, b = from[3 * step] >> shift;
    a += c;
    d -= b;
    int e = (a - d) >> 1;
    b = e - b;
    c = e - c;
    to[0] = a - b, to[4] = b, to[8] = c, to[12] = d + c;
}

static void add_lossless(uint16_t *to, ptrdiff_t stride, const int32_t *block, int most)
{
    int32_t middle[16], residual[16];
    for (int y = 0; y < 4; y++)
        wht(block + y, 4, middle + y, 2); /* middle[x][y] */
    for (int x = 0; x < 4; x++)
        wht(middle + 4 * x, 1, residual + x, 0);
    add_samples(to, stride, 4, 0, most, residual);
}

void vp9_add(uint16_t *to, ptrdiff_t stride, int32_t *block, const struct vp9_transform *t)
{
    int log2_size = (int)t->size + 2, columns = (int)(t->reach >> log2_size) + 1, rows = (int)(t->reach & ((1u << log2_size) - 1)) + 1;
    if (t->lossless)
        add_lossless(to, stride, block, (1 << t->depth) - 1);
    else if (!t->reach && !t->type)
        add_mean(to, stride, block, t);
    else if (t->depth == 8)
        add_narrow(to, stride, block, t, columns > rows ? columns : rows);
    else
        add_wide(to, stride, block, t);
    memset(block, 0, sizeof *block * (size_t)(columns << log2_size));
}
