/* What a macroblock's thread has in R1 (MEDIA_VLD_MACROBLOCK), and the index of its kernel (G45 9006-9040, 11355-11458). */
#include <string.h>

#include "vld.h"

/* The second field of a frame, in P pictures: its other field is a reference (G45 8848-8860). */
static uint32_t second_field(const struct vld_decoder *d)
{
    const struct vld_slice *s = d->slice;
    if (s->type != P_PICTURE || s->structure == FRAME_PICTURE)
        return 0;
    return s->top_field_first ? s->structure == BOTTOM_FIELD : s->structure == TOP_FIELD;
}

static uint32_t pair(const int v[2])
{
    return (uint32_t)(v[0] & 0xffff) | (uint32_t)v[1] << 16;
}

void vld_record(struct vld_decoder *d, int intra, int pattern, uint8_t *to)
{
    const struct vld_slice *s = d->slice;
    const struct vld_motion *m = &d->motion;
    uint32_t dwords[RECORD_BYTES / 4] = {0}, selects = 0;
    uint32_t type = intra ? (s->structure == FRAME_PICTURE ? WHOLE : ONE_FIELD) : (uint32_t)m->type;
    if (!intra) {
        for (int i = 0; i < 4; i++) {
            selects |= (uint32_t)m->select[i >> 1][i & 1] << i;
            dwords[4 + i] = pair(m->vector[i >> 1][i & 1]);
        }
        dwords[0] = second_field(d) << 27 | (uint32_t)!!(m->modes & MPEG2_BACKWARD) << 18 | (uint32_t)!!(m->modes & MPEG2_FORWARD) << 17;
    }
    dwords[0] |= selects << 28 | type << 24 | (uint32_t)(pattern && d->field_dct) << 21 | (uint32_t)intra << 16;
    dwords[2] = s->type << 18 | s->structure << 16 | s->intra_dc_precision << 13 | (uint32_t)pattern << 6 | s->q_scale_type << 5
              | d->quantiser_code;
    dwords[3] = s->y << 20 | d->x << 4;
    memcpy(to, dwords, sizeof dwords);
}

unsigned vld_index(const struct vld_decoder *d, int intra, int pattern)
{
    const struct vld_motion *m = &d->motion;
    int frame = d->slice->structure == FRAME_PICTURE, several = frame ? m->type == ONE_FIELD : m->type == HALVES;
    unsigned index = frame && d->field_dct && pattern ? 8 : 0;
    if (intra)
        return index;
    if (m->type == DUAL_PRIME)
        return index + 3;
    if (m->modes == (MPEG2_FORWARD | MPEG2_BACKWARD))
        return index + 6 + (unsigned)several;
    return index + (m->modes == MPEG2_BACKWARD ? 4 : 1) + (unsigned)several;
}
