/* Surfaces of deep pictures: 16 bits a sample in host memory, 8 or 16 in graphics memory, chroma interleaved (codec.h). */
#include <string.h>

#include "codec.h"

enum { PIECE = 256 }; /* samples that are converted at once */

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

static void store_row(const struct picture *p, const struct surface *s, unsigned plane, unsigned y)
{
    _Alignas(16) uint8_t bytes[2 * 2 * PIECE];
    unsigned size = s->sample_bytes, shift = 16 - p->sample_bits, step = plane ? 2 : 1, width = p->frame.plane[plane].width;
    int64_t row = (int64_t)y + (plane ? s->chroma_row[0] : 0);
    for (unsigned x = 0, count; x < width; x += count) {
        count = next(x, width);
        pack(bytes, row_of(&p->frame.plane[plane], y) + x, count, step, size, shift);
        if (plane)
            pack(bytes + size, row_of(&p->frame.plane[2], y) + x, count, step, size, shift);
        write_surface_row(&p->memory, s, (int64_t)x * step * size, row, bytes, (int64_t)count * step * size);
    }
}

/* Writes rows of blocks to a surface; luma ends where chroma begins. */
void store_deep_rows(const struct picture *p, const struct surface *s, unsigned first, unsigned end)
{
    if (!s->base)
        return;
    for (unsigned y = first * p->block_height; y < end * p->block_height && y < s->chroma_row[0]; y++)
        store_row(p, s, 0, y);
    for (unsigned y = first * p->block_height >> 1; y < end * p->block_height >> 1; y++)
        store_row(p, s, 1, y);
}

static void load_row(const struct picture *p, const struct surface *s, const struct frame *f, unsigned plane, unsigned y)
{
    _Alignas(16) uint8_t bytes[2 * 2 * PIECE];
    unsigned size = s->sample_bytes, shift = 16 - p->sample_bits, step = plane ? 2 : 1, width = f->plane[plane].width;
    int64_t row = (int64_t)y + (plane ? s->chroma_row[0] : 0);
    for (unsigned x = 0, count; x < width; x += count) {
        count = next(x, width);
        read_surface_row(&p->memory, s, (int64_t)x * step * size, row, bytes, (int64_t)count * step * size);
        unpack(row_of(&f->plane[plane], y) + x, bytes, count, step, size, shift);
        if (plane)
            unpack(row_of(&f->plane[2], y) + x, bytes + size, count, step, size, shift);
    }
}

/* Reads a whole frame from a surface. */
void load_deep(const struct picture *p, const struct surface *s, const struct frame *f)
{
    for (unsigned plane = 0; plane < 2; plane++)
        for (unsigned y = 0; y < f->plane[plane].height; y++)
            load_row(p, s, f, plane, y);
}
