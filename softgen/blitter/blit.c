/* Rectangles copied and filled with raster operations, row by row (blit.py makes the plan).
 *
 * A row is read into a buffer before it is written, so a copy onto itself is right within a row; `backwards` makes it right between rows.
 * Graphics memory is touched a page at a time from its lowest byte on, so that a fault names the first byte that is not mapped.
 * Plain C without the Python API; it runs under the guard and may be left at any access: it owns nothing.
 */
#include "blit.h"

#include <string.h>

enum { PAGE = 4096 };

static uint8_t *graphics_memory(const struct blit_plan *b, uint64_t address)
{
    return (uint8_t *)(b->table[address >> 32 & 0xffff] + (address & 0xffffffff));
}

static uint64_t address_of(const struct blit_plan *b, const struct surface_side *side, int64_t x, int64_t y)
{
    int64_t offset;
    if (!side->run)
        offset = y * side->pitch + x;
    else {
        int64_t across = side->pitch >> side->tile_columns, tile = (y >> side->tile_rows) * across + (x >> side->tile_columns);
        offset = tile * ((int64_t)1 << (side->tile_columns + side->tile_rows)) + side->column[x & (((int64_t)1 << side->tile_columns) - 1)]
               + side->row[y & (((int64_t)1 << side->tile_rows) - 1)];
    }
    return (side->base + (uint64_t)offset) & b->address_mask;
}

static uint64_t smaller(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Bytes from x on that are contiguous in a page. */
static uint64_t piece(const struct surface_side *side, uint64_t address, int64_t x, uint64_t left)
{
    uint64_t size = smaller(left, PAGE - (address & (PAGE - 1)));
    return side->run ? smaller(size, side->run - ((uint64_t)x & (side->run - 1))) : size;
}

static void read_row(const struct blit_plan *b, const struct surface_side *side, int64_t y, uint8_t *row)
{
    for (uint64_t done = 0, size; done < b->bytes; done += size) {
        int64_t x = side->x + (int64_t)done;
        uint64_t address = address_of(b, side, x, y);
        const uint8_t *from = graphics_memory(b, address);
        size = piece(side, address, x, b->bytes - done);
        row[done] = *(const volatile uint8_t *)from;
        if (size == GROUP)
            memcpy(row + done, from, GROUP);
        else
            memcpy(row + done, from, size);
    }
}

static void write_row(const struct blit_plan *b, const struct surface_side *side, int64_t y, const uint8_t *row)
{
    for (uint64_t done = 0, size; done < b->bytes; done += size) {
        int64_t x = side->x + (int64_t)done;
        uint64_t address = address_of(b, side, x, y);
        uint8_t *to = graphics_memory(b, address);
        size = piece(side, address, x, b->bytes - done);
        *(volatile uint8_t *)to = row[done];
        if (size == GROUP)
            memcpy(to, row + done, GROUP);
        else
            memcpy(to, row + done, size);
    }
}

/* The raster operation, on a row of source and destination; the result replaces the source. */
static void combine(const struct blit_plan *b)
{
    uint64_t *restrict source = (uint64_t *)b->source_row, *restrict destination = (uint64_t *)b->destination_row;
    for (uint64_t i = 0; i < (b->bytes + GROUP - 1) / GROUP; i++)
        for (int j = 0; j < 2; j++) {
            uint64_t s = source[2 * i + j], d = destination[2 * i + j];
            source[2 * i + j] = b->constant[j] ^ (s & b->by_source[j]) ^ (d & b->by_destination[j]) ^ (s & d & b->by_both[j]);
        }
}

static int is_copy(const struct blit_plan *b)
{
    int same = 1;
    for (int j = 0; j < 2; j++)
        same &= !b->constant[j] && b->by_source[j] == UINT64_MAX && !b->by_destination[j] && !b->by_both[j];
    return same;
}

/* Some rows; answers how many are left. */
int64_t blit_rows(struct blit_plan *b, void *record)
{
    uint64_t done = 0;
    int copy = is_copy(b), filled = 0;
    (void)record;
    for (; b->next < b->rows && done < b->limit; b->next++, done += b->bytes) {
        int64_t y = (int64_t)(b->backwards ? b->rows - 1 - b->next : b->next);
        if (b->reads_source)
            read_row(b, &b->source, b->source.y + y, b->source_row);
        if (b->reads_destination)
            read_row(b, &b->destination, b->destination.y + y, b->destination_row);
        if (!copy && !filled)
            combine(b);
        filled = !b->reads_source && !b->reads_destination; /* the same in all rows */
        write_row(b, &b->destination, b->destination.y + y, b->source_row);
    }
    return (int64_t)(b->rows - b->next);
}
