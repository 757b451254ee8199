/* Pixel shader threads of usual draws: what pixel_shader.c does for any plan, specialised.
 *
 * Barycentric payloads of 8 or 16 channels, without what few shaders ask for (samples, what the buffers hold, antialias alphas). A block
 * whose subspans are lit becomes threads of its own, which write it as a block. Lit subspans of other blocks of a record share threads. The
 * pixels are those of the generic version, bit for bit; there are fewer threads.
 */
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
typedef float channels __attribute__((vector_size(4 * BLOCK_PIXELS), may_alias));
typedef int32_t numbers __attribute__((vector_size(4 * BLOCK_PIXELS)));

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
    const struct setup_record *record;
    uint8_t *blocks; /* of threads, */
    uint64_t stride; /* so many bytes apart */
    reg header, facts; /* r0; the second half of the sideband's first 64 bytes */
    int has_z, has_rhw, has_perspective, has_linear;
    int flat; /* w is the same everywhere: perspective barycentrics are the linear ones */
    float planes[16]; /* of struct pixel_dispatch */
};

/* A thread of subspans of several blocks. */
struct shared_thread {
    struct corners corners[SUBSPANS]; /* of the subspans' blocks */
    float z[BLOCK_PIXELS];
    uint8_t *payload; /* NULL: there is none */
    uint32_t number, subspans, lit;
    uint32_t place[SUBSPANS], subspan[SUBSPANS]; /* subspan: its number in its block */
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
    return t->blocks + number * t->stride;
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
INLINE void begin_threads(struct record_threads *t, struct pixel_loop *l, const struct setup_record *r)
{
    const struct pixel_plan *plan = l->plan;
    const uint32_t *modes = plan->payload.barycentric;
    uint32_t where = (r->viewport & VIEWPORT_MASK) << VIEWPORT_SHIFT | (r->layer & LAYER_MASK) << LAYER_SHIFT;
    t->loop = l;
    t->record = r;
    t->blocks = threads_payload(l->worker, 0);
    t->stride = (uint64_t)(threads_payload(l->worker, 1) - t->blocks);
    t->header = *(const reg *)plan->payload.header | (reg){where | r->back_facing << BACK_FACING_BIT | (r->topology & TOPOLOGY_MASK)};
    t->facts = (reg){0, r->back_facing, r->layer, r->viewport, 0, 0, 0, 0};
    t->has_z = plan->depth || plan->late || plan->payload.depth;
    t->has_linear = (modes[3] | modes[4] | modes[5]) != 0;
    t->has_perspective = (modes[0] | modes[1] | modes[2]) != 0;
    t->flat = r->rhw.dx == 0 && r->rhw.dy == 0;
    t->has_rhw = plan->payload.w || (t->has_perspective && !t->flat);
    set_planes(t, r);
    if (plan->interpolated)
        write_planes(r, t->planes);
}

/* -- payloads ------------------------------------------------------------------------------------------------------------------------ */

INLINE float at(float dx, float dy, float x, float y, float rest, float near)
{
    return __builtin_fmaf(dx, x, __builtin_fmaf(dy, y, rest)) + near;
}

INLINE void evaluate(float dx, float dy, const float *restrict x, const float *restrict y, const float *restrict rest,
                     const float *restrict near, float *restrict into)
{
    for (int i = 0; i < BLOCK_PIXELS; i++)
        into[i] = at(dx, dy, x[i], y[i], rest[i], near[i]);
}

/* Values of 8 or 16 channels; registers of eight channels are `stride` registers apart. */
INLINE void put(uint8_t *payload, uint32_t offset, uint32_t stride, const float *values, uint32_t count)
{
    memcpy(payload + offset, values, REGISTER);
    if (count > HALF)
        memcpy(payload + offset + stride * REGISTER, values + HALF, REGISTER);
}

INLINE void put_barycentrics(const uint32_t *modes, uint8_t *payload, const float *b1, const float *b2, uint32_t count)
{
    for (int mode = 0; mode < 3; mode++)
        if (modes[mode]) {
            put(payload, modes[mode], 2, b1, count);
            put(payload, modes[mode] + REGISTER, 2, b2, count);
        }
}

/* Barycentrics, depth and w of `count` channels from values that planes have there. */
INLINE void put_values(const struct record_threads *t, uint8_t *payload, float (*values)[BLOCK_PIXELS], const float *z, uint32_t count)
{
    const struct payload_plan *plan = &t->loop->plan->payload;
    if (t->has_rhw)
        for (uint32_t i = 0; i < count; i++)
            values[RHW][i] = 1.0f / values[RHW][i];
    if (t->has_perspective) {
        for (uint32_t i = 0; i < count && !t->flat; i++) {
            values[PERSPECTIVE][i] *= values[RHW][i];
            values[PERSPECTIVE + 1][i] *= values[RHW][i];
        }
        put_barycentrics(plan->barycentric, payload, values[PERSPECTIVE], values[PERSPECTIVE + 1], count);
    }
    if (t->has_linear)
        put_barycentrics(plan->barycentric + 3, payload, values[LINEAR], values[LINEAR + 1], count);
    if (plan->depth)
        put(payload, plan->depth, 1, z, count);
    if (plan->w)
        put(payload, plan->w, 1, values[RHW], count);
    if (t->loop->plan->late)
        memcpy(sideband_of(t, payload)->depth, z, count * sizeof *z);
}

/* Whether payloads have something of a plane. */
INLINE int has_plane(const struct record_threads *t, int plane)
{
    return plane == RHW ? t->has_rhw : plane >= PERSPECTIVE ? t->has_perspective : plane >= LINEAR ? t->has_linear : 0;
}

/* What is interpolated for `count` channels: those of a block's pixels from `first` on. */
INLINE void write_values(const struct record_threads *t, const struct corners *c, uint8_t *payload, uint32_t first, const float *z,
                         uint32_t count)
{
    float values[PLANES][BLOCK_PIXELS];
    for (int plane = RHW; plane < PLANES; plane++)
        if (has_plane(t, plane))
            for (uint32_t i = 0; i < count; i++)
                values[plane][i] = at(t->step_x[plane], t->step_y[plane], pixel_x[first + i], pixel_y[first + i], c->rest[plane],
                                      c->near[plane]);
    put_values(t, payload, values, z, count);
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

/* Headers, what the pixel backend is told, and the dispatch mask: whole subspans, as derivatives need neighbours. */
INLINE void end_thread(const struct record_threads *t, uint8_t *payload, uint32_t number, const uint32_t *place, uint32_t lit)
{
    struct pixel_loop *l = t->loop;
    const struct payload_plan *plan = &l->plan->payload;
    struct pixel_dispatch *told = sideband_of(t, payload);
    uint32_t slot = (uint32_t)l->first_slot + number;
    *(reg *)payload = t->header + (reg){0, 0, 0, 0, 0, plan->scratch_step * slot + (slot & 0xff), 0, 0};
    *(reg *)(payload + REGISTER) = (reg){0, 0, place[0], place[1], place[2], place[3], 0, lit << 16 | lit};
    *(reg *)told->place = (reg){place[0], place[1], place[2], place[3], 0, 0, 0, 0};
    *(reg *)&told->lit = t->facts | (reg){lit};
    if (l->plan->interpolated)
        memcpy(told->planes, t->planes, sizeof t->planes);
    l->masks[number] = ((lit | lit >> 1 | lit >> 2 | lit >> 3) & 0x1111u) * 0xf;
}

/* -- blocks whose subspans are lit --------------------------------------------------------------------------------------------------- */

/* `count` pixels of a block, from `first` on, as a thread. */
INLINE void add_thread(const struct record_threads *t, const struct corners *c, const struct pixel_block *b, uint32_t first, const float *z,
                       uint32_t lit, uint32_t count)
{
    uint32_t number = t->loop->batch++, corner = ((uint32_t)b->y + first / HALF * 2) << 16 | b->x;
    uint32_t below = count > HALF ? corner + (2 << 16) : 0, place[SUBSPANS] = {corner, corner + 2, below, below ? below + 2 : 0};
    uint8_t *payload = payload_of(t, number);
    begin_thread(t, payload);
    write_values(t, c, payload, first, z + first, count);
    end_thread(t, payload, number, place, lit >> first & ((1u << count) - 1));
}

INLINE void add_block(const struct record_threads *t, const struct corners *c, const struct pixel_block *b, const float *z, uint32_t lit)
{
    if (t->loop->plan->payload.width == BLOCK_PIXELS)
        add_thread(t, c, b, 0, z, lit, BLOCK_PIXELS);
    else {
        add_thread(t, c, b, 0, z, lit, HALF);
        add_thread(t, c, b, HALF, z, lit, HALF);
    }
}

/* -- lit subspans of other blocks ---------------------------------------------------------------------------------------------------- */

/* The subspans that have a lit pixel. */
INLINE uint32_t lit_subspans(uint32_t lit)
{
    lit |= lit >> 1;
    lit |= lit >> 2;
    return (lit & 1) | (lit >> 3 & 2) | (lit >> 6 & 4) | (lit >> 9 & 8);
}

INLINE void begin_shared(const struct record_threads *t, struct shared_thread *s)
{
    s->subspans = s->lit = 0;
    memset(s->place, 0, sizeof s->place);
    memset(s->subspan, 0, sizeof s->subspan);
    s->number = t->loop->batch++;
    s->payload = payload_of(t, s->number);
    begin_thread(t, s->payload);
}

/* Adds the pixels of a subspan of a block. */
INLINE void add_subspan(struct shared_thread *s, const struct corners *c, uint32_t subspan, const float *z, uint32_t place, uint32_t lit)
{
    uint32_t number = s->subspans++;
    s->corners[number].near = c->near; /* in the pieces in which they were stored: a wide load of both would wait for them */
    s->corners[number].rest = c->rest;
    memcpy(s->z + number * SUBSPAN, z + subspan * SUBSPAN, SUBSPAN * sizeof *z);
    s->subspan[number] = subspan;
    s->place[number] = place;
    s->lit |= lit << number * SUBSPAN;
}

/* Channels that are off have the pixels of the last subspan. */
INLINE void repeat_subspan(struct shared_thread *s)
{
    uint32_t number = s->subspans++, last = number - 1;
    s->corners[number].near = s->corners[last].near;
    s->corners[number].rest = s->corners[last].rest;
    memcpy(s->z + number * SUBSPAN, s->z + last * SUBSPAN, SUBSPAN * sizeof *s->z);
    s->subspan[number] = s->subspan[last];
    s->place[number] = s->place[last];
}

#define JOIN(a, b) __builtin_shufflevector(a, b, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15)
#define JOIN_QUADS(a, b) __builtin_shufflevector(a, b, 0, 1, 2, 3, 4, 5, 6, 7)

/* Values of the pixels of subspans, by channel. */
INLINE void by_channel(const float *of_pixels, const uint32_t *subspan, channels *into)
{
    const quad *of = (const quad *)of_pixels;
    floats low = JOIN_QUADS(of[subspan[0]], of[subspan[1]]), high = JOIN_QUADS(of[subspan[2]], of[subspan[3]]);
    *into = JOIN(low, high);
}

/* What is interpolated for the channels of a shared thread. */
INLINE void write_shared(const struct record_threads *t, struct shared_thread *s, uint32_t count)
{
    const struct corners *c = s->corners;
    channels near[2] = {JOIN(c[0].near, c[1].near), JOIN(c[2].near, c[3].near)};
    channels rest[2] = {JOIN(c[0].rest, c[1].rest), JOIN(c[2].rest, c[3].rest)};
    const numbers pick = {0, 0, 0, 0, 8, 8, 8, 8, 16, 16, 16, 16, 24, 24, 24, 24};
    channels x, y;
    float values[PLANES][BLOCK_PIXELS] __attribute__((aligned(64)));
    by_channel(pixel_x, s->subspan, &x);
    by_channel(pixel_y, s->subspan, &y);
    for (int plane = RHW; plane < PLANES; plane++)
        if (has_plane(t, plane)) {
            channels near_here = __builtin_shuffle(near[0], near[1], pick + plane);
            channels rest_here = __builtin_shuffle(rest[0], rest[1], pick + plane);
            evaluate(t->step_x[plane], t->step_y[plane], (const float *)&x, (const float *)&y, (const float *)&rest_here,
                     (const float *)&near_here, values[plane]);
        }
    put_values(t, s->payload, values, s->z, count);
}

INLINE void end_shared(const struct record_threads *t, struct shared_thread *s)
{
    if (!s->payload)
        return;
    uint32_t most = t->loop->plan->payload.width / SUBSPAN;
    while (s->subspans < most)
        repeat_subspan(s);
    if (most == SUBSPANS)
        write_shared(t, s, BLOCK_PIXELS);
    else {
        s->corners[2] = s->corners[3] = s->corners[0];
        write_shared(t, s, HALF);
    }
    end_thread(t, s->payload, s->number, s->place, s->lit);
    s->payload = NULL;
}

INLINE void add_subspans(const struct record_threads *t, struct shared_thread *s, const struct corners *c, const struct pixel_block *b,
                         const float *z, uint32_t lit)
{
    uint32_t most = t->loop->plan->payload.width / SUBSPAN;
    for (uint32_t left = lit_subspans(lit); left; left &= left - 1) {
        uint32_t subspan = (uint32_t)__builtin_ctz(left), x = b->x + 2 * (subspan & 1), y = b->y + (subspan & 2);
        if (!s->payload)
            begin_shared(t, s);
        add_subspan(s, c, subspan, z, y << 16 | x, lit >> subspan * SUBSPAN & 15);
        if (s->subspans == most)
            end_shared(t, s);
    }
}

/* -- the blocks of a record ---------------------------------------------------------------------------------------------------------- */

INLINE uint32_t test_early(const struct record_threads *t, struct depth_block *tested, const struct pixel_block *b)
{
    struct pixel_loop *l = t->loop;
    tested->x = b->x;
    tested->y = b->y;
    tested->mask = b->mask;
    l->testing = 1;
    uint32_t lit = l->plan->depth(l->context, l->plan->depth_target, tested);
    l->testing = 0;
    return lit & b->mask;
}

INLINE void shade_block(const struct record_threads *t, struct shared_thread *s, struct depth_block *tested, const struct pixel_block *b)
{
    struct pixel_loop *l = t->loop;
    uint32_t lit = b->mask;
    struct corners corners;
    set_corners(t, b, &corners);
    if (t->has_z)
        for (int i = 0; i < BLOCK_PIXELS; i++)
            tested->z[i] = at(t->step_x[Z], t->step_y[Z], pixel_x[i], pixel_y[i], corners.rest[Z], corners.near[Z]);
    if (l->plan->depth)
        lit = test_early(t, tested, b);
    l->covered += (uint32_t)__builtin_popcount(b->mask);
    if (!l->plan->late)
        l->passed += (uint32_t)__builtin_popcount(lit);
    if (!lit)
        return;
    l->lit += (uint32_t)__builtin_popcount(lit);
    uint32_t subspans = lit_subspans(lit);
    if (subspans == ALL_SUBSPANS || subspans == FIRST_SUBSPANS)
        add_block(t, &corners, b, tested->z, lit);
    else
        add_subspans(t, s, &corners, b, tested->z, lit);
}

VECTORIZED int64_t shade_usual(struct pixel_loop *l, const struct setup_record *r, void *record)
{
    struct record_threads threads;
    struct shared_thread shared;
    struct depth_block tested = {.back_facing = r->back_facing, .layer = r->layer, .viewport = r->viewport};
    uint64_t room = threads_capacity(l->worker);
    room = room < BATCH_THREADS ? room : BATCH_THREADS;
    if (l->block == l->block_count)
        return THREADS_DONE;
    shared.payload = NULL;
    begin_threads(&threads, l, r);
    for (; l->block < l->block_count; l->block++) {
        const struct pixel_block *b = &l->blocks[l->block];
        uint32_t number = b->y % TILE / BLOCK * BLOCKS_ACROSS + b->x % TILE / BLOCK;
        if (l->batch + MOST_THREADS > room || l->used[number / 64] >> number % 64 & 1) {
            end_shared(&threads, &shared);
            int64_t why = run_batch(l, record);
            if (why != THREADS_DONE)
                return why;
        }
        l->used[number / 64] |= 1ull << number % 64;
        shade_block(&threads, &shared, &tested, b);
    }
    end_shared(&threads, &shared);
    return THREADS_DONE;
}

int is_usual(const struct pixel_loop *l)
{
    const struct pixel_plan *plan = l->plan;
    const struct payload_plan *payload = &plan->payload;
    return l->worker && !plan->generic && !plan->held && !plan->raster.antialiased && threads_capacity(l->worker) > MOST_THREADS &&
           payload->header_format == HEADER_BARYCENTRIC && (payload->width == 8 || payload->width == 16) && !payload->xy_offsets &&
           !payload->coverage;
}
