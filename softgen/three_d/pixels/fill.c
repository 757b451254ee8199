/* Rectangles of a surface filled with one value: fast clears, and depth and stencil clears. */
#include "fill.h"

#include "../draw/draw.h"

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

/* Value and mask of 16 bytes of texels, which begin with a texel. */
typedef uint8_t piece __attribute__((vector_size(16), aligned(1), may_alias));

struct pattern {
    piece value, kept;
    int whole; /* nothing is kept */
};

static struct pattern pattern_of(const struct fill *f)
{
    struct pattern p = {.whole = 1};
    for (uint32_t i = 0; i < sizeof p.value; i++) {
        uint8_t mask = f->mask[i % f->bytes];
        p.value[i] = f->value[i % f->bytes] & mask;
        p.kept[i] = (uint8_t)~mask;
        p.whole &= mask == 0xff;
    }
    return p;
}

/* Bytes that are contiguous in memory, from a texel on. */
static void fill_run(const struct fill *f, const struct pattern *p, uint8_t *to, uint64_t bytes)
{
    uint8_t *end = to + (bytes & -sizeof(piece));
    if (p->whole)
        for (; to < end; to += sizeof(piece))
            *(piece *)to = p->value;
    else
        for (; to < end; to += sizeof(piece))
            *(piece *)to = (*(piece *)to & p->kept) | p->value;
    for (end += bytes % sizeof(piece); to < end; to += f->bytes)
        write_texel(f, to);
}

struct area { uint64_t x0, x1, y0, y1; }; /* bytes and rows */

static uint64_t lesser(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Bytes of a row of a tile that are contiguous in memory, a power of two: 512 of an X tile, 16 of a Y tile. */
static uint64_t contiguous(const struct fill *f)
{
    uint64_t bytes = 1;
    while (bytes < 1ull << f->tile_columns && f->column[bytes] == bytes)
        bytes *= 2;
    return bytes;
}

/* Texels of a part of a tile: those that are contiguous at once. */
static void fill_texels(const struct fill *f, const struct pattern *p, const struct area *a)
{
    uint64_t bytes = contiguous(f);
    bytes = bytes < f->bytes ? f->bytes : bytes; /* texels are */
    for (uint64_t y = a->y0; y < a->y1; y++)
        for (uint64_t x = a->x0, end; x < a->x1; x = end) {
            end = lesser((x | (bytes - 1)) + 1, a->x1);
            fill_run(f, p, graphics_memory(f->table, f->base + place(f, x, y)), end - x);
        }
}

/* Tile by tile: one that is covered as a whole is contiguous. */
static void fill_tiles(const struct fill *f, const struct pattern *p, const struct area *a)
{
    uint64_t across = 1ull << f->tile_columns, down = 1ull << f->tile_rows;
    for (uint64_t y = a->y0; y < a->y1; y = (y | (down - 1)) + 1)
        for (uint64_t x = a->x0; x < a->x1; x = (x | (across - 1)) + 1) {
            struct area part = {x, lesser((x | (across - 1)) + 1, a->x1), y, lesser((y | (down - 1)) + 1, a->y1)};
            if (part.x1 - part.x0 == across && part.y1 - part.y0 == down)
                fill_run(f, p, graphics_memory(f->table, f->base + place(f, x, y)), across * down);
            else
                fill_texels(f, p, &part);
        }
}

static void fill_area(const struct fill *f, const struct area *a)
{
    struct pattern p = pattern_of(f);
    if (f->tile_columns)
        fill_tiles(f, &p, a);
    else
        for (uint64_t y = a->y0; y < a->y1; y++)
            fill_run(f, &p, graphics_memory(f->table, f->base + place(f, a->x0, y)), a->x1 - a->x0);
}

/* The samples that are filled of a rectangle's pixels, each by itself. */
static void fill_some_samples(const struct fill *f, uint32_t x0, uint32_t x1, uint32_t y0, uint32_t y1, uint64_t top)
{
    for (uint32_t y = y0; y < y1; y++)
        for (uint32_t x = x0; x < x1; x++)
            for (uint32_t todo = f->sample_mask; todo; todo &= todo - 1) {
                uint32_t s = (uint32_t)__builtin_ctz(todo), column = x, row = y;
                if (f->across)
                    column = (x & ~1u) << f->across | (f->across > 1 ? s & 4 : 0) | (s & 1) << 1 | (x & 1);
                if (f->down)
                    row = (y & ~1u) << f->down | (f->down > 1 ? (s & 8) >> 1 : 0) | (s & 2) | (y & 1);
                write_texel(f, graphics_memory(f->table, f->base + place(f, (uint64_t)(f->left + column) * f->bytes, top + row)));
            }
}

/* A rectangle of pixels with several samples: whole blocks of 2x2 pixels at once, where all samples are filled. */
static void fill_samples(const struct fill *f, uint32_t x0, uint32_t x1, uint32_t y0, uint32_t y1, uint64_t top)
{
    int whole = f->sample_mask == (1u << f->samples) - 1 && !(x0 & 1) && !(y0 & 1);
    if (!whole || ((x1 & 1) && x1 != f->width) || ((y1 & 1) && y1 != f->height)) {
        fill_some_samples(f, x0, x1, y0, y1, top);
        return;
    }
    uint64_t left = (uint64_t)x0 << f->across, right = (uint64_t)((x1 + 1) & ~1u) << f->across;
    uint64_t upper = (uint64_t)y0 << f->down, lower = (uint64_t)(f->down ? (y1 + 1) & ~1u : y1) << f->down;
    struct area area = {(f->left + left) * f->bytes, (f->left + right) * f->bytes, top + upper, top + lower};
    fill_area(f, &area);
}

uint8_t *texel_of(const struct fill *f, uint32_t x, uint32_t y, uint32_t slice)
{
    uint64_t top = f->top + (uint64_t)(f->first_slice + slice) * f->slice_rows;
    return graphics_memory(f->table, f->base + place(f, (uint64_t)(f->left + x) * f->bytes, top + y));
}

static uint32_t within(int64_t value, uint32_t most)
{
    return value < 0 ? 0 : value > most ? most : (uint32_t)value;
}

void fill_rectangle(const struct fill *f, const struct setup_record *r)
{
    uint32_t x0 = within((int64_t)r->x0 * f->scale_x, f->width), x1 = within((int64_t)r->x1 * f->scale_x, f->width);
    uint32_t y0 = within((int64_t)r->y0 * f->scale_y, f->height), y1 = within((int64_t)r->y1 * f->scale_y, f->height);
    if (r->layer >= f->slices)
        return;
    uint64_t top = f->top + (uint64_t)(f->first_slice + r->layer) * f->slice_rows;
    struct area area = {(uint64_t)(f->left + x0) * f->bytes, (uint64_t)(f->left + x1) * f->bytes, top + y0, top + y1};
    if (x0 < x1 && y0 < y1 && f->samples > 1)
        fill_samples(f, x0, x1, y0, y1, top);
    else if (x0 < x1 && y0 < y1)
        fill_area(f, &area);
}

/* Fills the bounding boxes of records. */
EXPORT int64_t fill_records(struct fill *f, void *record)
{
    (void)record;
    for (; f->next < f->count; f->next++)
        fill_rectangle(f, &f->records[f->next]);
    return 0;
}

/* -- the stage ----------------------------------------------------------------------------------------------------------------------- */

EXPORT int64_t stage_fill(struct draw *d, struct stage *s, void *record)
{
    struct fill *f = s->loop;
    f->table = d->memory;
    f->records = d->records->records;
    f->count = d->records->count;
    f->next = 0;
    return fill_records(f, record);
}
