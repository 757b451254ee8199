/* Primitive assembly: a draw's vertices made into objects, chunk by chunk (assembly.py has the same structure). */
#ifndef SOFTGEN_ASSEMBLY_H
#define SOFTGEN_ASSEMBLY_H

#include "vertex_fetch.h"

enum { CACHE_LINES = 4096, RECENT = 32, FIRST_VERTEX = 255, CORNERS = 6 };

/* The entry of a vertex that the chunk has already, if `stamp` is that of the chunk and instance. */
struct cached_vertex { uint32_t vertex, stamp, entry; };

/* An object whose vertices are still IDs. */
struct pending_object {
    uint32_t vertex[3], flags, primitive, valid;
};

struct assembly {
    /* where vertices come from */
    const uint64_t *memory;
    uint64_t index_address, index_size;
    uint32_t index_bytes; /* of an index; 0: vertices are sequential */
    uint32_t first_index;
    uint32_t cut_enable, cut_index;
    uint32_t vertices, instances; /* of the draw */
    /* the topology */
    uint32_t minimum, step; /* vertices of the first object, and those that each further object takes */
    uint32_t corners; /* vertices of an object, 4: quadrilateral */
    uint32_t whole; /* objects of more than three vertices are two, with the first three and the others: GS threads get them together */
    uint32_t adjacent_strip; /* the windows of a triangle strip with adjacent vertices */
    uint32_t list; /* vertices of an object's list, in the order of the draw; 0: it has none */
    uint32_t trailing; /* odd triangles of such a strip keep the place of their last vertex, else of their first */
    uint32_t id_skip, id_step; /* vertices of a primitive before its PrimitiveID advances, and from one advance to the next */
    uint32_t id_extra; /* the end of a primitive advances it once more */
    uint32_t uncached; /* a vertex is known by its place in the draw, so that equal indices are different vertices */
    uint8_t back[CORNERS + 2]; /* how many vertices ago each came; FIRST_VERTEX: the primitive's first */
    uint32_t flags; /* of all its objects */
    uint32_t inverts; /* odd objects of a strip have the opposite winding, or (2) even ones */
    uint32_t closes; /* a loop */
    uint32_t polygon; /* edges between its triangles are inside */
    uint32_t line_strip;
    uint32_t continued; /* stipple is not reset at the start of a strip */
    uint32_t provoking; /* of a quadrilateral: which corner provokes */
    uint32_t one_instance; /* a chunk has vertices of one instance only */
    /* the chunk */
    struct vertex_ids ids;
    uint32_t entries, most_entries;
    struct object_array objects;
    uint32_t *lists;
    /* progress */
    uint32_t position, instance; /* the next vertex */
    uint32_t count, next; /* vertices of the primitive so far; the count at which it has its next object */
    uint32_t made; /* objects of the primitive so far */
    uint32_t id_base, id_start; /* PrimitiveID at the primitive's first vertex, and that vertex's place */
    uint32_t recent[RECENT], first;
    uint32_t primitive, stamp;
    struct pending_object held; /* the last line of a strip, or triangle of a polygon, until it is known whether another follows */
    uint64_t vertices_seen, objects_made; /* statistics */
    struct cached_vertex cache[CACHE_LINES];
};

/* What the stage knows of the state besides the first bytes of struct assembly. */
struct assembly_stage {
    struct stage_chunk chunk; /* that it fills */
    uint64_t counts; /* statistics are wanted */
};

#endif
