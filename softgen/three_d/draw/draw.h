/* A draw: the array of its stages, which draw.c walks, and what of state and memory it was made from.
 *
 * A record is used for another draw if everything that it was made from is as it was (draw_state.c). Values that change from draw to draw
 * (constants, addresses of vertices, where the binding table is) are not part of that: they are copied into it before it is run.
 */
#ifndef SOFTGEN_DRAW_H
#define SOFTGEN_DRAW_H

#include "../three_d.h"

#include "../../latches.h"
#include "../../threads/native/threads.h"

struct assembly;
struct fetch_element;
struct vertex_fetch;

/* What pointers count from. */
enum draw_base { BASE_NONE, BASE_GENERAL, BASE_SURFACE, BASE_DYNAMIC };
enum { DRAW_BASES = 4 };

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
    const char *surface;
};

/* The binding table of a stage, which may be elsewhere while its entries lead to the same surface states, wherever those are. */
struct stage_table {
    uint32_t offset, mask; /* the dword of its pointer, and the pointer's bits */
    uint32_t pointer, scale; /* their value, and the bytes that 1 of it is worth */
    uint64_t table; /* with that pointer: bytes from the surface state base on, as threads get it */
    uint64_t count;
    const struct table_entry *entries;
    uint32_t *header; /* where a payload's header has it */
    uint64_t surface_mask; /* the bits of an entry that are the pointer of a surface state, which counts from there, too */
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
    const struct memory_range *ranges; /* with that pointer: addresses count from the dynamic state base */
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
    const char *data; /* what was there */
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

/* -- stages -------------------------------------------------------------------------------------------------------------------------- */

struct draw;
struct stage;

/* Loops of a stage that run at the same time, each on a host thread of its own. */
struct shared_loops {
    const struct threads_part *parts; /* workers: the first is the one of the stage's own loop */
    uint8_t *copies; /* of that loop, for the others */
    uint64_t count; /* of parts */
    uint64_t size; /* bytes of a loop */
    uint32_t slots; /* threads of a loop at the same time */
    uint32_t most; /* loops that there is scratch space for; 0: any number */
};

struct stage_work { uint64_t threads, instructions, nanoseconds; };

/* A stage of a draw. `run` is called until the stage is done with its input, d->chunk: it answers THREADS_DONE (it has made output, the next
 * stage's turn), STAGE_EMPTY (it has made none), or why Python is needed; then it is called again. With `more` set it is called once more
 * when the stages after it are done: it has input left, or output that there was no room for. */
struct stage {
    int64_t (*run)(struct draw *d, struct stage *s, void *record);
    void *plan; /* what `run` knows of the state */
    void *loop; /* what it works on; of threads, struct stage_loop */
    int64_t (*function)(void *loop, void *record); /* of threads: the loop */
    struct threads_worker *worker; /* or NULL */
    struct shared_loops loops;
    struct stage_work work; /* of the draw */
    uint32_t begun, more; /* its input is under way; see above */
    uint32_t used; /* its workers have begun in this draw */
    uint32_t threaded; /* it counts its work, even if it has no worker yet */
    struct stage_work total; /* of draws that a walk executed (draw_actor.c), until Python has counted them */
    uint64_t dispatches; /* those with threads */
};

enum { STAGE_EMPTY = -1 };

/* -- draws --------------------------------------------------------------------------------------------------------------------------- */

struct draw_record {
    struct draw_record *after; /* the one that was found after it, or NULL */
    uint32_t topology, indexed;
    uint64_t fixed_start; /* the plans are for these: */
    uint32_t start_vertex, start_instance, base_vertex;
    uint32_t fixed_bases; /* a bit for each base that it was made for, and may not move: */
    uint64_t bases[DRAW_BASES];
    /* what is compared, and what is copied */
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
    const void *assembly_plan; /* the first bytes of struct assembly */
    struct vertex_fetch *fetch;
    /* stages, in their order */
    struct stage *stages;
    uint64_t stage_count;
    /* of draws that a walk executed, until Python has counted them */
    uint64_t runs;
    struct draw_record *touched; /* the next record with some */
    uint64_t reports; /* Python has something to do after each draw */
    uint64_t follows; /* it is made fit for other surfaces (surface_moves.py) */
};

enum draw_phase { DRAW_FIND, DRAW_BEGIN, DRAW_WALK }; /* a record is to be found; there is one; its stages are under way */

/* Why draw_run returns: that of threads.h of the stage's worker, or */
enum draw_reason {
    DRAW_DONE = THREADS_DONE,
    DRAW_NOT_FOUND = 100, /* no record is for this state */
    DRAW_MORE, /* another chunk follows, and it is time to look at the time limit */
    DRAW_NEEDED, /* the stage is needed after all, and was not built */
    DRAW_REFUSED, /* what threads put out is no vertex, or there is no room for it */
    DRAW_VIEWPORTS, /* a vertex has another viewport than the first, which was not compared: take all of them as they are now */
    DRAW_SELECT, /* bins are full: leave in them the tiles that were asked for */
    DRAW_NO_WORKERS, /* the stage's work is worth more host threads than there are workers for: `loops` are needed */
    DRAW_LOOPS, /* loops that ran at the same time need Python, those of `running` */
    DRAW_STREAM_BUFFERS, /* the first objects have come to stream output: it needs its buffers as commands and registers have them now */
};

enum draw_count { IA_VERTICES, IA_PRIMITIVES, VS_INVOCATIONS, GS_INVOCATIONS, GS_PRIMITIVES, CL_INVOCATIONS, CL_PRIMITIVES, PS_INVOCATIONS,
                  PS_DEPTH, HS_INVOCATIONS, DS_INVOCATIONS, DRAW_COUNTS };

enum { MOST_POINTERS = 96, MOST_STAGES = 16 };

/* The draw under way: of a context, one after another. */
struct draw {
    /* parameters of 3DPRIMITIVE */
    uint32_t topology, indexed, vertices, start_vertex, instances, start_instance, base_vertex;
    uint32_t phase;
    uint64_t stage; /* under way: its number */
    struct draw_record *found; /* the record of the draw */
    struct draw_record *previous; /* that of the draw before, or NULL */
    uint64_t compared; /* 1 + how many were compared, while none is found; 0: none yet */
    /* results */
    uint64_t counts[DRAW_COUNTS];
    uint64_t oversized; /* objects that are larger than SETUP allows */
    struct stage_work works[MOST_STAGES]; /* of the stages with threads, one after another */
    /* memory of the context */
    struct draw_record **draws;
    uint64_t draw_count;
    const struct latches *latches;
    const uint64_t *memory; /* graphics_memory */
    struct assembly *assembly;
    struct record_array *records;
    uint64_t host_threads, slice; /* nanoseconds between two returns to Python */
    uint64_t share_vertices, share_pixels; /* threads, and pixels of bounding boxes, that are worth another host thread */
    threads_guard *guard;
    uint64_t loops; /* of the stage: 1 is its own, on the calling thread */
    struct threads_part *running; /* those of several that are not done; room for `host_threads` */
    uint64_t running_count;
    uint32_t most_vertices; /* of a chunk */
    uint32_t select; /* some tiles only: DRAW_SELECT */
    uint64_t deadline; /* slice_is_over */
    /* between stages */
    struct stage_chunk chunk; /* what the last stage put out */
    uint64_t must_clip; /* objects of it that threads have to clip */
    uint64_t binned, binned_from; /* records that are in bins, or were; the first of those that are now */
    uint64_t next_tile;
    /* state whose place changes */
    uint64_t wrap; /* the bits of an address */
    uint64_t bases[DRAW_BASES];
    const char *curbe; /* the constant URB entry, or NULL: none is valid */
    uint64_t curbe_size;
    uint64_t viewports; /* all of them are those of the draw */
    uint64_t addresses[MOST_POINTERS]; /* where the pointers of the record that was found lead */
};

#define HIDDEN __attribute__((visibility("hidden")))

/* draw.c */
EXPORT int64_t draw_run(struct draw *d, void *record);

/* draw_loops.c */
HIDDEN int64_t share_stage(struct draw *d, struct stage *s, uint64_t loops);
HIDDEN int64_t run_threads(struct draw *d, struct stage *s, void *record);
HIDDEN void *loop_of(const struct stage *s, uint64_t number);
HIDDEN void count_work(struct stage *s);

/* draw_pointers.c */
HIDDEN int same_pointed(const struct draw_record *p, struct draw *d);
HIDDEN void apply_pointed(struct draw *d);

/* draw_state.c */
HIDDEN int find_draw(struct draw *d);
HIDDEN void apply_state(struct draw *d);
EXPORT int64_t draw_shape(struct draw *d, void *record);

#endif
