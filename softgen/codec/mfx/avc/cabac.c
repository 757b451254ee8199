/* Syntax elements in arithmetic codes (9.3.2, 9.3.3.1). */
#include "cabac_contexts.h"


static int bin(struct avc_decoder *d, int context)
{
    return cabac_bit(&d->cabac, &d->contexts[context]);
}

void cabac_contexts(struct avc_decoder *d)
{
    const struct avc_slice *s = d->slice;
    const int8_t (*table)[2] = avc_context_init[s->type == I_SLICE ? 0 : s->cabac_init + 1];
    for (int i = 0; i < AVC_CONTEXTS; i++)
        d->contexts[i] = cabac_context(table[i][0], table[i][1], clamp((int)s->qp, 0, 51));
}

/* The macroblocks at the left and above. */
const struct avc_mb *avc_next_to(const struct avc_decoder *d, int which)
{
    return which == LEFT ? avc_neighbour(d, -1, 0, 16, 16).mb : avc_neighbour(d, 0, -1, 16, 16).mb;
}

int cabac_skip(struct avc_decoder *d)
{
    const struct avc_mb *a = avc_next_to(d, LEFT), *b = avc_next_to(d, ABOVE);
    return bin(d, (d->type == P_SLICE ? MB_SKIP_P : MB_SKIP_B) + (a && !a->skip) + (b && !b->skip));
}

int cabac_field(struct avc_decoder *d)
{
    return bin(d, FIELD_FLAG + (d->beside[0] && d->beside[0]->field) + (d->beside[1] && d->beside[1]->field));
}

/* mb_type of intra macroblocks: 0 I_NxN, 1 to 24 Intra_16x16, 25 I_PCM. `first`: the first bin's context; `inter`: in P and B slices. */
static int intra_type(struct avc_decoder *d, int first, int inter)
{
    if (!inter) {
        const struct avc_mb *a = avc_next_to(d, LEFT), *b = avc_next_to(d, ABOVE);
        if (!bin(d, first + (a && a->kind != INTRA_4X4 && a->kind != INTRA_8X8) + (b && b->kind != INTRA_4X4 && b->kind != INTRA_8X8)))
            return 0;
        first += 2;
    } else if (!bin(d, first))
        return 0;
    if (cabac_end(&d->cabac))
        return 25;
    int type = 1 + 12 * bin(d, first + 1);
    if (bin(d, first + 2))
        type += 4 + 4 * bin(d, first + 2 + !inter);
    type += 2 * bin(d, first + 3 + !inter);
    return type + bin(d, first + 3 + 2 * !inter);
}

static int p_type(struct avc_decoder *d)
{
    if (bin(d, MB_TYPE_P))
        return 5 + intra_type(d, MB_TYPE_P + 3, 1);
    if (bin(d, MB_TYPE_P + 1))
        return bin(d, MB_TYPE_P + 3) ? 1 : 2;
    return bin(d, MB_TYPE_P + 2) ? 3 : 0;
}

static int b_type(struct avc_decoder *d)
{
    const struct avc_mb *a = avc_next_to(d, LEFT), *b = avc_next_to(d, ABOVE);
    int first = MB_TYPE_B + (a && !(a->kind == INTER && a->direct == 31)) + (b && !(b->kind == INTER && b->direct == 31)), bits;
    if (!bin(d, first))
        return 0;
    if (!bin(d, MB_TYPE_B + 3))
        return 1 + bin(d, MB_TYPE_B + 5);
    bits = bin(d, MB_TYPE_B + 4) << 3;
    bits |= bin(d, MB_TYPE_B + 5) << 2;
    bits |= bin(d, MB_TYPE_B + 5) << 1;
    bits |= bin(d, MB_TYPE_B + 5);
    if (bits < 8)
        return bits + 3;
    if (bits == 13)
        return 23 + intra_type(d, MB_TYPE_B + 5, 1);
    if (bits == 14)
        return 11;
    if (bits == 15)
        return 22;
    return (bits << 1 | bin(d, MB_TYPE_B + 5)) - 4;
}

int cabac_mb_type(struct avc_decoder *d)
{
    return d->type == I_SLICE ? intra_type(d, MB_TYPE_I, 0) : d->type == P_SLICE ? p_type(d) : b_type(d);
}

int cabac_sub_type(struct avc_decoder *d)
{
    if (d->type == P_SLICE) {
        if (bin(d, SUB_TYPE_P))
            return 0;
        if (!bin(d, SUB_TYPE_P + 1))
            return 1;
        return bin(d, SUB_TYPE_P + 2) ? 2 : 3;
    }
    if (!bin(d, SUB_TYPE_B))
        return 0;
    if (!bin(d, SUB_TYPE_B + 1))
        return 1 + bin(d, SUB_TYPE_B + 3);
    int type = 3;
    if (bin(d, SUB_TYPE_B + 2)) {
        if (bin(d, SUB_TYPE_B + 3))
            return 11 + bin(d, SUB_TYPE_B + 3);
        type += 4;
    }
    type += 2 * bin(d, SUB_TYPE_B + 3);
    return type + bin(d, SUB_TYPE_B + 3);
}

/* Whether the reference index of the block at a place is greater than zero, as the current macroblock counts it. */
int avc_index_above_zero(const struct avc_decoder *d, struct avc_place p, int list)
{
    if (!p.mb || p.mb->kind != INTER)
        return 0;
    int quarter = (p.y >> 3) * 2 + (p.x >> 3);
    if (p.mb->direct >> quarter & 1)
        return 0;
    return p.mb->index[list][quarter] > (d->avc->mbaff && !d->field && p.mb->field ? 1 : 0);
}

int cabac_index(struct avc_decoder *d, int list, int quarter)
{
    int x = 8 * (quarter & 1), y = 8 * (quarter >> 1), index = 0;
    int context = avc_index_above_zero(d, avc_luma(d, x - 1, y), list) + 2 * avc_index_above_zero(d, avc_luma(d, x, y - 1), list);
    while (bin(d, REF_IDX + context)) {
        context = (context >> 2) + 4;
        if (++index >= AVC_MOST_INDEX)
            return -1;
    }
    return index;
}

int avc_change_at(const struct avc_decoder *d, struct avc_place p, int list, int axis)
{
    if (!p.mb || p.mb->kind != INTER)
        return 0;
    int found = p.mb->change[list][(p.y >> 2) * 4 + (p.x >> 2)][axis];
    if (axis && d->avc->mbaff && p.mb->field != d->field)
        found = d->field ? found >> 1 : found << 1;
    return found;
}

/* mvd of a vector whose block begins at (x, y). */
int cabac_change(struct avc_decoder *d, int list, int x, int y, int axis)
{
    int sum = avc_change_at(d, avc_luma(d, x - 1, y), list, axis) + avc_change_at(d, avc_luma(d, x, y - 1), list, axis);
    int first = axis ? MVD_Y : MVD_X, context = sum < 3 ? 0 : sum > 32 ? 2 : 1, value = 0, k = 3;
    if (!bin(d, first + context))
        return 0;
    for (value = 1, context = 3; value < 9 && bin(d, first + context); value++)
        context += context < 6;
    if (value == 9) {
        for (; k < 24 && cabac_bypass(&d->cabac); k++)
            value += 1 << k;
        while (k--)
            value += cabac_bypass(&d->cabac) << k;
    }
    return cabac_bypass(&d->cabac) ? -value : value;
}

/* rem_intra_pred_mode, or -1 where the predicted mode holds. */
int cabac_intra_mode(struct avc_decoder *d)
{
    if (bin(d, INTRA_PREDICTED))
        return -1;
    int mode = bin(d, INTRA_REMAINING);
    mode |= bin(d, INTRA_REMAINING) << 1;
    return mode | bin(d, INTRA_REMAINING) << 2;
}

int avc_has_chroma_mode(const struct avc_mb *mb)
{
    return mb && is_intra(mb) && mb->kind != INTRA_PCM && mb->chroma_mode;
}

int cabac_chroma_mode(struct avc_decoder *d)
{
    if (!bin(d, CHROMA_MODE + avc_has_chroma_mode(avc_next_to(d, LEFT)) + avc_has_chroma_mode(avc_next_to(d, ABOVE))))
        return 0;
    if (!bin(d, CHROMA_MODE + 3))
        return 1;
    return 2 + bin(d, CHROMA_MODE + 3);
}

/* Whether the 8x8 block at a place has no coefficients; where there is none it counts as one that has. */
int avc_without_luma(const struct avc_decoder *d, int x, int y, int so_far)
{
    struct avc_place p = avc_luma(d, x, y);
    if (!p.mb || p.mb->kind == INTRA_PCM)
        return 0;
    int quarter = (p.y >> 3) * 2 + (p.x >> 3), pattern = p.mb == d->mb ? so_far : p.mb->skip ? 0 : p.mb->pattern;
    return !(pattern >> quarter & 1);
}

int avc_chroma_of(const struct avc_mb *mb)
{
    return !mb || mb->skip ? 0 : mb->kind == INTRA_PCM ? 2 : mb->pattern >> 4;
}

int cabac_pattern(struct avc_decoder *d)
{
    int pattern = 0;
    for (int i = 0; i < 4; i++) {
        int x = 8 * (i & 1), y = 8 * (i >> 1);
        pattern |= bin(d, PATTERN_LUMA + avc_without_luma(d, x - 1, y, pattern) + 2 * avc_without_luma(d, x, y - 1, pattern)) << i;
    }
    if (d->avc->monochrome)
        return pattern;
    int a = avc_chroma_of(avc_next_to(d, LEFT)), b = avc_chroma_of(avc_next_to(d, ABOVE));
    if (bin(d, PATTERN_CHROMA + (a > 0) + 2 * (b > 0)))
        pattern |= 16 << bin(d, PATTERN_CHROMA + 4 + (a == 2) + 2 * (b == 2));
    return pattern;
}

int cabac_qp_delta(struct avc_decoder *d)
{
    int value = 0, context = QP_DELTA + (d->last_delta != 0);
    while (bin(d, context)) {
        context = QP_DELTA + 2 + (value > 0);
        if (++value > 104)
            return 256;
    }
    return value & 1 ? (value + 1) >> 1 : -(value >> 1);
}

int cabac_transform8(struct avc_decoder *d)
{
    const struct avc_mb *a = avc_next_to(d, LEFT), *b = avc_next_to(d, ABOVE);
    return bin(d, TRANSFORM_8X8 + (a && a->transform8) + (b && b->transform8));
}
