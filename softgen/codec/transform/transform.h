/* Inverse transforms of blocks of coefficients. */
#ifndef SOFTGEN_CODEC_TRANSFORM_H
#define SOFTGEN_CODEC_TRANSFORM_H

#include <stddef.h>
#include <stdint.h>

#include "../codec.h"

/* Raster positions of an 8x8 block in zigzag order. */
extern const uint8_t zigzag_scan[64];

/* The 8x8 inverse DCT of MPEG-2 and JPEG, in place: rows, then columns; 16 bits are kept in between. */
ENTRY void simple_idct(int16_t block[64]);
void put_block(uint8_t *to, size_t stride, const int16_t block[64]);
void add_block(uint8_t *to, size_t stride, const int16_t block[64]);

#endif
