/* Pixel shader threads of usual draws: what pixel_shader.c does for any plan, specialised.
 *
 * Barycentric payloads of 8 or 16 channels, without what few shaders ask for (samples, what the buffers hold, antialias alphas). A block
 * whose subspans are lit becomes threads of its own, which write it as a block. Lit subspans of other blocks of a record share threads. The
 * pixels are those of the generic version, bit for bit; there are fewer threads.
 */
#include "pixel_threads.h"

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
