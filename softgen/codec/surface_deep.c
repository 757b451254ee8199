/* Surfaces of deep pictures: 16 bits a sample in host memory, 8 or 16 in graphics memory, chroma interleaved (codec.h). */
#include <string.h>

#include "../memory/graphics_memory.h"
#include "codec.h"

#ifdef __x86_64__
#define VECTORIZED __attribute__((target_clones("arch=x86-64-v3", "default")))
#else
#define VECTORIZED
#endif

enum { PIECE = 256 }; /* samples that are converted at once */
enum { TILE_COLUMN = 16, TILE_ROWS = 32, COLUMN_BYTES = 512, TILE_COLUMNS = 8, TILE_BYTES = 4096 }; /* Y tiles: columns of bytes, in which a row follows the one above */

static uint16_t *row_of(const struct plane *p, unsigned y)
{
    return (uint16_t *)(void *)p->samples + (size_t)y * p->stride;
}

/* Samples `step` apart among those of a surface's row, from or to samples of a plane. */
static void pack(uint8_t *to, const uint16_t *from, unsigned count, unsigned step, unsigned bytes, unsigned shift)
{
    uint16_t *wide = (uint16_t *)(void *)to;
    if (bytes == 2)
        for (unsigned i = 0; i < count; i++)
            wide[i * step] = (uint16_t)(from[i] << shift);
    else
        for (unsigned i = 0; i < count; i++)
            to[i * step] = (uint8_t)from[i];
}

static void unpack(uint16_t *to, const uint8_t *from, unsigned count, unsigned step, unsigned bytes, unsigned shift)
{
    const uint16_t *wide = (const uint16_t *)(const void *)from;
    if (bytes == 2)
        for (unsigned i = 0; i < count; i++)
            to[i] = wide[i * step] >> shift;
    else
        for (unsigned i = 0; i < count; i++)
            to[i] = from[i * step];
}

static unsigned next(unsigned x, unsigned width)
{
    return width - x < PIECE ? width - x : PIECE;
}

/* -- tiles of bytes -------------------------------------------------------------------------------------------------- */

/* Rows of a tile, and where they go or come from in the host's planes; `b`: the second plane of interleaved chroma. */
struct tile {
    uint8_t *bytes;
    uint16_t *a, *b;
    size_t stride;
    unsigned rows, columns;
};

VECTORIZED static void load_luma(const struct tile *t)
{
    for (unsigned y = 0; y < t->rows; y++)
        for (unsigned c = 0; c < t->columns; c++) {
            const uint8_t *from = t->bytes + c * COLUMN_BYTES + y * TILE_COLUMN;
            uint16_t *to = t->a + y * t->stride + c * TILE_COLUMN;
            for (int x = 0; x < TILE_COLUMN; x++)
                to[x] = from[x];
        }
}

VECTORIZED static void load_chroma(const struct tile *t)
{
    for (unsigned y = 0; y < t->rows; y++)
        for (unsigned c = 0; c < t->columns; c++) {
            const uint16_t *restrict from = (const uint16_t *)(const void *)(t->bytes + c * COLUMN_BYTES + y * TILE_COLUMN);
            uint16_t *restrict a = t->a + y * t->stride + c * TILE_COLUMN / 2, *restrict b = t->b + y * t->stride + c * TILE_COLUMN / 2;
            for (int x = 0; x < TILE_COLUMN / 2; x++) {
                a[x] = from[x] & 255;
                b[x] = from[x] >> 8;
            }
        }
}

VECTORIZED static void store_luma(const struct tile *t)
{
    for (unsigned y = 0; y < t->rows; y++)
        for (unsigned c = 0; c < t->columns; c++) {
            uint8_t *restrict to = t->bytes + c * COLUMN_BYTES + y * TILE_COLUMN;
            const uint16_t *restrict from = t->a + y * t->stride + c * TILE_COLUMN;
            for (int x = 0; x < TILE_COLUMN; x++)
                to[x] = (uint8_t)from[x];
        }
}

VECTORIZED static void store_chroma(const struct tile *t)
{
    for (unsigned y = 0; y < t->rows; y++)
        for (unsigned c = 0; c < t->columns; c++) {
            uint16_t *restrict to = (uint16_t *)(void *)(t->bytes + c * COLUMN_BYTES + y * TILE_COLUMN);
            const uint16_t *restrict a = t->a + y * t->stride + c * TILE_COLUMN / 2, *restrict b = t->b + y * t->stride + c * TILE_COLUMN / 2;
            for (int x = 0; x < TILE_COLUMN / 2; x++)
                to[x] = (uint16_t)(a[x] | b[x] << 8);
        }
}

/* Samples of a row that columns of whole tiles have; the others go row by row. */
static unsigned in_columns(const struct surface *s, unsigned width, unsigned step)
{
    int is_y = s->run == TILE_COLUMN && 1u << s->tile_rows == TILE_ROWS && 1u << s->tile_columns == TILE_COLUMN * TILE_COLUMNS;
    is_y = is_y && s->row[1] == TILE_COLUMN && s->column[TILE_COLUMN] == COLUMN_BYTES;
    if (s->sample_bytes != 1 || !is_y || s->base & (TILE_BYTES - 1) || (int64_t)width * step > s->pitch)
        return 0;
    return width & ~(TILE_COLUMN / step - 1);
}

/* Moves rows `y` to `end` of samples from `start`, where a tile begins, to `width`, of luma or of both chroma planes. */
static void move_columns(const struct picture *p, const struct surface *s, const struct frame *f, int is_chroma, unsigned start, unsigned width,
                         unsigned y, unsigned end, void (*move)(const struct tile *))
{
    const struct plane *a = &f->plane[is_chroma], *b = &f->plane[2];
    unsigned step = is_chroma ? 2 : 1;
    for (unsigned rows; y < end; y += rows) {
        uint64_t row = (uint64_t)y + (is_chroma ? s->chroma_row[0] : 0), line = s->base + (row / TILE_ROWS) * TILE_ROWS * (uint64_t)s->pitch;
        rows = TILE_ROWS - (unsigned)(row % TILE_ROWS);
        rows = rows < end - y ? rows : end - y;
        line += start * step / (TILE_COLUMN * TILE_COLUMNS) * (uint64_t)TILE_BYTES;
        for (unsigned x = start, columns; x < width; x += columns * TILE_COLUMN / step, line += TILE_BYTES) {
            columns = (width - x) * step / TILE_COLUMN;
            columns = columns < TILE_COLUMNS ? columns : TILE_COLUMNS;
            uint8_t *memory = graphics_memory(p->memory.table, line & p->memory.address_mask) + row % TILE_ROWS * TILE_COLUMN;
            move(&(struct tile){memory, row_of(a, y) + x, row_of(b, y) + x, a->stride, rows, columns});
        }
    }
}

/* -- rows ----------------------------------------------------------------------------------------------------------- */

static void store_row(const struct picture *p, const struct surface *s, unsigned plane, unsigned y, unsigned x)
{
    _Alignas(16) uint8_t bytes[2 * 2 * PIECE];
    unsigned size = s->sample_bytes, shift = 16 - p->sample_bits, step = plane ? 2 : 1, width = p->frame.plane[plane].width;
    int64_t row = (int64_t)y + (plane ? s->chroma_row[0] : 0);
    for (unsigned count; x < width; x += count) {
        count = next(x, width);
        pack(bytes, row_of(&p->frame.plane[plane], y) + x, count, step, size, shift);
        if (plane)
            pack(bytes + size, row_of(&p->frame.plane[2], y) + x, count, step, size, shift);
        write_surface_row(&p->memory, s, (int64_t)x * step * size, row, bytes, (int64_t)count * step * size);
    }
}

static unsigned least(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

/* Writes rows of blocks to a surface; luma ends where chroma begins. */
void store_deep_rows(const struct picture *p, const struct surface *s, unsigned first, unsigned end)
{
    if (!s->base)
        return;
    for (unsigned plane = 0; plane < 2; plane++) {
        unsigned y = first * p->block_height >> plane, last = plane ? end * p->block_height >> 1 : least(end * p->block_height, s->chroma_row[0]);
        unsigned width = in_columns(s, p->frame.plane[plane].width, plane + 1);
        if (y < last)
            move_columns(p, s, &p->frame, plane, 0, width, y, last, plane ? store_chroma : store_luma);
        for (; y < last && width < p->frame.plane[plane].width; y++)
            store_row(p, s, plane, y, width);
    }
}

static void load_row(const struct picture *p, const struct surface *s, const struct frame *f, unsigned plane, unsigned y, unsigned x, unsigned end)
{
    _Alignas(16) uint8_t bytes[2 * 2 * PIECE];
    unsigned size = s->sample_bytes, shift = 16 - p->sample_bits, step = plane ? 2 : 1;
    int64_t row = (int64_t)y + (plane ? s->chroma_row[0] : 0);
    for (unsigned count; x < end; x += count) {
        count = next(x, end);
        read_surface_row(&p->memory, s, (int64_t)x * step * size, row, bytes, (int64_t)count * step * size);
        unpack(row_of(&f->plane[plane], y) + x, bytes, count, step, size, shift);
        if (plane)
            unpack(row_of(&f->plane[2], y) + x, bytes + size, count, step, size, shift);
    }
}

/* Reads a part of a frame from a surface. */
void load_deep(const struct picture *p, const struct surface *s, const struct frame *f, const struct rectangle *part)
{
    const struct plane *luma = &f->plane[0];
    for (unsigned plane = 0; plane < 2; plane++) {
        const struct plane *to = &f->plane[plane];
        unsigned x = part->x >> plane, end = plane_place(part->end_x, luma->width, to->width, plane), y = part->y >> plane;
        unsigned bottom = plane_place(part->end_y, luma->height, to->height, plane), columns = least(in_columns(s, to->width, plane + 1), end);
        if (x < columns)
            move_columns(p, s, f, (int)plane, x, columns, y, bottom, plane ? load_chroma : load_luma);
        for (x = columns > x ? columns : x; y < bottom && x < end; y++)
            load_row(p, s, f, plane, y, x, end);
    }
}
