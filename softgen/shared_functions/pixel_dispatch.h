/* What fixed functions tell the pixel backend about a pixel shader thread, besides its payload.
 *
 * A render-target write without a header does not say which pixels it means; the hardware keeps that with the thread. Here it stands in the
 * thread's block (eu/thread/block.py), where the kernel cannot reach it. */
#ifndef SOFTGEN_PIXEL_DISPATCH_H
#define SOFTGEN_PIXEL_DISPATCH_H

#include <stdint.h>

enum { DISPATCH_SUBSPANS = 8, DISPATCH_PIXELS = 4 * DISPATCH_SUBSPANS, DISPATCH_SAMPLES = 16 };

/* The pixels of a thread, channel = 4 x subspan + pixel of it. */
struct pixel_dispatch {
    uint32_t place[DISPATCH_SUBSPANS]; /* of a subspan's upper left pixel: X in the low half, Y in the high one */
    uint32_t lit;             /* pixels that are covered and passed early tests */
    uint32_t back_facing;
    uint32_t layer;           /* render target array index */
    uint32_t viewport;
    uint32_t passed;          /* set by the pixel backend: pixels that passed late depth and stencil tests */
    uint32_t tested;          /* kept by the pixel backend: pixels that passed the alpha test of any target so far */
    uint32_t samples;         /* of a pixel; 0: one, where the pixel is */
    uint32_t reserved;
    float depth[DISPATCH_PIXELS]; /* interpolated Z, where tests come late and the thread does not compute it */
    double planes[16];        /* 1/w, b1, b2, and both divided by w: at (0, 0), and steps along x and y; where the shader may ask */
    float antialias[DISPATCH_PIXELS]; /* of draws with smooth lines or points: coverage, which alpha is multiplied by */
    /* Of draws to targets with several samples, for each of them: pixels whose sample is covered and passed early tests; those that passed
     * alpha tests so far; those that passed late tests; and what Z is more there. */
    uint32_t sample_lit[DISPATCH_SAMPLES], sample_tested[DISPATCH_SAMPLES], sample_passed[DISPATCH_SAMPLES];
    float sample_depth[DISPATCH_SAMPLES];
    float sample_x[DISPATCH_SAMPLES], sample_y[DISPATCH_SAMPLES]; /* where they are, in pixels from the pixel; where the shader may ask */
    uint16_t sample_covered[DISPATCH_PIXELS]; /* the samples of each pixel that are covered, a bit each; where the shader may ask */
};

#endif
