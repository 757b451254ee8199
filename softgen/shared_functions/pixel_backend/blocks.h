/* Blocks of 4x4 pixels at depth and stencil buffers, as the functions made for a depth target take them (functions.py). */
#ifndef SOFTGEN_PIXEL_BLOCKS_H
#define SOFTGEN_PIXEL_BLOCKS_H

#include <stdint.h>

/* Early depth and stencil tests of a block: the pixels of the mask that pass, in the same order of bits. `context` is the worker's
 * (shared_functions/context.h), `target` the depth target's record. */
struct depth_block {
    uint32_t x, y, mask, back_facing, layer, viewport;
    float z[16]; /* by bit of the mask */
};
typedef uint32_t depth_function(void *context, void *target, struct depth_block *block);

/* The same of pixels with several samples: a depth_function whose block is this one leaves in `masks` the pixels that pass at each sample,
 * and returns those that do at any. */
struct sampled_block {
    uint32_t x, y, reserved, back_facing, layer, viewport;
    float z[16]; /* at pixels */
    float steps[16]; /* what z is more at each sample */
    uint32_t masks[16]; /* of pixels, by sample */
};

/* What depth and stencil buffers hold at a block's pixels, by bit of the mask: depths as they are stored. */
struct held_block {
    struct depth_block block;
    uint32_t depth[16], stencil[16];
};
typedef void held_function(void *context, void *target, struct held_block *block);

#endif
