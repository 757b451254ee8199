/* Motion vectors of MPEG-2 (6.2.5.2, 7.6.3). */
#include <string.h>

#include "mpeg2.h"

void mpeg2_reset_vectors(struct mpeg2_decoder *d)
{
    memset(d->predictor, 0, sizeof d->predictor);
}

int mpeg2_vectors(struct mpeg2_decoder *d, int s)
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
