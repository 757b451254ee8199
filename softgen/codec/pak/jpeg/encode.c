/* JPEG scans: samples of the source to Huffman codes (T.81 annex F.1, jpeg.h). */
#include <stdlib.h>

#include "../../transform/transform.h"
#include "jpeg.h"

enum { RESTART = 0xd0, END_OF_IMAGE = 0xd9, QUANTISER_BITS = 16 + 3, LEVEL_SHIFT = 128, ZERO_RUN = 151, CODES_OF_RUN = 10, LAST_RUN = 15 };

static void samples_of(const struct jpeg_encoder *e, int component, unsigned x, unsigned y, int16_t out[64])
{
    const struct jpeg_source *s = &e->component[component];
    const struct plane *p = &e->picture->references[0].frame.plane[component];
    for (unsigned j = 0; j < 8; j++) {
        unsigned row = 8 * y + j < s->height ? 8 * y + j : s->height - 1;
        const uint8_t *from = p->samples + (size_t)row * p->stride;
        for (unsigned i = 0; i < 8; i++)
            out[8 * j + i] = (int16_t)(from[8 * x + i < s->width ? 8 * x + i : s->width - 1] - LEVEL_SHIFT);
    }
}

static void quantise(const struct jpeg_source *s, const int32_t in[64], int32_t out[64])
{
    for (int i = 0; i < 64; i++) {
        int at = zigzag_scan[i], value = in[at];
        int64_t product = (int64_t)abs(value) * s->reciprocals[8 * (at & 7) + (at >> 3)];
        int level = (int)((product + (1 << (QUANTISER_BITS - 1))) >> QUANTISER_BITS);
        out[i] = value < 0 ? -level : level;
    }
}

static int size_of(int value)
{
    return value ? 32 - __builtin_clz((unsigned)abs(value)) : 0;
}

/* A code, and the bits that say which of its values it is. */
static void put_code(struct writer *w, const struct jpeg_code *c, int value, int size)
{
    writer_bits(w, c->code, c->length);
    writer_bits(w, (uint32_t)(value < 0 ? value - 1 : value), (unsigned)size);
}

static void put_levels(struct jpeg_encoder *e, int component, const int32_t levels[64])
{
    const struct jpeg_source *s = &e->component[component];
    const struct jpeg_code *dc = e->codes[s->dc_table].dc, *ac = e->codes[s->ac_table].ac;
    int change = clamp(levels[0] - e->dc[component], -2047, 2047), size = size_of(change), run = 0;
    e->dc[component] += change;
    put_code(e->writer, &dc[size], change, size);
    for (int i = 1; i < 64; i++) {
        int level = clamp(levels[i], -1023, 1023);
        if (!level) {
            run++;
            continue;
        }
        for (; run > LAST_RUN; run -= LAST_RUN + 1)
            put_code(e->writer, &ac[ZERO_RUN], 0, 0);
        size = size_of(level);
        put_code(e->writer, &ac[CODES_OF_RUN * run + size + (run == LAST_RUN)], level, size);
        run = 0;
    }
    if (run)
        put_code(e->writer, &ac[0], 0, 0);
}

static void mcu(struct jpeg_encoder *e, unsigned number)
{
    int16_t samples[64];
    int32_t coefficients[64], levels[64];
    for (unsigned i = 0; i < e->components; i++) {
        const struct jpeg_source *s = &e->component[i];
        unsigned left = number % e->mcus_across * s->across, top = number / e->mcus_across * s->down;
        for (unsigned j = 0; j < s->across * s->down; j++) {
            samples_of(e, (int)i, left + j % s->across, top + j / s->across, samples);
            forward_dct(coefficients, samples);
            quantise(s, coefficients, levels);
            put_levels(e, (int)i, levels);
        }
    }
}

static void marker(struct writer *w, uint8_t code)
{
    writer_align(w, 1);
    w->escape = NO_ESCAPE;
    writer_byte(w, 0xff);
    writer_byte(w, code);
    w->escape = JPEG_ESCAPE;
}

static void restart(struct jpeg_encoder *e)
{
    marker(e->writer, (uint8_t)(RESTART + e->next_restart));
    e->next_restart = (e->next_restart + 1) & 7;
    for (int i = 0; i < PLANES; i++)
        e->dc[i] = 0;
}

/* Entry: a row of MCUs; answers how many are left. */
ENTRY int64_t jpeg_encode(struct jpeg_encoder *e, void *record)
{
    uint64_t start = writer_position(e->writer);
    (void)record;
    reference_frame(e->picture, 0);
    e->writer->escape = JPEG_ESCAPE;
    for (unsigned i = 0; i < e->mcus_across && e->next_mcu < e->mcu_count; i++, e->next_mcu++) {
        if (e->restart_interval && e->next_mcu && e->next_mcu % e->restart_interval == 0)
            restart(e);
        mcu(e, e->next_mcu);
    }
    if (e->next_mcu == e->mcu_count) {
        writer_align(e->writer, 1);
        e->bits += writer_position(e->writer) - start;
        if (e->last)
            marker(e->writer, END_OF_IMAGE);
        return 0;
    }
    e->bits += writer_position(e->writer) - start;
    return e->mcu_count - e->next_mcu;
}
