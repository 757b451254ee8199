/* Motion vectors of MPEG-2 (6.2.5.2, 7.6.3). */
#include <string.h>

#include "mpeg2.h"

void mpeg2_reset_vectors(struct mpeg2_decoder *d)
{
    memset(d->predictor, 0, sizeof d->predictor);
}

/* A vector; `halved`: it counts rows of fields and the predictors rows of frames. */
static int vector(struct mpeg2_decoder *d, int r, int s, int halved, int dual)
{
    for (int t = 0; t < 2; t++) {
        int f_code = d->slice->f_code[s][t], change, *predictor = &d->predictor[r][s][t], scaled = halved && t;
        if (f_code < 1 || f_code > 9 || !mpeg2_read_motion(&d->bits, f_code, &change))
            return 0;
        int limit = 16 << (f_code - 1), value = (scaled ? *predictor >> 1 : *predictor) + change;
        value = value < -limit ? value + 2 * limit : value >= limit ? value - 2 * limit : value;
        *predictor = scaled ? 2 * value : value;
        d->motion.vector[r][s][t] = value;
        if (dual)
            d->motion.dual[t] = mpeg2_read_dual(&d->bits);
    }
    return 1;
}

int mpeg2_vectors(struct mpeg2_decoder *d, int s)
{
    int frame = d->slice->structure == FRAME_PICTURE, type = d->motion.type;
    int two = frame ? type == ONE_FIELD : type == HALVES, dual = type == DUAL_PRIME;
    int halved = frame && type != WHOLE, selects = !dual && !(frame && type == WHOLE);
    for (int r = 0; r < 1 + two; r++) {
        if (selects)
            d->motion.select[r][s] = (int)bits_read(&d->bits, 1);
        if (!vector(d, r, s, halved, dual))
            return 0;
    }
    if (!two)
        memcpy(d->predictor[1][s], d->predictor[0][s], sizeof d->predictor[0][s]);
    return 1;
}
