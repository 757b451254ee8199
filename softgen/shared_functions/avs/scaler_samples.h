/* The samples that a block of the video scaler needs, read from a surface (scaler_samples.c). */
#ifndef SOFTGEN_SCALER_SAMPLES_H
#define SOFTGEN_SCALER_SAMPLES_H

#include "../context.h"
#include "scaler.h"

enum { LINES = SCALED_ROWS * SCALER_TAPS, SPAN = 160, MOST_STEP = 4, PAGE = 4096 }; /* SPAN: samples that are read together */
enum { PIECES = SPAN * MOST_STEP, SHORT = 16, HEAD = 2 * SHORT, TAIL = 2 * SHORT }; /* room before and after what is read of a row */

/* Places along an axis: the samples that their first taps meet, wherever the surface ends, and their phases. */
struct axis {
    int64_t first[SCALED_COLUMNS];
    uint32_t phase[SCALED_COLUMNS], count;
    int straight; /* no place is before the one before it, or leaves samples out */
};

/* The samples that a block needs: row by row, the taps of column i from `place` on. `line`: rows by row of the block and tap down. */
struct block_samples {
    uint8_t raw[LINES][HEAD + SPAN * MOST_STEP + TAIL], rows[LINES][SPAN + TAIL];
    const uint8_t *row[LINES]; /* into these */
    int64_t low, inside_low, inside_end; /* the first sample of a row, those that the surface has */
    int64_t from; /* the byte of the surface's rows that is in `raw` at HEAD */
    int64_t at[LINES]; /* lines of the surface */
    uint32_t place[SCALED_COLUMNS], line[SCALED_ROWS][SCALER_TAPS], count;
    int far; /* columns are too far from each other to be read together */
};

/* Reads the samples of a channel. `known`: the channel before, where its places are the same. */
__attribute__((visibility("hidden")))
void read_block(struct context_head *context, const struct scaler_surface *s, const struct scaler_channel *c, const struct axis *xs,
                const struct axis *ys, struct block_samples *b, const struct scaler_channel *known);

#endif
