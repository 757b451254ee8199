/* Pixel shader: the loop over tiles that turns setup records into pixel shader threads.
 *
 * Tiles are handed out by a counter that all loops of a draw share; a tile belongs to one worker, and its records come in order. A batch
 * never has threads of two records on the same block, so that the pixels of a block are written in the order of the records.
 */
#include "one_color.h"
#include "thread_blocks.h"

#include "../draw/draw.h"

enum { VISITS = 1024, MOST_VISITS = 16384 }; /* records visited between two looks at the clock, and two returns to Python */
enum { BLOCKS_ACROSS = TILE / BLOCK };

/* -- batches ------------------------------------------------------------------------------------------------------------------------- */

static void end_batch(struct pixel_loop *l)
{
    for (uint32_t i = 0; i < l->batch && l->plan->late; i++) {
        const struct pixel_dispatch *told = sideband_of(l, threads_payload(l->head.worker, i));
        l->passed += (uint32_t)__builtin_popcount(told->passed);
        for (uint32_t n = 0; n < l->plan->raster.stored; n++)
            l->passed += (uint32_t)__builtin_popcount(told->sample_passed[n]);
    }
    l->threads += l->batch;
    l->batch = l->open = 0;
    memset(l->used, 0, sizeof l->used);
}

int64_t run_batch(struct pixel_loop *l, void *record)
{
    if (!l->batch)
        return THREADS_DONE;
    l->started += l->batch;
    int64_t why = threads_run(l->head.worker, record, l->batch, l->masks);
    if (why == THREADS_DONE)
        end_batch(l);
    return why;
}

/* -- blocks -------------------------------------------------------------------------------------------------------------------------- */

/* Depth and stencil as the buffers hold them before the block's thread runs. */
static void read_held(struct pixel_loop *l, const struct setup_record *r, const struct pixel_block *b, struct held_block *held)
{
    held->block = (struct depth_block){b->x, b->y, b->mask, r->back_facing, r->layer, r->viewport, {0}};
    l->testing = 1;
    l->plan->held(l->context, l->plan->held_target, held);
    l->testing = 0;
}

INLINE void shade_block(struct pixel_loop *l, const struct setup_record *r, const struct pixel_block *b)
{
    const struct pixel_plan *plan = l->plan;
    float z[BLOCK_PIXELS] = {0};
    struct held_block held;
    struct thread_pixels pixels = {.raster = &plan->raster, .record = r, .block = b, .z = z, .count = BLOCK_PIXELS, .covered = b->mask, .lit = b->mask};
    if (plan->depth || plan->late || plan->payload.depth)
        interpolate_depth(&r->z, b->x, b->y, z);
    if (plan->depth)
        pixels.lit = test_early(l, r, b, b->mask, z);
    l->covered += (uint32_t)__builtin_popcount(b->mask);
    if (!plan->late)
        l->passed += (uint32_t)__builtin_popcount(pixels.lit);
    if (l->head.worker && pixels.lit) {
        uint32_t subspans = lit_subspans(pixels.lit);
        l->lit += (uint32_t)__builtin_popcount(pixels.lit);
        pixels.order = &subspan_orders[subspans];
        int packed = (subspans & (subspans + 1)) != 0; /* not the first ones */
        if (plan->held) {
            read_held(l, r, b, &held);
            pixels.held_depth = held.depth, pixels.held_stencil = held.stencil;
            if (packed)
                pack_values(pixels.order, held.depth), pack_values(pixels.order, held.stencil);
        }
        if (packed)
            pack_subspans(&pixels), pack_values(pixels.order, z);
        add_threads(l, &pixels);
    }
}

/* The blocks of the record in hand. A batch is run before a block that has a thread in it already, and when there may be no room. */
VECTORIZED static int64_t shade_blocks(struct pixel_loop *l, const struct setup_record *r, void *record)
{
    uint64_t room = l->head.worker ? threads_capacity(l->head.worker) : 0;
    room = room < BATCH_THREADS ? room : BATCH_THREADS;
    for (; l->block < l->block_count; l->block++) {
        const struct pixel_block *b = &l->blocks[l->block];
        uint32_t number = b->y % TILE / BLOCK * BLOCKS_ACROSS + b->x % TILE / BLOCK;
        if (l->head.worker) {
            int full = l->batch + BLOCK_PIXELS / 8 > room && !l->open;
            if (full || (!l->parts && l->used[number / 64] >> number % 64 & 1)) {
                int64_t why = run_batch(l, record);
                if (why != THREADS_DONE)
                    return why;
            }
            l->used[number / 64] |= 1ull << number % 64;
        }
        if (!l->plan->raster.stored)
            shade_block(l, r, b);
        else {
            int64_t why = shade_samples(l, r, record, room);
            if (why != THREADS_DONE)
                return why;
        }
    }
    l->open = 0; /* the next record has threads of its own */
    return THREADS_DONE;
}

/* -- tiles --------------------------------------------------------------------------------------------------------------------------- */

/* Claims the next tile that has records; 0 if there is none. Empty tiles are passed without an atomic access for each: bins of a pass
 * that only tests depth may have thousands. */
static int next_tile(struct pixel_loop *l)
{
    const uint32_t *first = l->bins->first;
    uint64_t tiles = (uint64_t)l->bins->tiles_x * l->bins->tiles_y, from = __atomic_load_n(l->next_tile, __ATOMIC_RELAXED);
    do {
        for (l->tile = from; l->tile < tiles && first[l->tile] == first[l->tile + 1];)
            l->tile = first[l->tile] == first[tiles] ? tiles : l->tile + 1;
        if (l->tile >= tiles)
            return 0;
    } while (!__atomic_compare_exchange_n(l->next_tile, &from, l->tile + 1, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
    l->entry = first[l->tile];
    l->last_entry = first[l->tile + 1];
    return 1;
}

static const struct setup_record *record_of(const struct pixel_loop *l)
{
    return &l->records->records[l->bins->numbers[l->entry]];
}

/* Has the memory of the record after this one fetched: records of a tile are seldom next to each other. */
static void prefetch_record(const struct pixel_loop *l, uint32_t entry)
{
    if (entry >= l->last_entry)
        return;
    const struct setup_record *next = &l->records->records[l->bins->numbers[entry]];
    const uint8_t *end = (const uint8_t *)(next + 1);
    for (const uint8_t *at = (const uint8_t *)next; at < end; at += 64)
        __builtin_prefetch(at);
}

static void begin_record(struct pixel_loop *l)
{
    prefetch_record(l, l->entry + 2);
    uint32_t x = (uint32_t)(l->tile % l->bins->tiles_x) * TILE, y = (uint32_t)(l->tile / l->bins->tiles_x) * TILE;
    l->block = 0;
    if (l->plan->raster.stored)
        begin_sampled_record(l, record_of(l), x, y);
    else
        l->block_count = rasterize_tile(&l->plan->raster, record_of(l), x, y, l->blocks);
}

/* The records of the tile in hand, from the block in hand on; batches do not outlive their tile. */
static int64_t shade_tile(struct pixel_loop *l, void *record)
{
    struct usual_plan plan;
    int usual = is_usual(l, &plan);
    for (;;) {
        int64_t why = usual ? plan.shade(l, &plan, record_of(l), record) : shade_blocks(l, record_of(l), record);
        if (why != THREADS_DONE)
            return why;
        l->block_count = l->block = 0;
        if (++l->entry == l->last_entry)
            return run_batch(l, record);
        begin_record(l);
        if (++l->visits % VISITS == 0 && (l->visits % MOST_VISITS == 0 || slice_is_over(&l->deadline)))
            return THREADS_DEADLINE;
    }
}

/* Shades tiles until none are left or Python is needed; called again, it goes on. l->entry == l->last_entry: no tile is in hand. */
EXPORT int64_t shade_tiles(struct pixel_loop *l, void *record)
{
    if (l->head.worker && threads_pending(l->head.worker)) {
        int64_t why = threads_resume(l->head.worker, record);
        if (why != THREADS_DONE)
            return why;
        end_batch(l);
    }
    if (l->head.worker)
        l->context = threads_context(l->head.worker);
    l->context->record = record;
    for (;;) {
        if (l->entry == l->last_entry) {
            if (!next_tile(l))
                return THREADS_DONE;
            begin_record(l);
        }
        int64_t why = shade_tile(l, record);
        if (why != THREADS_DONE)
            return why;
    }
}

/* Pixels of the records' bounding boxes, or `enough` if there are more: how much work a draw is. */
EXPORT uint64_t pixels_boxed(const struct record_array *records, uint64_t enough)
{
    uint64_t pixels = 0;
    for (uint64_t i = 0; i < records->count && pixels < enough; i++) {
        const struct setup_record *r = &records->records[i];
        pixels += r->x1 > r->x0 && r->y1 > r->y0 ? (uint64_t)(r->x1 - r->x0) * (uint64_t)(r->y1 - r->y0) : 0;
    }
    return pixels < enough ? pixels : enough;
}

/* -- the stage ----------------------------------------------------------------------------------------------------------------------- */

/* Loops that the pixels of the records in bins are worth. */
static uint64_t worthwhile_loops(const struct draw *d, const struct bins *bins)
{
    uint64_t entries = bins->first[bins->tiles_x * bins->tiles_y], most = entries < d->host_threads ? entries : d->host_threads;
    return most > 1 ? pixels_boxed(d->records, most * d->share_pixels) / d->share_pixels : 1;
}

static int64_t begin_pixels(struct draw *d, struct stage *s)
{
    const struct pixel_stage *plan = s->plan;
    struct pixel_loop *l = s->loop;
    memset(l, 0, offsetof(struct pixel_loop, blocks));
    l->head.worker = s->worker;
    l->plan = plan->plan;
    l->context = plan->context;
    l->records = d->records;
    l->bins = plan->bins;
    l->next_tile = &d->next_tile;
    l->started = l->threads = l->covered = l->lit = l->passed = 0;
    d->next_tile = 0;
    if (plan->one_color)
        begin_boxes(d, plan->one_color, &plan->plan->payload);
    return share_stage(d, s, s->worker ? worthwhile_loops(d, l->bins) : 1);
}

static void count_pixels(struct draw *d, const struct stage *s)
{
    const struct pixel_stage *plan = s->plan;
    for (uint64_t i = 0; i < d->loops; i++) {
        const struct pixel_loop *l = loop_of(s, i);
        d->counts[PS_DEPTH] += l->passed;
        if (s->worker)
            d->counts[PS_INVOCATIONS] += (plan->counts_covered ? l->covered : l->lit) * plan->per_pixel;
    }
    if (plan->one_color) {
        d->counts[PS_DEPTH] += plan->one_color->pixels;
        d->counts[PS_INVOCATIONS] += plan->one_color->pixels * plan->per_pixel;
    }
}

EXPORT int64_t stage_pixels(struct draw *d, struct stage *s, void *record)
{
    const struct pixel_stage *plan = s->plan;
    int64_t why = s->begun ? THREADS_DONE : begin_pixels(d, s);
    s->begun = 1;
    if (why == THREADS_DONE)
        why = run_threads(d, s, record);
    if (why != THREADS_DONE)
        return why;
    s->begun = 0;
    if (plan->counts)
        count_pixels(d, s);
    if (plan->one_color)
        fill_boxes(d, plan->one_color);
    return THREADS_DONE;
}

/* Sizes and offsets of the structures, for a check against pixel_shader.py. */
EXPORT int64_t pixels_layout(uint64_t *into)
{
    uint64_t sizes[] = {sizeof(struct raster_plan), sizeof(struct payload_plan), sizeof(struct pixel_plan), sizeof(struct pixel_loop),
                        sizeof(struct pixel_stage), offsetof(struct pixel_loop, started), sizeof(struct one_color)};
    memcpy(into, sizes, sizeof sizes);
    return sizeof sizes / sizeof *sizes;
}
