/* Pixel shader threads of usual draws: what pixel_shader.c does for any plan, specialised.
 *
 * Barycentric payloads of 8 or 16 channels, without what few shaders ask for (samples, what the buffers hold, antialias alphas). A block
 * whose subspans are lit becomes threads of its own, which write it as a block. Lit subspans of other blocks of a record share threads. The
 * pixels are those of the generic version, bit for bit; there are fewer threads.
 */
#include "pixels.h"

#include <math.h>
#include <string.h>

enum { SUBSPAN = 4, SUBSPANS = BLOCK_PIXELS / SUBSPAN, HALF = 8, BLOCKS_ACROSS = TILE / BLOCK };
enum { MOST_THREADS = 3 }; /* that a block may add: two of eight channels, and a shared one */
enum { ALL_SUBSPANS = 15, FIRST_SUBSPANS = 7 };

static const float pixel_x[BLOCK_PIXELS] = {0, 1, 0, 1, 2, 3, 2, 3, 0, 1, 0, 1, 2, 3, 2, 3};
static const float pixel_y[BLOCK_PIXELS] = {0, 0, 1, 1, 0, 0, 1, 1, 2, 2, 3, 3, 2, 2, 3, 3};

/* A plane at the corner of a block: values there are near + rest (payload.c). */
struct corner { float near, rest, dx, dy; };

/* The planes of payloads at the corner of a block. */
struct corners { struct corner rhw, perspective[2], linear[2]; };

/* What the threads of a record have in common. */
struct record_threads {
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
    uint8_t *payload; /* NULL: there is none */
    uint32_t number, subspans, lit;
    uint32_t place[SUBSPANS];
    float x, y, z[SUBSPAN]; /* of the last subspan: its place in its block, */
    struct corners corners; /* and what is interpolated there */
};

INLINE struct corner corner_of(const struct plane *p, uint32_t x, uint32_t y)
{
    double value = __builtin_fma(p->dx, x, __builtin_fma(p->dy, y, p->c));
    float near = (float)value;
    return (struct corner){near, isfinite(near) ? (float)(value - near) : 0, (float)p->dx, (float)p->dy};
}

INLINE float at(const struct corner *c, float x, float y)
{
    return __builtin_fmaf(c->dx, x, __builtin_fmaf(c->dy, y, c->rest)) + c->near;
}

INLINE void set_corners(const struct record_threads *t, const struct pixel_block *b, struct corners *corners)
{
    const struct setup_record *r = t->record;
    if (t->has_rhw)
        corners->rhw = corner_of(&r->rhw, b->x, b->y);
    for (int i = 0; i < 2; i++) {
        if (t->has_perspective)
            corners->perspective[i] = corner_of(t->flat ? &r->linear[i] : &r->perspective[i], b->x, b->y);
        if (t->has_linear)
            corners->linear[i] = corner_of(&r->linear[i], b->x, b->y);
    }
}

INLINE uint8_t *payload_of(const struct record_threads *t, uint32_t number)
{
    return t->blocks + number * t->stride;
}

INLINE struct pixel_dispatch *sideband_of(const struct record_threads *t, uint8_t *payload)
{
    return (struct pixel_dispatch *)(payload + t->loop->plan->sideband);
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
    if (plan->interpolated)
        write_planes(r, t->planes);
}

/* -- payloads ------------------------------------------------------------------------------------------------------------------------ */

/* Where a part of a payload has the value of a channel; registers of eight channels are `stride` registers apart. */
INLINE float *channel_of(uint8_t *payload, uint32_t offset, uint32_t stride, uint32_t channel)
{
    return (float *)(payload + offset + channel / HALF * stride * REGISTER + channel % HALF * sizeof(float));
}

/* `count` values of channels from `channel` on: 4, 8 or 16 of them. */
INLINE void put(uint8_t *payload, uint32_t offset, uint32_t stride, uint32_t channel, const float *values, uint32_t count)
{
    memcpy(channel_of(payload, offset, stride, channel), values, (count < HALF ? count : HALF) * sizeof *values);
    if (count > HALF)
        memcpy(channel_of(payload, offset, stride, channel + HALF), values + HALF, HALF * sizeof *values);
}

INLINE void put_barycentrics(const uint32_t *modes, uint8_t *payload, uint32_t channel, const float *b1, const float *b2, uint32_t count)
{
    for (int mode = 0; mode < 3; mode++)
        if (modes[mode]) {
            put(payload, modes[mode], 2, channel, b1, count);
            put(payload, modes[mode] + REGISTER, 2, channel, b2, count);
        }
}

/* What is interpolated for `count` channels from `channel` on: those of pixels from `first` on, counted from (left, top) of the block. */
INLINE void write_values(const struct record_threads *t, const struct corners *c, uint8_t *payload, uint32_t channel, float left, float top,
                         uint32_t first, const float *z, uint32_t count)
{
    const struct payload_plan *plan = &t->loop->plan->payload;
    float w[BLOCK_PIXELS], b1[BLOCK_PIXELS], b2[BLOCK_PIXELS];
    if (t->has_rhw)
        for (uint32_t i = 0; i < count; i++)
            w[i] = 1.0f / at(&c->rhw, left + pixel_x[first + i], top + pixel_y[first + i]);
    if (t->has_perspective) {
        for (uint32_t i = 0; i < count; i++) {
            b1[i] = at(&c->perspective[0], left + pixel_x[first + i], top + pixel_y[first + i]);
            b2[i] = at(&c->perspective[1], left + pixel_x[first + i], top + pixel_y[first + i]);
        }
        for (uint32_t i = 0; i < count && !t->flat; i++) {
            b1[i] *= w[i];
            b2[i] *= w[i];
        }
        put_barycentrics(plan->barycentric, payload, channel, b1, b2, count);
    }
    if (t->has_linear) {
        for (uint32_t i = 0; i < count; i++) {
            b1[i] = at(&c->linear[0], left + pixel_x[first + i], top + pixel_y[first + i]);
            b2[i] = at(&c->linear[1], left + pixel_x[first + i], top + pixel_y[first + i]);
        }
        put_barycentrics(plan->barycentric + 3, payload, channel, b1, b2, count);
    }
    if (plan->depth)
        put(payload, plan->depth, 1, channel, z, count);
    if (plan->w)
        put(payload, plan->w, 1, channel, w, count);
    if (t->loop->plan->late)
        memcpy(&sideband_of(t, payload)->depth[channel], z, count * sizeof *z);
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
    write_values(t, c, payload, 0, 0, 0, first, z + first, count);
    end_thread(t, payload, number, place, lit >> first & ((1u << count) - 1));
}

INLINE void add_block(const struct record_threads *t, const struct pixel_block *b, const float *z, uint32_t lit)
{
    struct corners corners = {0};
    set_corners(t, b, &corners);
    if (t->loop->plan->payload.width == BLOCK_PIXELS)
        add_thread(t, &corners, b, 0, z, lit, BLOCK_PIXELS);
    else {
        add_thread(t, &corners, b, 0, z, lit, HALF);
        add_thread(t, &corners, b, HALF, z, lit, HALF);
    }
}

/* -- lit subspans of other blocks ---------------------------------------------------------------------------------------------------- */

INLINE void begin_shared(const struct record_threads *t, struct shared_thread *s)
{
    memset(s, 0, sizeof *s);
    s->number = t->loop->batch++;
    s->payload = payload_of(t, s->number);
    begin_thread(t, s->payload);
}

INLINE void write_subspan(const struct record_threads *t, struct shared_thread *s, uint32_t place, uint32_t lit)
{
    write_values(t, &s->corners, s->payload, s->subspans * SUBSPAN, s->x, s->y, 0, s->z, SUBSPAN);
    s->place[s->subspans] = place;
    s->lit |= lit << s->subspans * SUBSPAN;
    s->subspans++;
}

/* Channels that are off have the pixels of the last subspan. */
INLINE void end_shared(const struct record_threads *t, struct shared_thread *s)
{
    if (!s->payload)
        return;
    uint32_t most = t->loop->plan->payload.width / SUBSPAN;
    while (s->subspans < most)
        write_subspan(t, s, s->place[s->subspans - 1], 0);
    end_thread(t, s->payload, s->number, s->place, s->lit);
    s->payload = NULL;
}

INLINE void add_subspans(const struct record_threads *t, struct shared_thread *s, const struct pixel_block *b, const float *z,
                         uint32_t lit)
{
    struct pixel_loop *l = t->loop;
    struct corners corners = {0};
    set_corners(t, b, &corners);
    for (uint32_t subspan = 0; subspan < SUBSPANS; subspan++) {
        uint32_t some = lit >> subspan * SUBSPAN & 15, x = b->x + 2 * (subspan & 1), y = b->y + (subspan & 2);
        if (!some)
            continue;
        if (!s->payload)
            begin_shared(t, s);
        s->x = (float)(x - b->x);
        s->y = (float)(y - b->y);
        s->corners = corners;
        memcpy(s->z, z + subspan * SUBSPAN, sizeof s->z);
        write_subspan(t, s, y << 16 | x, some);
        if (s->subspans == l->plan->payload.width / SUBSPAN)
            end_shared(t, s);
    }
}

/* -- the blocks of a record ---------------------------------------------------------------------------------------------------------- */

/* The subspans that have a lit pixel. */
INLINE uint32_t lit_subspans(uint32_t lit)
{
    lit |= lit >> 1;
    lit |= lit >> 2;
    return (lit & 1) | (lit >> 3 & 2) | (lit >> 6 & 4) | (lit >> 9 & 8);
}

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
    if (t->has_z) {
        struct corner z = corner_of(&t->record->z, b->x, b->y);
        for (int i = 0; i < BLOCK_PIXELS; i++)
            tested->z[i] = at(&z, pixel_x[i], pixel_y[i]);
    }
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
        add_block(t, b, tested->z, lit);
    else
        add_subspans(t, s, b, tested->z, lit);
}

VECTORIZED int64_t shade_usual(struct pixel_loop *l, const struct setup_record *r, void *record)
{
    struct record_threads threads;
    struct shared_thread shared = {0};
    struct depth_block tested = {.back_facing = r->back_facing, .layer = r->layer, .viewport = r->viewport};
    uint64_t room = threads_capacity(l->worker);
    room = room < BATCH_THREADS ? room : BATCH_THREADS;
    if (l->block == l->block_count)
        return THREADS_DONE;
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
