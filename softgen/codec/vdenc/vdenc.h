/* The search of VDENC: which macroblocks a picture is coded in. Intel's is not public; ours is stated in docs/video.md. */
#ifndef SOFTGEN_CODEC_VDENC_H
#define SOFTGEN_CODEC_VDENC_H

#include "../pak/avc/avc_pak.h"

struct vdenc {
    struct avc_encoder *encoder;
    uint32_t intra_partitions; /* bits: no 16x16, no 8x8, no 4x4 */
    uint32_t intra_modes[3], chroma_modes; /* modes that are not used: 16x16, 8x8, 4x4 */
    uint32_t shapes; /* bits: no 16x16, no 16x8, no 8x16, no 8x8 */
    uint32_t subpel; /* 0 whole, 1 half, 3 quarter samples */
    int32_t range[2]; /* of vectors, in quarter samples */
    uint32_t references, lambda; /* lambda: the cost of a bit */
};

struct vdenc_scaling {
    struct picture *picture;
    struct surface surface;
};

/* cost.c */
uint32_t vdenc_difference(const uint8_t *a, ptrdiff_t a_stride, const uint8_t *b, ptrdiff_t b_stride, int width, int height); /* SATD */
uint32_t vdenc_sad(const uint8_t *a, ptrdiff_t a_stride, const uint8_t *b, ptrdiff_t b_stride, int width, int height);

/* intra.c, motion.c: the best macroblock of a kind, and what it costs */
uint32_t vdenc_intra(const struct vdenc *v, struct avc_choice *c);
uint32_t vdenc_inter(const struct vdenc *v, struct avc_choice *c);

static inline const uint8_t *vdenc_source(const struct vdenc *v, int plane, int x, int y, ptrdiff_t *stride)
{
    const struct plane *p = &v->encoder->source->plane[plane];
    const struct avc_decoder *d = v->encoder->d;
    size_t size = plane ? 8 : 16;
    *stride = p->stride;
    return p->samples + (d->y * size + (size_t)y) * p->stride + d->x * size + (size_t)x;
}

#endif
