/* VC1-IT mode: residuals of a macroblock, and overlap smoothing of its vertical edges (SMPTE 421M 8.1.2.5, 8.5; G45 9044-9066). */
#include <stddef.h>

#include "../../../codec/transform/transform.h"
#include "blocks.h"

enum { STEP = 8 };

static int block(struct units *u, unsigned code, int16_t *to)
{
    int width = code & 2 ? 4 : 8, height = code & 1 ? 4 : 8, parts = SAMPLES / (width * height);
    for (int part = 0; part < parts; part++) {
        int32_t in[SAMPLES];
        int16_t coefficients[SAMPLES];
        int across = width == 4 ? part & 1 : 0, down = width == 4 && height == 4 ? part >> 1 : height == 4 ? part : 0;
        if (!(code >> (2 + part) & 1))
            continue;
        int wrong = read_units(u, in, (unsigned)(width * height));
        if (wrong)
            return wrong;
        for (int i = 0; i < width * height; i++)
            coefficients[i] = (int16_t)in[i];
        vc1_inverse(coefficients, width, width, height, to + STEP * 4 * down + 4 * across, STEP);
    }
    return FINE;
}

static void overlap(struct vc1_macroblock *m)
{
    static const int before[BLOCKS] = {1, 0, 3, 2, 4, 5}; /* the block to the left: of even ones in the macroblock before */
    for (int number = 0; number < BLOCKS; number++) {
        int odd = number == 1 || number == 3, edge = number < 4 ? number : 4;
        int16_t *from = odd ? m->out : m->left;
        if (m->edges >> edge & 1 && from)
            vc1_smooth_edge(from + SAMPLES * before[number] + STEP - 2, m->out + SAMPLES * number, 1, STEP);
    }
}

ENTRY int64_t vc1_blocks(struct vc1_macroblock *m)
{
    for (int number = 0; number < BLOCKS; number++) {
        int16_t *to = m->out + SAMPLES * number;
        int wrong = FINE;
        for (int i = 0; i < SAMPLES; i++)
            to[i] = 0;
        if (m->pattern >> (5 - number) & 1)
            wrong = block(&m->units, m->subblocks[number], to);
        if (wrong)
            return wrong;
    }
    if (m->overlap)
        overlap(m);
    return FINE;
}
