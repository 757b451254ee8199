/* Surfaces and host planes: rows of samples in tiled graphics memory, read and written (codec.h). */
#include <stddef.h>
#include <string.h>

#include "codec.h"
#include "../memory/graphics_memory.h"

enum { PAGE = 4096, PIECE = 256, RUN = 16, FOUR = 4 }; /* PIECE: samples of a plane that are interleaved at once; RUN: bytes of a row in a Y tile */

static uint64_t address_of(const struct graphics *memory, const struct surface *s, int64_t x, int64_t y)
{
    int64_t offset;
    if (!s->run)
        offset = y * s->pitch + x;
    else {
        int64_t across = s->pitch >> s->tile_columns, tile = (y >> s->tile_rows) * across + (x >> s->tile_columns);
        offset = tile * ((int64_t)1 << (s->tile_columns + s->tile_rows)) + s->column[x & (((int64_t)1 << s->tile_columns) - 1)]
               + s->row[y & (((int64_t)1 << s->tile_rows) - 1)];
    }
    return (s->base + (uint64_t)offset) & memory->address_mask;
}

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Bytes from x on that are contiguous in a page. */
static int64_t piece(const struct surface *s, uint64_t address, int64_t x, int64_t left)
{
    int64_t size = smaller(left, PAGE - (int64_t)(address & (PAGE - 1)));
    return s->run ? smaller(size, (int64_t)s->run - (x & ((int64_t)s->run - 1))) : size;
}

/* Bytes of a row that exist: a row ends where the pitch does. */
static int64_t within(const struct surface *s, int64_t x, int64_t count)
{
    return smaller(count, s->pitch - x);
}

/* Runs of a tiled row that can be copied without looking for the address of each: from x on, where a run of 16 bytes begins, as many whole
 * runs as the row has there. The row's tiles follow one another in host memory, as the row crosses no border of the table's 4 GiB parts. */
struct runs {
    uint8_t *host; /* of the row's first tile, but for the column */
    int64_t x, count; /* bytes */
};

static struct runs whole_runs(const struct graphics *memory, const struct surface *s, int64_t x, int64_t y, int64_t count)
{
    int64_t size = (int64_t)1 << (s->tile_columns + s->tile_rows);
    struct runs r = {NULL, x, count & ~(int64_t)(RUN - 1)};
    if (s->run != RUN || x & (RUN - 1) || x < 0 || y < 0 || r.count <= 0)
        return (struct runs){NULL, x, 0};
    uint64_t first = address_of(memory, s, x, y), last = address_of(memory, s, x + r.count - RUN, y) + RUN - 1;
    uint64_t before = (uint64_t)((x >> s->tile_columns) * size) + s->column[x & (((int64_t)1 << s->tile_columns) - 1)];
    if (first > last || first >> 32 != last >> 32)
        return (struct runs){NULL, x, 0};
    r.host = graphics_memory(memory->table, first) - before;
    return r;
}

static inline uint8_t *run_at(const struct surface *s, const struct runs *r, int64_t done)
{
    int64_t x = r->x + done;
    return r->host + ((x >> s->tile_columns) << (s->tile_columns + s->tile_rows)) + s->column[x & (((int64_t)1 << s->tile_columns) - 1)];
}

void write_surface_row(const struct graphics *memory, const struct surface *s, int64_t x, int64_t y, const uint8_t *from, int64_t count)
{
    count = within(s, x, count);
    struct runs r = whole_runs(memory, s, x, y, count);
    for (int64_t done = 0; done < r.count; done += RUN)
        memcpy(run_at(s, &r, done), from + done, RUN);
    for (int64_t done = r.count, size; done < count; done += size) {
        uint64_t address = address_of(memory, s, x + done, y);
        size = piece(s, address, x + done, count - done);
        memcpy(graphics_memory(memory->table, address), from + done, (size_t)size);
    }
}

void read_surface_row(const struct graphics *memory, const struct surface *s, int64_t x, int64_t y, uint8_t *to, int64_t count)
{
    int64_t there = within(s, x, count);
    struct runs r = whole_runs(memory, s, x, y, there);
    for (int64_t done = 0; done < r.count; done += RUN)
        memcpy(to + done, run_at(s, &r, done), RUN);
    for (int64_t done = r.count, size; done < there; done += size) {
        uint64_t address = address_of(memory, s, x + done, y);
        size = piece(s, address, x + done, there - done);
        memcpy(to + done, graphics_memory(memory->table, address), (size_t)size);
    }
    if (there < count)
        memset(to + (there > 0 ? there : 0), 0, (size_t)(count - (there > 0 ? there : 0)));
}

/* Four rows of a surface at once, from or to rows of samples: in a Y tile they share a line of the host's cache for each run, which rows one
 * by one would have lost again. Whether the surface has them so. */
static inline __attribute__((always_inline)) int four_rows(const struct graphics *memory, const struct surface *s, int64_t x, int64_t y,
                                                           uint8_t *rows, size_t stride, int64_t count, int writes)
{
    if (s->run != RUN || s->tile_rows < 2 || y & (FOUR - 1) || count & (RUN - 1) || within(s, x, count) != count)
        return 0;
    struct runs first = whole_runs(memory, s, x, y, count);
    if (first.count != count)
        return 0;
    for (int i = 1; i < FOUR; i++) {
        struct runs next = whole_runs(memory, s, x, y + i, count);
        if (next.count != count || next.host != first.host + i * RUN)
            return 0;
    }
    for (int64_t done = 0; done < count; done += RUN) {
        uint8_t *run = run_at(s, &first, done), *row = rows + done;
        for (int i = 0; i < FOUR; i++, run += RUN, row += stride)
            memcpy(writes ? run : row, writes ? row : run, RUN);
    }
    return 1;
}

static void read_rows(const struct graphics *memory, const struct surface *s, int64_t x, int64_t y, uint8_t *rows, size_t stride, int64_t count,
                      unsigned height)
{
    unsigned i = 0;
    while (i + FOUR <= height && four_rows(memory, s, x, y + i, rows + i * stride, stride, count, 0))
        i += FOUR;
    for (; i < height; i++)
        read_surface_row(memory, s, x, y + i, rows + i * stride, count);
}

/* -- rows of a picture ---------------------------------------------------------------------------------------------- */

static int64_t row_in_memory(const struct surface *s, unsigned y)
{
    return (int64_t)s->first_row + (int64_t)y * s->row_step;
}

static const uint8_t *sample_row(const struct plane *p, unsigned y)
{
    return p->samples + (size_t)y * p->stride;
}

/* Rows of a plane that the surface has place for: the next plane begins below them. */
static int fits(const struct surface *s, int plane, int64_t row)
{
    const uint32_t *start = s->chroma_row;
    if (s->layout > INTERLEAVED_CHROMA)
        return 1;
    if (!plane)
        return row < start[0] && (s->layout != PLANAR || row < start[1] || start[1] == 0);
    return s->layout != PLANAR || start[plane - 1] > start[2 - plane] || start[plane - 1] + row < start[2 - plane];
}

static void interleave(uint8_t *restrict to, const uint8_t *restrict a, const uint8_t *restrict b, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        to[2 * i] = a[i];
        to[2 * i + 1] = b[i];
    }
}

static void write_chroma(const struct graphics *memory, const struct surface *s, const struct frame *f, unsigned x, unsigned end, unsigned y)
{
    uint8_t pairs[2 * PIECE];
    int64_t row = row_in_memory(s, y);
    if (s->layout == PLANAR) {
        for (int plane = 1; plane < PLANES; plane++)
            if (fits(s, plane, row))
                write_surface_row(memory, s, x, s->chroma_row[plane - 1] + row, sample_row(&f->plane[plane], y) + x, end - x);
        return;
    }
    for (unsigned count; x < end; x += count) {
        count = end - x < PIECE ? end - x : PIECE;
        interleave(pairs, sample_row(&f->plane[1], y) + x, sample_row(&f->plane[2], y) + x, count);
        write_surface_row(memory, s, 2 * (int64_t)x, s->chroma_row[0] + row, pairs, 2 * (int64_t)count);
    }
}

/* A row of 4:2:2 in one plane: luma at every second byte, chroma between. */
static void write_packed(const struct graphics *memory, const struct surface *s, const struct frame *f, unsigned x, unsigned end, unsigned y)
{
    uint8_t bytes[2 * PIECE];
    unsigned luma = s->layout == PACKED_UYVY;
    const uint8_t *cb = sample_row(&f->plane[1], y), *cr = sample_row(&f->plane[2], y), *from = sample_row(&f->plane[0], y);
    for (unsigned count; x < end; x += count) {
        count = end - x < PIECE ? end - x : PIECE;
        for (unsigned i = 0; i < count; i++) {
            bytes[2 * i + luma] = from[x + i];
            bytes[2 * i + 1 - luma] = ((x + i) & 1 ? cr : cb)[(x + i) >> 1];
        }
        write_surface_row(memory, s, 2 * (int64_t)x, row_in_memory(s, y), bytes, 2 * (int64_t)count);
    }
}

static void store_luma(const struct picture *p, const struct surface *s, unsigned x, unsigned end, unsigned y, unsigned rows)
{
    const struct plane *plane = &p->frame.plane[0];
    for (unsigned i = 0; i < rows; i++) {
        int64_t row = row_in_memory(s, y + i);
        uint8_t *from = plane->samples + (size_t)(y + i) * plane->stride + x;
        if (i + FOUR <= rows && s->row_step == 1 && fits(s, 0, row + FOUR - 1)
            && four_rows(&p->memory, s, x, row, from, plane->stride, end - x, 1))
            i += FOUR - 1;
        else if (fits(s, 0, row))
            write_surface_row(&p->memory, s, x, row, from, end - x);
    }
}

static void store_run(const struct picture *p, const struct surface *s, unsigned mb_row, unsigned first, unsigned end)
{
    unsigned x = first * p->block_width, stop = end * p->block_width, y = mb_row * p->block_height;
    if (s->layout == PACKED_YUYV || s->layout == PACKED_UYVY)
        for (unsigned i = 0; i < p->block_height; i++)
            write_packed(&p->memory, s, &p->frame, x, stop, y + i);
    else
        store_luma(p, s, x, stop, y, p->block_height);
    if (s->layout == PLANAR || s->layout == INTERLEAVED_CHROMA)
        for (unsigned i = 0; i < p->block_height >> p->shift_y; i++)
            write_chroma(&p->memory, s, &p->frame, x >> p->shift_x, stop >> p->shift_x, (y >> p->shift_y) + i);
}

/* Writes rows of macroblocks to a surface; macroblocks that are missing stay as they are there. */
void store_rows(struct picture *p, const struct surface *s, unsigned first_row, unsigned end_row)
{
    for (unsigned row = first_row; row < end_row && s->base; row++)
        for (unsigned x = 0, end; x < p->width; x = end) {
            const uint8_t *state = p->state + (size_t)row * p->width;
            for (end = x; end < p->width && state[end] != MISSING; end++)
                continue;
            if (end > x)
                store_run(p, s, row, x, end);
            else
                end++;
        }
}

/* Entry: the rows of a picture that are left, some at a time; answers how many rows of macroblocks are left. */
ENTRY int64_t codec_store(struct picture *p, void *record)
{
    unsigned end = p->next_row + 64 < p->height ? p->next_row + 64 : p->height;
    (void)record;
    for (int i = 0; i < 2; i++)
        if (p->sample_bits)
            store_deep_rows(p, &p->surfaces[i], p->next_row, end);
        else
            store_rows(p, &p->surfaces[i], p->next_row, end);
    p->next_row = end;
    return (int64_t)(p->height - end);
}

/* -- references ----------------------------------------------------------------------------------------------------- */

static void split(uint8_t *restrict a, uint8_t *restrict b, const uint8_t *restrict pairs, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        a[i] = pairs[2 * i];
        b[i] = pairs[2 * i + 1];
    }
}

/* Up to four rows of pairs from `y` on, those from `x` to `end`. */
static void split_pairs(const struct graphics *memory, const struct surface *s, const struct frame *f, unsigned x, unsigned end, unsigned y,
                        unsigned bottom)
{
    uint8_t pairs[FOUR][2 * PIECE];
    const struct plane *p = &f->plane[1];
    unsigned rows = bottom - y < FOUR ? bottom - y : FOUR;
    for (unsigned count; x < end; x += count) {
        count = end - x < PIECE ? end - x : PIECE;
        int64_t at = 2 * (int64_t)x, row = (int64_t)s->chroma_row[0] + y;
        if (rows < FOUR || !four_rows(memory, s, at, row, pairs[0], sizeof pairs[0], 2 * (int64_t)count, 0))
            for (unsigned i = 0; i < rows; i++)
                read_surface_row(memory, s, at, row + i, pairs[i], 2 * (int64_t)count);
        for (unsigned i = 0; i < rows; i++)
            split(f->plane[1].samples + (size_t)(y + i) * p->stride + x, f->plane[2].samples + (size_t)(y + i) * f->plane[2].stride + x, pairs[i],
                  count);
    }
}

/* A row of 4:2:2 in one plane, of which chroma has every second pair of bytes. */
static void split_packed(const struct graphics *memory, const struct surface *s, const struct frame *f, unsigned y)
{
    uint8_t bytes[2 * PIECE];
    unsigned luma = s->layout == PACKED_UYVY, width = f->plane[0].width;
    uint8_t *to[PLANES];
    for (int i = 0; i < PLANES; i++)
        to[i] = f->plane[i].samples + (size_t)y * f->plane[i].stride;
    for (unsigned x = 0, count; x < width; x += count) {
        count = width - x < PIECE ? width - x : PIECE;
        read_surface_row(memory, s, 2 * (int64_t)x, y, bytes, 2 * (int64_t)((count + 1) & ~1u));
        for (unsigned i = 0; i < count; i++)
            to[0][x + i] = bytes[2 * i + luma];
        for (unsigned i = 0; i < count; i += 2) {
            to[1][(x + i) / 2] = bytes[2 * i + 1 - luma];
            to[2][(x + i) / 2] = bytes[2 * i + 3 - luma];
        }
    }
}

static void load_pairs(const struct picture *p, const struct surface *s, const struct frame *f, const struct rectangle *part)
{
    const struct plane *luma = &f->plane[0], *chroma = &f->plane[1];
    unsigned x = part->x >> p->shift_x, end = plane_place(part->end_x, luma->width, chroma->width, p->shift_x);
    unsigned bottom = plane_place(part->end_y, luma->height, chroma->height, p->shift_y);
    for (unsigned y = part->y >> p->shift_y; y < bottom; y += FOUR)
        split_pairs(&p->memory, s, f, x, end, y, bottom);
}

/* Reads a part of a frame; of packed surfaces its whole rows. */
static void load(const struct picture *p, const struct surface *s, const struct frame *f, const struct rectangle *part)
{
    const struct plane *luma = &f->plane[0];
    int packed = s->layout == PACKED_YUYV || s->layout == PACKED_UYVY;
    for (unsigned y = part->y; packed && y < part->end_y; y++)
        split_packed(&p->memory, s, f, y);
    if (!packed)
        read_rows(&p->memory, s, part->x, part->y, luma->samples + (size_t)part->y * luma->stride + part->x, luma->stride,
                  part->end_x - part->x, part->end_y - part->y);
    if (s->layout == INTERLEAVED_CHROMA)
        load_pairs(p, s, f, part);
}

static void load_part(const struct picture *p, const struct surface *s, const struct frame *f, const struct rectangle *part)
{
    if (p->sample_bits)
        load_deep(p, s, f, part);
    else
        load(p, s, f, part);
}

static struct surface surface_of(const struct picture *p, const struct reference *r)
{
    struct surface s = p->source;
    s.base = r->address;
    return s;
}

/* A reference's samples, all of them, read from memory when the first block refers to it; null where there is none. */
const struct frame *reference_frame(struct picture *p, unsigned index)
{
    struct reference *r = &p->references[index];
    if (r->state == NO_REFERENCE)
        return NULL;
    if (r->state == IN_MEMORY) {
        struct surface s = surface_of(p, r);
        struct rectangle all = whole_frame(&r->frame);
        load_part(p, &s, &r->frame, &all);
        r->state = LOADED;
    }
    return &r->frame;
}

/* -- areas of references ---------------------------------------------------------------------------------------------- */

/* Reads those areas of a row of areas that `missing` has. */
static void load_areas(const struct picture *p, const struct surface *s, const struct frame *f, unsigned row, uint64_t missing)
{
    const struct plane *luma = &f->plane[0];
    unsigned y = row * AREA_HEIGHT, bottom = y + AREA_HEIGHT < luma->height ? y + AREA_HEIGHT : luma->height;
    while (missing) {
        unsigned first = (unsigned)__builtin_ctzll(missing), count = ~(missing >> first) ? (unsigned)__builtin_ctzll(~(missing >> first)) : 64;
        unsigned end = (first + count) * AREA_WIDTH;
        load_part(p, s, f, &(struct rectangle){first * AREA_WIDTH, y, end < luma->width ? end : luma->width, bottom});
        missing &= count < 64 ? ~(((UINT64_C(1) << count) - 1) << first) : 0;
    }
}

/* Reads what is missing of a block with AREA_MARGIN samples about it; beyond the frame, its edge. */
void load_block(const struct picture *p, const struct surface *s, const struct frame *f, uint64_t *areas, int x, int y, int width, int height)
{
    int right = (int)f->plane[0].width - 1, bottom = (int)f->plane[0].height - 1;
    unsigned first = (unsigned)clamp(x - AREA_MARGIN, 0, right) / AREA_WIDTH, last = (unsigned)clamp(x + width + AREA_MARGIN, 0, right) / AREA_WIDTH;
    unsigned row = (unsigned)clamp(y - AREA_MARGIN, 0, bottom) / AREA_HEIGHT, end = (unsigned)clamp(y + height + AREA_MARGIN, 0, bottom) / AREA_HEIGHT;
    uint64_t wanted = (UINT64_C(2) << last) - (UINT64_C(1) << first);
    for (; row <= end; row++)
        if (wanted & ~areas[row]) {
            load_areas(p, s, f, row, wanted & ~areas[row]);
            areas[row] |= wanted; /* not where the read was left */
        }
}

/* A reference of which at least a block's samples have been read; null where there is none. */
const struct frame *reference_block(struct picture *p, unsigned index, int x, int y, int width, int height)
{
    struct reference *r = &p->references[index];
    if (r->state != IN_MEMORY || !r->areas)
        return reference_frame(p, index);
    struct surface s = surface_of(p, r);
    load_block(p, &s, &r->frame, r->areas, x, y, width, height);
    return &r->frame;
}
