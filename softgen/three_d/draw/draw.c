/* A draw: its stages in order, over one chunk of vertices after another, until it is done or Python is needed.
 *
 *     find the plans ► { assemble ► vertices ► clip ► { set up ► { sort into bins ► pixels } } }
 *
 * On Gen4.5, threads clip what must be clipped, and set up attributes (draw_threads.c).
 *
 * Everything that it knows is in struct draw and the structures of the stages, so that it can return and be called again. */
#include "draw.h"

#include "../clip_setup/geometry.h"
#include "../pixels/pixels.h"

#include <stddef.h>
#include <string.h>

int64_t clip_test(struct geometry *g);
void setup_objects(struct geometry *g);
void begin_fill(struct fill *f, const uint64_t *table, const struct record_array *records);
int64_t fill_records(struct fill *f, void *record);
int64_t bins_fill(struct binning *b);
int64_t shade_tiles(struct pixel_loop *l, void *record);
uint64_t pixels_boxed(const struct record_array *records, uint64_t enough);

static void begin_draw(struct draw *d)
{
    const struct prepared_draw *p = d->prepared;
    struct geometry *g = p->geometry;
    uint64_t deadline = monotonic_time() + d->slice;
    d->deadline = deadline;
    apply_state(d);
    memset(d->counts, 0, sizeof d->counts);
    memset(&d->vertex_work, 0, sizeof d->vertex_work);
    memset(&d->pixel_work, 0, sizeof d->pixel_work);
    g->invocations = g->primitives = g->oversized = 0;
    d->records->attribute_stride = p->attribute_stride;
    d->binning->bins->tiles_x = p->tiles_x;
    d->binning->bins->tiles_y = p->tiles_y;
    d->binning->bins->capacity = p->bin_capacity;
    begin_workers(p->vertex_worker, &p->vertex_loops, deadline);
    begin_workers(p->pixel_worker, &p->pixel_loops, deadline);
    begin_stage_threads(d, deadline);
    d->viewports = 0;
    d->stage = STAGE_ASSEMBLE;
}

/* -- vertices ------------------------------------------------------------------------------------------------------------------------ */

static int64_t begin_vertices(struct draw *d, void *record)
{
    const struct prepared_draw *p = d->prepared;
    next_chunk(d, record);
    d->stage = p->vertices->count ? STAGE_VERTICES : STAGE_CLIP;
    if (!p->vertices->count)
        return THREADS_DONE;
    *p->vertex_count = p->vertices->count;
    d->loops = 1;
    if (!p->vertex_worker)
        return THREADS_DONE;
    *p->vertex_next = 0;
    if (p->count_shaded)
        d->counts[VS_INVOCATIONS] += p->vertices->count;
    uint64_t threads = (p->vertices->count + p->vertices_per_thread - 1) / p->vertices_per_thread;
    return share_stage(d, &p->vertex_loops, threads / d->share_vertices);
}

static int64_t run_vertices(struct draw *d, void *record)
{
    const struct prepared_draw *p = d->prepared;
    uint64_t began = monotonic_time();
    int64_t why = d->loops > 1 ? run_loops(d, &p->vertex_loops, p->vertex_function, p->vertex_argument)
                               : p->vertex_function(p->vertex_argument, record);
    d->vertex_work.nanoseconds += monotonic_time() - began;
    return why;
}

/* -- pixels -------------------------------------------------------------------------------------------------------------------------- */

static void begin_pixels(struct draw *d)
{
    const struct prepared_draw *p = d->prepared;
    struct pixel_loop *l = d->loop;
    memset(l, 0, offsetof(struct pixel_loop, blocks));
    l->plan = p->pixel_plan;
    l->records = d->records;
    l->bins = d->binning->bins;
    l->next_tile = &d->next_tile;
    l->worker = p->pixel_worker;
    l->context = p->pixel_context;
    l->started = l->threads = l->covered = l->lit = l->passed = 0;
    d->next_tile = 0;
}

static void count_pixels(struct draw *d)
{
    const struct prepared_draw *p = d->prepared;
    for (uint64_t i = 0; i < d->loops; i++) {
        const struct pixel_loop *l = loop_of(&p->pixel_loops, i, d->loop);
        d->counts[PS_DEPTH] += l->passed;
        if (p->pixel_worker)
            d->counts[PS_INVOCATIONS] += (p->count_covered ? l->covered : l->lit) * p->per_pixel;
    }
}

static int64_t shade_loop(void *loop, void *record)
{
    return shade_tiles(loop, record);
}

static int64_t run_pixels(struct draw *d, void *record)
{
    const struct prepared_draw *p = d->prepared;
    uint64_t began = monotonic_time();
    int64_t why = d->loops > 1 ? run_loops(d, &p->pixel_loops, shade_loop, d->loop) : shade_tiles(d->loop, record);
    d->pixel_work.nanoseconds += monotonic_time() - began;
    if (why == THREADS_DONE && p->count_pixels)
        count_pixels(d);
    return why;
}

/* Loops that the pixels of the records in bins are worth. */
static uint64_t pixel_loops(const struct draw *d, uint64_t entries)
{
    uint64_t most = entries < d->host_threads ? entries : d->host_threads;
    return d->prepared->pixel_worker && most > 1 ? pixels_boxed(d->records, most * d->share_pixels) / d->share_pixels : 1;
}

/* Sorts records that are not in bins yet. What follows: pixels, or the next objects. */
static int64_t fill_bins(struct draw *d)
{
    const struct bins *bins = d->binning->bins;
    if (d->binned >= d->records->count) {
        d->stage = STAGE_SETUP;
        return THREADS_DONE;
    }
    d->binning->records = d->records;
    d->binning->from = d->binned;
    d->binned += (uint64_t)bins_fill(d->binning);
    uint64_t entries = bins->first[bins->tiles_x * bins->tiles_y];
    if (!entries)
        return THREADS_DONE;
    begin_pixels(d);
    d->stage = STAGE_PIXELS;
    return share_stage(d, &d->prepared->pixel_loops, pixel_loops(d, entries));
}

/* -- all --------------------------------------------------------------------------------------------------------------------------- */

static int64_t set_up(struct draw *d)
{
    struct geometry *g = d->prepared->geometry;
    if (g->next >= g->objects->count) {
        d->stage = d->finished ? STAGE_END : STAGE_ASSEMBLE;
        return !d->finished && slice_is_over(&d->deadline) ? DRAW_MORE : THREADS_DONE;
    }
    d->records->count = d->binned = 0;
    d->stage = STAGE_BIN;
    setup_objects(g);
    if (d->prepared->clear) {
        begin_fill(d->prepared->clear, d->memory, d->records);
        d->stage = STAGE_FILL;
        return THREADS_DONE;
    }
    return d->prepared->setup_loop && d->records->count ? begin_setup_threads(d) : THREADS_DONE;
}

static int64_t clip(struct draw *d)
{
    const struct prepared_draw *p = d->prepared;
    struct geometry *g = p->geometry;
    g->vertices = p->vertices;
    g->objects = p->objects;
    g->results = p->clip_results;
    if (p->one_viewport && !d->viewports && names_viewport(p))
        return DRAW_VIEWPORTS;
    if (p->count_objects)
        d->counts[GS_PRIMITIVES] += g->objects->count;
    int64_t must = g->objects->count ? clip_test(g) : 0;
    g->next = 0;
    d->stage = STAGE_SETUP;
    if (!must || g->clip->clip_space)
        return THREADS_DONE;
    d->clipping = 0;
    d->stage = STAGE_CLIP_THREADS;
    return THREADS_DONE;
}

static void end_draw(struct draw *d)
{
    const struct prepared_draw *p = d->prepared;
    d->counts[CL_INVOCATIONS] = p->geometry->invocations;
    d->counts[CL_PRIMITIVES] = p->geometry->primitives;
    count_work(p->vertex_worker, &p->vertex_loops, &d->vertex_work);
    count_work(p->pixel_worker, &p->pixel_loops, &d->pixel_work);
    end_stage_threads(d);
}

/* One step. What has to be done again after Python's answer leaves the stage as it is. */
static int64_t step(struct draw *d, void *record)
{
    int64_t why;
    switch (d->stage) {
    case STAGE_FIND:
        if (!find_draw(d))
            return DRAW_NOT_FOUND;
        begin_draw(d);
        return THREADS_DONE;
    case STAGE_ASSEMBLE:
        return begin_vertices(d, record);
    case STAGE_VERTICES:
        why = run_vertices(d, record);
        if (why == THREADS_DONE)
            d->stage = STAGE_CLIP;
        return why;
    case STAGE_CLIP:
        return clip(d);
    case STAGE_CLIP_THREADS:
        return run_clip_stage(d, record);
    case STAGE_SETUP:
        return set_up(d);
    case STAGE_SETUP_THREADS:
        return run_setup_stage(d, record);
    case STAGE_BIN:
        return fill_bins(d);
    case STAGE_FILL:
        fill_records(d->prepared->clear, record);
        d->stage = STAGE_SETUP;
        return THREADS_DONE;
    default:
        why = run_pixels(d, record);
        if (why == THREADS_DONE)
            d->stage = STAGE_BIN;
        return why;
    }
}

/* The draw whose parameters are in `d`, from d->stage on. */
EXPORT int64_t draw_run(struct draw *d, void *record)
{
    while (d->stage != STAGE_END) {
        int64_t why = step(d, record);
        if (why != THREADS_DONE)
            return why;
    }
    end_draw(d);
    return DRAW_DONE;
}

/* Sizes and offsets of the structures, for a check against prepared.py. */
EXPORT int64_t draw_layout(uint64_t *into)
{
    uint64_t sizes[] = {sizeof(struct latched_command), sizeof(struct latched_dwords), sizeof(struct latched_bits),
                        sizeof(struct memory_range), sizeof(struct host_place), sizeof(struct table_entry), sizeof(struct stage_table),
                        sizeof(struct moved_value), sizeof(struct state_block), sizeof(struct constant_range),
                        sizeof(struct vertex_source), sizeof(struct state_pointer), sizeof(struct pointed_range),
                        sizeof(struct pointed_bits), sizeof(struct pointer_copy), sizeof(struct curbe_part),
                        sizeof(struct shared_loops), MOST_POINTERS,
                        sizeof(struct prepared_draw),
                        offsetof(struct prepared_draw, index_pointer), offsetof(struct prepared_draw, count_fetched),
                        sizeof(struct draw), offsetof(struct draw, counts), offsetof(struct draw, draws)};
    memcpy(into, sizes, sizeof sizes);
    return sizeof sizes / sizeof *sizes;
}
