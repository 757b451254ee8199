/* Sequences of integers in ASTC blocks, and endpoints of high dynamic range. */
#ifndef SOFTGEN_SURFACE_ASTC_H
#define SOFTGEN_SURFACE_ASTC_H

#include "coded.h"

/* Numbers that a sequence may have: a bit field and a trit or a quint of each. */
struct range { uint8_t bits, trits, quints; uint16_t levels; };

extern const struct range astc_ranges[21]; /* in the order of their levels */

enum { CHANNELS = 4 };

/* Both ends of a block's colours. */
struct ends { int32_t of[2][CHANNELS]; };

/* How texels are decoded: low dynamic range, sRGB, high dynamic range. */
enum { LDR, SRGB, HDR };

uint32_t sequence_bits(const struct range *r, uint32_t count);

/* `reversed`: the block is read backwards, from its last bit. */
void read_sequence(const uint32_t *words, uint32_t first, const struct range *r, uint32_t count, int reversed, uint8_t *into);

uint32_t hdr_ends(const int32_t *v, uint32_t mode, struct ends *e);
uint32_t hdr_half(uint32_t value);
uint32_t unorm_half(uint32_t value);

#endif
