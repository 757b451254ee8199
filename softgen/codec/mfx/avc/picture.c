/* H.264 pictures from their first slice to their last: scales, macroblocks that are missing, the deblocking filter, motion to keep. */
#include <string.h>

#include "avc.h"

enum { GREY = 128 };

/* Entry: a picture begins. */
ENTRY int64_t avc_open(struct avc_picture *p, void *record)
{
    (void)record;
    avc_scales(p);
    return 0;
}

static void conceal_mb(struct avc_picture *p, const struct frame *from, unsigned x, unsigned y)
{
    for (int i = 0; i < (p->monochrome ? 1 : PLANES); i++) {
        const struct plane *to = &p->picture->frame.plane[i];
        unsigned size = i ? 8 : 16;
        for (unsigned row = y * size; row < (y + 1) * size; row++) {
            uint8_t *samples = to->samples + (size_t)row * to->stride + x * size;
            if (!from)
                memset(samples, GREY, size);
            else
                memcpy(samples, from->plane[i].samples + (size_t)(p->field ? 2 * row + p->bottom : row) * from->plane[i].stride + x * size, size);
        }
    }
}

/* Macroblocks that no slice has are copied from the first reference; without one they are grey. */
static void conceal(struct avc_picture *p)
{
    struct picture *picture = p->picture;
    const struct frame *from = NULL;
    for (unsigned i = 0; i < p->width * p->height; i++) {
        if (picture->state[i] == DECODED)
            continue;
        for (unsigned r = 0; r < MOST_REFERENCES && !from; r++)
            from = reference_frame(picture, r);
        conceal_mb(p, from, i % p->width, i / p->width);
        picture->state[i] = CONCEALED;
        picture->errors |= AVC_CONCEALED;
        picture->concealed++;
    }
}

/* Entry: the picture's last slice has been decoded. Surfaces before deblocking are written by then. */
ENTRY int64_t avc_close(struct avc_picture *p, void *record)
{
    struct picture *picture = p->picture;
    (void)record;
    conceal(p);
    avc_keep_motion(p);
    if (picture->surfaces[0].base)
        store_rows(picture, &picture->surfaces[0], 0, picture->height);
    picture->surfaces[0].base = 0;
    avc_filter(p);
    return 0;
}
