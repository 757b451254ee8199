/* Stream output: what goes from vertex entries to buffers, and the buffers of the draw under way (stream_output.py makes both). */
#ifndef SOFTGEN_STREAM_OUTPUT_H
#define SOFTGEN_STREAM_OUTPUT_H

#include <stdint.h>

enum { STREAMS = 4, STREAM_BUFFERS = 4, STREAM_COPIES = 1024 };
enum { STREAM_ZEROS = -1 }; /* a source that no entry has */

/* Consecutive dwords of a vertex. */
struct stream_copy {
    uint32_t buffer;
    uint32_t place; /* bytes from the vertex's first in the buffer */
    int32_t source; /* bytes from the entry's first, or STREAM_ZEROS */
    uint32_t bytes;
};

/* A buffer in the draw under way. One that is not bound has no bytes. */
struct stream_buffer {
    uint64_t address, size;
    uint64_t offset; /* where the next vertex goes: SO_WRITE_OFFSET */
    uint64_t pitch; /* bytes from a vertex to the next */
};

struct stream_plan {
    struct stream_copy copies[STREAM_COPIES];
    uint32_t first[STREAMS + 1]; /* the copies of stream n are those from first[n] to first[n + 1] - 1 */
    uint32_t selected[STREAMS]; /* buffers of each stream, a bit each */
    uint32_t extent[STREAM_BUFFERS]; /* bytes of a vertex that copies reach, from its first */
    uint32_t enabled; /* vertices are written, and primitives counted */
    uint32_t trailing; /* of a strip's inverted triangles, the last vertex stays the last, else the first the first */
    uint32_t rendered; /* the stream whose objects go on; all do where nothing is written */
    uint32_t stops; /* no object goes on */
    struct stream_buffer buffers[STREAM_BUFFERS];
    uint64_t written[STREAMS], needed[STREAMS]; /* primitives of the draw: SO_NUM_PRIMS_WRITTEN, SO_PRIM_STORAGE_NEEDED */
};

#endif
