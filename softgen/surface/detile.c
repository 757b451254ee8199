/* Rectangles of tiled surfaces read into rows: what a display scans out, copied for people (detile.h).
 *
 * The caller has checked that the rectangle is inside of the surface's memory. Plain C without the Python API. */
#include "detile.h"

#include <string.h>

static void detile_row(const struct detile_plan *d, uint64_t y, uint8_t *to)
{
    uint64_t across = d->pitch >> d->tile_columns, tile_size = (uint64_t)1 << (d->tile_columns + d->tile_rows);
    uint64_t column_mask = ((uint64_t)1 << d->tile_columns) - 1, row_mask = ((uint64_t)1 << d->tile_rows) - 1;
    const uint8_t *row = d->surface + (y >> d->tile_rows) * across * tile_size + d->row[y & row_mask];
    for (uint64_t x = d->x, end = d->x + d->bytes, size; x < end; x += size, to += size) {
        const uint8_t *from = row + (x >> d->tile_columns) * tile_size + d->column[x & column_mask];
        size = d->run - (x & (d->run - 1));
        if (size > end - x)
            size = end - x;
        if (size == 16) /* a piece of Y-major tiles */
            memcpy(to, from, 16);
        else
            memcpy(to, from, size);
    }
}

void surface_detile(const struct detile_plan *d)
{
    for (uint64_t i = 0; i < d->count; i++) {
        uint8_t *to = d->rows + i * d->bytes;
        if (d->run)
            detile_row(d, d->y + i, to);
        else
            memcpy(to, d->surface + (d->y + i) * d->pitch + d->x, d->bytes);
    }
}
