/* Motion vectors of macroblocks, as threads get them (6.2.5.2, 7.6.3; G45 8862-8986). */
#include <string.h>

#include "vld.h"

void vld_reset_vectors(struct vld_decoder *d)
{
    memset(d->predictor, 0, sizeof d->predictor);
}

int vld_vectors(struct vld_decoder *d, int s)
{
    int frame = d->slice->structure == FRAME_PICTURE, type = d->motion.type;
    int two = frame ? type == ONE_FIELD : type == HALVES;
    int halved = frame && type != WHOLE, selects = type != DUAL_PRIME && !(frame && type == WHOLE);
    int *dual = type == DUAL_PRIME ? d->motion.dual : NULL;
    for (int r = 0; r < 1 + two; r++) {
        if (selects)
            d->motion.select[r][s] = (int)bits_read(&d->bits, 1);
        if (!mpeg2_read_vector(&d->bits, d->slice->f_code[s], halved, d->predictor[r][s], d->motion.vector[r][s], dual))
            return 0;
    }
    if (!two)
        memcpy(d->predictor[1][s], d->predictor[0][s], sizeof d->predictor[0][s]);
    return 1;
}

/* A prediction without vectors of its own: from the predictors and the field of the same parity (7.6.6). */
void vld_implied_motion(struct vld_decoder *d, int modes)
{
    const struct vld_slice *s = d->slice;
    int frame = s->structure == FRAME_PICTURE;
    memset(&d->motion, 0, sizeof d->motion);
    d->motion.modes = modes;
    d->motion.type = frame ? WHOLE : ONE_FIELD;
    for (int direction = 0; direction < 2; direction++) {
        if (!(modes & (direction ? MPEG2_BACKWARD : MPEG2_FORWARD)))
            continue;
        memcpy(d->motion.vector[0][direction], d->predictor[0][direction], sizeof d->predictor[0][direction]);
        d->motion.select[0][direction] = !frame && s->structure == BOTTOM_FIELD;
    }
}

/* A vector to the field of the other parity: `m` times the first, halved away from zero, and corrected (7.6.3.6). */
static void derive(const struct vld_motion *motion, int m, int e, int out[2])
{
    for (int t = 0; t < 2; t++) {
        int scaled = motion->vector[0][0][t] * m;
        out[t] = ((scaled + (motion->vector[0][0][t] > 0)) >> 1) + motion->dual[t] + (t ? e : 0);
    }
}

/* Dual prime as a prediction in both directions: forward from the same parity, backward from the other (tables 10-5 and 10-6, G45
 * 8966-8986). */
void vld_dual_prime(struct vld_decoder *d)
{
    struct vld_motion *motion = &d->motion;
    const struct vld_slice *s = d->slice;
    if (s->structure != FRAME_PICTURE) {
        int own = s->structure == BOTTOM_FIELD;
        derive(motion, 1, own ? 1 : -1, motion->vector[0][1]);
        motion->select[0][0] = own;
        motion->select[0][1] = !own;
    } else {
        memcpy(motion->vector[1][0], motion->vector[0][0], sizeof motion->vector[0][0]);
        derive(motion, s->top_field_first ? 1 : 3, -1, motion->vector[0][1]);
        derive(motion, s->top_field_first ? 3 : 1, 1, motion->vector[1][1]);
        motion->select[0][0] = motion->select[1][1] = 0;
        motion->select[0][1] = motion->select[1][0] = 1;
    }
    motion->modes = MPEG2_FORWARD | MPEG2_BACKWARD;
}
