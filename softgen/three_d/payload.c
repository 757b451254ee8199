/* Payloads of pixel shader threads: what is interpolated, and what is copied.
 *
 * A value of a plane at a pixel is fmaf(dx, x, fmaf(dy, y, c)); W is the reciprocal of the interpolated 1/w, and a perspective barycentric is
 * its plane's value times W. 32-bit floats, in this order on every host.
 */
#include "pixels.h"

#include <string.h>

enum { REGISTER = 32, LANES = 8, MASKS_DWORD = 7 };
enum { BACK_FACING_BIT = 15, LAYER_SHIFT = 16, VIEWPORT_SHIFT = 27, LAYER_MASK = 0x7ff, VIEWPORT_MASK = 15, TOPOLOGY_MASK = 31 };
enum { COEFFICIENTS_BACK_FACING_BIT = 31 };

/* A 4x4 block's pixels by bit of its mask. */
static const float pixel_x[BLOCK_PIXELS] = {0, 1, 0, 1, 2, 3, 2, 3, 0, 1, 0, 1, 2, 3, 2, 3};
static const float pixel_y[BLOCK_PIXELS] = {0, 0, 1, 1, 0, 0, 1, 1, 2, 2, 3, 3, 2, 2, 3, 3};

struct values { float of[BLOCK_PIXELS]; } __attribute__((aligned(64)));

static inline __attribute__((always_inline)) void evaluate(const struct plane *p, uint32_t x, uint32_t y, float *into)
{
    float left = (float)x, top = (float)y;
    for (int i = 0; i < BLOCK_PIXELS; i++)
        into[i] = __builtin_fmaf(p->dx, left + pixel_x[i], __builtin_fmaf(p->dy, top + pixel_y[i], p->c));
}

VECTORIZED void interpolate_depth(const struct plane *plane, uint32_t x, uint32_t y, float *z)
{
    evaluate(plane, x, y, z);
}

/* -- headers ------------------------------------------------------------------------------------------------------------------------- */

static uint32_t place_of(const struct setup_record *r)
{
    return (r->viewport & VIEWPORT_MASK) << VIEWPORT_SHIFT | (r->layer & LAYER_MASK) << LAYER_SHIFT;
}

static void store(uint8_t *payload, uint32_t offset, uint32_t dword, uint32_t value)
{
    memcpy(payload + offset + 4 * dword, &value, sizeof value);
}

void write_common(const struct payload_plan *plan, const struct setup_record *r, const uint8_t *attributes, uint32_t slot, uint8_t *payload)
{
    uint32_t header[2][8] = {{0}};
    memcpy(header, plan->header, sizeof plan->header);
    header[0][5] += plan->scratch_step * slot + (slot & 0xff);
    if (plan->header_format == HEADER_BARYCENTRIC) {
        header[0][0] |= place_of(r) | r->back_facing << BACK_FACING_BIT | (r->topology & TOPOLOGY_MASK);
    } else {
        memcpy(&header[1][0], &r->x_start, sizeof r->x_start);
        memcpy(&header[1][1], &r->y_start, sizeof r->y_start);
        header[1][6] = plan->flags | r->back_facing << COEFFICIENTS_BACK_FACING_BIT | (r->topology & TOPOLOGY_MASK);
        header[1][7] = place_of(r);
    }
    memcpy(payload, header, sizeof header);
    uint32_t first = plan->constant_bytes ? plan->constants : plan->attributes; /* a gap before them is read as zeros */
    memset(payload + sizeof header, 0, (first ? first : plan->size) - sizeof header);
    if (plan->constant_bytes)
        memcpy(payload + plan->constants, plan->constant_data, plan->constant_bytes);
    if (plan->attribute_bytes)
        memcpy(payload + plan->attributes, attributes + r->attributes + plan->attribute_offset, plan->attribute_bytes);
}

/* Subspans and pixel masks of a part. */
static void write_places(const struct payload_plan *plan, const struct thread_pixels *t, uint8_t *payload)
{
    uint32_t subspan = t->first / 4, count = t->count / 4, lit = t->lit >> t->first & ((1u << t->count) - 1);
    uint32_t header = t->upper ? plan->upper : REGISTER;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t x = t->block->x + 2 * ((subspan + i) & 1), y = t->block->y + ((subspan + i) & 2);
        store(payload, header, 2 + i, y << 16 | x);
    }
    if (plan->header_format == HEADER_BARYCENTRIC)
        store(payload, header, MASKS_DWORD, lit << 16 | lit);
    else
        store(payload, t->upper ? header : 0, 0, lit << 16 | lit);
}

/* -- channels ------------------------------------------------------------------------------------------------------------------------ */

/* A value of each channel, a register for eight of them. */
static inline __attribute__((always_inline)) void put(uint8_t *payload, uint32_t offset, uint32_t stride, const void *values,
                                                      const struct thread_pixels *t)
{
    const uint8_t *from = (const uint8_t *)values + 4 * t->first;
    memcpy(payload + offset, from, REGISTER);
    if (t->count > LANES)
        memcpy(payload + offset + stride, from + REGISTER, REGISTER);
}

static inline __attribute__((always_inline)) void put_barycentrics(const struct payload_plan *plan, uint32_t first_mode, uint32_t at,
                                                                   const struct values *b1, const struct values *b2,
                                                                   const struct thread_pixels *t, uint8_t *payload)
{
    for (uint32_t mode = first_mode; mode < first_mode + 3; mode++)
        if (plan->barycentric[mode]) { /* b1 and b2 of eight channels, then of the next eight */
            put(payload, plan->barycentric[mode] + at, 2 * REGISTER, b1, t);
            put(payload, plan->barycentric[mode] + at + REGISTER, 2 * REGISTER, b2, t);
        }
}

VECTORIZED static void write_values(const struct payload_plan *plan, const struct thread_pixels *t, uint8_t *payload)
{
    const struct setup_record *r = t->record;
    const uint32_t *modes = plan->barycentric;
    uint32_t x = t->block->x, y = t->block->y, at = t->upper ? plan->half : 0;
    struct values w, b1, b2;
    if (plan->w || modes[0] | modes[1] | modes[2]) {
        evaluate(&r->rhw, x, y, w.of);
        for (int i = 0; i < BLOCK_PIXELS; i++)
            w.of[i] = 1.0f / w.of[i];
    }
    if (modes[0] | modes[1] | modes[2]) {
        evaluate(&r->perspective[0], x, y, b1.of);
        evaluate(&r->perspective[1], x, y, b2.of);
        for (int i = 0; i < BLOCK_PIXELS; i++) {
            b1.of[i] *= w.of[i];
            b2.of[i] *= w.of[i];
        }
        put_barycentrics(plan, 0, at, &b1, &b2, t, payload);
    }
    if (modes[3] | modes[4] | modes[5]) {
        evaluate(&r->linear[0], x, y, b1.of);
        evaluate(&r->linear[1], x, y, b2.of);
        put_barycentrics(plan, 3, at, &b1, &b2, t, payload);
    }
    if (plan->depth)
        put(payload, plan->depth + at, REGISTER, t->z, t);
    if (plan->w)
        put(payload, plan->w + at, REGISTER, &w, t);
}

/* Offsets of the sample within each pixel, and samples covered: there is one sample. */
static void write_samples(const struct payload_plan *plan, const struct thread_pixels *t, uint8_t *payload)
{
    uint32_t at = t->upper ? plan->half : 0, covered[BLOCK_PIXELS];
    uint16_t offsets[BLOCK_PIXELS];
    for (int i = 0; i < BLOCK_PIXELS; i++) {
        offsets[i] = (uint16_t)plan->xy_offset;
        covered[i] = t->block->mask >> i & 1;
    }
    if (plan->xy_offsets)
        memcpy(payload + plan->xy_offsets + at, offsets, 2 * t->count);
    if (plan->coverage)
        put(payload, plan->coverage + at, REGISTER, covered, t);
}

void write_pixels(const struct payload_plan *plan, const struct thread_pixels *pixels, uint8_t *payload)
{
    write_places(plan, pixels, payload);
    write_values(plan, pixels, payload);
    if (plan->xy_offsets || plan->coverage)
        write_samples(plan, pixels, payload);
}
