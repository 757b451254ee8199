/* What reads surface states through a binding table (tables.c, tables.py). */
#ifndef SOFTGEN_TABLES_H
#define SOFTGEN_TABLES_H

#include "../../memory/graphics_memory.h"

#include <stdint.h>

/* What is read, and where to. */
struct reader_record {
    const uint64_t *memory; /* graphics_memory */
    const struct memory_range *program; /* the kernel, which has to be as it was */
    uint64_t table, base; /* where the table is, from the address on that its entries count from, too */
    uint64_t address_bits, pointer_bits; /* of the space; of an entry */
    const uint32_t *indices; /* of the entries */
    uint64_t count;
    uint64_t size; /* of a surface state */
    uint8_t *states;
};

#endif
