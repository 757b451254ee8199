/* Media objects in a walk over a batch, and the flushes between them: what they collect, and payloads made of it (object_actor.c). */
#ifndef SOFTGEN_OBJECT_ACTOR_H
#define SOFTGEN_OBJECT_ACTOR_H

#include <stdint.h>

enum { OBJECT_DWORDS = 16 }; /* dwords before inline data, at most */

/* MEDIA_OBJECT commands that differ in their inline data alone; MEDIA_STATE_FLUSH commands that are the same. */
struct walked_objects {
    uint32_t fixed[OBJECT_DWORDS]; /* what comes before inline data */
    uint32_t fixed_count, inline_count; /* dwords */
    uint32_t flush[2];
    uint32_t *data; /* inline data of each object, a row of whole registers */
    uint64_t row; /* dwords */
    uint64_t room; /* objects */
    /* results */
    uint64_t objects, flushes;
    uint64_t used; /* an object came after the last flush */
};

/* Threads of the objects that were collected: a writer of payloads (threads_writer of threads.h). */
struct object_writer {
    uint8_t header[32];
    const uint8_t *constants;
    uint64_t constant_bytes;
    const uint8_t *data;
    uint64_t data_bytes; /* of each thread */
};

#endif
