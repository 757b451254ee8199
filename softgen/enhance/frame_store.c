/* Frames from and to surfaces: entries enhance_load, enhance_store and enhance_resample (enhance.h). */
#include <string.h>

#include "enhance.h"

static struct surface walk_of(const struct enhance_surface *s, const struct channel *c)
{
    struct surface walk = s->walk;
    if (c->half_pitch)
        walk.pitch /= 2;
    return walk;
}

static uint64_t row_bytes(const struct channel *c, const struct sample_plane *p)
{
    return c->offset + (uint64_t)(p->width - 1) * c->step + c->bytes;
}

/* Entry: the samples of a surface. Channels that the surface lacks stay as they are. */
ENTRY int64_t enhance_load(struct transfer *t, void *record)
{
    (void)record;
    for (int n = 0; n < CHANNELS; n++) {
        const struct channel *c = &t->surface.channels[n];
        const struct sample_plane *p = &t->frame.planes[n];
        struct surface walk = walk_of(&t->surface, c);
        for (uint32_t y = 0; c->present && p->samples && y < p->height; y++) {
            uint16_t *to = plane_row(p, y);
            const uint8_t *from = t->line + c->offset;
            read_surface_row(&t->memory, &walk, 0, (int64_t)c->row + y, t->line, (int64_t)row_bytes(c, p));
            for (uint32_t x = 0; x < p->width; x++, from += c->step)
                to[x] = (uint16_t)(c->bytes == 2 ? from[0] | from[1] << BYTE_SHIFT : from[0] << BYTE_SHIFT);
        }
    }
    return 0;
}

static void put(uint8_t *to, uint32_t bytes, uint32_t value)
{
    if (bytes == 2) {
        to[0] = (uint8_t)value;
        to[1] = (uint8_t)(value >> BYTE_SHIFT);
    } else
        to[0] = (uint8_t)(((value > 0xFF7F ? 0xFF7F : value) + 0x80) >> BYTE_SHIFT);
}

/* Whether channel n shares rows with an earlier one: it was written with it. */
static int written_before(const struct channel *channels, int n)
{
    for (int k = 0; k < n; k++)
        if (channels[k].present && channels[k].row == channels[n].row)
            return 1;
    return 0;
}

/* A row of the surface with all channels that are in it, from luma column `first_x` to `end_x`. */
static void store_row(struct transfer *t, int leader, uint32_t y, uint32_t luma_width)
{
    const struct channel *channels = t->surface.channels;
    uint64_t first = UINT64_MAX, end = 0;
    for (int n = leader; n < CHANNELS; n++) {
        const struct channel *c = &channels[n];
        const struct sample_plane *p = &t->frame.planes[n], *shape = p->samples ? p : &t->frame.planes[LUMA];
        if (!c->present || c->row != channels[leader].row)
            continue;
        uint32_t x = (uint32_t)((uint64_t)t->first_x * shape->width / luma_width);
        uint32_t stop = (uint32_t)(((uint64_t)t->end_x * shape->width + luma_width - 1) / luma_width);
        for (uint32_t i = x; i < stop; i++)
            put(t->line + c->offset + (uint64_t)i * c->step, c->bytes, p->samples ? plane_row(p, y)[i] : t->fill);
        if (x < stop) {
            uint64_t low = c->offset + (uint64_t)x * c->step, high = c->offset + (uint64_t)(stop - 1) * c->step + c->bytes;
            first = low < first ? low : first;
            end = high > end ? high : end;
        }
    }
    struct surface walk = walk_of(&t->surface, &channels[leader]);
    if (first < end)
        write_surface_row(&t->memory, &walk, (int64_t)first, (int64_t)channels[leader].row + y, t->line + first, (int64_t)(end - first));
}

/* Entry: a frame written to its surface. */
ENTRY int64_t enhance_store(struct transfer *t, void *record)
{
    const struct channel *channels = t->surface.channels;
    (void)record;
    for (int n = 0; n < CHANNELS; n++)
        if (channels[n].present && !written_before(channels, n)) {
            uint32_t height = t->frame.planes[n].height;
            for (uint32_t y = 0; y < height; y++)
                store_row(t, n, y, t->frame.planes[LUMA].width);
        }
    return 0;
}

/* -- sampling of chroma ---------------------------------------------------------------------------------------------- */

static uint32_t ratio(uint32_t large, uint32_t small)
{
    return large > small && small ? (large + small - 1) / small : 1;
}

/* The mean of the samples that one is made of, or their first. */
static uint16_t gathered(const struct sample_plane *p, uint32_t x, uint32_t y, uint32_t columns, uint32_t rows, int average)
{
    uint32_t sum = 0;
    if (!average)
        return plane_row(p, y)[x < p->width ? x : p->width - 1];
    for (uint32_t j = 0; j < rows; j++)
        for (uint32_t i = 0; i < columns; i++)
            sum += plane_row(p, (int64_t)y + j)[x + i < p->width ? x + i : p->width - 1];
    return (uint16_t)((sum + columns * rows / 2) / (columns * rows));
}

/* Entry: each plane copied, its samples repeated, or several of them made one. */
ENTRY int64_t enhance_resample(struct resampling *r, void *record)
{
    (void)record;
    for (int n = 0; n < CHANNELS; n++) {
        const struct sample_plane *from = &r->from.planes[n], *to = &r->to.planes[n];
        if (!from->samples || !to->samples)
            continue;
        uint32_t up_x = ratio(to->width, from->width), up_y = ratio(to->height, from->height);
        uint32_t down_x = ratio(from->width, to->width), down_y = ratio(from->height, to->height);
        for (uint32_t y = 0; y < to->height; y++)
            for (uint32_t x = 0; x < to->width; x++)
                plane_row(to, y)[x] = gathered(from, x / up_x * down_x, y / up_y * down_y, down_x, down_y, (int)r->average);
    }
    return 0;
}
