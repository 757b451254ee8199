/* From setup records to pixel shader threads: the plans of rasterizer.c, payload.c and pixel_shader.c (rasterizer.py, pixel_payload.py and
 * pixel_shader.py have the same). */
#ifndef SOFTGEN_PIXELS_H
#define SOFTGEN_PIXELS_H

#include "../three_d.h"

#include "../../eu/native.h"
#include "../../threads/native/threads.h"

enum { BLOCK_PIXELS = 16, STIPPLE_ROWS = 32, BARYCENTRIC_MODES = 6, BATCH_THREADS = 64 };

/* -- rasterizer.c -------------------------------------------------------------------------------------------------------------------- */

enum { MOST_SAMPLES = 16 };

struct raster_plan {
    uint32_t stipple[STIPPLE_ROWS]; /* polygon stipple, its offsets applied: row y mod 32, bit 31 is column 0 mod 32 */
    uint64_t stippled; /* a bit for each topology whose objects the stipple masks */
    uint32_t line_pattern, line_repeat; /* line stipple; repeat 0: none */
    uint32_t legacy_diamond; /* one-pixel lines by the rules of DX9, not of DX10 */
    uint32_t antialiased; /* there may be smooth lines or points: threads have antialias alphas */
    uint32_t aa_manhattan; /* distances from edges of smooth lines are Manhattan distances */
    float aa_region, aa_cap_region; /* pixels over which coverage rises from a side, and from a cap */
    float aa_slope, aa_bias, aa_cap_slope, aa_cap_bias, aa_point_slope, aa_point_bias;
    uint32_t samples; /* of a pixel that objects are tested at; 0: one, where edges count from */
    uint32_t stored; /* that depth, stencil and colours are stored of; 0: one */
    uint32_t sample_mask; /* those that count */
    int32_t sample[MOST_SAMPLES][2]; /* from where edges count, in 1/256 pixel */
};

/* The covered blocks of a record in the tile whose upper left pixel is (x, y), TILE_BLOCKS at most; their number. */
uint32_t rasterize_tile(const struct raster_plan *plan, const struct setup_record *record, uint32_t x, uint32_t y,
                        struct pixel_block *blocks);

/* The samples of a pixel that a polygon covers. */
uint32_t covered_samples(const struct raster_plan *plan, const struct setup_record *record, int64_t x, int64_t y);

/* -- samples/sample_coverage.c ------------------------------------------------------------------------------------------------------- */

/* The same of pixels that have several samples; and for each block the pixels that are covered at each sample, in the order of bits of the
 * block's mask, which has the pixels that are covered at any. */
uint32_t rasterize_samples(const struct raster_plan *plan, const struct setup_record *record, uint32_t x, uint32_t y,
                           struct pixel_block *blocks, uint16_t (*masks)[MOST_SAMPLES]);

/* The same without stipple, with places that count from the tile's corner. */
uint32_t cover_samples(const struct raster_plan *plan, const struct setup_record *record, int32_t x, int32_t y, struct pixel_block *blocks,
                       uint16_t (*masks)[MOST_SAMPLES]);

/* -- lines.c ------------------------------------------------------------------------------------------------------------------------- */

/* The blocks of a line within its edges, less the pixels that it does not cover; their number. */
uint32_t cover_lines(const struct raster_plan *plan, const struct setup_record *r, struct pixel_block *blocks, uint32_t count);

/* -- payload.c ----------------------------------------------------------------------------------------------------------------------- */

enum payload_header {
    HEADER_BARYCENTRIC, /* r1 has the pixel masks, barycentrics follow (GRAPHICS_THREADS 2.6, 2.7) */
    HEADER_COEFFICIENTS, /* r0 has the pixel masks, r1 the start vertex; setup data are plane coefficients (GRAPHICS_THREADS 2.5) */
};

/* input_coverage_mask_state of 3DSTATE_PS_EXTRA. */
enum input_coverage { INPUT_COVERAGE_NONE, INPUT_COVERAGE_NORMAL, INPUT_COVERAGE_INNER, INPUT_COVERAGE_DEPTH };

/* position_zw_interpolation_mode of 3DSTATE_WM, and position_xy_offset_select of 3DSTATE_PS. */
enum payload_place { PLACE_PIXEL, PLACE_CENTROID = 2, PLACE_SAMPLE };

/* How threads of samples say which they are of: the first pair in r0, or each four channels' in r1. */
enum sample_threads { THREADS_OF_PIXELS, SAMPLE_PAIRS, SAMPLE_SLOTS };

/* Where the parts of a payload are: byte offsets from r0, 0 where a part is absent. Those from `barycentric` to `coverage` are of channels
 * 0 to 15; the same of channels 16 to 31 are `half` bytes further on. */
struct payload_plan {
    uint32_t header_format, width; /* enum payload_header; channels of a thread */
    uint32_t upper; /* header of channels 16 to 31 */
    uint32_t barycentric[BARYCENTRIC_MODES]; /* perspective at pixel, centroid and sample, then linear */
    uint32_t depth, w, xy_offsets, coverage;
    uint32_t held_stencil, held_depth; /* what the buffers hold */
    uint32_t antialias; /* the register of coverage and stencils: there for smooth lines, even if `held_stencil` is not */
    uint32_t half;
    uint32_t coverage_state; /* what coverage is: enum input_coverage */
    uint32_t zw_place, xy_place; /* where depth and w, and what offsets are of: enum payload_place */
    uint32_t per_sample; /* threads are of samples: enum sample_threads */
    uint32_t constants, constant_bytes;
    uint32_t attributes, attribute_bytes;
    uint32_t attribute_offset; /* in the record's data */
    uint32_t gap, gap_bytes; /* zeros: what no part fills before constants and attributes */
    uint32_t size; /* bytes, whole registers */
    uint32_t header[8]; /* r0, without what depends on the thread */
    uint32_t flags; /* HEADER_COEFFICIENTS: of r1.6 */
    uint32_t xy_offset; /* of a pixel's sample: X and Y in 1/16 pixel, a byte each */
    uint32_t scratch_step; /* bytes of a thread's scratch space, added to r0.5 */
    const uint8_t *constant_data;
};

enum { REGISTER = 32 }; /* bytes */
enum { BACK_FACING_BIT = 15, LAYER_SHIFT = 16, VIEWPORT_SHIFT = 27, LAYER_MASK = 0x7ff, VIEWPORT_MASK = 15, TOPOLOGY_MASK = 31 };

typedef uint32_t reg __attribute__((vector_size(32), aligned(4), may_alias)); /* a register, stored in one piece */

/* The order in which a block's subspans become channels, and the place of each channel's pixel in the block. */
struct subspan_order {
    float x[BLOCK_PIXELS], y[BLOCK_PIXELS];
    uint32_t subspan[4];
};

/* By the subspans that have a lit pixel: those come first, as threads have no others. Compilers count on it: where a scalar is wanted of a
 * value that all channels share, they take channel 0's (public Mesa, brw_stage_has_packed_dispatch). */
extern const struct subspan_order subspan_orders[16];

/* The samples of pixels that become channels, in their order. Places are in the block, offsets in 1/16 pixel (X in the low byte). */
struct sample_pixels {
    uint32_t lit[MOST_SAMPLES]; /* of each sample, pixels */
    float z_step[MOST_SAMPLES]; /* what z is more there */
    uint16_t covered[BLOCK_PIXELS], passed[BLOCK_PIXELS]; /* of each pixel, samples: in the object and the mask; and after early tests */
    struct subspan_order centroid, sample; /* places of channels */
    uint16_t centroid_offset[BLOCK_PIXELS], sample_offset[BLOCK_PIXELS];
    uint32_t pair, ids; /* of threads of samples */
};

/* A part of a thread: pixels of one block, from `first` on, that become channels. */
struct thread_pixels {
    const struct setup_record *record;
    const struct pixel_block *block;
    const struct subspan_order *order;
    const float *z; /* of the block's pixels, as all that follows in `order` */
    const uint32_t *held_depth, *held_stencil;
    const struct raster_plan *raster;
    uint32_t first, count; /* pixels: 8 or 16 */
    uint32_t covered, lit; /* lit: covered, and passed early tests */
    uint32_t place[4]; /* of the subspans: X, and Y in the upper half */
    const struct sample_pixels *samples; /* NULL: pixels have one */
    uint32_t slot; /* tells threads apart that run at the same time */
    uint32_t upper; /* they become channels 16 to 31 */
};

void write_planes(const struct setup_record *r, double *planes);
void write_antialias(const struct raster_plan *plan, const struct thread_pixels *pixels, float *into);
void interpolate_depth(const struct plane *plane, uint32_t x, uint32_t y, float *z);
void write_common(const struct payload_plan *plan, const struct setup_record *record, const uint8_t *attributes, uint8_t *payload);
void write_pixels(const struct payload_plan *plan, const struct thread_pixels *pixels, uint8_t *payload);

/* -- pixel_shader.c ------------------------------------------------------------------------------------------------------------------ */

struct pixel_plan {
    struct raster_plan raster;
    struct payload_plan payload;
    depth_function *depth; /* early tests, or NULL */
    void *depth_target;
    held_function *held; /* where payloads have what the buffers hold, else NULL */
    void *held_target;
    uint32_t late; /* tests come late: the pixel backend makes them, and says which pixels passed */
    uint32_t sideband; /* offset of struct pixel_dispatch in a thread's block */
    uint32_t generic; /* the specialised version (pixel_threads.c) is not used */
    uint32_t interpolated; /* the shader may ask for barycentrics: threads have planes */
};

struct one_color;

/* What the stage knows besides. */
struct pixel_stage {
    const struct pixel_plan *plan;
    const struct bins *bins;
    struct context_head *context; /* where pixels are only tested */
    struct one_color *one_color; /* all pixels get the same colour, else NULL */
    uint32_t counts; /* statistics are wanted */
    uint32_t counts_covered, per_pixel; /* PS_INVOCATION_COUNT: covered pixels, not those that pass early tests; what each counts for */
    uint32_t reserved;
};

/* A worker's loop over tiles. Everything that it knows is here, so that it can return and be called again. */
struct pixel_loop {
    struct stage_loop head; /* without a worker pixels are only tested */
    const struct pixel_plan *plan;
    const struct record_array *records;
    const struct bins *bins;
    uint64_t *next_tile; /* shared by all loops of a draw */
    struct context_head *context;
    /* progress */
    uint64_t tile;
    uint32_t entry, last_entry; /* in bins->numbers */
    uint32_t block, block_count;
    uint32_t visits; /* records visited */
    uint32_t testing; /* the depth function is being called */
    uint32_t part, parts; /* of the block in hand, whose threads are of samples; no parts: its tests are to come */
    uint32_t batch; /* threads written but not yet run */
    uint32_t open; /* the last of them has room for a block of the same record */
    uint64_t deadline; /* monotonic nanoseconds at which it returns to Python; 0: not set since it did */
    uint64_t used[TILE_BLOCKS / 64]; /* blocks of the tile that have a thread in the batch */
    uint32_t masks[BATCH_THREADS];
    struct pixel_block blocks[TILE_BLOCKS]; /* of the record in hand */
    uint16_t samples[TILE_BLOCKS][MOST_SAMPLES]; /* of each block, where pixels have several: pixels that are covered at each */
    uint16_t sample_lit[MOST_SAMPLES]; /* of the block in hand: those that passed early tests too */
    float sample_step[MOST_SAMPLES]; /* what z of the record in hand is more at each: early and late tests add the same number */
    float block_z[BLOCK_PIXELS];
    /* results */
    uint64_t started, threads; /* threads of batches that were started, and that are done */
    uint64_t covered, lit, passed; /* pixels: covered, shaded, passed by depth and stencil tests */
};

/* The subspans that have a lit pixel. */
INLINE uint32_t lit_subspans(uint32_t lit)
{
    lit |= lit >> 1;
    lit |= lit >> 2;
    return (lit & 1) | (lit >> 3 & 2) | (lit >> 6 & 4) | (lit >> 9 & 8);
}

/* All four pixels of a subspan that has a lit one: neighbours are needed for derivatives (BDW-WM, G45 7282-7303). */
INLINE uint32_t whole_subspans(uint32_t lit)
{
    return ((lit | lit >> 1 | lit >> 2 | lit >> 3) & 0x11111111u) * 0xf;
}

int64_t run_batch(struct pixel_loop *l, void *record);

/* -- samples/sample_threads.c -------------------------------------------------------------------------------------------------------- */

/* What the record in hand covers of the tile at (x, y), where pixels have several samples. */
void begin_sampled_record(struct pixel_loop *l, const struct setup_record *r, uint32_t x, uint32_t y);

/* The pixels of a block that are lit at each sample, into l->sample_lit; those that are at any. `z` has depths at pixels, where tests need
 * them. */
uint32_t test_samples(struct pixel_loop *l, const struct setup_record *r, const struct pixel_block *b, const float *z);

/* The threads of the block in hand, whose pixels have several samples. */
int64_t shade_samples(struct pixel_loop *l, const struct setup_record *r, void *record, uint64_t room);

/* -- pixel_threads.c ----------------------------------------------------------------------------------------------------------------- */

enum { MOST_PARTS = 2 * BARYCENTRIC_MODES + 3 };

struct usual_plan;

/* The blocks of the record in hand, from l->block on, as shade_blocks of pixel_shader.c. */
typedef int64_t shade_function(struct pixel_loop *l, const struct usual_plan *usual, const struct setup_record *r, void *record);
shade_function shade_usual, shade_usual_samples;

/* What the threads of all records have in common: looked up once for many records, as small objects have but one or two threads. */
struct usual_plan {
    shade_function *shade;
    uint8_t *blocks; /* of threads, */
    uint64_t stride; /* so many bytes apart */
    uint64_t room; /* threads of a batch */
    int has_z, has_w, has_perspective, has_linear; /* values that are needed */
    uint32_t parts; /* of a payload that are interpolated: bytes of struct block_values, and where the channels of each subspan are */
    struct { uint32_t from, at[4]; } part[MOST_PARTS];
};

/* Whether a plan is one of those that pixel_threads.c is specialised for; if so, what its threads have in common. */
int is_usual(const struct pixel_loop *l, struct usual_plan *usual);

#endif
