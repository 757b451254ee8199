/* Sequences of integers in ASTC blocks. */
#ifndef SOFTGEN_SURFACE_ASTC_H
#define SOFTGEN_SURFACE_ASTC_H

#include "coded.h"

struct range { uint8_t bits, trits, quints; uint16_t levels; };

extern const struct range astc_ranges[21]; /* in the order of their levels */

uint32_t sequence_bits(const struct range *r, uint32_t count);

/* `reversed`: the block is read backwards, from its last bit. */
void read_sequence(const uint32_t *words, uint32_t first, const struct range *r, uint32_t count, int reversed, uint8_t *into);

#endif
