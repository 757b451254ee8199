/* Payloads and entries of geometry shader threads. */
#ifndef SOFTGEN_GEOMETRY_PAYLOAD_H
#define SOFTGEN_GEOMETRY_PAYLOAD_H

#include "geometry_shader.h"

#include "../../threads/native/threads.h"

/* Threads that an object needs, where they have instances of one. */
static inline uint64_t threads_of_object(const struct geometry_form *f)
{
    return (f->instances + f->lanes - 1) / f->lanes;
}

/* The lanes of a thread of a chunk with so many objects; *object is the first one's. */
static inline uint32_t lanes_of(const struct geometry_form *f, uint64_t thread, uint64_t objects, uint64_t *object, uint32_t *instance)
{
    if (f->one_object) {
        uint64_t threads = threads_of_object(f);
        *object = thread / threads;
        *instance = (uint32_t)(thread % threads) * f->lanes;
        return f->instances - *instance < f->lanes ? f->instances - *instance : f->lanes;
    }
    *object = thread * f->lanes;
    *instance = 0;
    return objects - *object < f->lanes ? (uint32_t)(objects - *object) : f->lanes;
}

/* geometry_payload.c */
int geometry_payload_fits(const struct geometry_form *f);
uint32_t write_geometry_payload(const struct geometry_shader *g, uint8_t *payload, uint32_t slot, uint64_t thread);

/* geometry_output.c */
int read_entries(struct geometry_stage *s);

#endif
