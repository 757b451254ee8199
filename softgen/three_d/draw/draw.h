/* Prepared draws: what a draw's state means to all stages, and what of state and memory that was made from (prepared.py has the same).
 *
 * A draw is done with the plans of an earlier one if everything that those were made from is as it was. Values that change from draw to draw
 * (constants, addresses of vertices, where the binding table is) are not part of that: they are copied into the plans before it is run.
 */
#ifndef SOFTGEN_DRAW_H
#define SOFTGEN_DRAW_H

#include "../three_d.h"

#include "../../latches.h"
#include "../../threads/native/threads.h"

struct assembly;
struct binning;
struct clip_result;
struct clip_threads;
struct fetch_element;
struct fill;
struct geometry;
struct pixel_loop;
struct pixel_plan;
struct setup_threads;
struct thread_output;
struct vertex_fetch;

/* -- what plans were made from ------------------------------------------------------------------------------------------------------- */

/* A command: whether it was latched; if it was, how long it is (0: that does not matter), and which items it has. */
struct latched_command {
    uint32_t slot, latched, length, reserved;
    uint64_t present;
};

/* Dwords of commands, and single dwords of which only the bits of a mask count. Offsets are from the first slot on. */
struct latched_dwords {
    uint32_t offset, count;
    const uint32_t *data;
};

struct latched_bits { uint32_t offset, mask, value; };

/* An address that plans have as a host address. */
struct host_place { uint64_t address, host; };

/* An entry of a binding table: what was read of the surface state that it leads to; or, where nothing was, its value. */
struct table_entry {
    uint32_t index, value;
    uint64_t size;
    const void *surface;
};

/* The binding table of a stage, which may be elsewhere while its entries lead to the same surface states, wherever those are. */
struct stage_table {
    uint32_t offset, mask; /* the dword of its pointer, and the pointer's bits */
    uint32_t pointer, scale; /* their value, and the bytes that 1 of it is worth */
    uint64_t address; /* of the table, with that pointer */
    uint32_t table; /* the same as threads get it */
    uint32_t count;
    const struct table_entry *entries;
    uint32_t *header; /* where a payload's header has it */
    uint64_t base, surface_mask; /* surface states: what entries count from, and the bits of an entry that are the pointer */
};

/* A dword of a plan or a binding that counts from where a block of state is. */
struct moved_value {
    uint32_t *place;
    uint32_t value, reserved; /* while the block is where it was */
};

/* A block of state behind a pointer, which may be elsewhere while what was read of it is the same. */
struct state_block {
    uint32_t offset, mask; /* the dword of the pointer, and the pointer's bits */
    uint32_t pointer; /* their value */
    uint32_t range_count, value_count, reserved;
    const struct memory_range *ranges; /* with that pointer */
    const struct moved_value *values;
};

/* A pointer in a command, or in memory that another pointer leads to. Drivers move what it leads to, which is then still the same state. */
struct state_pointer {
    uint32_t parent; /* 1 + the number of the other pointer; 0: it is in a command */
    uint32_t offset; /* dwords from the first slot on, or bytes from the other's address on */
    uint32_t mask; /* its bits */
    uint32_t base; /* enum draw_base: what it counts from */
};

/* Bytes, and bits of a dword, at an offset from where a pointer leads; those of a pointer follow one another. */
struct pointed_range {
    uint32_t pointer, offset;
    uint64_t size;
    const void *data; /* what was there */
};

struct pointed_bits { uint32_t pointer, offset, mask, value; };

/* -- what is copied into plans ------------------------------------------------------------------------------------------------------- */

/* A pointer of one or two dwords in a command. */
struct latched_pointer {
    uint32_t offset, dwords;
    uint64_t mask, base; /* bits of the pointer; what it counts from */
};

struct constant_range {
    struct latched_pointer pointer;
    uint64_t size;
    uint8_t *into;
};

struct vertex_source {
    struct latched_pointer pointer;
    uint64_t size_offset, end_offset, index_offset; /* the dword of the buffer's size, of its last byte's address or of its last index */
    struct fetch_element *element;
};

/* Where a pointer leads, counted from its base. */
struct pointer_copy {
    uint32_t pointer, mask, add, reserved;
    uint32_t *into;
};

/* A part of the constant URB entry. */
struct curbe_part {
    uint64_t first, size;
    uint8_t *into;
};

/* -- sharing work -------------------------------------------------------------------------------------------------------------------- */

/* Loops of a stage that run at the same time, each on a host thread of its own. A loop begins with the address of its worker. */
struct shared_loops {
    const struct threads_part *parts; /* workers: the first is the one of the stage's own loop */
    uint8_t *copies; /* of that loop, for the others */
    uint64_t count; /* of parts */
    uint64_t size; /* bytes of a loop */
    uint64_t scratch; /* threads have scratch space by their number in one loop: Python shares it out */
};

/* -- draws --------------------------------------------------------------------------------------------------------------------------- */

struct prepared_draw {
    struct prepared_draw *after; /* the one that was found after it, or NULL */
    uint32_t topology, indexed;
    uint64_t fixed_start; /* the plans are for these: */
    uint32_t start_vertex, start_instance, base_vertex, reserved;
    const struct latched_command *commands;
    const struct latched_dwords *dwords;
    const struct latched_bits *bits;
    const struct memory_range *memory;
    const struct memory_range **programs;
    const struct host_place *hosts;
    const struct stage_table *tables;
    const struct state_block *blocks;
    const struct constant_range *constants;
    const struct vertex_source *sources;
    const struct state_pointer *pointers; /* one that another counts on comes first */
    const struct pointed_range *ranges;
    const struct pointed_bits *pointed_bits;
    const struct pointer_copy *copies;
    const struct curbe_part *parts;
    uint32_t command_count, dwords_count, bits_count, memory_count, program_count, host_count, table_count, block_count, constant_count,
        source_count;
    uint32_t pointer_count, range_count, pointed_bits_count, copy_count, part_count, reserved_count;
    uint32_t index_source; /* indices come from a buffer: */
    uint32_t index_end; /* which has the address of its last byte, not a size */
    struct latched_pointer index_pointer;
    uint64_t index_size_offset;
    /* stages */
    const void *assembly_plan; /* the first bytes of struct assembly */
    struct vertex_fetch *fetch;
    int64_t (*vertex_function)(void *argument, void *record); /* shades vertices, or only fetches them */
    void *vertex_argument;
    uint64_t *vertex_count, *vertex_next; /* of the chunk, and the first that is not shaded yet; NULL where only fetched */
    struct threads_worker *vertex_worker; /* or NULL */
    uint64_t vertices_per_thread;
    struct vertex_array *vertices;
    struct object_array *objects;
    struct geometry *geometry;
    struct clip_result *clip_results;
    struct clip_threads *clip_loop; /* NULL: objects are not clipped by threads */
    struct threads_worker *clip_worker;
    struct setup_threads *setup_loop; /* NULL: attributes are not set up by threads */
    struct threads_worker *setup_worker;
    struct shared_loops vertex_loops, setup_loops, pixel_loops;
    uint64_t attribute_stride, bin_capacity;
    uint32_t tiles_x, tiles_y;
    const struct pixel_plan *pixel_plan;
    struct threads_worker *pixel_worker; /* NULL: pixels are only tested, with */
    struct context *pixel_context;
    struct fill *clear; /* not NULL: rectangles are filled, there are no pixels to shade */
    /* statistics */
    uint32_t count_fetched, count_shaded, count_pixels;
    uint32_t count_covered, per_pixel; /* PS_INVOCATION_COUNT: covered pixels, not those that pass early tests; what each counts for */
    uint32_t count_objects; /* GS_PRIMITIVES_COUNT */
    uint32_t one_viewport, reserved_too; /* of the viewports, only the first was compared */
};

enum draw_stage {
    STAGE_FIND, STAGE_ASSEMBLE, STAGE_VERTICES, STAGE_CLIP, STAGE_CLIP_THREADS, STAGE_SETUP, STAGE_SETUP_THREADS, STAGE_BIN, STAGE_PIXELS,
    STAGE_FILL, STAGE_END
};

enum draw_base { BASE_NONE, BASE_GENERAL, BASE_SURFACE, DRAW_BASES };

/* Why draw_run returns: that of threads.h of the stage's worker, or */
enum draw_reason {
    DRAW_DONE = THREADS_DONE,
    DRAW_NOT_FOUND = 100, /* no prepared draw is for this state */
    DRAW_MORE, /* another chunk follows, and it is time to look at the time limit */
    DRAW_NO_CLIPPER, /* an object is to be clipped by threads, which were not prepared */
    DRAW_SHARE, /* the stage's work is worth several host threads, with scratch space: do it, and go on with the next stage */
    DRAW_REFUSED, /* what threads put out is no vertex, or there is no room for it */
    DRAW_VIEWPORTS, /* a vertex has another viewport than the first, which was not compared: take all of them as they are now */
    DRAW_CLIP_ELSEWHERE, /* the chunk has no room for what CLIP threads may put out: clip into another one, and go on with the next stage */
    DRAW_NO_WORKERS, /* the stage's work is worth more host threads than there are workers for: `loops` are needed */
    DRAW_LOOPS, /* loops that ran at the same time need Python, those of `running` */
};

enum draw_count { IA_VERTICES, IA_PRIMITIVES, VS_INVOCATIONS, CL_INVOCATIONS, CL_PRIMITIVES, PS_INVOCATIONS, PS_DEPTH, GS_PRIMITIVES, DRAW_COUNTS };

enum { MOST_POINTERS = 96 };

struct stage_work { uint64_t threads, instructions, nanoseconds; };

/* The draw under way: of a context, one after another. */
struct draw {
    /* parameters of 3DPRIMITIVE */
    uint32_t topology, indexed, vertices, start_vertex, instances, start_instance, base_vertex;
    uint32_t stage;
    struct prepared_draw *prepared; /* the one that was found */
    struct prepared_draw *previous; /* that of the draw before, or NULL */
    uint64_t compared; /* 1 + how many were compared, while none is found; 0: none yet */
    /* results */
    uint64_t counts[DRAW_COUNTS];
    struct stage_work vertex_work, pixel_work, clip_work, setup_work;
    /* memory of the context */
    struct prepared_draw **draws;
    uint64_t draw_count;
    const struct latches *latches;
    const uint64_t *memory; /* graphics_memory */
    struct assembly *assembly;
    struct record_array *records;
    struct binning *binning;
    struct pixel_loop *loop;
    uint64_t next_tile;
    uint64_t host_threads, slice; /* nanoseconds between two returns to Python */
    uint64_t share_vertices, share_pixels; /* threads, and pixels of bounding boxes, that are worth another host thread */
    threads_guard *guard;
    uint64_t loops; /* of the stage: 1 is its own, on the calling thread */
    struct threads_part *running; /* those of several that are not done; room for `host_threads` */
    uint64_t running_count;
    uint32_t most_vertices, reserved; /* of a chunk */
    uint64_t finished, binned;
    uint64_t deadline; /* slice_is_over */
    /* state whose place changes */
    uint64_t bases[DRAW_BASES];
    const uint8_t *curbe; /* the constant URB entry, or NULL: none is valid */
    uint64_t curbe_size;
    uint64_t viewports; /* all of them are those of the draw */
    uint64_t clipping, clip_begun; /* CLIP threads of the chunk, and of the draw, have been started */
    uint64_t addresses[MOST_POINTERS]; /* where the pointers of the draw that was found lead */
};

/* draw_loops.c */
__attribute__((visibility("hidden"))) int64_t share_stage(struct draw *d, const struct shared_loops *s, uint64_t loops);
__attribute__((visibility("hidden"))) int64_t run_loops(struct draw *d, const struct shared_loops *s, int64_t (*function)(void *, void *),
                                                        void *loop);
__attribute__((visibility("hidden"))) void *loop_of(const struct shared_loops *s, uint64_t number, void *own);
__attribute__((visibility("hidden"))) void begin_workers(struct threads_worker *worker, const struct shared_loops *s, uint64_t deadline);
__attribute__((visibility("hidden"))) void count_work(struct threads_worker *worker, const struct shared_loops *s, struct stage_work *work);

/* draw_pointers.c */
__attribute__((visibility("hidden"))) int same_pointed(const struct prepared_draw *p, struct draw *d);
__attribute__((visibility("hidden"))) void apply_pointed(struct draw *d);

/* draw_threads.c */
__attribute__((visibility("hidden"))) int names_viewport(const struct prepared_draw *p);
__attribute__((visibility("hidden"))) void begin_stage_threads(struct draw *d, uint64_t deadline);
__attribute__((visibility("hidden"))) int64_t run_clip_stage(struct draw *d, void *record);
__attribute__((visibility("hidden"))) int64_t begin_setup_threads(struct draw *d);
__attribute__((visibility("hidden"))) int64_t run_setup_stage(struct draw *d, void *record);
__attribute__((visibility("hidden"))) void end_stage_threads(struct draw *d);

/* draw_state.c */
__attribute__((visibility("hidden"))) int find_draw(struct draw *d);
__attribute__((visibility("hidden"))) void apply_state(struct draw *d);
__attribute__((visibility("hidden"))) void next_chunk(struct draw *d, void *record);

#endif
