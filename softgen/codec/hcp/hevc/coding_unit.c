/* The coding quadtree and its units: what they are predicted from (7.3.8.4 to 7.3.8.7). */
#include <string.h>

#include "../../bits/reader.h"
#include "hevc.h"

/* -- quantiser (8.6.1) ---------------------------------------------------------------------------------------------- */

static int group_neighbour(const struct hevc_decoder *d, int from_x, int from_y, int x, int y)
{
    const struct hevc_picture *p = d->hevc;
    if (x < 0 || y < 0 || x >> p->log2_ctb != d->ctb_x || y >> p->log2_ctb != d->ctb_y || !hevc_available(d, from_x, from_y, x, y))
        return d->qp;
    return hevc_cu_at(p, x, y)->qp;
}

/* A quantisation group begins: d->qp is that of the last unit before it. */
static void begin_group(struct hevc_decoder *d, int x, int y)
{
    d->group_qp = (group_neighbour(d, x, y, x - 1, y) + group_neighbour(d, x, y, x, y - 1) + 1) >> 1;
    d->group_delta = d->delta_coded = 0;
}

void hevc_set_qp(struct hevc_decoder *d)
{
    int more = 6 * ((int)d->hevc->depth_luma - 8);
    d->qp = (d->group_qp + d->group_delta + 52 + 2 * more) % (52 + more) - more;
}

/* -- intra ---------------------------------------------------------------------------------------------------------- */

static int candidate_mode(const struct hevc_decoder *d, int from_x, int from_y, int x, int y)
{
    if (!hevc_available(d, from_x, from_y, x, y) || y < d->ctb_y << d->hevc->log2_ctb)
        return INTRA_DC;
    return d->hevc->modes[hevc_block_at(d->hevc, x, y)];
}

/* The three most probable modes (8.4.2). */
static void probable_modes(const struct hevc_decoder *d, int x, int y, int out[3])
{
    int a = candidate_mode(d, x, y, x - 1, y), b = candidate_mode(d, x, y, x, y - 1);
    out[0] = a;
    out[1] = b;
    if (a != b)
        out[2] = a != INTRA_PLANAR && b != INTRA_PLANAR ? INTRA_PLANAR : a != INTRA_DC && b != INTRA_DC ? INTRA_DC : INTRA_VERTICAL;
    else if (a < 2) {
        out[0] = INTRA_PLANAR;
        out[1] = INTRA_DC;
        out[2] = INTRA_VERTICAL;
    } else {
        out[1] = 2 + (a + 29) % 32;
        out[2] = 2 + (a - 1) % 32;
    }
}

static void swap_if(int *a, int *b)
{
    int low = *a < *b ? *a : *b;
    *b = *a < *b ? *b : *a;
    *a = low;
}

static int remaining_mode(int mode, int probable[3])
{
    swap_if(&probable[0], &probable[1]);
    swap_if(&probable[0], &probable[2]);
    swap_if(&probable[1], &probable[2]);
    for (int i = 0; i < 3; i++)
        mode += mode >= probable[i];
    return mode;
}

static void fill_bytes(const struct hevc_picture *p, uint8_t *bytes, int x, int y, int size, int value)
{
    for (int i = 0; i < size >> 2; i++)
        memset(bytes + hevc_block_at(p, x, y + 4 * i), value, (size_t)(size >> 2));
}

static void intra_modes(struct hevc_decoder *d)
{
    static const int chroma[4] = {INTRA_PLANAR, INTRA_VERTICAL, INTRA_HORIZONTAL, INTRA_DC};
    int parts = d->cu.part_mode == PART_NXN ? 4 : 1, size = (1 << d->cu.log2) >> (parts == 4), is_probable[4];
    for (int i = 0; i < parts; i++)
        is_probable[i] = hevc_bit(d, INTRA_MPM);
    for (int i = 0; i < parts; i++) {
        int x = d->cu.x + (i & 1) * size, y = d->cu.y + (i >> 1) * size, probable[3], index;
        if (is_probable[i])
            index = cabac_bypass(&d->cabac) ? 1 + cabac_bypass(&d->cabac) : 0;
        else
            index = (int)hevc_bypass_bits(d, 5);
        probable_modes(d, x, y, probable);
        d->cu.modes[i] = is_probable[i] ? probable[index] : remaining_mode(index, probable);
        fill_bytes(d->hevc, d->hevc->modes, x, y, size, d->cu.modes[i]);
    }
    for (int i = parts; i < 4; i++)
        d->cu.modes[i] = d->cu.modes[0];
    d->cu.chroma_mode = d->cu.modes[0];
    if (hevc_bit(d, CHROMA_MODE)) {
        int mode = chroma[hevc_bypass_bits(d, 2)];
        d->cu.chroma_mode = mode == d->cu.modes[0] ? INTRA_DIAGONAL : mode;
    }
}

/* Samples as they are (7.3.8.7); the arithmetic decoder begins again behind them. */
static void pcm_samples(struct hevc_decoder *d)
{
    const struct hevc_picture *p = d->hevc;
    struct bits bits = {d->cabac.data, d->cabac.size, 8 * cabac_position(&d->cabac)};
    for (int i = 0; i < PLANES; i++) {
        const struct plane *to = &p->picture->frame.plane[i];
        int size = (1 << d->cu.log2) >> (i > 0), coded = (int)(i ? p->pcm_chroma : p->pcm_luma), shift = hevc_depth(p, i) - coded;
        for (int y = 0; y < size; y++) {
            uint16_t *row = hevc_samples(to, d->cu.x >> (i > 0), (d->cu.y >> (i > 0)) + y);
            for (int x = 0; x < size; x++)
                row[x] = (uint16_t)(bits_read(&bits, (unsigned)coded) << (shift > 0 ? shift : 0));
        }
    }
    cabac_start(&d->cabac, d->cabac.data, d->cabac.size, (bits.at + 7) >> 3);
}

/* -- inter ---------------------------------------------------------------------------------------------------------- */

static void read_motion(struct hevc_decoder *d, const struct hevc_block *b, int depth, struct hevc_motion *m)
{
    const struct hevc_slice *s = d->slice;
    int lists = s->type == HEVC_B ? hevc_inter_lists(d, b->width, b->height, depth) : 1, change[2][2] = {{0}}, choice[2] = {0};
    for (int list = 0; list < HEVC_LISTS; list++) {
        m->index[list] = m->store[list] = -1;
        m->vector[list][0] = m->vector[list][1] = 0;
        if (!(lists >> list & 1))
            continue;
        m->index[list] = (int8_t)hevc_reference_index(d, (int)s->counts[list]);
        m->store[list] = s->list[list][m->index[list]].store;
        if (!(list && s->mvd_1_zero && lists == 3))
            hevc_vector_difference(d, change[list]);
        choice[list] = hevc_bit(d, VECTOR_PREDICTOR);
    }
    for (int list = 0; list < HEVC_LISTS; list++)
        if (lists >> list & 1) {
            hevc_predict_vector(d, b, list, m->index[list], choice[list], m->vector[list]);
            for (int i = 0; i < 2; i++)
                m->vector[list][i] = (int16_t)(m->vector[list][i] + change[list][i]);
        }
}

static void keep(struct hevc_picture *p, const struct hevc_block *b, const struct hevc_motion *m)
{
    for (int y = 0; y < b->height; y += 4) {
        struct hevc_motion *row = &p->motions[hevc_block_at(p, b->x, b->y + y)];
        uint8_t *marks = &p->marks[hevc_block_at(p, b->x, b->y + y)];
        for (int x = 0; x < b->width >> 2; x++) {
            row[x] = *m;
            if (!y)
                marks[x] |= MOTION_TOP;
        }
        marks[0] |= MOTION_LEFT;
    }
}

static void prediction_unit(struct hevc_decoder *d, const struct hevc_block *b, int skip, int depth)
{
    struct hevc_motion m;
    d->cu.merge = skip || hevc_bit(d, MERGE_FLAG);
    if (d->cu.merge)
        hevc_merge(d, b, hevc_merge_index(d), &m);
    else
        read_motion(d, b, depth, &m);
    keep(d->hevc, b, &m);
    hevc_inter(d, b, &m);
}

static void prediction_units(struct hevc_decoder *d, int skip, int depth)
{
    static const uint8_t counts[8] = {1, 2, 2, 4, 2, 2, 2, 2};
    static const uint8_t quarter[8] = {4, 2, 2, 2, 1, 3, 1, 3}; /* where the first part ends */
    int mode = d->cu.part_mode, size = 1 << d->cu.log2, flat = mode == PART_2NXN || mode == PART_2NXNU || mode == PART_2NXND;
    int first = size * quarter[mode] >> 2;
    for (int part = 0; part < counts[mode]; part++) {
        struct hevc_block b = {d->cu.x, d->cu.y, size, size, part, d->cu.x, d->cu.y, size, mode};
        int right = mode == PART_NXN ? part & 1 : part, lower = mode == PART_NXN ? part >> 1 : part;
        if (mode != PART_2NX2N && !flat) {
            b.x += right ? first : 0;
            b.width = right ? size - first : first;
        }
        if (flat || mode == PART_NXN) {
            b.y += lower ? first : 0;
            b.height = lower ? size - first : first;
        }
        prediction_unit(d, &b, skip, depth);
    }
}

/* -- units ---------------------------------------------------------------------------------------------------------- */

static void fill_cu(struct hevc_decoder *d, const struct hevc_cu *cu)
{
    for (int y = 0; y < 1 << d->cu.log2; y += 8) {
        struct hevc_cu *row = hevc_cu_at(d->hevc, d->cu.x, d->cu.y + y);
        for (int x = 0; x < 1 << d->cu.log2 >> 3; x++)
            row[x] = *cu;
    }
}

static int neighbour_flags(const struct hevc_decoder *d, int depth)
{
    int x = d->cu.x, y = d->cu.y, count = 0;
    for (int i = 0; i < 2; i++)
        if (hevc_available(d, x, y, x - !i, y - i)) {
            const struct hevc_cu *cu = hevc_cu_at(d->hevc, x - !i, y - i);
            count += depth < 0 ? cu->skip : cu->depth > depth;
        }
    return count;
}

static void clear_marks(struct hevc_decoder *d)
{
    int size = 1 << d->cu.log2;
    fill_bytes(d->hevc, d->hevc->marks, d->cu.x, d->cu.y, size, 0);
    for (int i = 0; i < size >> 2; i++) {
        d->hevc->marks[hevc_block_at(d->hevc, d->cu.x, d->cu.y + 4 * i)] |= TRANSFORM_LEFT;
        d->hevc->marks[hevc_block_at(d->hevc, d->cu.x + 4 * i, d->cu.y)] |= TRANSFORM_TOP;
    }
}

static void intra_unit(struct hevc_decoder *d, struct hevc_cu *cu)
{
    const struct hevc_picture *p = d->hevc;
    int log2 = d->cu.log2;
    if (d->cu.part_mode == PART_2NX2N && p->pcm && log2 >= (int)p->log2_pcm && log2 <= (int)p->log2_most_pcm && cabac_end(&d->cabac)) {
        cu->exact |= p->pcm_unfiltered != 0;
        fill_cu(d, cu);
        fill_bytes(p, p->modes, d->cu.x, d->cu.y, 1 << log2, INTRA_DC);
        pcm_samples(d);
        return;
    }
    fill_cu(d, cu);
    intra_modes(d);
    d->cu.most_depth = (int)p->depth_intra + (d->cu.part_mode == PART_NXN);
    hevc_transform_tree(d);
}

static void inter_unit(struct hevc_decoder *d, const struct hevc_cu *cu)
{
    fill_cu(d, cu);
    fill_bytes(d->hevc, d->hevc->modes, d->cu.x, d->cu.y, 1 << d->cu.log2, INTRA_DC);
    prediction_units(d, cu->skip, cu->depth);
    if (cu->skip)
        return;
    d->cu.most_depth = (int)d->hevc->depth_inter;
    if ((d->cu.part_mode == PART_2NX2N && d->cu.merge) || hevc_bit(d, ROOT_CBF))
        hevc_transform_tree(d);
}

static void coding_unit(struct hevc_decoder *d, int x, int y, int log2, int depth)
{
    const struct hevc_picture *p = d->hevc;
    struct hevc_cu cu = {.depth = (uint8_t)depth};
    d->cu.x = x;
    d->cu.y = y;
    d->cu.log2 = log2;
    d->cu.part_mode = PART_2NX2N;
    d->cu.bypass = p->bypass && hevc_bit(d, TRANSQUANT_BYPASS);
    cu.exact = (uint8_t)d->cu.bypass;
    if (d->slice->type != HEVC_I)
        cu.skip = (uint8_t)hevc_bit(d, CU_SKIP + neighbour_flags(d, -1));
    d->cu.intra = d->slice->type == HEVC_I || (!cu.skip && hevc_bit(d, PRED_MODE));
    if (!cu.skip && (!d->cu.intra || log2 == (int)p->log2_cu))
        d->cu.part_mode = hevc_part_mode(d, log2);
    cu.kind = d->cu.intra ? CU_INTRA : CU_INTER;
    hevc_set_qp(d);
    clear_marks(d);
    if (d->cu.intra)
        intra_unit(d, &cu);
    else
        inter_unit(d, &cu);
    for (int i = 0; i < 1 << log2; i += 8)
        for (int j = 0; j < 1 << log2; j += 8)
            hevc_cu_at(p, x + j, y + i)->qp = (int8_t)d->qp;
}

static void quadtree(struct hevc_decoder *d, int x, int y, int log2, int depth)
{
    const struct hevc_picture *p = d->hevc;
    int size = 1 << log2, split = log2 > (int)p->log2_cu;
    d->cu.x = x;
    d->cu.y = y;
    if (split && x + size <= (int)p->width && y + size <= (int)p->height)
        split = hevc_bit(d, SPLIT_CU + neighbour_flags(d, depth));
    if (log2 >= (int)(p->log2_ctb - p->delta_qp_depth))
        begin_group(d, x, y);
    if (!split) {
        coding_unit(d, x, y, log2, depth);
        return;
    }
    for (int i = 0, half = size >> 1; i < 4 && !d->error; i++)
        if (x + (i & 1) * half < (int)p->width && y + (i >> 1) * half < (int)p->height)
            quadtree(d, x + (i & 1) * half, y + (i >> 1) * half, log2 - 1, depth + 1);
}

/* The current coding tree block. */
void hevc_coding_tree(struct hevc_decoder *d)
{
    quadtree(d, d->ctb_x << d->hevc->log2_ctb, d->ctb_y << d->hevc->log2_ctb, (int)d->hevc->log2_ctb, 0);
}
