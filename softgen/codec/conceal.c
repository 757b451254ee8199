/* Concealment of macroblocks that could not be decoded (codec.h). */
#include <string.h>

#include "codec.h"

/* Makes a macroblock that of a reference, or grey where there is none. */
void conceal_macroblock(struct picture *p, unsigned number, unsigned reference)
{
    const struct frame *from = reference_frame(p, reference);
    unsigned x = number % p->width, y = number / p->width;
    for (int plane = 0; plane < PLANES; plane++) {
        const struct plane *to = &p->frame.plane[plane];
        unsigned size = plane ? 8 : 16;
        for (unsigned row = y * size; row < (y + 1) * size; row++) {
            uint8_t *at = to->samples + (size_t)row * to->stride + x * size;
            if (from)
                memcpy(at, from->plane[plane].samples + (size_t)row * from->plane[plane].stride + x * size, size);
            else
                memset(at, 128, size);
        }
    }
    p->state[number] = CONCEALED;
    p->concealed++;
}
