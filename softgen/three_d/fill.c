/* Rectangles of a surface filled with one value: fast clears, and depth and stencil clears. */
#include "three_d.h"

#include <string.h>

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
    uint8_t value[16], mask[16];
    const struct setup_record *records;
    uint64_t count, next; /* next: progress */
};

static uint64_t place(const struct fill *f, uint64_t x, uint64_t y)
{
    if (!f->tile_columns)
        return y * f->pitch + x;
    uint64_t across = f->pitch >> f->tile_columns, tile = (y >> f->tile_rows) * across + (x >> f->tile_columns);
    return (tile << (f->tile_columns + f->tile_rows)) + f->column[x & ((1u << f->tile_columns) - 1)]
         + f->row[y & ((1u << f->tile_rows) - 1)];
}

/* Texels never cross the 16 bytes in which all tilings keep bytes contiguous. */
static void write_texel(const struct fill *f, uint8_t *to)
{
    for (uint32_t i = 0; i < f->bytes; i++)
        to[i] = (uint8_t)((to[i] & ~f->mask[i]) | (f->value[i] & f->mask[i]));
}

static void fill_row(const struct fill *f, uint64_t y, uint32_t x0, uint32_t x1, int whole)
{
    for (uint64_t x = x0; x < x1; x++) {
        uint8_t *to = graphics_memory(f->table, f->base + place(f, (f->left + x) * f->bytes, y));
        if (!whole)
            write_texel(f, to);
        else if (f->bytes == 4)
            memcpy(to, f->value, 4);
        else
            memcpy(to, f->value, f->bytes);
    }
}

static uint32_t within(int64_t value, uint32_t most)
{
    return value < 0 ? 0 : value > most ? most : (uint32_t)value;
}

static void fill_rectangle(const struct fill *f, const struct setup_record *r)
{
    uint32_t x0 = within((int64_t)r->x0 * f->scale_x, f->width), x1 = within((int64_t)r->x1 * f->scale_x, f->width);
    uint32_t y0 = within((int64_t)r->y0 * f->scale_y, f->height), y1 = within((int64_t)r->y1 * f->scale_y, f->height);
    int whole = 1;
    for (uint32_t i = 0; i < f->bytes; i++)
        whole &= f->mask[i] == 0xff;
    if (r->layer >= f->slices)
        return;
    uint64_t top = f->top + (uint64_t)(f->first_slice + r->layer) * f->slice_rows;
    for (uint64_t y = y0; y < y1; y++)
        fill_row(f, top + y, x0, x1, whole);
}

/* Fills the bounding boxes of records. */
EXPORT int64_t fill_records(struct fill *f, void *record)
{
    (void)record;
    for (; f->next < f->count; f->next++)
        fill_rectangle(f, &f->records[f->next]);
    return 0;
}
