/* The arrays between the stages of the 3D pipeline.
 *
 *   vertex_fetch.c  ► vertex_shader.c ► assembly.c ► clip.c ► setup.c ► bins.c ► rasterizer.c ► pixel_shader.c
 *   vertices          entries           objects      objects   records   bins    blocks         threads
 *
 * A draw is cut into chunks; each stage is a call over the arrays of a chunk. A stage's plan, made by the Python module of the same name
 * from state, holds everything it needs to know; generation differences are values in plans. Plain C without the Python API. Code that
 * touches graphics memory runs under the guard and may be left at any such access: it holds no locks and owns nothing.
 */
#ifndef SOFTGEN_THREE_D_H
#define SOFTGEN_THREE_D_H

#include "../memory/graphics_memory.h"
#include "../shared_functions/pixel_backend/blocks.h"
#include "../shared_functions/pixel_dispatch.h"

#include <stdint.h>
#include <time.h>

#define EXPORT __attribute__((visibility("default")))

/* Vector code for several hosts; the best one is chosen when the library is loaded. All give the same bits. */
#if defined(VECTORIZED)
#elif defined(__x86_64__)
#define VECTORIZED __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define VECTORIZED
#endif

#define INLINE static inline __attribute__((always_inline))

enum { TILE = 64, BLOCK = 4, TILE_BLOCKS = 256 }; /* pixels of a tile's and a block's side; blocks of a tile */
enum { HEADER_LAYER = 1, HEADER_VIEWPORT = 2, HEADER_POINT_WIDTH = 3, POSITION = 4 }; /* dwords of a vertex URB entry */

enum { SLICE = 20000000 }; /* nanoseconds between two returns to Python, which looks at the time limit */

static inline uint64_t monotonic_time(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

/* Whether it is time to return to Python; if not set, the deadline is set. */
static inline int slice_is_over(uint64_t *deadline)
{
    uint64_t now = monotonic_time();
    int over = *deadline && now >= *deadline;
    if (!*deadline || over)
        *deadline = over ? 0 : now + SLICE;
    return over;
}

/* -- vertices and objects ------------------------------------------------------------------------------------------------------------ */

/* Normalised device coordinates and 1/w of a vertex. */
struct screen_position { float x, y, z, rhw; };

/* The vertices of a chunk: vertex URB entries (VUEs) by number. CLIP fills in positions, and appends vertices that it makes. */
struct vertex_array {
    uint8_t *entries;
    uint64_t stride; /* bytes of an entry */
    struct screen_position *positions;
    uint32_t count, capacity;
};

/* A point, line or triangle; of a rectangle, the three vertices that define it. Orders and provoking vertices are those of the topology
 * (G45 4986-5154); a strip's odd triangles keep their order and are marked as inverted. */
struct object {
    uint32_t vertex[3]; /* entry numbers; of a patch, or of an object with adjacent vertices: the number of its list */
    uint32_t flags;
    uint32_t primitive; /* PrimitiveID */
};

/* Flags of an object. */
enum {
    OBJECT_VERTICES = 3, /* 1, 2 or 3; 0: it has a list */
    OBJECT_RECTANGLE = 1 << 2,
    OBJECT_INVERTED = 1 << 3, /* winding is the opposite of the vertices' order */
    OBJECT_PROVOKING_SHIFT = 4, /* 2 bits: which of the three */
    OBJECT_EDGES_SHIFT = 6, /* 3 bits: edge from vertex i to the next is an edge of the primitive */
    OBJECT_BACK_FACING = 1 << 9, /* lines and points of *_BF topologies */
    OBJECT_LAST = 1 << 10, /* the last line of its strip */
    OBJECT_CONTINUES = 1 << 11, /* a line that goes on where the one before ended: stipple is not reset */
    OBJECT_CORNER = 1 << 12, /* a triangle's vertex, drawn as a point; vertex[1] is the triangle's provoking one */
    OBJECT_STREAM_SHIFT = 13, /* 2 bits: the vertex stream that a geometry shader put it out to */
    OBJECT_TOPOLOGY_SHIFT = 16, /* 3DPRIM_* code, as payloads give it */
};

/* How the vertices of a topology that threads put out make objects (struct assembly has the same, for vertices of a draw). */
struct output_topology {
    uint32_t minimum, step; /* vertices of the first object, and those that each further object takes; 0: no thread may put it out */
    uint32_t corners;
    uint8_t back[4]; /* how many vertices ago each came; TOPOLOGY_FIRST: the primitive's first */
    uint32_t flags, inverts, polygon, line_strip, continued;
};
enum { TOPOLOGY_FIRST = 255 };

/* Objects in drawing order. */
struct object_array {
    struct object *objects;
    uint64_t count, capacity;
};

/* The head of every loop over threads: the structure of a stage whose work threads do begins with it. */
struct threads_worker;
struct stage_loop {
    struct threads_worker *worker;
    uint32_t first_slot, reserved; /* threads of other loops that run at the same time: each has scratch space of its own */
};

enum { LIST_VERTICES = 32 }; /* of a list at most */

/* A part of a draw between two stages. Patches and objects with adjacent vertices, which HS and GS threads get, have lists. */
struct stage_chunk {
    struct vertex_array *vertices;
    struct object_array *objects;
    uint32_t *lists; /* entry numbers: list n has those from lists[n * list_vertices] on */
    uint64_t list_vertices; /* of each object; 0: there are no lists */
};

/* -- setup records ------------------------------------------------------------------------------------------------------------------- */

/* A value that is linear on the screen: c + dx * x + dy * y at the sample of pixel (x, y). In double, so that a small object far from
 * pixel (0, 0) keeps its precision: evaluate in double, at each pixel or at a block's corner with float steps from there. */
struct plane { double c, dx, dy; };

/* An object as the rasterizer sees it. Coordinates are pixels; an edge function is 0 or more inside (the fill rule is in its constant),
 * in 1/65536 of a square pixel: e(x, y) = c + dx * x + dy * y at the sample of pixel (x, y). */
struct setup_record {
    int32_t x0, y0, x1, y1; /* bounding box within scissor, viewport and drawing rectangle; x1, y1 are outside */
    int64_t edge[4], edge_dx[4], edge_dy[4]; /* as many as `edges` says */
    uint32_t edges;
    uint32_t coverage; /* enum coverage */
    int32_t line[4]; /* lines: start and end; smooth points: centre and width; in 1/256 pixel from the sample of pixel (0, 0) */
    uint32_t stipple; /* of lines: the Line Stipple Counter at the first pixel */
    uint32_t back_facing, layer, viewport, primitive, topology;
    float x_start, y_start; /* Gen4.5: of the start vertex, less the destination origin bias */
    struct plane z; /* of the depth buffer, offset included */
    struct plane rhw; /* 1/w */
    struct plane linear[2], perspective[2]; /* b1 and b2; perspective ones are still to be divided by 1/w */
    uint64_t attributes; /* offset of its attributes in record_array.attributes; Gen4.5: of its setup data in the URB */
};

/* How far an edge is moved in conservative rasterization: the way from a pixel's sample to its corner, and 1/512 of a pixel. */
static inline int64_t edge_margin(const struct setup_record *r, uint32_t edge)
{
    int64_t dx = r->edge_dx[edge], dy = r->edge_dy[edge];
    return ((dx < 0 ? -dx : dx) + (dy < 0 ? -dy : dy)) * 257 / 512;
}

/* Which of the pixels within the edges are covered (lines.c). */
enum coverage {
    COVERAGE_EDGES, /* polygons: all */
    COVERAGE_POINT, /* all */
    COVERAGE_LINE, /* wide lines: those that the stipple leaves */
    COVERAGE_DIAMOND, /* one-pixel lines: those whose diamond the line leaves, less what the stipple masks */
    COVERAGE_DIAMOND_LAST, /* the same, and the one that it ends in */
    COVERAGE_SMOOTH_LINE, COVERAGE_SMOOTH_POINT, /* all, with an antialias alpha */
};

/* Setup records in drawing order, and their attributes. */
struct record_array {
    struct setup_record *records;
    uint8_t *attributes; /* 64 bytes for each attribute of each record, as pixel shader payloads have them (GRAPHICS_THREADS 2.6) */
    uint64_t attribute_stride; /* bytes of a record's attributes */
    uint64_t count, capacity;
};

/* Record numbers by tile, in order: those of tile t are numbers[first[t]] to numbers[first[t + 1] - 1]. */
struct bins {
    uint32_t *first; /* tiles_x * tiles_y + 1 */
    uint32_t *numbers;
    uint32_t tiles_x, tiles_y;
    uint64_t capacity; /* of numbers */
};

/* -- pixels -------------------------------------------------------------------------------------------------------------------------- */

/* Covered pixels of a 4x4 block; bit = 4 * subspan + pixel of it, subspans and their pixels in reading order. */
struct pixel_block {
    uint16_t x, y; /* upper left pixel */
    uint32_t mask;
};

#endif
