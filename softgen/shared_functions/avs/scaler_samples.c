/* Rows of samples for blocks of the video scaler: in pieces that are one after another in memory, those beyond edges repeated.
 *
 * Runs under the guard (memory/guard.c) and may be left at any byte; the context's note says which bytes are being read. */
#include "scaler_samples.h"

#include <string.h>
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "../../lanes/bytecode/memory.h"
#include "../../memory/graphics_memory.h"

/* Bytes of a row that are one after another in memory, in all rows of a block. */
struct piece {
    int64_t offset; /* what the first one's column adds to an address */
    uint32_t at, size; /* in `raw` */
    uint32_t skip; /* bytes before them that are one after another, too: with those, SHORT are copied at once */
};

static int64_t inside(int64_t at, int64_t count, uint32_t mirrored)
{
    if (mirrored) {
        at = (at < 0 ? -1 - at : at) % (2 * count);
        at = at >= count ? 2 * count - 1 - at : at;
    }
    return at < 0 ? 0 : at >= count ? count - 1 : at;
}

/* What a byte's column, and its row, add to its address. */
static int64_t column_offset(const struct scaler_surface *s, int64_t byte)
{
    if (!s->column)
        return byte;
    return (byte >> s->tile_columns << (s->tile_columns + s->tile_rows)) + s->column[byte & (((int64_t)1 << s->tile_columns) - 1)];
}

static int64_t row_offset(const struct scaler_surface *s, const struct scaler_channel *c, int64_t line)
{
    if (!s->column)
        return line * c->across;
    return ((line >> s->tile_rows) * c->across << (s->tile_columns + s->tile_rows)) + s->row[line & (((int64_t)1 << s->tile_rows) - 1)];
}

/* Copies bytes, page by page; the note has them from now on. */
static inline void copy(struct context_head *context, const struct scaler_surface *s, int64_t offset, uint8_t *into, uint32_t size)
{
    uint64_t address = (s->base + (uint64_t)offset) & s->address_mask;
    uint32_t left = PAGE - (uint32_t)(address % PAGE), now = size < left ? size : left;
    context->mask = 1ull << NOTE_TABLE | 1ull << NOTE_BLOCK | (uint64_t)now << SIZE_SHIFT;
    context->base = address;
    __asm__ volatile("" ::: "memory");
    memcpy(into, graphics_memory(s->table, address), now);
    if (now < size)
        copy(context, s, offset + now, into + now, size - now);
}

/* The rows that a block needs, each once. */
static void choose_rows(const struct scaler_surface *s, const struct scaler_channel *c, const struct axis *ys, struct block_samples *b)
{
    int64_t low = inside(ys->first[0], c->height, s->mirrored);
    int64_t high = inside(ys->first[ys->count - 1] + SCALER_TAPS - 1, c->height, s->mirrored);
    b->count = 0;
    if (!s->mirrored && ys->straight && high - low < LINES) {
        b->count = (uint32_t)(high - low + 1);
        for (uint32_t n = 0; n < b->count; n++)
            b->at[n] = low + n;
        for (uint32_t j = 0; j < ys->count; j++)
            for (int tap = 0; tap < SCALER_TAPS; tap++)
                b->line[j][tap] = (uint32_t)(inside(ys->first[j] + tap, c->height, 0) - low);
        return;
    }
    for (uint32_t j = 0; j < ys->count; j++)
        for (int tap = 0; tap < SCALER_TAPS; tap++) {
            int64_t y = inside(ys->first[j] + tap, c->height, s->mirrored);
            uint32_t n = b->count;
            while (n > 0 && b->at[n - 1] != y)
                n--;
            if (!n) {
                b->at[b->count++] = y;
                n = b->count;
            }
            b->line[j][tap] = n - 1;
        }
}

/* Where the taps of columns are in a row. */
static void choose_columns(const struct scaler_surface *s, const struct scaler_channel *c, const struct axis *xs, struct block_samples *b)
{
    int64_t low = xs->first[0], high = low;
    for (int i = 1; i < SCALED_COLUMNS; i++) {
        low = xs->first[i] < low ? xs->first[i] : low;
        high = xs->first[i] > high ? xs->first[i] : high;
    }
    int64_t end = high + SCALER_TAPS;
    b->low = low;
    b->inside_low = low < 0 ? 0 : low;
    b->inside_end = end > c->width ? c->width : end;
    b->far = end - low > SPAN || c->step > MOST_STEP || b->inside_low >= b->inside_end;
    for (int64_t x = low; !b->far && x < end; x++) {
        int64_t at = x >= b->inside_low && x < b->inside_end ? x : inside(x, c->width, s->mirrored);
        b->far = at < b->inside_low || at >= b->inside_end;
    }
    for (int i = 0; i < SCALED_COLUMNS; i++)
        b->place[i] = b->far ? (uint32_t)(i * SCALER_TAPS) : (uint32_t)(xs->first[i] - low);
}

/* A piece of all rows, with all SHORT bytes that it is a part of: those are in one page. */
static void copy_column(struct context_head *context, const struct scaler_surface *s, struct block_samples *b, const int64_t *rows,
                        const struct piece *p)
{
    context->mask = 1ull << NOTE_TABLE | 1ull << NOTE_BLOCK | (uint64_t)p->size << SIZE_SHIFT;
    for (uint32_t n = 0; n < b->count; n++) {
        uint64_t address = (s->base + (uint64_t)(rows[n] + p->offset)) & s->address_mask;
        context->base = address;
        __asm__ volatile("" ::: "memory");
        memcpy(b->raw[n] + p->at - p->skip, graphics_memory(s->table, address) - p->skip, SHORT);
    }
}

/* Reads bytes of all rows. */
static void read_raw(struct context_head *context, const struct scaler_surface *s, const struct scaler_channel *c, struct block_samples *b,
                     int64_t from, int64_t bytes)
{
    struct piece pieces[PIECES];
    int64_t rows[LINES];
    uint32_t count = 0, first = (uint32_t)(HEAD + from - b->from);
    int64_t run = s->run > SHORT ? SHORT : s->run;
    for (int64_t at = 0, size; at < bytes; at += size) {
        uint32_t skip = s->column ? (uint32_t)((from + at) & (run - 1)) : 0;
        size = s->column ? run - skip : bytes;
        size = size < bytes - at ? size : bytes - at;
        pieces[count++] = (struct piece){column_offset(s, from + at), first + (uint32_t)at, (uint32_t)size, skip};
    }
    for (uint32_t n = 0; n < b->count; n++)
        rows[n] = row_offset(s, c, c->row + b->at[n]);
    for (const struct piece *p = pieces; p < pieces + count; p++)
        if (s->column && run == SHORT && !(s->base % SHORT))
            copy_column(context, s, b, rows, p);
        else
            for (uint32_t n = 0; n < b->count; n++)
                copy(context, s, rows[n] + p->offset, b->raw[n] + p->at, p->size);
}

/* Every second byte, and up to SHORT - 1 more. */
static inline void every_other(uint8_t *into, const uint8_t *from, uint32_t count)
{
#if defined(__SSE2__)
    const __m128i even = _mm_set1_epi16(0xff);
    for (uint32_t x = 0; x < count; x += SHORT, from += 2 * SHORT) {
        __m128i a = _mm_and_si128(_mm_loadu_si128((const __m128i *)from), even);
        __m128i b = _mm_and_si128(_mm_loadu_si128((const __m128i *)(from + SHORT)), even);
        _mm_storeu_si128((__m128i *)(into + x), _mm_packus_epi16(a, b));
    }
#else
    for (uint32_t x = 0; x < count; x++)
        into[x] = from[2 * x];
#endif
}

/* A channel's samples of the rows that were read, and those beyond the edges. */
static void pick_samples(const struct scaler_surface *s, const struct scaler_channel *c, struct block_samples *b,
                         int64_t from, uint32_t columns)
{
    uint32_t first = (uint32_t)(b->inside_low - b->low), count = (uint32_t)(b->inside_end - b->inside_low);
    for (uint32_t n = 0; n < b->count; n++) {
        uint8_t *row = b->rows[n], *into = row + first;
        const uint8_t *raw = b->raw[n] + HEAD + (from - b->from);
        b->row[n] = c->step == 1 && count >= columns ? raw : row;
        if (b->row[n] == raw)
            continue;
        if (c->step == 1)
            memcpy(into, raw, count);
        else if (c->step == 2)
            every_other(into, raw, count);
        else
            for (uint32_t x = 0; x < count; x++)
                into[x] = raw[c->step * x];
        for (uint32_t x = 0; x < first; x++)
            row[x] = row[inside(b->low + x, c->width, s->mirrored) - b->low];
        for (uint32_t x = first + count; x < columns; x++)
            row[x] = row[inside(b->low + x, c->width, s->mirrored) - b->low];
    }
}

/* Samples of columns that are far from each other, one by one. */
static void read_far(struct context_head *context, const struct scaler_surface *s, const struct scaler_channel *c, const struct axis *xs,
                     struct block_samples *b)
{
    for (uint32_t n = 0; n < b->count; n++)
        b->row[n] = b->rows[n];
    for (uint32_t n = 0; n < b->count; n++)
        for (int i = 0; i < SCALED_COLUMNS; i++)
            for (int tap = 0; tap < SCALER_TAPS; tap++) {
                int64_t x = inside(xs->first[i] + tap, c->width, s->mirrored);
                copy(context, s, row_offset(s, c, c->row + b->at[n]) + column_offset(s, c->offset + c->step * x),
                     b->rows[n] + i * SCALER_TAPS + tap, 1);
            }
}

void read_block(struct context_head *context, const struct scaler_surface *s, const struct scaler_channel *c, const struct axis *xs,
                const struct axis *ys, struct block_samples *b, const struct scaler_channel *known)
{
    if (!known) {
        choose_rows(s, c, ys, b);
        choose_columns(s, c, xs, b);
    }
    if (b->far) {
        read_far(context, s, c, xs, b);
        return;
    }
    int64_t from = c->offset + c->step * b->inside_low, more = from - b->from;
    int64_t bytes = (b->inside_end - b->inside_low - 1) * c->step + 1;
    if (!known || known->row != c->row || known->step != c->step || more <= -c->step || more >= c->step) {
        b->from = from;
        read_raw(context, s, c, b, from, bytes);
    } else if (more > 0) /* what lies between samples of another channel is there, but at the ends */
        read_raw(context, s, c, b, b->from + bytes, more);
    else if (more < 0)
        read_raw(context, s, c, b, from, -more);
    uint32_t most = 0;
    for (int i = 0; i < SCALED_COLUMNS; i++)
        most = b->place[i] > most ? b->place[i] : most;
    pick_samples(s, c, b, from, most + SCALER_TAPS);
}
