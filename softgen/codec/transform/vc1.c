/* The inverse transforms of VC-1, and overlap smoothing (SMPTE 421M 8.1.2.5, 8.5). */
#include "transform.h"

/* Coefficients of the one-dimensional transforms: a row for each basis function. */
static const int8_t eight[8][8] = {
    {12, 12, 12, 12, 12, 12, 12, 12}, {16, 15, 9, 4, -4, -9, -15, -16}, {16, 6, -6, -16, -16, -6, 6, 16}, {15, -4, -16, -9, 9, 16, 4, -15},
    {12, -12, -12, 12, 12, -12, -12, 12}, {9, -16, 4, 15, -15, -4, 16, -9}, {6, -16, 16, -6, -6, 16, -16, 6}, {4, -9, 15, -16, 16, -15, 9, -4},
};
static const int8_t four[4][4] = {{17, 17, 17, 17}, {22, 10, -10, -22}, {17, -17, -17, 17}, {10, -22, 22, -10}};

__attribute__((always_inline)) static inline int32_t basis(int length, int frequency, int place)
{
    return length == 8 ? eight[frequency][place] : four[frequency][place];
}

/* Rows, then columns; of eight rows the lower half is rounded up by one. */
__attribute__((always_inline)) static inline void inverse(const int16_t *in, int pitch, int width, int height, int16_t *to, int stride)
{
    int16_t rows[64];
    for (int y = 0; y < height; y++)
        for (int x = 0; x < width; x++) {
            int32_t sum = 4;
            for (int k = 0; k < width; k++)
                sum += in[pitch * y + k] * basis(width, k, x);
            rows[width * y + x] = (int16_t)(sum >> 3);
        }
    for (int y = 0; y < height; y++)
        for (int x = 0; x < width; x++) {
            int32_t sum = 64 + (height == 8 && y >= 4);
            for (int k = 0; k < height; k++)
                sum += rows[width * k + x] * basis(height, k, y);
            to[stride * y + x] = (int16_t)(sum >> 7);
        }
}

void vc1_inverse(const int16_t *in, int pitch, int width, int height, int16_t *to, int stride)
{
    if (width == 8 && height == 8)
        inverse(in, pitch, 8, 8, to, stride);
    else if (width == 8)
        inverse(in, pitch, 8, 4, to, stride);
    else if (height == 8)
        inverse(in, pitch, 4, 8, to, stride);
    else
        inverse(in, pitch, 4, 4, to, stride);
}

void vc1_smooth_edge(int16_t *before, int16_t *after, ptrdiff_t across, ptrdiff_t along)
{
    for (int i = 0; i < 8; i++, before += along, after += along) {
        int a = before[0], b = before[across], c = after[0], d = after[across], outer = a - d, inner = a - d + b - c;
        int r0 = i & 1 ? 3 : 4, r1 = 7 - r0;
        before[0] = (int16_t)((8 * a - outer + r0) >> 3);
        before[across] = (int16_t)((8 * b - inner + r1) >> 3);
        after[0] = (int16_t)((8 * c + inner + r0) >> 3);
        after[across] = (int16_t)((8 * d + outer + r1) >> 3);
    }
}
