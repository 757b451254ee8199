/* Syntax elements of more than one bin, and the first states of contexts (9.3). */
#include <string.h>

#include "hevc.h"

void hevc_contexts(struct hevc_decoder *d)
{
    const struct hevc_slice *s = d->slice;
    int kind = s->type == HEVC_I ? 0 : (s->type == HEVC_P) != (s->cabac_init != 0) ? 1 : 2, qp = clamp(s->qp, 0, 51);
    for (int i = 0; i < HEVC_CONTEXTS; i++) {
        int value = hevc_context_init[kind][i];
        d->contexts[i] = cabac_context((value >> 4) * 5 - 45, ((value & 15) << 3) - 16, qp);
    }
}

unsigned hevc_bypass_bits(struct hevc_decoder *d, int count)
{
    unsigned value = 0;
    while (count-- > 0)
        value = value << 1 | (unsigned)cabac_bypass(&d->cabac);
    return value;
}

/* Ones up to `most`, without contexts. */
static int ones(struct hevc_decoder *d, int most)
{
    int count = 0;
    while (count < most && cabac_bypass(&d->cabac))
        count++;
    return count;
}

/* EGk of 9.3.3.5; a prefix that is too long is an error. */
static int exp_golomb(struct hevc_decoder *d, int k)
{
    int value = 0;
    while (cabac_bypass(&d->cabac)) {
        value += 1 << k++;
        if (k > 20) {
            d->error = 1;
            return 0;
        }
    }
    return value + (int)hevc_bypass_bits(d, k);
}

/* -- sample adaptive offset (7.3.8.3) ------------------------------------------------------------------------------- */

static const struct hevc_ctb *sao_source(struct hevc_decoder *d)
{
    const struct hevc_picture *p = d->hevc;
    const struct hevc_ctb *left = d->ctb - 1, *above = d->ctb - p->across;
    if (d->ctb_x && left->slice == d->slice_address && p->tiles[d->address - 1] == p->tiles[d->address] && hevc_bit(d, SAO_MERGE))
        return left;
    if (d->ctb_y && above->slice == d->slice_address && p->tiles[d->address - (int)p->across] == p->tiles[d->address]
        && hevc_bit(d, SAO_MERGE))
        return above;
    return NULL;
}

static void sao_offsets(struct hevc_decoder *d, struct hevc_sao *sao, int component)
{
    int depth = hevc_depth(d->hevc, component), most = (1 << ((depth < 10 ? depth : 10) - 5)) - 1, shift = depth > 10 ? depth - 10 : 0;
    int16_t *offset = sao->offset[component];
    for (int i = 0; i < 4; i++)
        offset[i] = (int16_t)ones(d, most);
    if (sao->type[component] == 1) {
        for (int i = 0; i < 4; i++)
            if (offset[i] && cabac_bypass(&d->cabac))
                offset[i] = (int16_t)-offset[i];
        sao->place[component] = (uint8_t)hevc_bypass_bits(d, 5);
    } else {
        offset[2] = (int16_t)-offset[2];
        offset[3] = (int16_t)-offset[3];
        sao->place[component] = component == 2 ? sao->place[1] : (uint8_t)hevc_bypass_bits(d, 2);
    }
    for (int i = 0; i < 4; i++)
        offset[i] = (int16_t)(offset[i] * (1 << shift));
}

void hevc_read_sao(struct hevc_decoder *d)
{
    const struct hevc_slice *s = d->slice;
    struct hevc_sao *sao = &d->ctb->sao;
    memset(sao, 0, sizeof *sao);
    if (!s->sao_luma && !s->sao_chroma)
        return;
    d->hevc->uses_sao = 1;
    const struct hevc_ctb *source = sao_source(d);
    if (source) {
        *sao = source->sao;
        return;
    }
    for (int i = 0; i < PLANES; i++) {
        if (!(i ? s->sao_chroma : s->sao_luma))
            continue;
        if (i == 2)
            sao->type[2] = sao->type[1];
        else if (hevc_bit(d, SAO_TYPE))
            sao->type[i] = (uint8_t)(1 + cabac_bypass(&d->cabac));
        if (sao->type[i])
            sao_offsets(d, sao, i);
    }
}

/* -- coding and prediction units ------------------------------------------------------------------------------------ */

int hevc_qp_delta(struct hevc_decoder *d)
{
    int value = 0;
    while (value < 5 && hevc_bit(d, QP_DELTA + (value > 0)))
        value++;
    if (value == 5)
        value += exp_golomb(d, 0);
    return value && cabac_bypass(&d->cabac) ? -value : value;
}

int hevc_part_mode(struct hevc_decoder *d, int log2)
{
    int least = log2 == (int)d->hevc->log2_cu;
    if (hevc_bit(d, PART_MODE))
        return PART_2NX2N;
    if (d->cu.intra)
        return PART_NXN;
    int flat = hevc_bit(d, PART_MODE + 1);
    if (least) {
        if (flat)
            return PART_2NXN;
        return log2 == 3 || hevc_bit(d, PART_MODE + 2) ? PART_NX2N : PART_NXN;
    }
    if (!d->hevc->amp || hevc_bit(d, PART_MODE + 3))
        return flat ? PART_2NXN : PART_NX2N;
    return (flat ? PART_2NXNU : PART_NLX2N) + cabac_bypass(&d->cabac);
}

int hevc_merge_index(struct hevc_decoder *d)
{
    int most = (int)d->slice->merge_count - 1;
    return most > 0 && hevc_bit(d, MERGE_INDEX) ? 1 + ones(d, most - 1) : 0;
}

/* Lists that a block of a B slice uses, as bits. */
int hevc_inter_lists(struct hevc_decoder *d, int width, int height, int depth)
{
    if (width + height != 12 && hevc_bit(d, INTER_LISTS + depth))
        return 3;
    return hevc_bit(d, INTER_LISTS + 4) ? 2 : 1;
}

int hevc_reference_index(struct hevc_decoder *d, int count)
{
    int index = 0;
    while (index < count - 1 && index < 2 && hevc_bit(d, REFERENCE + index))
        index++;
    return index == 2 ? 2 + ones(d, count - 3) : index;
}

void hevc_vector_difference(struct hevc_decoder *d, int out[2])
{
    int size[2];
    for (int i = 0; i < 2; i++)
        size[i] = hevc_bit(d, VECTOR_0);
    for (int i = 0; i < 2; i++)
        size[i] += size[i] && hevc_bit(d, VECTOR_1);
    for (int i = 0; i < 2; i++) {
        if (size[i] == 2)
            size[i] += exp_golomb(d, 1);
        out[i] = size[i] && cabac_bypass(&d->cabac) ? -size[i] : size[i];
    }
}
