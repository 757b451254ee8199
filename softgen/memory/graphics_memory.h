/* Graphics memory in C code: an address space by its table (memory/address_space.py), and bytes of it that were noted. */
#ifndef SOFTGEN_GRAPHICS_MEMORY_H
#define SOFTGEN_GRAPHICS_MEMORY_H

#include <stdint.h>
#include <string.h>

/* The host base of each 4 GiB part of the address space. */
static inline uint8_t *graphics_memory(const uint64_t *table, uint64_t address)
{
    return (uint8_t *)(table[address >> 32 & 0xffff] + (address & 0xffffffff));
}

/* Bytes of an address space, and what was there. */
struct memory_range {
    uint64_t address, size;
    const char *data; /* what was there */
};

/* Whether it is still there. Runs under the guard: it is left at a page that is no longer mapped. */
static inline int same_memory(const uint64_t *table, const struct memory_range *range)
{
    return !memcmp(graphics_memory(table, range->address), range->data, range->size);
}

#endif
