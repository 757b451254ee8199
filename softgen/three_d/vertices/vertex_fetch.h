/* Vertex fetch: which vertices there are, and the data of one of them. */
#ifndef SOFTGEN_VERTEX_FETCH_H
#define SOFTGEN_VERTEX_FETCH_H

#include "../three_d.h"

/* How a destination dword is made. The first ones need no source data. */
enum fetch_kind {
    FETCH_CONSTANT, FETCH_VERTEX_ID, FETCH_INSTANCE_ID, FETCH_PRIMITIVE_ID,
    FETCH_RAW, FETCH_UINT, FETCH_SINT, FETCH_UNORM, FETCH_SNORM, FETCH_USCALED, FETCH_SSCALED, FETCH_FLOAT16, FETCH_FLOAT64,
    FETCH_UFLOAT, FETCH_SFIXED,
};

/* A destination dword: `load` bytes at `start` of the source element, `width` bits of them from bit `shift` on. */
struct fetch_store {
    uint32_t offset; /* bytes from the vertex's first component */
    uint16_t start;
    uint8_t load, shift, width, kind;
    uint16_t reserved;
    uint32_t value; /* FETCH_CONSTANT; FETCH_VERTEX_ID: what is added to it */
};

/* A source element; outside its buffer all of it is zero. */
struct fetch_element {
    uint64_t address, size; /* of the buffer */
    uint32_t max_index, pitch, offset, bytes;
    uint32_t instanced, step; /* step 0: the same for all instances */
    uint32_t first, stores; /* those of its destination dwords */
};

struct vertex_fetch {
    const uint64_t *memory; /* graphics_memory */
    const struct fetch_element *elements;
    const struct fetch_store *stores;
    uint32_t count; /* elements */
    uint32_t first, others; /* destination dwords that need no source data */
    uint32_t bias; /* what is added to a vertex ID to give the vertex's index */
    uint32_t start_instance;
    uint32_t has_edge_flag;
    struct fetch_element edge_flag; /* with one destination dword, at offset 0 */
};

/* The vertices of a chunk. */
struct vertex_ids {
    uint32_t *vertex; /* VertexID */
    uint32_t *instance; /* InstanceID */
    uint32_t *primitive; /* PrimitiveID, where a vertex has one */
};

enum { FETCH_GROUP = 8 }; /* vertices fetched together */

/* Writes the data of `count` vertices, FETCH_GROUP at most: the first component of the first at `into`, those of others `stride` apart. */
__attribute__((visibility("hidden"))) void fetch_group(const struct vertex_fetch *f, struct vertex_ids ids, unsigned count, uint8_t *into,
                                                       uint64_t stride);

/* Bytes from `into` on that fetch_group may write. */
__attribute__((visibility("hidden"))) uint64_t fetch_extent(const struct vertex_fetch *f, unsigned count, uint64_t stride);

/* Vertices to fetch into an array. */
struct fetch_run {
    const struct vertex_fetch *fetch;
    struct vertex_ids ids;
    uint8_t *into;
    uint64_t stride, count;
    struct object_array *objects; /* fetch_edge_flags */
    uint8_t *edge_flags; /* one for each vertex */
};

__attribute__((visibility("hidden"))) int64_t mark_edges(const struct fetch_run *run);

#endif
