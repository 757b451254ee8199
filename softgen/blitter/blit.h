/* What blits are made of: blit.py makes a plan, blit.c goes through its rows. */
#ifndef SOFTGEN_BLIT_H
#define SOFTGEN_BLIT_H

#include <stdint.h>

enum { GROUP = 16 }; /* bytes after which masks repeat; no pixel is longer */

/* A surface, and where in it the rectangle begins. The offset of a byte within a tile is column[x] + row[y] (surface/tile_table.py). */
struct surface_side {
    uint64_t base;
    int64_t pitch; /* bytes */
    const uint32_t *column, *row;
    uint32_t tile_columns, tile_rows; /* log2 of a tile's bytes and rows; linear: both 0 */
    uint64_t run; /* bytes of a row that are contiguous in a tile; linear: 0 */
    int64_t x, y; /* bytes and rows */
};

/* A rectangle to fill or to copy to. */
struct blit_plan {
    const uint64_t *table;
    uint64_t address_mask;
    struct surface_side destination, source;
    uint64_t bytes, rows, next; /* next: progress */
    uint64_t limit; /* bytes of a call */
    uint32_t backwards, reads_source, reads_destination;
    uint32_t reserved;
    uint8_t *source_row, *destination_row; /* as many bytes, rounded up to GROUP */
    uint64_t constant[2], by_source[2], by_destination[2], by_both[2]; /* result = constant ^ S & … ^ D & … ^ S & D & … */
};

#endif
