/* Motion vectors of MPEG-2 (6.2.5.2, 7.6.3). */
#include <string.h>

#include "mpeg2.h"

enum { FIRST = 7, ROOM = 256 };

static struct vlc_entry codes[ROOM];

__attribute__((constructor)) static void build(void)
{
    vlc_build(codes, ROOM, FIRST, mpeg2_motion, 17);
}

void mpeg2_reset_vectors(struct mpeg2_decoder *d)
{
    memset(d->predictor, 0, sizeof d->predictor);
}

/* A component's difference from its prediction. */
static int difference(struct bits *b, int f_code, int *value)
{
    int code = vlc_read(b, codes, FIRST), size = f_code - 1;
    if (code == NO_CODE)
        return 0;
    *value = 0;
    if (code) {
        int negative = (int)bits_read(b, 1);
        *value = ((code - 1) << size) + (int)bits_read(b, (unsigned)size) + 1;
        *value = negative ? -*value : *value;
    }
    return 1;
}

static int dual_difference(struct bits *b)
{
    return !bits_read(b, 1) ? 0 : bits_read(b, 1) ? -1 : 1;
}

/* A vector; `halved`: it counts rows of fields and the predictors rows of frames. */
static int vector(struct mpeg2_decoder *d, int r, int s, int halved, int dual)
{
    for (int t = 0; t < 2; t++) {
        int f_code = d->slice->f_code[s][t], change, *predictor = &d->predictor[r][s][t], scaled = halved && t;
        if (f_code < 1 || f_code > 9 || !difference(&d->bits, f_code, &change))
            return 0;
        int limit = 16 << (f_code - 1), value = (scaled ? *predictor >> 1 : *predictor) + change;
        value = value < -limit ? value + 2 * limit : value >= limit ? value - 2 * limit : value;
        *predictor = scaled ? 2 * value : value;
        d->motion.vector[r][s][t] = value;
        if (dual)
            d->motion.dual[t] = dual_difference(&d->bits);
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
