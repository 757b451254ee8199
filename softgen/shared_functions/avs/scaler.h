/* The video scaler of compiled code: a media surface with a scaler state, and a message (scaler.c, bound.py). */
#ifndef SOFTGEN_SCALER_H
#define SOFTGEN_SCALER_H

#include <stdint.h>

enum { SCALED_COLUMNS = 16, SCALED_ROWS = 4, SCALER_TAPS = 8, SCALER_MIDDLE = 3, SCALER_PHASES = 32 };
enum { SCALER_CHANNELS = 4, SCALED_WORDS = SCALER_CHANNELS * SCALED_COLUMNS * SCALED_ROWS, SCALED_REGISTERS = 16 };

/* A channel of a surface: sample (x, y) is at byte `offset + step * x` of row `row + y`. */
struct scaler_channel {
    uint32_t held;  /* 0: the format lacks it, it is `value` everywhere */
    uint32_t value;
    uint32_t table; /* of the state's coefficients */
    uint32_t shift_x, shift_y; /* log2 of luma samples for one */
    uint32_t reserved;
    int64_t across; /* tiles in a row; linear: bytes */
    int64_t row, offset, step, width, height;
    double siting_x, siting_y; /* of chroma, in luma samples */
};

/* A surface and a state. In a tile a byte is at column[x] + row[y] (surface/tile_table.py). */
struct scaler_surface {
    uint64_t sample; /* scaler_sample() */
    const uint64_t *table; /* memory/address_space.py */
    uint64_t address_mask, base;
    int64_t across;
    const uint32_t *column, *row; /* linear: none */
    uint32_t tile_columns, tile_rows; /* log2 of a tile's bytes and rows */
    int64_t run; /* bytes of a tile's row that are one after another, a power of two */
    int64_t width, height;
    const int16_t *taps; /* by table, axis, phase and tap */
    const int16_t *bilinear; /* by phase and tap */
    uint32_t sampler; /* the index of the state */
    uint32_t mirrored, sharpness, adaptive_x, adaptive_y, shuffled, edges;
    uint32_t derivative_4, derivative_8, transition_4, transition_8, reserved;
    struct scaler_channel channels[SCALER_CHANNELS];
};

/* A message, and what comes back. */
struct scaler_message {
    uint32_t header[8], parameters[8];
    uint16_t words[SCALED_WORDS];
    uint32_t given[SCALED_REGISTERS]; /* bytes of each register that an answer has */
    uint32_t refused; /* nothing was done: the interpreter says why */
};

#endif
