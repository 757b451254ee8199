/* Threads of the Gen4.5 stages GS, CLIP and SF: payloads, and the vertices that threads of GS and CLIP put out (stage_threads.py and
 * thread_output.py have the same structures). */
#ifndef SOFTGEN_STAGE_THREADS_H
#define SOFTGEN_STAGE_THREADS_H

#include "../../threads/native/threads.h"
#include "../clip_setup/geometry.h"

enum { STAGE_BATCH = 64, STAGE_HEADER = 24, THREAD_VERTICES = 6, URB_ROW = 64, TOPOLOGIES = 32 };
enum { PER_THREAD = 48 }; /* entries of a thread, on average at most: a triangle clipped at 14 planes has 17 vertices, as outlines 34 */

/* What all threads of a stage have in common: GRAPHICS_THREADS 2.3. */
struct stage_threads {
    struct stage_loop head;
    const uint8_t *constants;
    const uint8_t *entries; /* of vertices */
    uint64_t stride;
    uint32_t header[STAGE_HEADER]; /* r0, of SF threads r0 to r2 */
    uint32_t header_bytes;
    uint32_t constant_offset, constant_bytes; /* in a payload */
    uint32_t vertex_offset; /* of the first vertex in a payload */
    uint32_t read_offset, read_bytes; /* of an entry: what a payload has of each vertex */
    uint32_t scratch_step, thread_mask; /* scratch space of a thread; bits of its number in r0.5 */
    uint32_t reserved;
};

/* -- vertices that threads put out --------------------------------------------------------------------------------------------------- */

/* shared_functions/urb/memory.py: UrbEntry, UrbPool. */
struct urb_entry { uint32_t flags, dw2, next, pool; };
struct urb_pool { uint32_t next, end, step, retained; };
enum { URB_COMPLETE = 1, URB_USED = 2, URB_REWRITTEN = 8 };

struct thread_output {
    struct vertex_array vertices; /* entries, and room for those that threads allocate */
    struct object_array objects;
    struct urb_entry *entries; /* by handle */
    struct urb_pool *pool;
    struct output_topology topology[TOPOLOGIES];
    uint32_t refused; /* 1 + a topology that is none, or OUTPUT_FULL */
    uint32_t invocations; /* messages that count CL_INVOCATIONS */
    uint32_t put_out, incomplete; /* bits: topologies that threads put out, and those of which a primitive had a wrong number of vertices */
    uint32_t rewritten; /* an entry was written after it was complete */
    uint32_t reserved;
};
enum { OUTPUT_FULL = 0x10000 };

/* The objects of a chunk whose threads put out vertices: in parts for which there is room. */
struct output_threads {
    const struct object_array *objects;
    struct thread_output *output;
    uint64_t from, next, end; /* objects whose threads are under way; those after them; the end of the part */
    uint64_t batch, threads; /* threads under way; all of the part */
    uint32_t handle[STAGE_BATCH]; /* that each of them started with */
};

/* -- loops over threads -------------------------------------------------------------------------------------------------------------- */

/* clip_threads.c */
struct clip_threads {
    struct stage_threads stage;
    struct output_threads out;
    const struct clip_result *results; /* of the objects */
    const struct vertex_array *vertices; /* of the objects */
};

/* setup_threads.c */
struct setup_threads {
    struct stage_threads stage;
    const struct sf_input *inputs;
    struct setup_record *records;
    uint64_t count;
    uint64_t *next; /* the next record, shared by all loops */
    uint64_t entry_bytes; /* of a primitive URB entry, whole rows */
    uint8_t *primitives; /* primitive URB entries */
    uint8_t *transposed; /* the same as pixel shaders read them, where coefficients are transposed; or NULL */
    uint64_t depth_at; /* where in an entry, as it is read, the coefficients of depth are */
};

void write_stage_payload(const struct stage_threads *s, uint8_t *payload, uint32_t slot, uint32_t handle, const uint32_t *vertex,
                         uint32_t vertices);
int64_t run_stage_threads(struct stage_threads *s, uint32_t vertices, void *record, int64_t (*write)(void *loop, uint64_t capacity),
                          void (*collect)(void *loop));
void begin_output(struct thread_output *o, uint64_t vertices, uint64_t threads);
uint32_t start_thread(struct output_threads *t, const struct stage_threads *s, const uint32_t *vertex, uint32_t vertices, uint32_t r0_2);
uint32_t first_entry(struct thread_output *o);
void read_output(struct thread_output *o, uint32_t handle, uint32_t primitive);
void keep_object(struct thread_output *o, const struct object *object);
void count_vertices(struct thread_output *o);

#endif
