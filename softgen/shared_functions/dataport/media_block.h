/* Media blocks of compiled code: a surface as their messages see it, and the message (media_block.c, bound_media.py). */
#ifndef SOFTGEN_MEDIA_BLOCK_H
#define SOFTGEN_MEDIA_BLOCK_H

#include <stdint.h>

enum { PROGRESSIVE_EDGE = 2, INTERLACED_EDGE = 3 }; /* media boundary pixel modes; others repeat the last line */
enum { LARGEST_BLOCK = 256, BLOCK_REGISTERS = 8 };  /* bytes of a block, and registers that have them */
enum { OVERRIDES_LINES = 1, EVERY_OTHER_LINE = 2, ODD_LINES = 4 }; /* what a descriptor says of lines */

/* A surface. In a tile a byte is at column[x] + row[y] (surface/tile_table.py). */
struct media_surface {
    uint64_t read, write; /* media_block_read(), media_block_write() */
    const uint64_t *table; /* memory/address_space.py */
    uint64_t address_mask, base;
    int64_t across; /* tiles in a row; linear: bytes */
    const uint32_t *column, *row; /* linear: none */
    uint32_t tile_columns, tile_rows; /* log2 of a tile's bytes and rows */
    int64_t run; /* bytes of a tile's row that are one after another, a power of two */
    int64_t row_bytes, height, left, top; /* where pixels begin, in bytes and lines */
    int64_t texel; /* bytes that repeat beyond an edge */
    int64_t step, first; /* the lines that count */
    uint32_t boundary; /* media boundary pixel mode */
    uint32_t null; /* it reads zero and keeps nothing */
};

/* A message: of a write the bytes, or of a read where they come to. */
struct media_message {
    uint32_t header[8];
    uint8_t bytes[LARGEST_BLOCK];
    uint32_t given[BLOCK_REGISTERS]; /* bytes of each register that an answer has */
    uint32_t refused; /* nothing was done: the interpreter says why */
};

#endif
