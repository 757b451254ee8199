/* AVC-IT mode: residuals of a macroblock (H.264 8.5.10 to 8.5.13). Coefficients are scaled already, but for those of DC blocks, whose
 * LevelScale the command has (G45 10043-10050). A DC block comes before the blocks that it is for. */
#include <string.h>

#include "../../../codec/transform/transform.h"
#include "blocks.h"

enum { MOST_QP = 87 };

static int64_t shifted(int64_t value, int left)
{
    return left >= 0 ? value * ((int64_t)1 << left) : (value + ((int64_t)1 << (-left - 1))) >> -left;
}

static int luma_dc(struct avc_macroblock *m, int32_t dc[16])
{
    int wrong = read_units(&m->units, dc, 16), sixth = (int)(m->qp_y < MOST_QP ? m->qp_y : MOST_QP) / 6;
    if (wrong)
        return wrong;
    avc_luma_dc(dc);
    for (int i = 0; i < 16; i++)
        dc[i] = (int32_t)shifted((int64_t)dc[i] * m->scale_y, sixth - 6);
    return FINE;
}

static int chroma_dc(struct avc_macroblock *m, unsigned qp, uint32_t scale, int32_t dc[4])
{
    int wrong = read_units(&m->units, dc, 4);
    if (wrong)
        return wrong;
    avc_chroma_dc(dc);
    for (int i = 0; i < 4; i++)
        dc[i] = (int32_t)(shifted((int64_t)dc[i] * scale, (int)(qp < MOST_QP ? qp : MOST_QP) / 6) >> 5);
    return FINE;
}

/* A 4x4 block at a place of its 8x8 block. */
static int small_block(struct avc_macroblock *m, int coded, const int32_t *dc, int16_t *to)
{
    int32_t block[16] = {0}, residual[16];
    int wrong = coded ? read_units(&m->units, block, 16) : FINE;
    if (wrong)
        return wrong;
    if (dc)
        block[0] = *dc;
    avc_inverse_4x4(block, residual);
    for (int i = 0; i < 16; i++)
        to[8 * (i >> 2) + (i & 3)] = (int16_t)residual[i];
    return FINE;
}

static int16_t *small_place(int16_t *block, int part)
{
    return block + 32 * (part >> 1) + 4 * (part & 1);
}

static int luma(struct avc_macroblock *m)
{
    int32_t dc[16], block[SAMPLES], residual[SAMPLES];
    int wrong = m->dc_y ? luma_dc(m, dc) : FINE;
    for (int number = 0; number < 4 && !wrong; number++) {
        int16_t *to = m->out + SAMPLES * number;
        unsigned coded = m->pattern_y >> (12 - 4 * number) & 15;
        if (m->transform_8x8) {
            if (coded && !(wrong = read_units(&m->units, block, SAMPLES))) {
                avc_inverse_8x8(block, residual);
                for (int i = 0; i < SAMPLES; i++)
                    to[i] = (int16_t)residual[i];
            }
            continue;
        }
        for (int part = 0; part < 4 && !wrong; part++) {
            int at = 4 * (2 * (number >> 1) + (part >> 1)) + 2 * (number & 1) + (part & 1);
            wrong = small_block(m, coded >> (3 - part) & 1, m->dc_y ? &dc[at] : NULL, small_place(to, part));
        }
    }
    return wrong;
}

static int chroma(struct avc_macroblock *m, unsigned pattern, const int32_t *dc, int16_t *to)
{
    int wrong = FINE;
    for (int part = 0; part < 4 && !wrong; part++)
        wrong = small_block(m, pattern >> (3 - part) & 1, dc ? dc + part : NULL, small_place(to, part));
    return wrong;
}

ENTRY int64_t avc_blocks(struct avc_macroblock *m)
{
    int32_t cb[4], cr[4];
    int wrong = luma(m);
    memset(m->out + 4 * SAMPLES, 0, 2 * SAMPLES * sizeof *m->out);
    if (!wrong && m->dc_cb)
        wrong = chroma_dc(m, m->qp_cb, m->scale_cb, cb);
    if (!wrong && m->dc_cr)
        wrong = chroma_dc(m, m->qp_cr, m->scale_cr, cr);
    if (!wrong)
        wrong = chroma(m, m->pattern_cb, m->dc_cb ? cb : NULL, m->out + 4 * SAMPLES);
    if (!wrong)
        wrong = chroma(m, m->pattern_cr, m->dc_cr ? cr : NULL, m->out + 5 * SAMPLES);
    return wrong;
}
