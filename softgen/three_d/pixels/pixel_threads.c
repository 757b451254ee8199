/* Pixel shader threads of usual draws: what pixel_shader.c does for any plan, specialised.
 *
 * Barycentric payloads of 8 or 16 channels, without what few shaders ask for (what the buffers hold, antialias alphas, where samples are). A block
 * whose subspans are lit becomes threads of its own, which write it as a block. Lit subspans of other blocks of a record share threads. The
 * pixels are those of the generic version, bit for bit; there are fewer threads.
 */
#include "pixel_threads.h"

/* -- blocks whose subspans are lit --------------------------------------------------------------------------------------------------- */

/* `count` pixels of a block, from `first` on, as a thread. */
INLINE void add_thread(const struct record_threads *t, const struct block_values *v, const struct pixel_block *b, uint32_t first, uint32_t lit,
                       uint32_t count)
{
    uint32_t number = t->loop->batch++, corner = ((uint32_t)b->y + first / HALF * 2) << 16 | b->x;
    uint32_t below = count > HALF ? corner + (2 << 16) : 0, place[SUBSPANS] = {corner, corner + 2, below, below ? below + 2 : 0};
    uint8_t *payload = payload_of(t, number);
    begin_thread(t, payload);
    put_pixels(t, payload, v, first, count);
    end_thread(t, payload, number, place, lit >> first & ((1u << count) - 1));
    if (t->sampled) {
        uint32_t samples[MOST_SAMPLES];
        lit_samples(t->loop, first, count, samples);
        tell_samples(t->loop, sideband_of(t, payload), samples);
    }
}

INLINE void add_block(const struct record_threads *t, const struct block_values *v, const struct pixel_block *b, uint32_t lit)
{
    if (t->loop->plan->payload.width == BLOCK_PIXELS)
        add_thread(t, v, b, 0, lit, BLOCK_PIXELS);
    else {
        add_thread(t, v, b, 0, lit, HALF);
        add_thread(t, v, b, HALF, lit, HALF);
    }
}

/* -- lit subspans of other blocks ---------------------------------------------------------------------------------------------------- */

INLINE void begin_shared(const struct record_threads *t, struct shared_thread *s)
{
    s->subspans = s->lit = 0;
    memset(s->place, 0, sizeof s->place);
    if (t->sampled)
        memset(s->sample_lit, 0, sizeof s->sample_lit);
    s->number = t->loop->batch++;
    s->payload = payload_of(t, s->number);
    begin_thread(t, s->payload);
}

/* Adds the pixels of a subspan of a block. */
INLINE void add_subspan(const struct record_threads *t, struct shared_thread *s, const struct block_values *v, uint32_t subspan,
                        uint32_t place, uint32_t lit)
{
    const struct usual_plan *usual = t->usual;
    const uint8_t *values = (const uint8_t *)v + subspan * sizeof(quad);
    uint8_t *payload = s->payload;
    uint32_t number = s->subspans++;
    for (uint32_t i = 0, parts = usual->parts; i < parts; i++)
        *(quad *)(payload + usual->part[i].at[number]) = *(const quad *)(values + usual->part[i].from);
    s->place[number] = place;
    s->lit |= lit << number * SUBSPAN;
    uint32_t samples[MOST_SAMPLES];
    if (t->sampled)
        lit_samples(t->loop, subspan * SUBSPAN, SUBSPAN, samples);
    for (int i = 0; i < MOST_SAMPLES && t->sampled; i++)
        s->sample_lit[i] |= samples[i] << number * SUBSPAN;
}

/* Channels that are off have the pixels of the last subspan. */
INLINE void repeat_subspan(const struct record_threads *t, struct shared_thread *s)
{
    const struct usual_plan *usual = t->usual;
    uint8_t *payload = s->payload;
    uint32_t number = s->subspans++;
    for (uint32_t i = 0, parts = usual->parts; i < parts; i++)
        *(quad *)(payload + usual->part[i].at[number]) = *(const quad *)(payload + usual->part[i].at[number - 1]);
    s->place[number] = s->place[number - 1];
}

INLINE void end_shared(const struct record_threads *t, struct shared_thread *s)
{
    if (!s->payload)
        return;
    uint32_t most = t->loop->plan->payload.width / SUBSPAN;
    while (s->subspans < most)
        repeat_subspan(t, s);
    end_thread(t, s->payload, s->number, s->place, s->lit);
    if (t->sampled)
        tell_samples(t->loop, sideband_of(t, s->payload), s->sample_lit);
    s->payload = NULL;
}

INLINE void add_subspans(const struct record_threads *t, struct shared_thread *s, const struct block_values *v, const struct pixel_block *b,
                         uint32_t lit)
{
    uint32_t most = t->loop->plan->payload.width / SUBSPAN;
    for (uint32_t left = lit_subspans(lit); left; left &= left - 1) {
        uint32_t subspan = (uint32_t)__builtin_ctz(left), x = b->x + 2 * (subspan & 1), y = b->y + (subspan & 2);
        if (!s->payload)
            begin_shared(t, s);
        add_subspan(t, s, v, subspan, y << 16 | x, lit >> subspan * SUBSPAN & 15);
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

/* The lit pixels of a block, which are counted. */
INLINE uint32_t lit_pixels(const struct record_threads *t, struct depth_block *tested, const struct pixel_block *b)
{
    struct pixel_loop *l = t->loop;
    if (t->sampled)
        return test_samples(l, t->record, b, tested->z);
    uint32_t lit = l->plan->depth ? test_early(t, tested, b) : b->mask;
    l->covered += (uint32_t)__builtin_popcount(b->mask);
    l->lit += (uint32_t)__builtin_popcount(lit);
    if (!l->plan->late)
        l->passed += (uint32_t)__builtin_popcount(lit);
    return lit;
}

INLINE void shade_block(const struct record_threads *t, struct shared_thread *s, struct depth_block *tested, const struct pixel_block *b)
{
    struct pixel_loop *l = t->loop;
    struct corners corners;
    struct block_values values;
    set_corners(t, b, &corners);
    if (t->usual->has_z || l->plan->depth)
        evaluate(t, &corners, Z, tested->z);
    uint32_t lit = lit_pixels(t, tested, b);
    if (!lit)
        return;
    interpolate(t, &corners, tested->z, &values);
    uint32_t subspans = lit_subspans(lit);
    if (subspans == ALL_SUBSPANS || subspans == FIRST_SUBSPANS)
        add_block(t, &values, b, lit);
    else
        add_subspans(t, s, &values, b, lit);
}

INLINE int64_t shade_record(struct pixel_loop *l, const struct usual_plan *usual, const struct setup_record *r, void *record, int sampled)
{
    struct record_threads threads;
    struct shared_thread shared;
    /* Depths are stored and loaded as one vector: they begin at a cache line. */
    struct { uint8_t before[64 - offsetof(struct depth_block, z)]; struct depth_block block; } tested __attribute__((aligned(64)));
    if (l->block == l->block_count)
        return THREADS_DONE;
    tested.block.back_facing = r->back_facing;
    tested.block.layer = r->layer;
    tested.block.viewport = r->viewport;
    shared.payload = NULL;
    begin_threads(&threads, l, usual, r, sampled);
    for (; l->block < l->block_count; l->block++) {
        const struct pixel_block *b = &l->blocks[l->block];
        uint32_t number = b->y % TILE / BLOCK * BLOCKS_ACROSS + b->x % TILE / BLOCK;
        if (l->batch + MOST_THREADS > usual->room || l->used[number / 64] >> number % 64 & 1) {
            end_shared(&threads, &shared);
            int64_t why = run_batch(l, record);
            if (why != THREADS_DONE)
                return why;
        }
        l->used[number / 64] |= 1ull << number % 64;
        shade_block(&threads, &shared, &tested.block, b);
    }
    end_shared(&threads, &shared);
    return THREADS_DONE;
}

VECTORIZED int64_t shade_usual(struct pixel_loop *l, const struct usual_plan *usual, const struct setup_record *r, void *record)
{
    return shade_record(l, usual, r, record, 0);
}

/* The same of pixels with several samples. */
VECTORIZED int64_t shade_usual_samples(struct pixel_loop *l, const struct usual_plan *usual, const struct setup_record *r, void *record)
{
    return shade_record(l, usual, r, record, 1);
}

/* -- plans --------------------------------------------------------------------------------------------------------------------------- */

/* `stride`: registers from the first eight channels to the others. */
static void add_part(struct usual_plan *usual, uint32_t plane, uint32_t offset, uint32_t stride)
{
    if (!offset)
        return;
    for (uint32_t i = 0; i < SUBSPANS; i++)
        usual->part[usual->parts].at[i] = offset + i / 2 * stride * REGISTER + i % 2 * (uint32_t)sizeof(quad);
    usual->part[usual->parts++].from = plane * BLOCK_PIXELS * (uint32_t)sizeof(float);
}

static void set_parts(const struct pixel_plan *plan, struct usual_plan *usual)
{
    const struct payload_plan *payload = &plan->payload;
    usual->parts = 0;
    for (uint32_t mode = 0; mode < BARYCENTRIC_MODES; mode++)
        for (uint32_t axis = 0; axis < 2 && payload->barycentric[mode]; axis++)
            add_part(usual, (mode < 3 ? PERSPECTIVE : LINEAR) + axis, payload->barycentric[mode] + axis * REGISTER, 2);
    add_part(usual, Z, payload->depth, 1);
    add_part(usual, RHW, payload->w, 1);
    if (plan->late)
        add_part(usual, Z, plan->sideband + (uint32_t)offsetof(struct pixel_dispatch, depth), 1);
    usual->has_z = plan->late || payload->depth;
    usual->has_w = payload->w != 0;
    usual->has_perspective = (payload->barycentric[0] | payload->barycentric[1] | payload->barycentric[2]) != 0;
    usual->has_linear = (payload->barycentric[3] | payload->barycentric[4] | payload->barycentric[5]) != 0;
}

/* Whether threads have nothing of samples but which are lit. */
static int is_plain(const struct pixel_plan *plan)
{
    const struct payload_plan *p = &plan->payload;
    uint32_t elsewhere = p->barycentric[1] | p->barycentric[2] | p->barycentric[4] | p->barycentric[5];
    return !p->per_sample && !elsewhere && !plan->interpolated && (p->zw_place == PLACE_PIXEL || !(p->depth | p->w));
}

int is_usual(const struct pixel_loop *l, struct usual_plan *usual)
{
    const struct pixel_plan *plan = l->plan;
    const struct payload_plan *payload = &plan->payload;
    if (!l->head.worker || plan->generic || plan->held || plan->raster.antialiased || payload->header_format != HEADER_BARYCENTRIC ||
        (payload->width != 8 && payload->width != 16) || payload->xy_offsets || payload->coverage || (plan->raster.stored && !is_plain(plan)))
        return 0;
    usual->shade = plan->raster.stored ? shade_usual_samples : shade_usual;
    usual->room = threads_capacity(l->head.worker);
    usual->room = usual->room < BATCH_THREADS ? usual->room : BATCH_THREADS;
    if (usual->room <= MOST_THREADS)
        return 0;
    usual->blocks = threads_payload(l->head.worker, 0);
    usual->stride = (uint64_t)(threads_payload(l->head.worker, 1) - usual->blocks);
    set_parts(plan, usual);
    return 1;
}
