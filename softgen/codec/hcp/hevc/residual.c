/* Coefficients of a transform block (7.3.8.11), scaled as they are read, transformed and added to samples (8.6). */
#include <string.h>

#include "../../transform/hevc.h"
#include "hevc.h"

#define INLINE inline __attribute__((always_inline))
#ifdef __x86_64__
#define VECTORIZED __attribute__((target_clones("arch=x86-64-v3", "default")))
#else
#define VECTORIZED
#endif

enum { SCAN_DIAGONAL, SCAN_ROWS, SCAN_COLUMNS };

struct scan {
    int kind, log2, component, size;
    int last; /* position of the last coefficient, y << 8 | x */
    const uint8_t *blocks, *within; /* y << 4 | x */
};

/* A copy of the arithmetic decoder, which compilers keep in registers. */
struct reader {
    struct cabac cabac;
    uint8_t *contexts;
    int error;
};

static INLINE int bit(struct reader *r, int context)
{
    return cabac_bit(&r->cabac, &r->contexts[context]);
}

static INLINE unsigned bypass_bits(struct reader *r, int count)
{
    unsigned value = 0;
    while (count-- > 0)
        value = value << 1 | (unsigned)cabac_bypass(&r->cabac);
    return value;
}

struct scaler {
    const uint8_t *scale; /* of each coefficient; null: 16 */
    int factor, shift;
    int64_t round;
};

/* 16 positions of scans by rows and by columns; blocks of an 8x8 block. */
static const uint8_t rows_4[16] = {0x00, 0x01, 0x02, 0x03, 0x10, 0x11, 0x12, 0x13, 0x20, 0x21, 0x22, 0x23, 0x30, 0x31, 0x32, 0x33};
static const uint8_t columns_4[16] = {0x00, 0x10, 0x20, 0x30, 0x01, 0x11, 0x21, 0x31, 0x02, 0x12, 0x22, 0x32, 0x03, 0x13, 0x23, 0x33};
static const uint8_t rows_2[4] = {0x00, 0x01, 0x10, 0x11}, columns_2[4] = {0x00, 0x10, 0x01, 0x11};

static int scan_kind(const struct hevc_decoder *d, int log2, int component, int mode)
{
    if (!d->cu.intra || !(log2 == 2 || (log2 == 3 && !component)))
        return SCAN_DIAGONAL;
    return mode >= 6 && mode <= 14 ? SCAN_COLUMNS : mode >= 22 && mode <= 30 ? SCAN_ROWS : SCAN_DIAGONAL;
}

static INLINE int last_prefix(struct reader *r, int first, int log2, int component)
{
    int offset = component ? 15 : 3 * (log2 - 2) + ((log2 - 1) >> 2), shift = component ? log2 - 2 : (log2 + 1) >> 2, count = 0;
    while (count < 2 * log2 - 1 && bit(r, first + offset + (count >> shift)))
        count++;
    return count;
}

static INLINE int last_place(struct reader *r, int prefix)
{
    int bits = (prefix >> 1) - 1;
    return prefix > 3 ? (1 << bits) * (2 + (prefix & 1)) + (int)bypass_bits(r, bits) : prefix;
}

static INLINE void read_last(struct reader *r, struct scan *s)
{
    int x = last_prefix(r, LAST_X, s->log2, s->component), y = last_prefix(r, LAST_Y, s->log2, s->component);
    x = last_place(r, x);
    y = last_place(r, y);
    s->last = s->kind == SCAN_COLUMNS ? x << 8 | y : y << 8 | x;
    if (s->kind == SCAN_DIAGONAL) {
        static const uint8_t one[1] = {0};
        s->blocks = s->log2 == 2 ? one : hevc_diagonal[s->log2 - 3];
        s->within = hevc_diagonal[1];
    } else {
        s->blocks = s->kind == SCAN_ROWS ? rows_2 : columns_2;
        s->within = s->kind == SCAN_ROWS ? rows_4 : columns_4;
    }
}

/* Contexts of sig_coeff_flag within a block, by the flags of the blocks at its right and below, and position (9.3.4.2.5). */
static const uint8_t near_context[4][16] = {
    {2, 1, 1, 0, 1, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0},
    {2, 2, 2, 2, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0},
    {2, 1, 0, 0, 2, 1, 0, 0, 2, 1, 0, 0, 2, 1, 0, 0},
    {2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2},
};
static const uint8_t small_context[16] = {0, 1, 4, 5, 2, 3, 4, 5, 6, 6, 8, 8, 7, 7, 8, 8};

/* What to add to an entry of `near_context`. */
static int context_base(const struct scan *s, int block)
{
    if (s->component)
        return SIGNIFICANT + 27 + (s->log2 == 3 ? 9 : 12);
    return SIGNIFICANT + (block ? 3 : 0) + (s->log2 == 3 ? s->kind == SCAN_DIAGONAL ? 9 : 15 : 21);
}

/* Indices in the scan of the block's coefficients that are not zero, the last one first; answers how many. */
static INLINE int significant(struct reader *r, const struct scan *s, int block, int first, int is_last, int coded, int beside, uint8_t *out)
{
    const uint8_t *map = s->log2 == 2 ? small_context : near_context[beside];
    int base = s->log2 == 2 ? SIGNIFICANT + (s->component ? 27 : 0) : context_base(s, block), count = 0;
    if (is_last)
        out[count++] = (uint8_t)(first + 1);
    for (int i = first; i > 0; i--) {
        int at = s->within[i];
        if (bit(r, base + map[(at >> 4) * 4 + (at & 15)]))
            out[count++] = (uint8_t)i;
    }
    if (first < 0)
        return count;
    int inferred = block && !is_last && coded && !count, dc = !block ? SIGNIFICANT + (s->component ? 27 : 0) : base + map[0];
    if (inferred || bit(r, dc))
        out[count++] = 0;
    return count;
}

static INLINE int remaining(struct reader *r, int rice)
{
    int prefix = 0;
    while (prefix < 32 && cabac_bypass(&r->cabac))
        prefix++;
    if (prefix <= 3)
        return (prefix << rice) + (int)bypass_bits(r, rice);
    if (prefix - 3 + rice > 24) {
        r->error = 1;
        return 0;
    }
    return (((1 << (prefix - 3)) + 3 - 1) << rice) + (int)bypass_bits(r, prefix - 3 + rice);
}

/* Flags of levels above 1 and 2 (9.3.4.2.6, 9.3.4.2.7); `greater` is the context that goes on from block to block. */
static INLINE void read_flags(struct reader *r, const struct scan *s, int block, int is_first, int *greater, int count, int *level)
{
    int set = (block && !s->component ? 2 : 0) + (!is_first && !*greater), at = -1, chroma = s->component ? 16 : 0;
    *greater = 1;
    for (int i = 0; i < count; i++)
        level[i] = 1;
    for (int i = 0; i < count && i < 8; i++)
        if (bit(r, GREATER_1 + chroma + 4 * set + *greater)) {
            level[i] = 2;
            *greater = 0;
            at = at < 0 ? i : at;
        } else if (*greater && *greater < 3)
            ++*greater;
    if (at >= 0)
        level[at] += bit(r, GREATER_2 + (s->component ? 4 : 0) + set);
}

static INLINE void read_levels(struct reader *r, int count, int *level)
{
    int rice = 0, is_first = 1;
    for (int i = 0; i < count; i++) {
        int base = i >= 8 ? 1 : is_first ? 3 : 2; /* the least level that more is said of */
        is_first = is_first && level[i] < 2;
        if (level[i] != base)
            continue;
        level[i] += remaining(r, rice);
        if (level[i] > 3 << rice && rice < 4)
            rice++;
    }
}

static INLINE int16_t scaled(const struct scaler *q, int level, int at)
{
    if (!q->factor)
        return (int16_t)clamp(level, INT16_MIN, INT16_MAX);
    int64_t value = ((int64_t)level * (q->scale ? q->scale[at] : 16) * q->factor + q->round) >> q->shift;
    return (int16_t)(value < INT16_MIN ? INT16_MIN : value > INT16_MAX ? INT16_MAX : value);
}

static INLINE void coefficients(struct hevc_decoder *d, struct reader *r, const struct scan *s, int block, const uint8_t *places, int count, int *level,
                         const struct scaler *q)
{
    int hides = d->hevc->sign_hiding && !d->cu.bypass && places[0] - places[count - 1] > 3, sum = 0;
    unsigned signs = bypass_bits(r, count - hides) << hides;
    int x0 = (s->blocks[block] & 15) * 4, y0 = (s->blocks[block] >> 4) * 4;
    read_levels(r, count, level);
    for (int i = 0; i < count; i++) {
        int at = s->within[places[i]], raster = ((y0 + (at >> 4)) << s->log2) + x0 + (at & 15), negative = signs >> (count - 1 - i) & 1;
        sum += level[i];
        if (hides && i == count - 1)
            negative = sum & 1;
        d->coefficients[raster] = scaled(q, negative ? -level[i] : level[i], raster);
    }
}

/* All coefficients; the answer says which columns and rows have some: the highest, y << 8 | x. */
VECTORIZED static int read_block(struct hevc_decoder *d, struct scan *s, const struct scaler *q)
{
    struct reader r = {d->cabac, d->contexts, 0};
    uint8_t flags[8 * 8] = {0}, places[16];
    int level[16], across = s->size >> 2, greater = 1, reach = 0, is_first = 1;
    read_last(&r, s);
    int last_block = (s->last >> 10) << 4 | (s->last & 255) >> 2, last_place = (s->last >> 8 & 3) << 4 | (s->last & 3), block = 0, first = 0;
    while (s->blocks[block] != last_block)
        block++;
    while (s->within[first] != last_place)
        first++;
    for (int i = block; i >= 0 && !r.error; i--) {
        int bx = s->blocks[i] & 15, by = s->blocks[i] >> 4, right = bx + 1 < across ? flags[by * 8 + bx + 1] : 0;
        int below = by + 1 < across ? flags[(by + 1) * 8 + bx] : 0, inside = i < block && i > 0;
        int coded = inside ? bit(&r, SUB_BLOCK + (s->component ? 2 : 0) + (right | below)) : 1;
        flags[by * 8 + bx] = (uint8_t)coded;
        if (!coded)
            continue;
        int count = significant(&r, s, i, i == block ? first - 1 : 15, i == block, inside, right | below << 1, places);
        if (!count)
            continue;
        read_flags(&r, s, i, is_first, &greater, count, level);
        coefficients(d, &r, s, i, places, count, level, q);
        is_first = 0;
        int x = bx * 4 + 3, y = by * 4 + 3;
        reach = (y > reach >> 8 ? y : reach >> 8) << 8 | (x > (reach & 255) ? x : reach & 255);
    }
    d->cabac = r.cabac;
    d->error |= r.error;
    return reach;
}

/* -- scaling (8.6.2, 8.6.4.2) --------------------------------------------------------------------------------------- */

static int block_qp(const struct hevc_decoder *d, int component)
{
    const struct hevc_picture *p = d->hevc;
    if (!component)
        return d->qp + 6 * ((int)p->depth_luma - 8);
    int more = 6 * ((int)p->depth_chroma - 8);
    int qp = clamp(d->qp + p->chroma_offset[component - 1] + d->slice->chroma_offset[component - 1], -more, 57);
    return (qp < 0 ? qp : hevc_chroma_qp[qp]) + more;
}

static struct scaler scaler_of(const struct hevc_decoder *d, int log2, int component)
{
    static const uint8_t levels[6] = {40, 45, 51, 57, 64, 72};
    static const uint16_t start[4] = {0, 16, 80, 336};
    const struct hevc_picture *p = d->hevc;
    int qp = block_qp(d, component), shift = hevc_depth(p, component) + log2 - 5;
    if (d->cu.bypass)
        return (struct scaler){NULL, 0, 0, 0};
    const uint8_t *scale = p->has_scales ? p->scale[(d->cu.intra ? 0 : 3) + component] + start[log2 - 2] : NULL;
    return (struct scaler){scale, levels[qp % 6] << (qp / 6), shift, (int64_t)1 << (shift - 1)};
}

/* Adds a residual to samples. What is beyond all samples' range is limited first, so that sums have 16 bits. */
static INLINE void add_block(uint16_t *to, ptrdiff_t stride, int size, int most, const int16_t *from)
{
    for (int j = 0; j < size; j++, from += size, to += stride)
        for (int i = 0; i < size; i++) {
            int16_t sum = (int16_t)(to[i] + (int16_t)clamp(from[i], -most, most));
            to[i] = (uint16_t)(int16_t)clamp(sum, 0, most);
        }
}

VECTORIZED static void add(uint16_t *to, ptrdiff_t stride, int size, int most, const int16_t *from)
{
    switch (size) { /* each that is known */
    case 4:
        return add_block(to, stride, 4, most, from);
    case 8:
        return add_block(to, stride, 8, most, from);
    default:
        for (int x = 0; x < size; x += 16)
            for (int j = 0; j < size; j++)
                for (int i = x; i < x + 16; i++) {
                    int16_t sum = (int16_t)(to[j * stride + i] + (int16_t)clamp(from[j * size + i], -most, most));
                    to[j * stride + i] = (uint16_t)(int16_t)clamp(sum, 0, most);
                }
    }
}

VECTORIZED static void add_value(uint16_t *to, ptrdiff_t stride, int size, int most, int value)
{
    for (int j = 0; j < size; j++, to += stride)
        for (int i = 0; i < size; i++)
            to[i] = (uint16_t)clamp(to[i] + value, 0, most);
}

void hevc_residual(struct hevc_decoder *d, int x, int y, int log2, int component, int mode)
{
    struct scan s = {.kind = scan_kind(d, log2, component, mode), .log2 = log2, .component = component, .size = 1 << log2};
    int skip = d->hevc->transform_skip && !d->cu.bypass && log2 == 2 && hevc_bit(d, TRANSFORM_SKIP + (component > 0));
    struct scaler q = scaler_of(d, log2, component);
    const struct plane *p = &d->hevc->picture->frame.plane[component];
    int depth = hevc_depth(d->hevc, component), shift = 20 - depth, most = (1 << depth) - 1, reach = read_block(d, &s, &q);
    int is_sine = d->cu.intra && !component && log2 == 2;
    uint16_t *to = hevc_samples(p, x, y);
    if (d->cu.bypass)
        add(to, p->stride, s.size, most, d->coefficients);
    else if (!s.last && !skip && !is_sine)
        add_value(to, p->stride, s.size, most, hevc_mean(d->coefficients[0], shift));
    else {
        if (skip)
            hevc_no_transform(d->residual, d->coefficients, s.size, shift);
        else if (is_sine)
            hevc_sine_4x4(d->residual, d->coefficients, shift);
        else
            hevc_transform(d->residual, d->coefficients, log2, (reach & 255) + 1, (reach >> 8) + 1, shift);
        add(to, p->stride, s.size, most, d->residual);
    }
    memset(d->coefficients, 0, (sizeof *d->coefficients << log2) * (size_t)((reach >> 8) + 1));
}
