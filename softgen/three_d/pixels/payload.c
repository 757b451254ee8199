/* Payloads of pixel shader threads: what is interpolated, and what is copied.
 *
 * A plane is evaluated in double at the corner of a block; from there steps are 32-bit floats, fmaf(dx, x, fmaf(dy, y, rest)), where `rest`
 * is what the corner loses as a float, and the corner is added last: values that a float can hold are exact, so that textures drawn one to
 * one, or in simple ratios, have their texels' boundaries where they should be. W is the reciprocal of the interpolated 1/w, and a
 * perspective barycentric is its plane's value times W; where w is the same everywhere, it is the linear one. In this order on every host.
 */
#include "pixels.h"

#include <math.h>
#include <string.h>

enum { LANES = 8 };
enum { SAMPLE_PAIR_SHIFT = 6 };
enum { COEFFICIENTS_BACK_FACING_BIT = 31, COEFFICIENTS_ANTIALIASED = 3 << 25 };

#define COLUMNS(s) 2 * ((s) & 1), 2 * ((s) & 1) + 1, 2 * ((s) & 1), 2 * ((s) & 1) + 1
#define ROWS(s) ((s) & 2), ((s) & 2), ((s) & 2) + 1, ((s) & 2) + 1
#define ORDER(a, b, c, d) {{COLUMNS(a), COLUMNS(b), COLUMNS(c), COLUMNS(d)}, {ROWS(a), ROWS(b), ROWS(c), ROWS(d)}, {a, b, c, d}}

const struct subspan_order subspan_orders[16] = {
    ORDER(0, 1, 2, 3), ORDER(0, 1, 2, 3), ORDER(1, 0, 2, 3), ORDER(0, 1, 2, 3), ORDER(2, 0, 1, 3), ORDER(0, 2, 1, 3), ORDER(1, 2, 0, 3),
    ORDER(0, 1, 2, 3), ORDER(3, 0, 1, 2), ORDER(0, 3, 1, 2), ORDER(1, 3, 0, 2), ORDER(0, 1, 3, 2), ORDER(2, 3, 0, 1), ORDER(0, 2, 3, 1),
    ORDER(1, 2, 3, 0), ORDER(0, 1, 2, 3),
};

struct values { float of[BLOCK_PIXELS]; } __attribute__((aligned(64)));

INLINE void evaluate(const struct plane *p, const struct subspan_order *order, uint32_t x, uint32_t y, float *into)
{
    double corner = __builtin_fma(p->dx, x, __builtin_fma(p->dy, y, p->c));
    float near = (float)corner, rest = (float)(corner - near), dx = (float)p->dx, dy = (float)p->dy;
    rest = isfinite(near) ? rest : 0;
    for (int i = 0; i < BLOCK_PIXELS; i++)
        into[i] = __builtin_fmaf(dx, order->x[i], __builtin_fmaf(dy, order->y[i], rest)) + near;
}

/* By bit of a block's mask. */
EXPORT VECTORIZED void interpolate_depth(const struct plane *plane, uint32_t x, uint32_t y, float *z)
{
    evaluate(plane, &subspan_orders[0], x, y, z);
}

/* -- headers ------------------------------------------------------------------------------------------------------------------------- */

INLINE void copy_registers(uint8_t *to, const uint8_t *from, uint32_t bytes)
{
    for (uint32_t i = 0; i < bytes; i += REGISTER)
        memcpy(to + i, from + i, REGISTER);
}

/* What a thread has of constants and attributes, and zeros where nothing is. */
VECTORIZED void write_common(const struct payload_plan *plan, const struct setup_record *r, const uint8_t *attributes, uint8_t *payload)
{
    const reg zero = {0};
    for (uint32_t i = 0; i < plan->gap_bytes; i += REGISTER)
        *(reg *)(payload + plan->gap + i) = zero;
    copy_registers(payload + plan->constants, plan->constant_data, plan->constant_bytes);
    copy_registers(payload + plan->attributes, attributes + r->attributes + plan->attribute_offset, plan->attribute_bytes);
}

static uint32_t bits_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* Whether a payload has antialias alphas: those of smooth lines do (G45 7336-7341). */
static int antialiased(const struct payload_plan *plan, const struct setup_record *r)
{
    return plan->antialias && r->coverage == COVERAGE_SMOOTH_LINE;
}

/* Where the pixels are, which of them are lit, and what object they are of. */
INLINE void write_headers(const struct payload_plan *plan, const struct thread_pixels *t, uint8_t *payload)
{
    const struct setup_record *r = t->record;
    const uint32_t *place = t->place;
    uint32_t lit = t->lit >> t->first & ((1u << t->count) - 1), masks = lit << 16 | lit, topology = r->topology & TOPOLOGY_MASK;
    uint32_t where = (r->viewport & VIEWPORT_MASK) << VIEWPORT_SHIFT | (r->layer & LAYER_MASK) << LAYER_SHIFT;
    reg first = *(const reg *)plan->header, second = {0, 0, place[0], place[1], place[2], place[3], 0, 0};
    if (t->samples) /* which sample threads are of */
        first |= (reg){t->samples->pair << SAMPLE_PAIR_SHIFT}, second |= (reg){t->samples->ids};
    reg slot = {0, 0, 0, 0, 0, plan->scratch_step * t->slot + (t->slot & 0xff), 0, 0};
    if (plan->header_format == HEADER_BARYCENTRIC) {
        first |= (reg){where | r->back_facing << BACK_FACING_BIT | topology};
        second |= (reg){0, 0, 0, 0, 0, 0, 0, masks};
    } else if (t->upper) {
        second |= (reg){masks};
    } else {
        first |= (reg){masks};
        second |= (reg){bits_of(r->x_start), bits_of(r->y_start), 0, 0, 0, 0,
                        plan->flags | r->back_facing << COEFFICIENTS_BACK_FACING_BIT | topology
                            | (antialiased(plan, r) ? COEFFICIENTS_ANTIALIASED : 0), where};
    }
    if (!t->upper)
        *(reg *)payload = first + slot;
    *(reg *)(payload + (t->upper ? plan->upper : REGISTER)) = second;
}

/* -- channels ------------------------------------------------------------------------------------------------------------------------ */

/* A value of each channel, a register for eight of them. */
INLINE void put(uint8_t *payload, uint32_t offset, uint32_t stride, const void *values, const struct thread_pixels *t)
{
    const uint8_t *from = (const uint8_t *)values + 4 * t->first;
    memcpy(payload + offset, from, REGISTER);
    if (t->count > LANES)
        memcpy(payload + offset + stride, from + REGISTER, REGISTER);
}

/* `kinds`: at pixels, centroids and samples, a bit each. */
INLINE void put_barycentrics(const struct payload_plan *plan, uint32_t first_mode, uint32_t kinds, uint32_t at, const struct values *b1,
                             const struct values *b2, const struct thread_pixels *t, uint8_t *payload)
{
    for (uint32_t mode = first_mode; mode < first_mode + 3; mode++)
        if (plan->barycentric[mode] && kinds >> (mode - first_mode) & 1) { /* b1 and b2 of eight channels, then of the next eight */
            put(payload, plan->barycentric[mode] + at, 2 * REGISTER, b1, t);
            put(payload, plan->barycentric[mode] + at + REGISTER, 2 * REGISTER, b2, t);
        }
}

/* Whether barycentrics of these kinds are wanted, of modes from `first` on. */
INLINE int wants(const struct payload_plan *plan, uint32_t first, uint32_t kinds)
{
    const uint32_t *modes = plan->barycentric + first;
    return (modes[0] && kinds & 1) || (modes[1] && kinds & 2) || (modes[2] && kinds & 4);
}

/* Barycentrics of some kinds, at the places of an order, and w there if anything needs it. */
INLINE void write_barycentrics(const struct payload_plan *plan, const struct thread_pixels *t, const struct subspan_order *order,
                               uint32_t kinds, int w_wanted, uint8_t *payload)
{
    const struct setup_record *r = t->record;
    uint32_t x = t->block->x, y = t->block->y, at = t->upper ? plan->half : 0;
    struct values w, b1, b2;
    if (w_wanted || wants(plan, 0, kinds)) {
        evaluate(&r->rhw, order, x, y, w.of);
        for (int i = 0; i < BLOCK_PIXELS; i++)
            w.of[i] = 1.0f / w.of[i];
    }
    if (wants(plan, 0, kinds)) {
        int flat = r->rhw.dx == 0 && r->rhw.dy == 0;
        const struct plane *planes = flat ? r->linear : r->perspective;
        evaluate(&planes[0], order, x, y, b1.of);
        evaluate(&planes[1], order, x, y, b2.of);
        for (int i = 0; i < BLOCK_PIXELS && !flat; i++) {
            b1.of[i] *= w.of[i];
            b2.of[i] *= w.of[i];
        }
        put_barycentrics(plan, 0, kinds, at, &b1, &b2, t, payload);
    }
    if (wants(plan, 3, kinds)) {
        evaluate(&r->linear[0], order, x, y, b1.of);
        evaluate(&r->linear[1], order, x, y, b2.of);
        put_barycentrics(plan, 3, kinds, at, &b1, &b2, t, payload);
    }
    if (w_wanted)
        put(payload, plan->w + at, REGISTER, &w, t);
}

enum { AT_PIXEL = 1, AT_CENTROID = 2, AT_SAMPLE = 4, EVERYWHERE = 7 };

/* The same of pixels with several samples, at three places; depth and w at one of them. */
VECTORIZED static void write_sample_channels(const struct payload_plan *plan, const struct thread_pixels *t, uint8_t *payload)
{
    const struct sample_pixels *s = t->samples;
    const struct subspan_order *zw = plan->zw_place == PLACE_SAMPLE ? &s->sample : plan->zw_place == PLACE_CENTROID ? &s->centroid : t->order;
    struct values z;
    write_headers(plan, t, payload);
    write_barycentrics(plan, t, t->order, AT_PIXEL, plan->w && zw == t->order, payload);
    write_barycentrics(plan, t, &s->centroid, AT_CENTROID, plan->w && zw == &s->centroid, payload);
    write_barycentrics(plan, t, &s->sample, AT_SAMPLE, plan->w && zw == &s->sample, payload);
    if (plan->depth) {
        evaluate(&t->record->z, zw, t->block->x, t->block->y, z.of);
        put(payload, plan->depth + (t->upper ? plan->half : 0), REGISTER, &z, t);
    }
}

VECTORIZED static void write_channels(const struct payload_plan *plan, const struct thread_pixels *t, uint8_t *payload)
{
    write_headers(plan, t, payload);
    write_barycentrics(plan, t, t->order, EVERYWHERE, plan->w != 0, payload);
    if (plan->depth)
        put(payload, plan->depth + (t->upper ? plan->half : 0), REGISTER, t->z, t);
}

/* What depth and stencil buffers hold, and coverage by smooth lines: stencils and coverage are bytes, of all channels in one register
 * (G45 7395-7470). Without stencils, that register is there for smooth lines only. */
static void write_held(const struct payload_plan *plan, const struct thread_pixels *t, uint8_t *payload)
{
    int smooth = antialiased(plan, t->record);
    uint32_t at = t->upper ? plan->half : 0, bytes = smooth ? plan->antialias : plan->held_stencil;
    if (plan->held_depth)
        put(payload, plan->held_depth + at + (smooth && !plan->held_stencil ? REGISTER : 0), REGISTER, t->held_depth, t);
    if (bytes)
        memset(payload + bytes + at, 0, REGISTER);
    for (uint32_t i = 0; plan->held_stencil && i < t->count; i++)
        payload[bytes + at + i] = (uint8_t)t->held_stencil[t->first + i];
    if (smooth) {
        float coverage[BLOCK_PIXELS];
        write_antialias(t->raster, t, coverage);
        for (uint32_t i = 0; i < t->count; i++)
            payload[bytes + at + REGISTER / 2 + i] = (uint8_t)__builtin_rintf(coverage[i] * 255);
    }
}

/* Whether a pixel of a conservative triangle is wholly inside it. */
static uint32_t is_whole(const struct setup_record *r, int64_t x, int64_t y)
{
    for (uint32_t n = 0; n < r->edges; n++)
        if (r->edge[n] + r->edge_dx[n] * x + r->edge_dy[n] * y <= 2 * edge_margin(r, n))
            return 0;
    return 1;
}

/* Input coverage of a pixel: samples covered, whole area covered, or early depth and stencil tests passed. */
static uint32_t input_coverage(uint32_t state, const struct thread_pixels *t, int i)
{
    if (t->samples && state != INPUT_COVERAGE_INNER)
        return state == INPUT_COVERAGE_DEPTH ? t->samples->passed[i] : t->samples->covered[i];
    if (t->raster->samples && state == INPUT_COVERAGE_NORMAL)
        return covered_samples(t->raster, t->record, t->block->x + (int64_t)t->order->x[i], t->block->y + (int64_t)t->order->y[i]);
    if (state == INPUT_COVERAGE_INNER)
        return (t->covered >> i & 1) && is_whole(t->record, t->block->x + (int64_t)t->order->x[i], t->block->y + (int64_t)t->order->y[i]);
    return (state == INPUT_COVERAGE_DEPTH ? t->lit : t->covered) >> i & 1;
}

/* Offsets of the sample within each pixel, and samples covered. */
static void write_samples(const struct payload_plan *plan, const struct thread_pixels *t, uint8_t *payload)
{
    uint32_t at = t->upper ? plan->half : 0, covered[BLOCK_PIXELS];
    uint16_t offsets[BLOCK_PIXELS];
    for (int i = 0; i < BLOCK_PIXELS; i++) {
        const struct sample_pixels *s = t->samples;
        offsets[i] = !s ? (uint16_t)plan->xy_offset : plan->xy_place == PLACE_CENTROID ? s->centroid_offset[i] : s->sample_offset[i];
        covered[i] = input_coverage(plan->coverage_state, t, i);
    }
    if (plan->xy_offsets)
        memcpy(payload + plan->xy_offsets + at, offsets + t->first, 2 * t->count);
    if (plan->coverage)
        put(payload, plan->coverage + at, REGISTER, covered, t);
}

/* What the pixel interpolator needs of an object: it computes as `evaluate` does, from the corner of each pixel's block. */
void write_planes(const struct setup_record *r, double *planes)
{
    static const struct plane one = {.c = 1};
    int flat = r->rhw.dx == 0 && r->rhw.dy == 0; /* perspective barycentrics are the linear ones */
    const struct plane *divided = flat ? r->linear : r->perspective;
    const struct plane *const of[5] = {flat ? &one : &r->rhw, &r->linear[0], &r->linear[1], &divided[0], &divided[1]};
    for (int i = 0; i < 5; i++) {
        planes[3 * i] = of[i]->c;
        planes[3 * i + 1] = of[i]->dx;
        planes[3 * i + 2] = of[i]->dy;
    }
}

void write_pixels(const struct payload_plan *plan, const struct thread_pixels *pixels, uint8_t *payload)
{
    if (pixels->samples)
        write_sample_channels(plan, pixels, payload);
    else
        write_channels(plan, pixels, payload);
    if (plan->xy_offsets || plan->coverage)
        write_samples(plan, pixels, payload);
    if (pixels->held_depth || plan->antialias)
        write_held(plan, pixels, payload);
}
