/* Geometry shaders since Gen7: what state says of payloads and entries, loops over threads, and the stage (geometry_shader.py). */
#ifndef SOFTGEN_GEOMETRY_SHADER_H
#define SOFTGEN_GEOMETRY_SHADER_H

#include "../three_d.h"

enum { GEOMETRY_BATCH = 64, GEOMETRY_HEADER = 8, GEOMETRY_LANES = 8, GEOMETRY_VERTICES = 32 }; /* threads; dwords of r0; of a thread */

/* Which vertices of a strip's odd triangles change places. */
enum geometry_order { ORDER_AS_DRAWN, ORDER_LEADING, ORDER_TRAILING };

/* What threads get, and where. Offsets and sizes are bytes: of payloads, or of entries. */
struct geometry_form {
    uint32_t lanes; /* objects of a thread, or instances of one object */
    uint32_t instances; /* of each object */
    uint32_t one_object; /* lanes are its instances */
    uint32_t lane_channels; /* of a thread's 8 */
    uint32_t vertices; /* of an object */
    uint32_t dropped; /* objects have another number than the kernel is for: no thread gets one */
    uint32_t order; /* enum geometry_order */
    /* payloads */
    uint32_t handle_offset, instance_shift; /* of the output entries, a dword for each lane, with the instance in its upper bits */
    uint32_t primitive_offset, primitive_stride; /* PrimitiveIDs; 0: there are none */
    uint32_t input_offset, input_vertex, input_lane; /* handles of vertices, and strides by vertex and lane; 0: there are none */
    uint32_t constant_offset, constant_bytes;
    uint32_t push_offset, push_from, push_bytes; /* vertices' data, the part of an entry that they are */
    uint32_t transposed; /* each dword has a register with all lanes; else lanes have halves of registers, or one has whole ones */
    uint32_t scratch_step, thread_mask; /* scratch space of a thread; bits of its number in the header */
    uint32_t topology_bits; /* r0.2 */
    uint32_t registers_end; /* bytes of a payload */
    /* entries that threads write */
    uint32_t entry_bytes, vertex_offset, vertex_bytes, most_vertices;
    uint32_t control_offset, control_bytes; /* the control data header: cut bits or stream numbers */
    uint32_t has_streams; /* it has stream numbers */
    uint32_t stream; /* of vertices without them */
    uint32_t count; /* vertices of each invocation, where they are always so many */
    uint32_t counted; /* enum geometry_count: else, who says how many */
    uint32_t invocations; /* that GS_INVOCATION_COUNT counts for one; 0: statistics are not wanted */
    struct output_topology topology;
};

enum geometry_count { COUNT_STATIC, COUNT_IN_ENTRY, COUNT_IN_MESSAGE };

/* A loop over a part of a round's threads. */
struct geometry_shader {
    struct stage_loop head;
    const struct geometry_form *form;
    const struct stage_chunk *input;
    const uint8_t *constants;
    uint8_t *urb, *room; /* the memory that handles count from; entries of the round */
    uint64_t first, end; /* threads of the round, by their numbers in the chunk */
    uint32_t part, slots; /* threads of a loop at most; those that first_slot counts for each loop */
    uint32_t started, reserved; /* payloads are written */
    uint32_t header[GEOMETRY_HEADER];
    uint32_t masks[GEOMETRY_BATCH];
};

/* shared_functions/urb/memory.py: UrbEntry. */
struct geometry_entry { uint32_t flags, dw2, next, pool; };

/* The stage. A round is a batch of each loop; the entries that it writes are read in order before the next one begins. */
struct geometry_stage {
    struct geometry_shader *loop;
    const struct geometry_form *form;
    struct geometry_entry *entries; /* records by handle, where messages count vertices; or NULL */
    struct vertex_array *vertices; /* that are put out, with their objects */
    struct object_array *objects;
    uint64_t room_bytes;
    struct stage_chunk input;
    uint64_t threads; /* of the input */
    uint64_t cleared; /* entries of the room whose headers are zero */
    uint64_t read; /* entries of the round that have been read */
    uint32_t running; /* threads of the round are under way */
    uint32_t clamped; /* an invocation has put out more vertices than an entry has room for */
};

#endif
