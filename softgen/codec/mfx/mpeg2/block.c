/* Blocks of MPEG-2: codes of coefficients, inverse scan, inverse quantisation, mismatch control (7.2 to 7.4). */
#include <string.h>

#include "mpeg2.h"

static int saturate(int value)
{
    return clamp(value, -2048, 2047);
}

/* `intra` and `table` are constants of the callers, and the bits a copy, which stays in registers. */
static inline __attribute__((always_inline)) int rest(struct mpeg2_decoder *d, const struct vlc_entry *table, int i, int intra, int16_t out[64])
{
    const uint8_t *scan = d->slice->alternate_scan ? mpeg2_alternate_scan : zigzag_scan;
    const struct mpeg2_slice *slice = d->slice;
    struct bits bits = d->bits;
    int run, level, found, sum = out[0], scale = d->scale, fine = 1;
    while ((found = mpeg2_read_coefficient(&bits, table, &run, &level)) > 0) {
        i += run;
        if (i > 63) {
            fine = 0;
            break;
        }
        int16_t value = mpeg2_dequantised(slice, scale, intra, scan[i], level);
        out[scan[i++]] = value;
        sum += value;
        if (bits_left(&bits) < 0) {
            fine = 0;
            break;
        }
    }
    d->bits = bits;
    out[63] ^= (int16_t)(~sum & 1); /* 7.4.4 */
    return fine && !found;
}

int mpeg2_intra_block(struct mpeg2_decoder *d, int plane, int16_t out[64])
{
    int difference;
    memset(out, 0, 64 * sizeof *out);
    if (!mpeg2_read_dc(&d->bits, plane > 0, &difference))
        return 0;
    d->dc[plane] += difference;
    out[0] = (int16_t)saturate(d->dc[plane] * (8 >> d->slice->intra_dc_precision));
    return rest(d, mpeg2_coefficient_tables[d->slice->intra_vlc], 1, 1, out);
}

/* The first coefficient of a block that is not intra: its shortest code is 1s, as no block is empty (7.2.2.2). */
int mpeg2_inter_block(struct mpeg2_decoder *d, int16_t out[64])
{
    int i = 0;
    memset(out, 0, 64 * sizeof *out);
    if (bits_peek(&d->bits, 1)) {
        int sign = bits_read(&d->bits, 2) & 1 ? -1 : 1;
        out[0] = (int16_t)saturate(sign * 3 * d->slice->matrix[1][0] * d->scale / 32);
        i = 1;
    }
    return rest(d, mpeg2_coefficient_tables[0], i, 0, out);
}
