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

/* The forward DCT of JPEG and MPEG-2: 8 times the standards' coefficients. */
ENTRY void forward_dct(int32_t out[64], const int16_t in[64]);

/* H.264: the residual of a block, rounded. */
void avc_inverse_4x4(const int32_t block[16], int32_t residual[16]);
void avc_inverse_8x8(const int32_t block[64], int32_t residual[64]);

/* H.264: a block added to samples, and cleared; DC coefficients in place. */
ENTRY void avc_add_4x4(uint8_t *to, ptrdiff_t stride, int32_t block[16]);
ENTRY void avc_add_8x8(uint8_t *to, ptrdiff_t stride, int32_t block[64]);
void avc_luma_dc(int32_t dc[16]);
void avc_chroma_dc(int32_t dc[4]);

/* The forward transforms, in place; those of DC coefficients are their own inverses but for a factor. */
ENTRY void avc_forward_4x4(int32_t block[16]);
ENTRY void avc_forward_8x8(int32_t block[64]);

/* VP8: DC coefficients of 16 blocks of luma; a block added to samples, and cleared. */
void vp8_luma_dc(const int16_t in[16], int16_t blocks[][16]);
ENTRY void vp8_add_4x4(uint8_t *to, ptrdiff_t stride, int16_t block[16]);

/* VC-1: the residual of a block of 4 or 8 samples across and down. */
void vc1_inverse(const int16_t *in, int pitch, int width, int height, int16_t *to, int stride);

/* The two samples on each side of an edge of eight: `before` is at the second one before it. */
void vc1_smooth_edge(int16_t *before, int16_t *after, ptrdiff_t across, ptrdiff_t along);

/* VP9: a block of coefficients, column by column, added to samples, and cleared. */
struct vp9_transform {
    unsigned size; /* 4x4 to 32x32 */
    unsigned type; /* DCT, ADST down, ADST across, both */
    unsigned reach; /* positions of the coefficients, or'ed */
    unsigned lossless, depth; /* bits of a sample */
};
ENTRY void vp9_add(uint16_t *to, ptrdiff_t stride, int32_t *block, const struct vp9_transform *t);

#endif
