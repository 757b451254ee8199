/* Payloads of the threads of usual draws (pixel_threads.c): the planes of a record, what is interpolated, and what is copied. */
#ifndef SOFTGEN_PIXEL_THREADS_H
#define SOFTGEN_PIXEL_THREADS_H

#include "pixels.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

enum { SUBSPAN = 4, SUBSPANS = BLOCK_PIXELS / SUBSPAN, HALF = 8, BLOCKS_ACROSS = TILE / BLOCK };
enum { MOST_THREADS = 3 }; /* that a block may add: two of eight channels, and a shared one */
enum { ALL_SUBSPANS = 15, FIRST_SUBSPANS = 7 };

static const float pixel_x[BLOCK_PIXELS] = {0, 1, 0, 1, 2, 3, 2, 3, 0, 1, 0, 1, 2, 3, 2, 3};
static const float pixel_y[BLOCK_PIXELS] = {0, 0, 1, 1, 0, 0, 1, 1, 2, 2, 3, 3, 2, 2, 3, 3};

/* Planes of a record, one after another. */
enum { Z, RHW, LINEAR, PERSPECTIVE = LINEAR + 2, PLANES = PERSPECTIVE + 2, PADDED = 8 };

typedef double doubles __attribute__((vector_size(8 * PADDED), may_alias));
typedef float floats __attribute__((vector_size(4 * PADDED)));
typedef int32_t integers __attribute__((vector_size(4 * PADDED)));
typedef int64_t longs __attribute__((vector_size(8 * PADDED)));
typedef double wide_doubles __attribute__((vector_size(8 * PADDED), aligned(8), may_alias));
typedef float quad __attribute__((vector_size(4 * SUBSPAN), aligned(4), may_alias));

_Static_assert(offsetof(struct setup_record, rhw) == offsetof(struct setup_record, z) + sizeof(struct plane)
                   && offsetof(struct setup_record, linear) == offsetof(struct setup_record, rhw) + sizeof(struct plane)
                   && offsetof(struct setup_record, perspective) == offsetof(struct setup_record, linear) + 2 * sizeof(struct plane),
               "planes are one after another");

/* Planes at the corner of a block: values there are near + rest (payload.c). */
struct corners { floats near, rest; };

/* What the threads of a record have in common. */
struct record_threads {
    doubles c, dx, dy; /* planes */
    floats step_x, step_y; /* dx and dy as 32-bit floats */
    struct pixel_loop *loop;
    const struct usual_plan *usual;
    const struct setup_record *record;
    reg header, facts; /* r0; the second half of the sideband's first 64 bytes */
    int has_rhw; /* w is needed, for payloads or to divide by */
    int flat; /* w is the same everywhere: perspective barycentrics are the linear ones */
    int sampled; /* pixels have several samples; a constant */
};

/* Values of planes at the pixels of a block, as payloads have them. */
struct block_values { float of[PLANES][BLOCK_PIXELS] __attribute__((aligned(64))); };

/* A thread of subspans of several blocks. */
struct shared_thread {
    uint8_t *payload; /* NULL: there is none */
    uint32_t number, subspans, lit;
    uint32_t place[SUBSPANS];
    uint32_t sample_lit[MOST_SAMPLES];
};

INLINE void set_corners(const struct record_threads *t, const struct pixel_block *b, struct corners *corners)
{
    double x = b->x, y = b->y, values[PADDED] __attribute__((aligned(64)));
    for (int i = 0; i < PADDED; i++)
        values[i] = __builtin_fma(t->dx[i], x, __builtin_fma(t->dy[i], y, t->c[i]));
    doubles value = *(const doubles *)values;
    corners->near = __builtin_convertvector(value, floats);
    corners->rest = __builtin_convertvector(value - __builtin_convertvector(corners->near, doubles), floats);
    integers finite = (integers)(corners->near - corners->near == 0);
    corners->rest = (floats)((integers)corners->rest & finite);
}

INLINE uint8_t *payload_of(const struct record_threads *t, uint32_t number)
{
    return t->usual->blocks + number * t->usual->stride;
}

INLINE struct pixel_dispatch *sideband_of(const struct record_threads *t, uint8_t *payload)
{
    return (struct pixel_dispatch *)(payload + t->loop->plan->sideband);
}

/* The planes of a record, which are one after another there: constants, steps in x and steps in y as vectors. By loads and shuffles: narrow
 * stores would hold up the wide loads of them. */
INLINE void set_planes(struct record_threads *t, const struct setup_record *r)
{
    const double *first = &r->z.c;
    const wide_doubles *at_0 = (const wide_doubles *)first, *at_2 = (const wide_doubles *)(first + 2);
    const wide_doubles *at_8 = (const wide_doubles *)(first + 8), *at_10 = (const wide_doubles *)(first + 10);
    if (t->flat) {
        t->c = __builtin_shuffle(*at_0, *at_8, (longs){0, 3, 6, 9, 6, 9, 0, 0});
        t->dx = __builtin_shuffle(*at_0, *at_10, (longs){1, 4, 7, 8, 7, 8, 1, 1});
        t->dy = __builtin_shuffle(*at_2, *at_10, (longs){0, 3, 6, 9, 6, 9, 0, 0});
    } else {
        t->c = __builtin_shuffle(*at_0, *at_8, (longs){0, 3, 6, 9, 12, 15, 0, 0});
        t->dx = __builtin_shuffle(*at_0, *at_10, (longs){1, 4, 7, 8, 11, 14, 1, 1});
        t->dy = __builtin_shuffle(*at_2, *at_10, (longs){0, 3, 6, 9, 12, 15, 0, 0});
    }
    t->step_x = __builtin_convertvector(t->dx, floats);
    t->step_y = __builtin_convertvector(t->dy, floats);
}

/* All of the record that does not depend on pixels. */
INLINE void begin_threads(struct record_threads *t, struct pixel_loop *l, const struct usual_plan *usual, const struct setup_record *r,
                          int sampled)
{
    const struct pixel_plan *plan = l->plan;
    uint32_t where = (r->viewport & VIEWPORT_MASK) << VIEWPORT_SHIFT | (r->layer & LAYER_MASK) << LAYER_SHIFT;
    t->loop = l;
    t->usual = usual;
    t->record = r;
    t->header = *(const reg *)plan->payload.header | (reg){where | r->back_facing << BACK_FACING_BIT | (r->topology & TOPOLOGY_MASK)};
    t->sampled = sampled;
    t->facts = (reg){0, r->back_facing, r->layer, r->viewport, 0, 0, sampled ? plan->raster.stored : 0, 0};
    t->flat = r->rhw.dx == 0 && r->rhw.dy == 0;
    t->has_rhw = usual->has_w || (usual->has_perspective && !t->flat);
    set_planes(t, r);
}

/* -- payloads ------------------------------------------------------------------------------------------------------------------------ */

INLINE void evaluate(const struct record_threads *t, const struct corners *c, int plane, float *restrict into)
{
    float dx = t->step_x[plane], dy = t->step_y[plane], rest = c->rest[plane], near = c->near[plane];
    for (int i = 0; i < BLOCK_PIXELS; i++)
        into[i] = __builtin_fmaf(dx, pixel_x[i], __builtin_fmaf(dy, pixel_y[i], rest)) + near;
}

INLINE void divide(float *restrict values, const float *restrict w)
{
    for (int i = 0; i < BLOCK_PIXELS; i++)
        values[i] *= w[i];
}

/* Barycentrics and w of a block's pixels; `z` has their depths. */
INLINE void interpolate(const struct record_threads *t, const struct corners *c, const float *z, struct block_values *v)
{
    const struct usual_plan *usual = t->usual;
    if (t->has_rhw) {
        evaluate(t, c, RHW, v->of[RHW]);
        for (int i = 0; i < BLOCK_PIXELS; i++)
            v->of[RHW][i] = 1.0f / v->of[RHW][i];
    }
    for (int plane = PERSPECTIVE; plane < PERSPECTIVE + 2 && usual->has_perspective; plane++) {
        evaluate(t, c, plane, v->of[plane]);
        if (!t->flat)
            divide(v->of[plane], v->of[RHW]);
    }
    for (int plane = LINEAR; plane < LINEAR + 2 && usual->has_linear; plane++)
        evaluate(t, c, plane, v->of[plane]);
    if (usual->has_z)
        memcpy(v->of[Z], z, sizeof v->of[Z]);
}

/* The pixels of a block from `first` on become all channels of a thread: 8 or 16. */
INLINE void put_pixels(const struct record_threads *t, uint8_t *payload, const struct block_values *v, uint32_t first, uint32_t count)
{
    const struct usual_plan *usual = t->usual;
    const uint8_t *values = (const uint8_t *)v + first * sizeof(float);
    for (uint32_t i = 0; i < usual->parts; i++) {
        memcpy(payload + usual->part[i].at[0], values + usual->part[i].from, REGISTER);
        if (count > HALF)
            memcpy(payload + usual->part[i].at[2], values + usual->part[i].from + REGISTER, REGISTER);
    }
}

INLINE void copy_registers(uint8_t *to, const uint8_t *from, uint32_t bytes)
{
    for (uint32_t i = 0; i < bytes; i += REGISTER)
        *(reg *)(to + i) = *(const reg *)(from + i);
}

/* What is copied, and zeros where nothing is. */
INLINE void begin_thread(const struct record_threads *t, uint8_t *payload)
{
    const struct payload_plan *plan = &t->loop->plan->payload;
    const uint8_t *attributes = t->loop->records->attributes + t->record->attributes + plan->attribute_offset;
    for (uint32_t i = 0; i < plan->gap_bytes; i += REGISTER)
        *(reg *)(payload + plan->gap + i) = (reg){0};
    copy_registers(payload + plan->constants, plan->constant_data, plan->constant_bytes);
    copy_registers(payload + plan->attributes, attributes, plan->attribute_bytes);
}

/* The lit pixels at each sample of the block in hand, `count` from `first` on. */
INLINE void lit_samples(const struct pixel_loop *l, uint32_t first, uint32_t count, uint32_t lit[MOST_SAMPLES])
{
    for (int s = 0; s < MOST_SAMPLES; s++)
        lit[s] = (uint32_t)l->sample_lit[s] >> first & ((1u << count) - 1);
}

/* What the pixel backend needs of samples. */
INLINE void tell_samples(const struct pixel_loop *l, struct pixel_dispatch *told, const uint32_t lit[MOST_SAMPLES])
{
    memcpy(told->sample_lit, lit, sizeof told->sample_lit);
    if (l->plan->late) {
        memset(told->sample_tested, 0, sizeof told->sample_tested + sizeof told->sample_passed);
        memcpy(told->sample_depth, l->sample_step, sizeof told->sample_depth);
    }
}

/* Headers, the parameters of the pixel backend, and the dispatch mask: whole subspans, as derivatives need neighbours. */
INLINE void end_thread(const struct record_threads *t, uint8_t *payload, uint32_t number, const uint32_t *place, uint32_t lit)
{
    struct pixel_loop *l = t->loop;
    const struct payload_plan *plan = &l->plan->payload;
    struct pixel_dispatch *told = sideband_of(t, payload);
    uint32_t slot = l->head.first_slot + number;
    *(reg *)payload = t->header + (reg){0, 0, 0, 0, 0, plan->scratch_step * slot + (slot & 0xff), 0, 0};
    *(reg *)(payload + REGISTER) = (reg){0, 0, place[0], place[1], place[2], place[3], 0, lit << 16 | lit};
    *(reg *)told->place = (reg){place[0], place[1], place[2], place[3], 0, 0, 0, 0};
    *(reg *)&told->lit = t->facts | (reg){lit};
    if (l->plan->interpolated)
        write_planes(t->record, told->planes);
    l->masks[number] = whole_subspans(lit);
}

#endif
