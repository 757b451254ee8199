/* Threads of pixels that have several samples.
 *
 * Depth and stencil are tested at each sample. A pixel of which any sample is lit is shaded once; or each of its samples is, as a pixel of
 * its own: then four channels are the pixels of a subspan at one sample, and samples of a subspan are next to each other, lit or not, as
 * kernels count on their places (public Mesa, brw_stage_has_packed_dispatch).
 */
#include "../pixels/thread_blocks.h"

enum { SUBSPAN = 4, SUBSPANS = BLOCK_PIXELS / SUBSPAN, PIXEL = 256, SIXTEENTH = PIXEL / 16 };

static uint32_t popcount(uint32_t bits)
{
    return (uint32_t)__builtin_popcount(bits);
}

/* -- tests --------------------------------------------------------------------------------------------------------------------------- */

void begin_sampled_record(struct pixel_loop *l, const struct setup_record *r, uint32_t x, uint32_t y)
{
    const struct raster_plan *plan = &l->plan->raster;
    l->block_count = rasterize_samples(plan, r, x, y, l->blocks, l->samples);
    for (uint32_t s = 0; s < plan->stored && l->block_count; s++)
        l->sample_step[s] = plan->samples ? (float)((r->z.dx * plan->sample[s][0] + r->z.dy * plan->sample[s][1]) / PIXEL) : 0;
}

/* The tests of all samples of a block, whose masks are in l->sample_lit. */
INLINE uint32_t test_depth(struct pixel_loop *l, const struct setup_record *r, const struct pixel_block *b, const float *z)
{
    struct sampled_block tested = {.x = b->x, .y = b->y, .back_facing = r->back_facing, .layer = r->layer, .viewport = r->viewport};
    for (uint32_t s = 0; s < MOST_SAMPLES; s++)
        tested.masks[s] = l->sample_lit[s];
    memcpy(tested.z, z, sizeof tested.z);
    memcpy(tested.steps, l->sample_step, sizeof tested.steps);
    l->testing = 1;
    uint32_t any = l->plan->depth(l->context, l->plan->depth_target, (struct depth_block *)&tested);
    l->testing = 0;
    for (uint32_t s = 0; s < MOST_SAMPLES; s++)
        l->sample_lit[s] = (uint16_t)tested.masks[s];
    return any;
}

VECTORIZED uint32_t test_samples(struct pixel_loop *l, const struct setup_record *r, const struct pixel_block *b, const float *z)
{
    const struct pixel_plan *plan = l->plan;
    uint64_t quarters[MOST_SAMPLES / 4];
    uint32_t any = b->mask, passed = 0;
    for (uint32_t s = 0; s < MOST_SAMPLES; s++)
        l->sample_lit[s] = s < plan->raster.stored ? l->samples[l->block][s] : 0;
    if (plan->depth)
        any = test_depth(l, r, b, z);
    memcpy(quarters, l->sample_lit, sizeof quarters);
    for (uint32_t i = 0; i < MOST_SAMPLES / 4; i++)
        passed += (uint32_t)__builtin_popcountll(quarters[i]);
    l->covered += (uint32_t)__builtin_popcount(b->mask);
    l->passed += plan->late ? 0 : passed;
    l->lit += !l->head.worker ? 0 : plan->payload.per_sample ? passed : (uint32_t)__builtin_popcount(any);
    return any;
}

/* -- places -------------------------------------------------------------------------------------------------------------------------- */

static uint16_t offset_of(const struct payload_plan *plan, const int32_t place[2])
{
    uint32_t x = (plan->xy_offset & 0xff) + (uint32_t)(place[0] / SIXTEENTH), y = (plan->xy_offset >> 8) + (uint32_t)(place[1] / SIXTEENTH);
    return (uint16_t)((x & 0xff) | y << 8);
}

/* Puts a channel's place somewhere in its pixel. */
static void move_place(struct subspan_order *order, uint32_t channel, const int32_t place[2])
{
    order->x[channel] += (float)place[0] / PIXEL;
    order->y[channel] += (float)place[1] / PIXEL;
}

static const int32_t at_pixel[2];

/* Where a pixel's centroid is: at the pixel if all of it is covered, else at the first sample that is (BDW 8834-8838). */
static const int32_t *centroid_of(const struct raster_plan *plan, uint32_t covered)
{
    return !plan->samples || !covered || covered == (1u << plan->stored) - 1 ? at_pixel : plan->sample[__builtin_ctz(covered)];
}

/* The samples of a pixel of the block, as channel `channel`. `sample`: that the channel is of. */
static void set_channel(const struct pixel_loop *l, struct sample_pixels *into, uint32_t channel, uint32_t pixel, uint32_t sample)
{
    const struct raster_plan *raster = &l->plan->raster;
    uint32_t covered = 0, passed = 0;
    for (uint32_t s = 0; s < raster->stored; s++) {
        covered |= (uint32_t)(l->samples[l->block][s] >> pixel & 1) << s;
        passed |= (uint32_t)(l->sample_lit[s] >> pixel & 1) << s;
    }
    const int32_t *centroid = centroid_of(raster, covered), *own = raster->samples ? raster->sample[sample] : at_pixel;
    into->covered[channel] = (uint16_t)covered;
    into->passed[channel] = (uint16_t)passed;
    move_place(&into->centroid, channel, centroid);
    move_place(&into->sample, channel, own);
    into->centroid_offset[channel] = offset_of(&l->plan->payload, centroid);
    into->sample_offset[channel] = offset_of(&l->plan->payload, own);
}

void tell_samples(const struct pixel_loop *l, const struct thread_pixels *t, struct pixel_dispatch *told, uint32_t channel)
{
    const struct raster_plan *raster = &l->plan->raster;
    const struct sample_pixels *s = t->samples;
    if (!channel) {
        told->samples = raster->stored;
        memset(told->sample_lit, 0, sizeof told->sample_lit + sizeof told->sample_tested + sizeof told->sample_passed);
        memcpy(told->sample_depth, s->z_step, sizeof told->sample_depth);
    }
    for (uint32_t i = 0; i < raster->stored; i++)
        told->sample_lit[i] |= (s->lit[i] >> t->first & ((1u << t->count) - 1)) << channel;
    if (!l->plan->interpolated)
        return;
    for (uint32_t i = 0; i < raster->stored; i++) {
        told->sample_x[i] = raster->samples ? (float)raster->sample[i][0] / PIXEL : 0;
        told->sample_y[i] = raster->samples ? (float)raster->sample[i][1] / PIXEL : 0;
    }
    memcpy(&told->sample_covered[channel], &s->covered[t->first], t->count * sizeof *s->covered);
}

/* -- threads of pixels --------------------------------------------------------------------------------------------------------------- */

/* A mask of the block's pixels, its subspans in their order. */
static uint32_t pack_mask(const struct subspan_order *order, uint32_t mask)
{
    uint32_t packed = 0;
    for (uint32_t i = 0; i < SUBSPANS; i++)
        packed |= (mask >> SUBSPAN * order->subspan[i] & 15) << SUBSPAN * i;
    return packed;
}

static void add_pixel_threads(struct pixel_loop *l, const struct setup_record *r, uint32_t lit)
{
    const struct pixel_block *b = &l->blocks[l->block];
    const struct subspan_order *order = &subspan_orders[lit_subspans(lit)];
    struct sample_pixels samples = {.centroid = *order, .sample = *order};
    float z[BLOCK_PIXELS];
    memcpy(z, l->block_z, sizeof z);
    pack_values(order, z);
    for (uint32_t s = 0; s < l->plan->raster.stored; s++) {
        samples.lit[s] = pack_mask(order, l->sample_lit[s]);
        samples.z_step[s] = l->sample_step[s];
    }
    for (uint32_t i = 0; i < BLOCK_PIXELS; i++)
        set_channel(l, &samples, i, SUBSPAN * order->subspan[i / SUBSPAN] + i % SUBSPAN, 0);
    struct thread_pixels t = {.raster = &l->plan->raster, .record = r, .block = b, .z = z, .count = BLOCK_PIXELS, .order = order,
                              .covered = pack_mask(order, b->mask), .lit = pack_mask(order, lit), .samples = &samples};
    add_threads(l, &t);
}

/* -- threads of samples -------------------------------------------------------------------------------------------------------------- */

static uint32_t channels_of_part(const struct pixel_loop *l)
{
    return l->plan->payload.width == 8 ? 8 : BLOCK_PIXELS;
}

/* The subspan of the block that is number `number` of those that are lit. */
static uint32_t lit_subspan(uint32_t subspans, uint32_t number)
{
    while (number--)
        subspans &= subspans - 1;
    return (uint32_t)__builtin_ctz(subspans);
}

/* The channels of part `part`: pixels of subspans, each four at the sample that follows; 0 if none is lit. */
static uint32_t set_part(const struct pixel_loop *l, uint32_t part, struct subspan_order *order,
                         struct sample_pixels *samples, float *z)
{
    uint32_t count = channels_of_part(l) / SUBSPAN, stored = l->plan->raster.stored, any = 0, lit = 0, ids = 0;
    for (uint32_t s = 0; s < stored; s++)
        any |= l->sample_lit[s];
    uint32_t subspans = lit_subspans(any), last = popcount(subspans) * stored - 1;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t slot = part * count + i < last ? part * count + i : last, there = part * count + i <= last; /* channels that are off repeat */
        uint32_t subspan = lit_subspan(subspans, slot / stored), sample = slot % stored;
        uint32_t mask = there ? l->sample_lit[sample] >> SUBSPAN * subspan & 15 : 0;
        order->subspan[i] = subspan;
        ids |= sample << 4 * i;
        lit |= mask << SUBSPAN * i;
        samples->lit[sample] |= mask << SUBSPAN * i;
        for (uint32_t p = 0; p < SUBSPAN; p++) {
            order->x[SUBSPAN * i + p] = (float)(2 * (subspan & 1) + (p & 1)), order->y[SUBSPAN * i + p] = (float)((subspan & 2) + (p >> 1));
            z[SUBSPAN * i + p] = l->block_z[SUBSPAN * subspan + p] + l->sample_step[sample];
        }
    }
    samples->pair = l->plan->payload.per_sample == SAMPLE_PAIRS ? (ids & 15) / 2 : 0;
    samples->ids = l->plan->payload.per_sample == SAMPLE_SLOTS ? ids : 0;
    samples->centroid = samples->sample = *order;
    for (uint32_t i = 0; i < SUBSPAN * count; i++)
        set_channel(l, samples, i, SUBSPAN * order->subspan[i / SUBSPAN] + i % SUBSPAN, ids >> 4 * (i / SUBSPAN) & 15);
    return lit;
}

static void add_part(struct pixel_loop *l, const struct setup_record *r, uint32_t part)
{
    struct subspan_order order = subspan_orders[0];
    struct sample_pixels samples = {{0}};
    float z[BLOCK_PIXELS] = {0};
    uint32_t lit = set_part(l, part, &order, &samples, z);
    if (!lit)
        return;
    struct thread_pixels t = {.raster = &l->plan->raster, .record = r, .block = &l->blocks[l->block], .z = z, .order = &order,
                              .count = channels_of_part(l), .covered = lit, .lit = lit, .samples = &samples};
    if (l->plan->payload.width == 32) {
        add_threads(l, &t);
        return;
    }
    l->batch++;
    add_pixels(l, &t, 0);
}

/* -- blocks -------------------------------------------------------------------------------------------------------------------------- */

static uint32_t begin_block(struct pixel_loop *l, const struct setup_record *r)
{
    const struct pixel_block *b = &l->blocks[l->block];
    if (l->plan->depth || l->plan->late)
        interpolate_depth(&r->z, b->x, b->y, l->block_z);
    uint32_t any = test_samples(l, r, b, l->block_z), slots = popcount(lit_subspans(any)) * l->plan->raster.stored;
    l->part = 0;
    l->parts = !l->head.worker || !any ? 0 : !l->plan->payload.per_sample ? 1 : (SUBSPAN * slots - 1) / channels_of_part(l) + 1;
    return any;
}

int64_t shade_samples(struct pixel_loop *l, const struct setup_record *r, void *record, uint64_t room)
{
    uint32_t number = l->blocks[l->block].y % TILE / BLOCK * (TILE / BLOCK) + l->blocks[l->block].x % TILE / BLOCK;
    if (!l->parts) {
        uint32_t any = begin_block(l, r);
        if (l->parts && !l->plan->payload.per_sample) {
            l->parts = 0; /* there is room for the threads of a block's pixels */
            add_pixel_threads(l, r, any);
        }
    }
    for (; l->part < l->parts; l->part++) {
        if (l->batch + 1 > room && !l->open) {
            int64_t why = run_batch(l, record);
            if (why != THREADS_DONE)
                return why;
            l->used[number / 64] |= 1ull << number % 64;
        }
        add_part(l, r, l->part);
    }
    l->part = l->parts = 0;
    return THREADS_DONE;
}
