/* Blocks of MPEG-2: codes of coefficients, inverse scan, inverse quantisation, mismatch control (7.2 to 7.4). */
#include <string.h>

#include "mpeg2.h"

enum { DC_FIRST = 9, COEFFICIENT_FIRST = 9, DC_ROOM = 1 << DC_FIRST | 2, COEFFICIENT_ROOM = 1024 };

static struct vlc_entry dc_tables[2][DC_ROOM], tables[2][COEFFICIENT_ROOM];

__attribute__((constructor)) static void build(void)
{
    vlc_build(dc_tables[0], DC_ROOM, DC_FIRST, mpeg2_dc_luma, 12);
    vlc_build(dc_tables[1], DC_ROOM, DC_FIRST, mpeg2_dc_chroma, 12);
    vlc_build(tables[0], COEFFICIENT_ROOM, COEFFICIENT_FIRST, mpeg2_coefficients, 113);
    vlc_build(tables[1], COEFFICIENT_ROOM, COEFFICIENT_FIRST, mpeg2_intra_coefficients, 113);
}

static int saturate(int value)
{
    return clamp(value, -2048, 2047);
}

/* run and signed level; 0 at the end of the block, -1 where there is no such code. */
static int coefficient(struct bits *b, const struct vlc_entry *table, int *run, int *level)
{
    int value = vlc_read(b, table, COEFFICIENT_FIRST);
    if (value == END_OF_BLOCK)
        return 0;
    if (value == COEFFICIENT_ESCAPE) {
        uint32_t word = bits_read(b, 18);
        *run = (int)(word >> 12);
        *level = (int)(word & 0xfff) - (int)((word & 0x800) << 1);
        return *level & 0x7ff ? 1 : -1; /* 0 and -2048 are forbidden (7.2.2.3) */
    }
    if (value == NO_CODE)
        return -1;
    *run = value >> 6;
    *level = bits_read(b, 1) ? -(value & 63) : value & 63;
    return 1;
}

static int rest(struct mpeg2_decoder *d, const struct vlc_entry *table, int i, int intra, int16_t out[64])
{
    const uint8_t *scan = d->slice->alternate_scan ? mpeg2_alternate_scan : zigzag_scan, *matrix = d->slice->matrix[!intra];
    int run, level, found, sum = out[0];
    while ((found = coefficient(&d->bits, table, &run, &level)) > 0) {
        i += run;
        if (i > 63)
            return 0;
        int doubled = intra ? 2 * level : 2 * level + (level > 0 ? 1 : -1);
        int value = saturate(doubled * matrix[scan[i]] * d->scale / 32);
        out[scan[i++]] = (int16_t)value;
        sum += value;
        if (bits_left(&d->bits) < 0)
            return 0;
    }
    out[63] ^= (int16_t)(~sum & 1); /* 7.4.4 */
    return !found;
}

int mpeg2_intra_block(struct mpeg2_decoder *d, int plane, int16_t out[64])
{
    int size = vlc_read(&d->bits, dc_tables[plane > 0], DC_FIRST);
    memset(out, 0, 64 * sizeof *out);
    if (size < 0)
        return 0;
    int difference = (int)bits_read(&d->bits, (unsigned)size);
    if (size && difference < 1 << (size - 1))
        difference -= (1 << size) - 1;
    d->dc[plane] += difference;
    out[0] = (int16_t)saturate(d->dc[plane] * (8 >> d->slice->intra_dc_precision));
    return rest(d, tables[d->slice->intra_vlc], 1, 1, out);
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
    return rest(d, tables[0], i, 0, out);
}
