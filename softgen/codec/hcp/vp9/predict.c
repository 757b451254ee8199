/* Inter prediction (8.5.2): blocks of references, at their size or scaled, interpolated and averaged. */
#include "vp9.h"

#define INLINE inline __attribute__((always_inline))
#ifdef __x86_64__
#define VECTORIZED __attribute__((target_clones("arch=x86-64-v3", "default")))
#else
#define VECTORIZED
#endif

enum { LANES = 16, MOST = 64, TAPS = 8, MOST_STEP = 32, SCALED = ((MOST - 1) * MOST_STEP + 15) / 16 + TAPS };

/* A block of a plane of a reference: its first sample in sixteenths, and how far one is from the next. */
struct source {
    const struct plane *plane;
    int x, y, step_x, step_y;
};

const struct frame *vp9_reference(struct vp9_picture *p, int index)
{
    struct vp9_reference_picture *r = &p->references[index - VP9_LAST];
    if (r->state == NO_REFERENCE)
        return NULL;
    if (r->state == IN_MEMORY) {
        struct rectangle all = whole_frame(&r->frame);
        load_deep(p->picture, &r->surface, &r->frame, &all);
        r->state = LOADED;
    }
    return &r->frame;
}

/* Samples from (x, y) on; beyond the plane, its last samples go on. Answers where they lie. LANES samples more than
 * those of the last row may be read. */
static const uint16_t *fetch(const struct plane *from, int x, int y, int width, int height, uint16_t *room, size_t *stride)
{
    int last = y + height - (int)from->height, more = last < 0 ? 0 : LANES;
    if (x >= 0 && y >= 0 && x + width + more <= (int)from->width && last <= 0) {
        *stride = from->stride;
        return samples_at(from, (unsigned)x, (unsigned)y);
    }
    int left = clamp(-x, 0, width), right = clamp((int)from->width - x, left, width); /* those between are the plane's */
    for (int row = 0; row < height; row++) {
        const uint16_t *line = samples_at(from, 0, (unsigned)clamp(y + row, 0, (int)from->height - 1));
        uint16_t *to = room + (size_t)row * (size_t)width;
        for (int i = 0; i < left; i++)
            to[i] = line[0];
        if (right > left)
            memcpy(to + left, line + x + left, (size_t)(right - left) * sizeof *to);
        for (int i = right; i < width; i++)
            to[i] = line[from->width - 1];
    }
    *stride = (size_t)width;
    return room;
}

/* Where a block goes; `averages`: with what is there. */
struct sink {
    uint16_t *to;
    size_t stride;
    int width, height, averages;
};

/* -- samples of 8 bits ---------------------------------------------------------------------------------------------- */

/* Sums of products are between -54 * 255 and 182 * 255, so with BIAS they fit into 16 bits without a sign. */
enum { BIAS = 1 << 14 };

typedef uint16_t lane_group __attribute__((vector_size(2 * LANES)));
typedef int16_t signed_group __attribute__((vector_size(2 * LANES)));

static INLINE lane_group load_group(const uint16_t *from)
{
    lane_group found;
    memcpy(&found, from, sizeof found);
    return found;
}

/* Stores `count` samples: 4, 8 or 16. */
static INLINE void put_group(uint16_t *to, lane_group found, int count, int averages)
{
    if (averages) {
        lane_group before = {0};
        memcpy(&before, to, (size_t)count * sizeof *to);
        found = (found + before + 1) >> 1;
    }
    memcpy(to, &found, (size_t)count * sizeof *to);
}

static INLINE lane_group filtered(const uint16_t *from, size_t step, const lane_group f[TAPS])
{
    lane_group sum = load_group(from) * f[0] + (uint16_t)(BIAS + 64);
    for (size_t i = 1; i < TAPS; i++)
        sum += load_group(from + i * step) * f[i];
    signed_group found = (signed_group)(sum >> 7) - (int16_t)(BIAS >> 7), most = (signed_group){0} + 255;
    found &= ~(found < 0);
    return (lane_group)((found & (found < most)) | (most & ~(found < most)));
}

/* Rows of a block whose taps are `step` apart, `count` samples at once. */
static INLINE void filter_columns(const struct sink *s, const uint16_t *from, size_t stride, size_t step, const int16_t *taps, int count)
{
    lane_group f[TAPS];
    for (int i = 0; i < TAPS; i++)
        f[i] = (lane_group){0} + (uint16_t)taps[i];
    for (int y = 0; y < s->height; y++)
        for (int x = 0; x < s->width; x += count)
            put_group(s->to + (size_t)y * s->stride + x, filtered(from + (size_t)y * stride + x, step, f), count, s->averages);
}

VECTORIZED static void filter_narrow(const struct sink *s, const uint16_t *from, size_t stride, size_t step, const int16_t *taps)
{
    if (s->width == 4)
        filter_columns(s, from, stride, step, taps, 4);
    else if (s->width == 8)
        filter_columns(s, from, stride, step, taps, 8);
    else
        filter_columns(s, from, stride, step, taps, LANES);
}

/* -- samples of any depth ------------------------------------------------------------------------------------------- */

/* One row: samples of the taps are `step` apart. Indices do not wrap, so that the loop becomes vectors. */
static INLINE void filter_row(uint16_t *restrict to, const uint16_t *restrict from, size_t step, size_t width, const int16_t *f, int most)
{
    const int16_t f0 = f[0], f1 = f[1], f2 = f[2], f3 = f[3], f4 = f[4], f5 = f[5], f6 = f[6], f7 = f[7];
    const int16_t *s = (const int16_t *)from;
    for (size_t x = 0; x < width; x++) {
        int sum = s[x] * f0 + s[x + step] * f1 + s[x + 2 * step] * f2 + s[x + 3 * step] * f3;
        sum += s[x + 4 * step] * f4 + s[x + 5 * step] * f5 + s[x + 6 * step] * f6 + s[x + 7 * step] * f7;
        sum = (sum + 64) >> 7;
        to[x] = (uint16_t)(sum < 0 ? 0 : sum > most ? most : sum);
    }
}

VECTORIZED static void filter_wide(const struct sink *s, const uint16_t *from, size_t stride, size_t step, const int16_t *taps, int most)
{
    uint16_t row[MOST];
    for (int y = 0; y < s->height; y++) {
        uint16_t *to = s->to + (size_t)y * s->stride;
        filter_row(s->averages ? row : to, from + (size_t)y * stride, step, (size_t)s->width, taps, most);
        for (int x = 0; x < s->width && s->averages; x++)
            to[x] = (uint16_t)((to[x] + row[x] + 1) >> 1);
    }
}

/* -- blocks --------------------------------------------------------------------------------------------------------- */

VECTORIZED static void copy_block(const struct sink *s, const uint16_t *from, size_t stride)
{
    for (int y = 0; y < s->height; y++, from += stride) {
        uint16_t *to = s->to + (size_t)y * s->stride;
        if (!s->averages)
            memcpy(to, from, (size_t)s->width * sizeof *to);
        for (int x = 0; x < s->width && s->averages; x++)
            to[x] = (uint16_t)((to[x] + from[x] + 1) >> 1);
    }
}

static void filter_block(const struct sink *s, const uint16_t *from, size_t stride, size_t step, const int16_t *taps, int most)
{
    if (most == 255)
        filter_narrow(s, from, stride, step, taps);
    else
        filter_wide(s, from, stride, step, taps, most);
}

/* A block at the reference's size. */
static void interpolate(const struct source *s, const int16_t filters[16][8], const struct sink *to, int most)
{
    uint16_t room[(MOST + TAPS) * (MOST + TAPS) + LANES], rows[(MOST + TAPS) * MOST + LANES];
    size_t stride;
    int fx = s->x & 15, fy = s->y & 15, before_x = fx ? 3 : 0, before_y = fy ? 3 : 0;
    int w = to->width + (fx ? TAPS - 1 : 0), h = to->height + (fy ? TAPS - 1 : 0);
    const uint16_t *from = fetch(s->plane, (s->x >> 4) - before_x, (s->y >> 4) - before_y, w, h, room, &stride);
    if (fx && fy) {
        filter_block(&(struct sink){rows, MOST, to->width, h, 0}, from, stride, 1, filters[fx], most);
        filter_block(to, rows, MOST, MOST, filters[fy], most);
    } else if (fx || fy)
        filter_block(to, from, stride, fx ? 1 : stride, filters[fx ? fx : fy], most);
    else
        copy_block(to, from, stride);
}

VECTORIZED static void interpolate_scaled(const struct source *s, const int16_t filters[16][8], const struct sink *to, int most)
{
    uint16_t room[SCALED * SCALED], rows[SCALED * MOST], samples[MOST];
    int width = to->width, height = to->height;
    size_t stride;
    int fx = s->x & 15, fy = s->y & 15;
    int w = (fx + (width - 1) * s->step_x) / 16 + TAPS, h = (fy + (height - 1) * s->step_y) / 16 + TAPS;
    const uint16_t *from = fetch(s->plane, (s->x >> 4) - 3, (s->y >> 4) - 3, w, h, room, &stride);
    for (int y = 0; y < h; y++)
        for (int x = 0; x < width; x++) {
            int at = fx + x * s->step_x;
            filter_row(rows + y * width + x, from + (size_t)y * stride + (at >> 4), 1, 1, filters[at & 15], most);
        }
    for (int y = 0; y < height; y++) {
        int at = fy + y * s->step_y;
        filter_row(samples, rows + (at >> 4) * width, (size_t)width, (size_t)width, filters[at & 15], most);
        copy_block(&(struct sink){to->to + (size_t)y * to->stride, to->stride, width, 1, to->averages}, samples, 0);
    }
}

/* -- where a block comes from --------------------------------------------------------------------------------------- */

struct target {
    int plane, x, y, width, height; /* samples of the plane */
    int block_x, block_y, block_width, block_height; /* of the whole block: the same */
};

static int64_t scaled(int64_t value, uint32_t scale)
{
    return (value * scale) >> 14;
}

/* Vectors far outside point to where all is the same. */
static int limited(int vector, int start, int size, int units, int picture_units, int shift)
{
    int margin = (4 + size) << 4, low = -(start << 4) - margin, high = ((picture_units - units) * 8 >> shift << 4) - (start << 4) + margin - 16;
    return clamp(vector, low, high);
}

static void scaled_source(const struct vp9_picture *p, const struct vp9_place *at, const struct vp9_reference_picture *r,
                          const struct target *t, int x, int y, struct source *s)
{
    int shift = t->plane > 0;
    x = limited(x, t->block_x, t->block_width, (int)units_across(at->block->size), (int)p->columns, shift);
    y = limited(y, t->block_y, t->block_height, (int)units_down(at->block->size), (int)p->rows, shift);
    /* the fraction of a chroma block's place is that of the luma block's number of samples, as all decoders have it */
    int64_t luma_x = (int64_t)at->x * 8 + t->x - t->block_x, luma_y = (int64_t)at->y * 8 + t->y - t->block_y;
    s->x = (int)(scaled(t->x, r->scale[0]) * 16 + scaled(x, r->scale[0]) + (scaled(luma_x * 16, r->scale[0]) & 15));
    s->y = (int)(scaled(t->y, r->scale[1]) * 16 + scaled(y, r->scale[1]) + (scaled(luma_y * 16, r->scale[1]) & 15));
    s->step_x = (int)r->step[0], s->step_y = (int)r->step[1];
}

/* Where there is no reference. */
static void set_grey(const struct vp9_picture *p, const struct target *t)
{
    for (int y = 0; y < t->height; y++) {
        uint16_t *line = samples_at(&p->picture->frame.plane[t->plane], (unsigned)t->x, (unsigned)(t->y + y));
        for (int x = 0; x < t->width; x++)
            line[x] = (uint16_t)(1u << (p->depth - 1));
    }
}

/* The reference, of which what a block needs has been read; null where there is none. */
static const struct frame *reference_of(struct vp9_picture *p, const struct vp9_place *at, int k, const struct target *t, int x, int y)
{
    struct vp9_reference_picture *r = &p->references[at->block->reference[k] - VP9_LAST];
    int step = 1 + (t->plane > 0);
    if (r->state != IN_MEMORY || r->is_scaled || !r->areas)
        return vp9_reference(p, at->block->reference[k]);
    load_block(p->picture, &r->surface, &r->frame, r->areas, (t->x + (x >> 4)) * step, (t->y + (y >> 4)) * step, t->width * step, t->height * step);
    return &r->frame;
}

static int predict_part(struct vp9_picture *p, const struct vp9_place *at, int k, const struct target *t, int x, int y)
{
    const struct frame *frame = reference_of(p, at, k, t, x, y);
    if (!frame) {
        set_grey(p, t);
        return 0;
    }
    const struct vp9_reference_picture *r = &p->references[at->block->reference[k] - VP9_LAST];
    struct source s = {.plane = &frame->plane[t->plane], .x = t->x * 16 + x, .y = t->y * 16 + y};
    const struct plane *plane = &p->picture->frame.plane[t->plane];
    struct sink to = {samples_at(plane, (unsigned)t->x, (unsigned)t->y), plane->stride, t->width, t->height, k};
    int most = (1 << p->depth) - 1;
    if (r->is_scaled) {
        scaled_source(p, at, r, t, x, y, &s);
        interpolate_scaled(&s, vp9_filters[at->block->filter], &to, most);
    } else
        interpolate(&s, vp9_filters[at->block->filter], &to, most);
    return 1;
}

/* The vector of the four blocks of 4x4 luma samples together. */
static int rounded_sum(int sum)
{
    return (sum + (sum < 0 ? -2 : 2)) / 4;
}

static int predict_small(struct vp9_picture *p, const struct vp9_place *at, int k, struct target *t)
{
    const struct vp9_block *b = at->block;
    int found = 1;
    if (t->plane) {
        int x = 0, y = 0;
        for (int i = 0; i < 4; i++)
            x += b->vectors[i][k].x, y += b->vectors[i][k].y;
        return predict_part(p, at, k, t, rounded_sum(x), rounded_sum(y));
    }
    t->width = t->height = 4;
    for (int i = 0; i < 4; i++) {
        t->x = t->block_x + 4 * (i & 1), t->y = t->block_y + 4 * (i >> 1);
        found &= predict_part(p, at, k, t, 2 * b->vectors[i][k].x, 2 * b->vectors[i][k].y);
    }
    return found;
}

int vp9_predict(struct vp9_picture *p, const struct vp9_place *at)
{
    const struct vp9_block *b = at->block;
    int found = 1;
    for (int k = 0; k < 1 + is_compound(b); k++)
        for (int plane = 0; plane < PLANES; plane++) {
            int shift = plane > 0, width = (int)units_across(b->size) * 8 >> shift, height = (int)units_down(b->size) * 8 >> shift;
            int x = (int)at->x * 8 >> shift, y = (int)at->y * 8 >> shift;
            struct target t = {plane, x, y, width, height, x, y, width, height};
            if (b->size < BLOCK_8X8)
                found &= predict_small(p, at, k, &t);
            else
                found &= predict_part(p, at, k, &t, b->vectors[3][k].x << !shift, b->vectors[3][k].y << !shift);
        }
    return found;
}
