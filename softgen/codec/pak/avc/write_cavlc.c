/* Coefficients and patterns in variable-length codes: the inverse of mfx/avc/cavlc.c (9.1.2, 9.2). */
#include <stdlib.h>

#include "write.h"

enum { TOKENS = 4 * 16 + 4, CHROMA_DC_TOKENS = 3, ESCAPE_PREFIX = 15 };

static struct vlc_code tokens[4][TOKENS]; /* by 4 total_coeff + trailing_ones */

__attribute__((constructor)) static void build(void)
{
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 62; j++)
            if (avc_coeff_token[i][j].length)
                tokens[i][avc_coeff_token[i][j].value] = avc_coeff_token[i][j];
}

static void put_code(struct writer *w, const struct vlc_code *c)
{
    writer_bits(w, c->code, (unsigned)c->length);
}

/* The code of a value, of those that stand in the order of their lengths. */
static void put_value(struct writer *w, const struct vlc_code *codes, int count, int value)
{
    for (int i = 0; i < count; i++)
        if (codes[i].length && codes[i].value == value) {
            put_code(w, &codes[i]);
            return;
        }
}

static void put_token(struct writer *w, int nearby, int total, int ones)
{
    int value = 4 * total + ones;
    if (nearby < 0)
        put_code(w, &tokens[CHROMA_DC_TOKENS][value]);
    else if (nearby < 8)
        put_code(w, &tokens[nearby < 2 ? 0 : nearby < 4 ? 1 : 2][value]);
    else
        writer_bits(w, total ? (uint32_t)(value - 4) : 3, 6);
}

/* level_prefix and level_suffix (9.2.2.1). */
static void put_level(struct writer *w, int code, int suffix_length)
{
    if (!suffix_length && code >= 14 && code < 30) {
        writer_bits(w, 1, 15);
        writer_bits(w, (uint32_t)(code - 14), 4);
        return;
    }
    if (code < ESCAPE_PREFIX << suffix_length && (suffix_length || code < 14)) {
        writer_bits(w, 1, (unsigned)(code >> suffix_length) + 1);
        writer_bits(w, (uint32_t)code, (unsigned)suffix_length);
        return;
    }
    writer_bits(w, 1, ESCAPE_PREFIX + 1);
    writer_bits(w, (uint32_t)(code - (ESCAPE_PREFIX << suffix_length) - (suffix_length ? 0 : 15)), 12);
}

static void put_levels(struct writer *w, const int32_t *found, int total, int ones)
{
    int suffix_length = total > 10 && ones < 3;
    for (int i = 0; i < ones; i++)
        writer_bits(w, found[i] < 0, 1);
    for (int i = ones; i < total; i++) {
        int size = abs(found[i]), code = 2 * size - 2 + (found[i] < 0) - (i == ones && ones < 3 ? 2 : 0);
        put_level(w, code, suffix_length);
        suffix_length += !suffix_length;
        suffix_length += size > 3 << (suffix_length - 1) && suffix_length < 6;
    }
}

void cavlc_put_block(struct avc_encoder *e, int nearby, const int32_t *levels, int most)
{
    struct writer *w = e->writer;
    int32_t found[16];
    int place[16], total = 0, ones = 0;
    for (int i = most - 1; i >= 0; i--)
        if (levels[i]) {
            place[total] = i;
            found[total++] = levels[i];
        }
    while (ones < 3 && ones < total && abs(found[ones]) == 1)
        ones++;
    put_token(w, nearby, total, ones);
    if (!total)
        return;
    put_levels(w, found, total, ones);
    int zeros = place[0] + 1 - total;
    if (total < most)
        put_value(w, most == 4 ? avc_chroma_zeros[total - 1] : avc_total_zeros[total - 1], most == 4 ? 4 : 16, zeros);
    for (int i = 0; i < total - 1 && zeros; i++) {
        int run = place[i] - place[i + 1] - 1;
        put_value(w, avc_run_before[zeros < 7 ? zeros - 1 : 6], 15, run);
        zeros -= run;
    }
}

void cavlc_put_pattern(struct avc_encoder *e, int pattern)
{
    const struct avc_decoder *d = e->d;
    const uint8_t *table = d->avc->monochrome ? avc_luma_pattern[!is_intra(d->mb)] : avc_pattern[!is_intra(d->mb)];
    uint32_t code = 0;
    while (table[code] != pattern)
        code++;
    writer_ue(e->writer, code);
}
