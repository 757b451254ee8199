/* Rectangles of a surface that are filled with one value (fill.c; fill.py has the same structure). */
#ifndef SOFTGEN_FILL_H
#define SOFTGEN_FILL_H

#include "../three_d.h"

/* A level of a surface, and what to write there. The offset of a byte within a tile is column[x] + row[y] (fill.py). */
struct fill {
    const uint64_t *table;
    uint64_t base, pitch; /* pitch: bytes of a row of texels, or of tiles divided by the rows of a tile */
    uint32_t tile_columns, tile_rows; /* log2 of a tile's bytes and rows; linear: both 0 */
    const uint32_t *column, *row;
    uint32_t bytes; /* of a texel: 1, 2, 4, 8, 16 */
    uint32_t left, top; /* where the level begins, in texels and rows */
    uint32_t width, height; /* of the level */
    uint32_t slice_rows, first_slice, slices;
    uint32_t scale_x, scale_y; /* pixels for each unit of a rectangle */
    uint32_t samples, sample_mask; /* of a pixel, and those that are filled; they are beside each other, */
    uint32_t across, down; /* in so many columns and rows for each of a pixel, as powers of two */
    uint8_t value[16], mask[16];
    const struct setup_record *records;
    uint64_t count, next; /* next: progress */
};

/* Fills the bounding box of a record, as far as it is in the level; nothing where the surface has no such slice. */
void fill_rectangle(const struct fill *f, const struct setup_record *r);

/* Where a texel of a pixel with one sample is in host memory; x and y count from the level's corner. */
uint8_t *texel_of(const struct fill *f, uint32_t x, uint32_t y, uint32_t slice);

#endif
