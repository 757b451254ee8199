/* Rectangles of tiled surfaces read into rows (detile.py fills in the plan). */
#ifndef SOFTGEN_DETILE_H
#define SOFTGEN_DETILE_H

#include <stdint.h>

/* A rectangle of a surface in host memory. The offset of a byte within a tile is column[x] + row[y] (tile_table.py). */
struct detile_plan {
    const uint8_t *surface;
    uint8_t *rows; /* the rectangle's, one after the other */
    const uint32_t *column, *row;
    uint64_t pitch; /* bytes */
    uint32_t tile_columns, tile_rows; /* log2 of a tile's bytes and rows; linear: both 0 */
    uint64_t run; /* bytes of a row that are contiguous in a tile; linear: 0 */
    uint64_t x, y, bytes, count; /* the rectangle: bytes across, rows down */
};

#endif
