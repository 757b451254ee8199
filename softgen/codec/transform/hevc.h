/* The inverse transforms of HEVC (H.265 8.6.4): blocks of coefficients to residuals, both in raster order. */
#ifndef SOFTGEN_CODEC_TRANSFORM_HEVC_H
#define SOFTGEN_CODEC_TRANSFORM_HEVC_H

#include <stdint.h>

#ifndef ENTRY
#define ENTRY __attribute__((visibility("default"))) /* called by Python */
#endif

/* The DCT of 4 to 32. Coefficients beyond `columns` and `rows`, both multiples of 4, are zero. `shift` is 20 less the depth. */
ENTRY void hevc_transform(int16_t *out, const int16_t *in, int log2, int columns, int rows, int shift);

/* The residual of a block whose first coefficient alone is not zero: that of each sample. */
int hevc_mean(int coefficient, int shift);

/* The DST of luma that is predicted from its surroundings. */
ENTRY void hevc_sine_4x4(int16_t out[16], const int16_t in[16], int shift);

void hevc_no_transform(int16_t *out, const int16_t *in, int size, int shift);

#endif
