/* Syntax elements in arithmetic codes: the inverse of mfx/avc/cabac.c and cabac_residual.c (9.3.3.1). */
#include <stdlib.h>

#include "../../mfx/avc/cabac_contexts.h"
#include "write.h"

static void bin(struct avc_encoder *e, int context, int bit)
{
    cabac_write(&e->cabac, &e->d->contexts[context], bit);
}

/* Exponential Golomb code of order k in bypass bins (9.3.2.3). */
static void golomb(struct avc_encoder *e, int value, int k)
{
    for (; value >= 1 << k; k++) {
        cabac_write_bypass(&e->cabac, 1);
        value -= 1 << k;
    }
    cabac_write_bypass(&e->cabac, 0);
    while (k--)
        cabac_write_bypass(&e->cabac, value >> k & 1);
}

void cabac_put_skip(struct avc_encoder *e, int skip)
{
    const struct avc_mb *a = avc_next_to(e->d, LEFT), *b = avc_next_to(e->d, ABOVE);
    bin(e, (e->d->type == P_SLICE ? MB_SKIP_P : MB_SKIP_B) + (a && !a->skip) + (b && !b->skip), skip);
}

static int is_whole(const struct avc_mb *mb)
{
    return mb && mb->kind != INTRA_4X4 && mb->kind != INTRA_8X8;
}

static void intra_type(struct avc_encoder *e, int first, int inter, int type)
{
    if (inter)
        bin(e, first, type > 0);
    else {
        bin(e, first + is_whole(avc_next_to(e->d, LEFT)) + is_whole(avc_next_to(e->d, ABOVE)), type > 0);
        first += 2;
    }
    if (!type)
        return;
    cabac_write_end(&e->cabac, type == AVC_INTRA_PCM_TYPE);
    if (type == AVC_INTRA_PCM_TYPE)
        return;
    int chroma = (type - 1) / 4 % 3, mode = (type - 1) & 3;
    bin(e, first + 1, type > 12);
    bin(e, first + 2, chroma > 0);
    if (chroma)
        bin(e, first + 2 + !inter, chroma == 2);
    bin(e, first + 3 + !inter, mode >> 1);
    bin(e, first + 3 + 2 * !inter, mode & 1);
}

static void p_type(struct avc_encoder *e, int type)
{
    bin(e, MB_TYPE_P, type >= 5);
    if (type >= 5) {
        intra_type(e, MB_TYPE_P + 3, 1, type - 5);
        return;
    }
    int halves = type == 1 || type == 2;
    bin(e, MB_TYPE_P + 1, halves);
    bin(e, MB_TYPE_P + (halves ? 3 : 2), halves ? type == 1 : type == 3);
}

static int is_direct(const struct avc_mb *mb)
{
    return mb->kind == INTER && mb->direct == 31;
}

static void b_type(struct avc_encoder *e, int type)
{
    const struct avc_mb *a = avc_next_to(e->d, LEFT), *b = avc_next_to(e->d, ABOVE);
    bin(e, MB_TYPE_B + (a && !is_direct(a)) + (b && !is_direct(b)), type > 0);
    if (!type)
        return;
    bin(e, MB_TYPE_B + 3, type > 2);
    if (type < 3) {
        bin(e, MB_TYPE_B + 5, type - 1);
        return;
    }
    int longer = type >= 12 && type < 22, bits = type < 11 ? type - 3 : type == 11 ? 14 : type == 22 ? 15 : type > 22 ? 13 : (type + 4) >> 1;
    bin(e, MB_TYPE_B + 4, bits >> 3);
    for (int i = 2; i >= 0; i--)
        bin(e, MB_TYPE_B + 5, bits >> i & 1);
    if (longer)
        bin(e, MB_TYPE_B + 5, type & 1);
    if (type > 22)
        intra_type(e, MB_TYPE_B + 5, 1, type - 23);
}

void cabac_put_type(struct avc_encoder *e, int type)
{
    if (e->d->type == I_SLICE)
        intra_type(e, MB_TYPE_I, 0, type);
    else if (e->d->type == P_SLICE)
        p_type(e, type);
    else
        b_type(e, type);
}

static void b_sub_type(struct avc_encoder *e, int type)
{
    bin(e, SUB_TYPE_B, type > 0);
    if (!type)
        return;
    bin(e, SUB_TYPE_B + 1, type > 2);
    if (type < 3) {
        bin(e, SUB_TYPE_B + 3, type - 1);
        return;
    }
    bin(e, SUB_TYPE_B + 2, type > 6);
    if (type > 6)
        bin(e, SUB_TYPE_B + 3, type > 10);
    if (type <= 10)
        bin(e, SUB_TYPE_B + 3, (type - (type > 6 ? 7 : 3)) >> 1);
    bin(e, SUB_TYPE_B + 3, type > 10 ? type - 11 : (type - (type > 6 ? 7 : 3)) & 1);
}

void cabac_put_sub_type(struct avc_encoder *e, int type)
{
    if (e->d->type == B_SLICE) {
        b_sub_type(e, type);
        return;
    }
    bin(e, SUB_TYPE_P, !type);
    if (!type)
        return;
    bin(e, SUB_TYPE_P + 1, type > 1);
    if (type > 1)
        bin(e, SUB_TYPE_P + 2, type == 2);
}

void cabac_put_index(struct avc_encoder *e, int list, int quarter, int index)
{
    int x = 8 * (quarter & 1), y = 8 * (quarter >> 1);
    int context = avc_index_above_zero(e->d, avc_luma(e->d, x - 1, y), list) + 2 * avc_index_above_zero(e->d, avc_luma(e->d, x, y - 1), list);
    for (; index; index--) {
        bin(e, REF_IDX + context, 1);
        context = (context >> 2) + 4;
    }
    bin(e, REF_IDX + context, 0);
}

void cabac_put_change(struct avc_encoder *e, int list, int x, int y, int axis, int value)
{
    int sum = avc_change_at(e->d, avc_luma(e->d, x - 1, y), list, axis) + avc_change_at(e->d, avc_luma(e->d, x, y - 1), list, axis);
    int first = axis ? MVD_Y : MVD_X, context = 3, size = abs(value);
    bin(e, first + (sum < 3 ? 0 : sum > 32 ? 2 : 1), size > 0);
    if (!size)
        return;
    for (int i = 1; i < 9; i++) {
        bin(e, first + context, size > i);
        if (size == i)
            break;
        context += context < 6;
    }
    if (size >= 9)
        golomb(e, size - 9, 3);
    cabac_write_bypass(&e->cabac, value < 0);
}

void cabac_put_intra_mode(struct avc_encoder *e, int rest)
{
    bin(e, INTRA_PREDICTED, rest < 0);
    for (int i = 0; i < 3 && rest >= 0; i++)
        bin(e, INTRA_REMAINING, rest >> i & 1);
}

void cabac_put_chroma_mode(struct avc_encoder *e, int mode)
{
    bin(e, CHROMA_MODE + avc_has_chroma_mode(avc_next_to(e->d, LEFT)) + avc_has_chroma_mode(avc_next_to(e->d, ABOVE)), mode > 0);
    if (mode)
        bin(e, CHROMA_MODE + 3, mode > 1);
    if (mode > 1)
        bin(e, CHROMA_MODE + 3, mode > 2);
}

void cabac_put_pattern(struct avc_encoder *e, int pattern)
{
    for (int i = 0; i < 4; i++) {
        int x = 8 * (i & 1), y = 8 * (i >> 1);
        int context = avc_without_luma(e->d, x - 1, y, pattern) + 2 * avc_without_luma(e->d, x, y - 1, pattern);
        bin(e, PATTERN_LUMA + context, pattern >> i & 1);
    }
    if (e->d->avc->monochrome)
        return;
    int a = avc_chroma_of(avc_next_to(e->d, LEFT)), b = avc_chroma_of(avc_next_to(e->d, ABOVE)), chroma = pattern >> 4;
    bin(e, PATTERN_CHROMA + (a > 0) + 2 * (b > 0), chroma > 0);
    if (chroma)
        bin(e, PATTERN_CHROMA + 4 + (a == 2) + 2 * (b == 2), chroma == 2);
}

void cabac_put_qp_delta(struct avc_encoder *e, int delta)
{
    int context = QP_DELTA + (e->d->last_delta != 0), value = delta > 0 ? 2 * delta - 1 : -2 * delta;
    for (int i = 0; i < value; i++) {
        bin(e, context, 1);
        context = QP_DELTA + 2 + (i > 0);
    }
    bin(e, context, 0);
}

void cabac_put_transform8(struct avc_encoder *e, int transform8)
{
    const struct avc_mb *a = avc_next_to(e->d, LEFT), *b = avc_next_to(e->d, ABOVE);
    bin(e, TRANSFORM_8X8 + (a && a->transform8) + (b && b->transform8), transform8);
}

/* -- coefficients --------------------------------------------------------------------------------------------------- */

static void put_level(struct avc_encoder *e, int category, int value, int ones, int more)
{
    int first = avc_level_first[category], size = abs(value), limit = category == CHROMA_DC ? 3 : 4;
    bin(e, first + (more ? 0 : ones < 3 ? ones + 1 : 4), size > 1);
    for (int i = 2; i < 15 && size >= i; i++)
        bin(e, first + 5 + (more < limit ? more : limit), size > i);
    if (size >= 15)
        golomb(e, size - 15, 0);
    cabac_write_bypass(&e->cabac, value < 0);
}

void cabac_put_block(struct avc_encoder *e, int category, int plane, int block, const int32_t *levels, int most)
{
    const int field = e->d->field, significant = avc_significant_first[field][category], final = avc_last_first[field][category];
    int last = most - 1, ones = 0, more = 0;
    while (last >= 0 && !levels[last])
        last--;
    if (category != LUMA_8X8)
        bin(e, avc_coded_first[category] + avc_coded_nearby(e->d, category, plane, block), last >= 0);
    if (last < 0)
        return;
    for (int i = 0; i < most - 1 && i <= last; i++) {
        int at = category == LUMA_8X8 ? avc_significant_8x8[field][i] : category == CHROMA_DC ? (i < 2 ? i : 2) : i;
        bin(e, significant + at, levels[i] != 0);
        if (levels[i])
            bin(e, final + (category == LUMA_8X8 ? avc_last_8x8[i] : at), i == last);
    }
    for (int i = last; i >= 0; i--) {
        if (!levels[i])
            continue;
        put_level(e, category, levels[i], ones, more);
        if (levels[i] == 1 || levels[i] == -1)
            ones++;
        else
            more++;
    }
}
