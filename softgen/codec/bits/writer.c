/* Streams that an encoder writes (writer.h). */
#include "writer.h"

/* Writes what waits to memory, as far as there is room. */
void writer_flush(struct writer *w)
{
    struct surface line = {.base = w->base, .pitch = INT64_MAX};
    uint64_t left = w->room - w->stored, count = w->waiting < left ? w->waiting : left;
    write_surface_row(&w->memory, &line, (int64_t)w->stored, 0, w->bytes, (int64_t)count);
    w->stored += count;
    w->waiting = 0;
}

static void put(struct writer *w, uint8_t byte)
{
    if (w->waiting == WRITER_ROOM)
        writer_flush(w);
    w->bytes[w->waiting++] = byte;
    w->size++;
}

void writer_byte(struct writer *w, uint8_t byte)
{
    if (w->escape == NAL_ESCAPE && w->zeros >= 2 && byte <= 3) {
        put(w, 3);
        w->zeros = 0;
    }
    put(w, byte);
    w->zeros = byte ? 0 : w->zeros + 1;
    if (w->escape == JPEG_ESCAPE && byte == 0xff)
        put(w, 0);
}

void writer_ue(struct writer *w, uint32_t value)
{
    unsigned length = 31 - (unsigned)__builtin_clz(value + 1);
    writer_bits(w, 0, length);
    writer_bits(w, (value + 1) >> (length / 2 + 1), length + 1 - (length / 2 + 1));
    writer_bits(w, value + 1, length / 2 + 1);
}

void writer_se(struct writer *w, int32_t value)
{
    writer_ue(w, value > 0 ? 2 * (uint32_t)value - 1 : 2 * (uint32_t)-value);
}

/* Entry: bits of a command; those of a byte that is not whole wait for more. */
ENTRY int64_t writer_insert(struct insertion *i, void *record)
{
    struct writer *w = i->writer;
    uint64_t whole = i->bits / 8;
    (void)record;
    for (uint64_t at = 0; at < whole; at++) {
        w->escape = at < i->plain ? NO_ESCAPE : i->escape;
        writer_bits(w, i->bytes[at], 8);
    }
    w->escape = i->escape;
    if (i->bits % 8)
        writer_bits(w, i->bytes[whole] >> (8 - i->bits % 8), (unsigned)(i->bits % 8));
    return 0;
}

/* Entry: what waits is written to memory, but for bits that are no byte. */
ENTRY int64_t writer_finish(struct writer *w, void *record)
{
    (void)record;
    writer_flush(w);
    return 0;
}
