/* The transform tree of a coding unit (7.3.8.8, 7.3.8.10): intra prediction and residuals, block by block. */
#include "hevc.h"

struct node { /* of the tree; cb and cr: chroma of the node has coefficients */
    int x, y, base_x, base_y, log2, depth, part, cb, cr;
};

static void read_qp_delta(struct hevc_decoder *d)
{
    int more = 3 * ((int)d->hevc->depth_luma - 8);
    if (!d->hevc->delta_qp || d->delta_coded)
        return;
    d->group_delta = hevc_qp_delta(d);
    d->delta_coded = 1;
    if (d->group_delta < -(26 + more) || d->group_delta > 25 + more) {
        d->group_delta = 0;
        d->error = 1;
    }
    hevc_set_qp(d);
}

static void block(struct hevc_decoder *d, int x, int y, int log2, int component, int mode, int coded)
{
    int shift = component > 0;
    if (d->cu.intra)
        hevc_intra(d, x >> shift, y >> shift, log2, component, mode);
    if (coded)
        hevc_residual(d, x >> shift, y >> shift, log2, component, mode);
}

static void mark(struct hevc_decoder *d, const struct node *n, int coded)
{
    const struct hevc_picture *p = d->hevc;
    for (int y = 0; y < 1 << n->log2 >> 2; y++) {
        uint8_t *row = p->marks + hevc_block_at(p, n->x, n->y + 4 * y);
        row[0] |= TRANSFORM_LEFT;
        for (int x = 0; x < 1 << n->log2 >> 2; x++)
            row[x] |= (uint8_t)((coded ? HAS_COEFFICIENTS : 0) | (y ? 0 : TRANSFORM_TOP));
    }
}

static void transform_unit(struct hevc_decoder *d, const struct node *n, int coded)
{
    int luma_mode = d->cu.modes[d->cu.part_mode == PART_NXN && d->cu.intra ? (n->x - d->cu.x) >> (d->cu.log2 - 1)
                                | (n->y - d->cu.y) >> (d->cu.log2 - 1) << 1 : 0];
    if (coded || n->cb || n->cr)
        read_qp_delta(d);
    mark(d, n, coded);
    block(d, n->x, n->y, n->log2, 0, luma_mode, coded);
    if (n->log2 > 2) {
        block(d, n->x, n->y, n->log2 - 1, 1, d->cu.chroma_mode, n->cb);
        block(d, n->x, n->y, n->log2 - 1, 2, d->cu.chroma_mode, n->cr);
    } else if (n->part == 3) {
        block(d, n->base_x, n->base_y, 2, 1, d->cu.chroma_mode, n->cb);
        block(d, n->base_x, n->base_y, 2, 2, d->cu.chroma_mode, n->cr);
    }
}

static int splits(struct hevc_decoder *d, const struct node *n)
{
    const struct hevc_picture *p = d->hevc;
    int parts = d->cu.part_mode == PART_NXN && d->cu.intra && !n->depth;
    if (n->log2 <= (int)p->log2_most_transform && n->log2 > (int)p->log2_transform && n->depth < d->cu.most_depth && !parts)
        return hevc_bit(d, SPLIT_TRANSFORM + 5 - n->log2);
    return n->log2 > (int)p->log2_most_transform || parts
           || (!p->depth_inter && !d->cu.intra && d->cu.part_mode != PART_2NX2N && !n->depth && n->log2 > (int)p->log2_transform);
}

static void tree(struct hevc_decoder *d, struct node n)
{
    int split = splits(d, &n);
    if (n.log2 > 2) {
        n.cb = n.cb && hevc_bit(d, CBF_CHROMA + n.depth);
        n.cr = n.cr && hevc_bit(d, CBF_CHROMA + n.depth);
    }
    if (!split) {
        int coded = !(d->cu.intra || n.depth || n.cb || n.cr) || hevc_bit(d, CBF_LUMA + !n.depth);
        transform_unit(d, &n, coded);
        return;
    }
    for (int i = 0, half = 1 << n.log2 >> 1; i < 4 && !d->error; i++) {
        struct node child = {n.x + (i & 1) * half, n.y + (i >> 1) * half, n.x, n.y, n.log2 - 1, n.depth + 1, i, n.cb, n.cr};
        tree(d, child);
    }
}

void hevc_transform_tree(struct hevc_decoder *d)
{
    tree(d, (struct node){d->cu.x, d->cu.y, d->cu.x, d->cu.y, d->cu.log2, 0, 0, 1, 1});
}
