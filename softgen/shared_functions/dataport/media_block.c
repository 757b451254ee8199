/* Media block messages of compiled code: what media.py does, on surfaces that were resolved (bound_media.py).
 *
 * What media.py refuses is left to it before anything is done. Runs under the guard (memory/guard.c) and may be left at any byte; the
 * context's note says which bytes were touched. */
#include "media_block.h"

#include <stddef.h>
#include <string.h>

#include "../../lanes/bytecode/memory.h"
#include "../../memory/graphics_memory.h"
#include "../context.h"

#define ENTRY __attribute__((visibility("default"))) /* called by compiled code */

enum { NARROWEST = 4, PAGE = 4096, REGISTER = 32, WIDEST_MASKED = 32 };
enum mode { EVERYTHING, PIXEL_MASK, BYTE_MASK };

/* What a header asks for. */
struct block {
    int64_t x, y, width, height, step, first;
    int64_t held; /* bytes of a row in registers */
    uint32_t mode, mask, start, pieces;
};

static struct block block_of(const struct media_surface *s, const struct media_message *message, uint64_t lines)
{
    uint32_t what = message->header[2];
    struct block b = {.x = (int32_t)message->header[0], .y = (int32_t)message->header[1], .width = (what & 63) + 1,
                      .height = (what >> 16 & 63) + 1, .step = s->step, .first = s->first, .held = NARROWEST, .mode = what >> 30,
                      .mask = message->header[3], .start = what >> 24 & 31, .pieces = (what >> 8 & 3) + 1};
    if (lines & OVERRIDES_LINES) {
        b.step = lines & EVERY_OTHER_LINE ? 2 : 1;
        b.first = lines & EVERY_OTHER_LINE && lines & ODD_LINES;
    }
    return b;
}

static int too_large(struct block *b)
{
    while (b->held < b->width)
        b->held *= 2;
    return b->held * b->height > LARGEST_BLOCK;
}

static int64_t clamped(int64_t value, int64_t most)
{
    value = value < 0 ? 0 : value;
    return value > most ? most : value;
}

/* The line of the surface for a line of a block: media.nearest(). */
static int64_t line_of(const struct media_surface *s, const struct block *b, int64_t y, uint32_t boundary)
{
    int64_t lines = (s->height - b->first + b->step - 1) / b->step, last = s->height - 1;
    int whole = boundary != PROGRESSIVE_EDGE && boundary != INTERLACED_EDGE;
    if ((y >= 0 && y < lines) || whole || (b->step == 2 && boundary == INTERLACED_EDGE))
        return clamped(y, lines - 1) * b->step + b->first + s->top;
    if (boundary == PROGRESSIVE_EDGE)
        return clamped(y * b->step + b->first, last) + s->top;
    if (y < 0)
        return (y & 1) + s->top;
    last -= (last & 1) != (y & 1);
    return (last < 0 ? 0 : last) + s->top;
}

/* The byte of a surface's row for one of a block. */
static int64_t column_of(const struct media_surface *s, int64_t x)
{
    int64_t rest = x % s->texel;
    rest += rest < 0 ? s->texel : 0;
    return (x < 0 ? rest : x >= s->row_bytes ? rest + s->row_bytes - s->texel : x) + s->left;
}

static uint64_t address_of(const struct media_surface *s, int64_t x, int64_t y)
{
    int64_t offset = y * s->across + x;
    if (s->column) {
        int64_t tile = (y >> s->tile_rows) * s->across + (x >> s->tile_columns);
        offset = tile * ((int64_t)1 << (s->tile_columns + s->tile_rows)) + s->column[x & (((int64_t)1 << s->tile_columns) - 1)]
               + s->row[y & (((int64_t)1 << s->tile_rows) - 1)];
    }
    return (s->base + (uint64_t)offset) & s->address_mask;
}

/* Host address of bytes that are about to be touched, which the note has from now on. */
static uint8_t *touched(struct context_head *context, const struct media_surface *s, uint64_t address, uint64_t size)
{
    context->mask = 1ull << NOTE_TABLE | 1ull << NOTE_BLOCK | size << SIZE_SHIFT;
    context->base = address;
    __asm__ volatile("" ::: "memory");
    return graphics_memory(s->table, address);
}

/* Bytes of a row from x on that are inside of it, and one after another in one page: their address. */
static int64_t in_one_piece(const struct media_surface *s, int64_t x, int64_t y, int64_t count, uint64_t *address)
{
    if (x < 0 || x >= s->row_bytes)
        return 0;
    *address = address_of(s, x + s->left, y);
    int64_t most = PAGE - (int64_t)(*address % PAGE), run = s->run - ((x + s->left) & (s->run - 1));
    most = s->column && run < most ? run : most;
    most = s->row_bytes - x < most ? s->row_bytes - x : most;
    return count < most ? count : most;
}

/* Whether a mask leaves a byte: media.masked(). */
static int left(const struct block *b, int64_t x, int64_t y)
{
    if (b->mode == PIXEL_MASK)
        return b->mask >> ((x >> 4) * 16 + (y >> 1) * 8 + (x >> 3 & 1) * 4 + (y & 1) * 2 + (x >> 2 & 1)) & 1;
    return b->mode != BYTE_MASK || b->mask >> x & 1;
}

static void read_rows(struct context_head *context, const struct media_surface *s, struct media_message *message, const struct block *b)
{
    for (int64_t line = 0; line < b->height; line++) {
        uint8_t *into = message->bytes + line * b->held;
        int64_t y = line_of(s, b, b->y + line, s->boundary);
        for (int64_t x = 0, count; x < b->width; x += count) {
            uint64_t address;
            count = in_one_piece(s, b->x + x, y, b->width - x, &address);
            if (count)
                memcpy(into + x, touched(context, s, address, (uint64_t)count), (size_t)count);
            else {
                into[x] = *touched(context, s, address_of(s, column_of(s, b->x + x), y), 1);
                count = 1;
            }
        }
    }
}

/* Which bytes of each register an answer has. */
static void give_rows(struct media_message *message, const struct block *b)
{
    memset(message->given, 0, sizeof message->given);
    for (int64_t line = 0; line < b->height; line++)
        for (int64_t at = line * b->held, end = at + b->width; at < end;) {
            int64_t bit = at % REGISTER, count = end - at < REGISTER - bit ? end - at : REGISTER - bit;
            message->given[at / REGISTER] |= (uint32_t)(((uint64_t)1 << count) - 1) << bit;
            at += count;
        }
}

/* A read whose answer has room for so many bytes; `on`: the channels that send. */
ENTRY void media_block_read(struct context_head *context, const struct media_surface *s, struct media_message *message, uint64_t on,
                            uint64_t lines, uint64_t room)
{
    struct block b = block_of(s, message, lines);
    message->refused = too_large(&b) || b.pieces != 1 || b.start || (uint64_t)(b.held * (b.height - 1) + b.width) > room;
    if (message->refused)
        return;
    memset(message->bytes, 0, sizeof message->bytes);
    give_rows(message, &b);
    if (!on)
        memset(message->given, 0, sizeof message->given);
    else if (!s->null)
        read_rows(context, s, message, &b);
}

/* A write that has so many bytes. */
ENTRY void media_block_write(struct context_head *context, const struct media_surface *s, struct media_message *message, uint64_t on,
                             uint64_t lines, uint64_t room)
{
    struct block b = block_of(s, message, lines);
    if (b.mode == PIXEL_MASK) {
        b.width = 32;
        b.height = 4;
    }
    message->refused = too_large(&b) || b.mode > BYTE_MASK || (b.mode && b.width > WIDEST_MASKED)
                    || (uint64_t)(b.held * (b.height - 1) + b.width) > room;
    if (message->refused || !on || s->null)
        return;
    int64_t count = (s->height - b.first + b.step - 1) / b.step;
    for (int64_t line = 0; line < b.height; line++) {
        const uint8_t *from = message->bytes + line * b.held;
        if (b.y + line < 0 || b.y + line >= count)
            continue;
        int64_t y = line_of(s, &b, b.y + line, 0);
        for (int64_t x = 0, count; x < b.width; x += count ? count : 1) {
            uint64_t address;
            count = in_one_piece(s, b.x + x, y, b.mode ? 1 : b.width - x, &address);
            if (count && left(&b, x, line))
                memcpy(touched(context, s, address, (uint64_t)count), from + x, (size_t)count);
        }
    }
}
