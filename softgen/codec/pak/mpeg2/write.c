/* Syntax of MPEG-2 slices and macroblocks (6.2.4 to 6.2.6). */
#include <stdlib.h>
#include <string.h>

#include "mpeg2_pak.h"

enum { START_CODE = 0x000001, RUN_BITS = 6, LEVEL_BITS = 12 };

static void put(struct mpeg2_encoder *e, struct vlc_code code)
{
    writer_bits(e->writer, code.code, (unsigned)code.length);
}

void mpeg2_write_slice_header(struct mpeg2_encoder *e, unsigned row, unsigned code)
{
    writer_align(e->writer, 0);
    writer_bits(e->writer, START_CODE, 24);
    writer_bits(e->writer, row + 1, 8);
    writer_bits(e->writer, code, 5);
    if (e->intra_slice_flag) {
        writer_bits(e->writer, 1, 1);
        writer_bits(e->writer, e->intra_slice, 1);
        writer_bits(e->writer, 0, 7);
    }
    writer_bits(e->writer, 0, 1);
}

/* -- vectors ----------------------------------------------------------------------------------------------------------- */

int mpeg2_in_range(const struct mpeg2_encoder *e, int direction)
{
    for (int t = 0; t < 2; t++) {
        int f_code = e->slice->f_code[direction][t], value = e->d.motion.vector[0][direction][t];
        if (f_code < 1 || f_code > 9 || value < -(16 << (f_code - 1)) || value >= 16 << (f_code - 1))
            return 0;
    }
    return 1;
}

static void write_vector(struct mpeg2_encoder *e, int direction)
{
    for (int t = 0; t < 2; t++) {
        int size = e->slice->f_code[direction][t] - 1, limit = 16 << size;
        int *predictor = &e->d.predictor[0][direction][t], value = e->d.motion.vector[0][direction][t], change = value - *predictor;
        change = change < -limit ? change + 2 * limit : change >= limit ? change - 2 * limit : change;
        int rest = abs(change) - 1;
        put(e, mpeg2_code_of(MPEG2_VECTORS, change ? (rest >> size) + 1 : 0));
        if (change) {
            writer_bits(e->writer, change < 0, 1);
            writer_bits(e->writer, (uint32_t)rest, (unsigned)size);
        }
        *predictor = e->d.predictor[1][direction][t] = value;
    }
}

/* -- blocks ------------------------------------------------------------------------------------------------------------ */

static void write_dc(struct mpeg2_encoder *e, int plane, int level)
{
    int change = level - e->d.dc[plane], size = change ? 32 - __builtin_clz((unsigned)abs(change)) : 0;
    put(e, mpeg2_code_of(plane ? MPEG2_DC_CHROMA : MPEG2_DC_LUMA, size));
    writer_bits(e->writer, (uint32_t)(change < 0 ? change + (1 << size) - 1 : change), (unsigned)size);
    e->d.dc[plane] = level;
}

static void write_level(struct mpeg2_encoder *e, enum mpeg2_table table, int run, int level)
{
    struct vlc_code code = abs(level) < 64 ? mpeg2_code_of(table, run << 6 | abs(level)) : (struct vlc_code){0};
    if (code.length) {
        put(e, code);
        writer_bits(e->writer, level < 0, 1);
        return;
    }
    put(e, mpeg2_code_of(table, COEFFICIENT_ESCAPE));
    writer_bits(e->writer, (uint32_t)run, RUN_BITS);
    writer_bits(e->writer, (uint32_t)level, LEVEL_BITS);
}

static void write_block(struct mpeg2_encoder *e, const int16_t levels[64], int plane, int intra)
{
    enum mpeg2_table table = intra && e->slice->intra_vlc ? MPEG2_INTRA_LEVELS : MPEG2_LEVELS;
    int run = 0, first = intra;
    if (intra)
        write_dc(e, plane, levels[0]);
    else if (abs(levels[0]) == 1) { /* the first coefficient has a code of its own (7.2.2.2) */
        writer_bits(e->writer, levels[0] < 0 ? 3 : 2, 2);
        first = 1;
    }
    for (int i = first; i < 64; i++)
        if (levels[i]) {
            write_level(e, table, run, levels[i]);
            run = 0;
        } else
            run++;
    put(e, mpeg2_code_of(table, END_OF_BLOCK));
}

/* -- macroblocks ------------------------------------------------------------------------------------------------------- */

static void write_increment(struct mpeg2_encoder *e, unsigned increment)
{
    for (; increment > 33; increment -= 33)
        put(e, mpeg2_code_of(MPEG2_INCREMENT, ADDRESS_ESCAPE));
    put(e, mpeg2_code_of(MPEG2_INCREMENT, (int)increment));
}

void mpeg2_write_macroblock(struct mpeg2_encoder *e, const struct mpeg2_coded *c, unsigned code)
{
    int intra = (c->type & INTRA) != 0, choice = !e->slice->frame_pred_frame_dct;
    write_increment(e, e->skipped + 1);
    e->skipped = 0;
    put(e, mpeg2_code_of((enum mpeg2_table)(MPEG2_TYPES_OF_I + (int)e->slice->type - 1), c->type));
    if (choice && c->type & (FORWARD | BACKWARD))
        writer_bits(e->writer, WHOLE, 2);
    if (choice && c->type & (INTRA | PATTERN))
        writer_bits(e->writer, (uint32_t)e->d.field_dct, 1);
    if (c->type & QUANT)
        writer_bits(e->writer, code, 5);
    for (int direction = 0; direction < 2; direction++)
        if (c->type & (direction ? BACKWARD : FORWARD))
            write_vector(e, direction);
    if (c->type & PATTERN)
        put(e, mpeg2_code_of(MPEG2_PATTERNS, c->pattern));
    for (int block = 0; block < 6; block++)
        if (intra || (c->type & PATTERN && c->pattern >> (5 - block) & 1))
            write_block(e, c->levels[block], block < 4 ? 0 : block - 3, intra);
}
