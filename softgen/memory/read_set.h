/* A read set: the bytes of memory that a result was made from, each counted from a base that may move (read_set.c, read_set.py). */
#ifndef SOFTGEN_READ_SET_H
#define SOFTGEN_READ_SET_H

#include <stdint.h>

/* A dword that leads to more bytes: the next base, after those that are given and those of the pointers before it. */
struct based_pointer {
    uint64_t offset; /* where it is, */
    uint32_t parent; /* from this base on */
    uint32_t base;   /* that its value counts from */
    uint32_t mask;   /* bits of its value */
    uint32_t unused;
};

/* Bytes that were read. */
struct based_range {
    uint64_t offset, size;
    const char *data;
    uint64_t base; /* that the offset counts from */
};

/* All that was read for one result. */
struct memory_reads {
    const uint64_t *table;  /* graphics_memory */
    uint64_t wrap;          /* bits of an address */
    uint64_t end;           /* pointers past it read as 0 */
    uint64_t *bases;        /* those that are given, then those of pointers */
    const struct based_pointer *pointers;
    const struct based_range *ranges;
    uint32_t base_count, pointer_count, range_count, unused;
};

#endif
