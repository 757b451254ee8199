/* Rectangles of bytes in tiled surfaces, for messages that read or write blocks of them (block_access.py).
 *
 * Both entries run under the guard (memory/guard.c) and may be left at any byte. */
#include <stddef.h>
#include <stdint.h>

#include "../memory/graphics_memory.h"

#define ENTRY __attribute__((visibility("default"))) /* called by Python */

/* The bytes whose columns are in `xs` and whose rows are in `ys`. In a tile a byte is at column[x] + row[y] (surface/tile_table.py). */
struct block_access {
    const uint64_t *table; /* memory/address_space.py */
    uint64_t address_mask, base;
    int64_t across; /* tiles in a row; linear: bytes */
    const uint32_t *column, *row;
    uint32_t tile_columns, tile_rows; /* log2 of a tile's bytes and rows; linear: both 0, and no tables */
    const int64_t *xs, *ys;
    uint32_t columns, rows;
    uint8_t *bytes; /* row by row */
    const uint8_t *mask; /* which are accessed; null: all */
};

ENTRY int block_layout(uint64_t *numbers)
{
    numbers[0] = sizeof(struct block_access);
    return 1;
}

static uint8_t *place(const struct block_access *b, int64_t x, int64_t y)
{
    int64_t offset;
    if (!b->column)
        offset = y * b->across + x;
    else {
        int64_t tile = (y >> b->tile_rows) * b->across + (x >> b->tile_columns);
        offset = tile * ((int64_t)1 << (b->tile_columns + b->tile_rows)) + b->column[x & (((int64_t)1 << b->tile_columns) - 1)]
               + b->row[y & (((int64_t)1 << b->tile_rows) - 1)];
    }
    return graphics_memory(b->table, (b->base + (uint64_t)offset) & b->address_mask);
}

/* Entry: read them. Those that the mask leaves out stay as they are. */
ENTRY int64_t block_gather(const struct block_access *b, void *record)
{
    (void)record;
    for (size_t y = 0, n = 0; y < b->rows; y++)
        for (size_t x = 0; x < b->columns; x++, n++)
            if (!b->mask || b->mask[n])
                b->bytes[n] = *place(b, b->xs[x], b->ys[y]);
    return 0;
}

/* Entry: write them. */
ENTRY int64_t block_scatter(const struct block_access *b, void *record)
{
    (void)record;
    for (size_t y = 0, n = 0; y < b->rows; y++)
        for (size_t x = 0; x < b->columns; x++, n++)
            if (!b->mask || b->mask[n])
                *place(b, b->xs[x], b->ys[y]) = b->bytes[n];
    return 0;
}
