/* Modes of a block (6.4.5 to 6.4.15): segment, skip, transform size, intra modes; those of blocks with motion are in vectors.c. */
#include "vp9.h"

/* -- segments ------------------------------------------------------------------------------------------------------- */

/* The least id that the previous map has in the block. */
static unsigned predicted_segment(const struct vp9_picture *p, const struct vp9_place *at)
{
    unsigned least = VP9_SEGMENTS - 1;
    for (unsigned y = 0; y < at->height; y++)
        for (unsigned x = 0; x < at->width; x++) {
            unsigned id = p->earlier_segments[(size_t)(at->y + y) * p->columns + at->x + x];
            least = id < least ? id : least;
        }
    return least;
}

static void keep_segment(struct vp9_picture *p, const struct vp9_place *at, int id)
{
    for (unsigned y = 0; y < at->height; y++) {
        size_t row = (size_t)(at->y + y) * p->columns + at->x;
        if (id < 0)
            memcpy(p->segments + row, p->earlier_segments + row, at->width);
        else
            memset(p->segments + row, id, at->width);
    }
}

static unsigned read_segment(struct vp9_picture *p, struct bools *b, const struct vp9_place *at)
{
    const struct vp9_probabilities *from = p->probabilities;
    unsigned id;
    if (!p->segmentation)
        return 0;
    if (!p->update_map) {
        keep_segment(p, at, -1);
        return p->intra_only ? 0 : predicted_segment(p, at);
    }
    if (!p->intra_only && p->temporal_update) {
        unsigned context = (at->above ? at->above->segment_predicted : 0u) + (at->left ? at->left->segment_predicted : 0u);
        at->block->segment_predicted = (uint8_t)bools_read(b, from->segment_predicted[context]);
    }
    id = at->block->segment_predicted ? predicted_segment(p, at) : (unsigned)bools_tree(b, vp9_segment_tree, from->segment_tree);
    keep_segment(p, at, (int)id);
    return id;
}

/* -- transform size ------------------------------------------------------------------------------------------------- */

static unsigned read_skip(struct vp9_picture *p, struct bools *b, const struct vp9_place *at)
{
    if (p->segmentation && p->segment[at->block->segment].skip)
        return 1;
    unsigned context = (at->above ? at->above->skip : 0u) + (at->left ? at->left->skip : 0u);
    unsigned skip = (unsigned)bools_read(b, p->probabilities->skip[context]);
    p->counts->skip[context][skip]++;
    return skip;
}

static unsigned transform_context(const struct vp9_place *at, unsigned most)
{
    unsigned above = at->above && !at->above->skip ? at->above->tx : most, left = at->left && !at->left->skip ? at->left->tx : most;
    if (!at->left)
        left = above;
    if (!at->above)
        above = left;
    return above + left > most;
}

static unsigned read_transform(struct vp9_picture *p, struct bools *b, const struct vp9_place *at, int may_select)
{
    unsigned most = largest_transform(at->block->size), tx = 0;
    if (!may_select || p->tx_mode != TX_SELECT || at->block->size < BLOCK_8X8)
        return p->tx_mode < most ? p->tx_mode : most;
    unsigned context = transform_context(at, most);
    const uint8_t *from = most == TX_8X8 ? p->probabilities->tx_8[context]
                        : most == TX_16X16 ? p->probabilities->tx_16[context] : p->probabilities->tx_32[context];
    uint32_t *counts = most == TX_8X8 ? p->counts->tx_8[context] : most == TX_16X16 ? p->counts->tx_16[context] : p->counts->tx_32[context];
    while (tx < most && bools_read(b, from[tx]))
        tx++;
    counts[tx]++;
    return tx;
}

/* -- intra ---------------------------------------------------------------------------------------------------------- */

static unsigned neighbour_mode(const struct vp9_block *b, unsigned sub)
{
    return b && !is_inter(b) ? b->sub_modes[sub] : DC_MODE;
}

/* Of a picture without references: each by the modes above and to the left. */
static void key_modes(struct bools *b, const struct vp9_place *at)
{
    struct vp9_block *block = at->block;
    unsigned across = log2_width(block->size) ? 2 : 1, down = log2_height(block->size) ? 2 : 1; /* 4x4 blocks that share a mode */
    for (unsigned i = 0; i < 4; i++) {
        if ((across == 2 && i & 1) || (down == 2 && i & 2)) {
            block->sub_modes[i] = block->sub_modes[across == 2 && i & 1 ? i - 1 : i - 2];
            continue;
        }
        unsigned above = i & 2 ? block->sub_modes[i - 2] : neighbour_mode(at->above, i + 2);
        unsigned left = i & 1 ? block->sub_modes[i - 1] : neighbour_mode(at->left, i + 1);
        block->sub_modes[i] = (uint8_t)bools_tree(b, vp9_mode_tree, vp9_key_modes[above][left]);
    }
}

static void intra_modes(struct vp9_picture *p, struct bools *b, struct vp9_block *block)
{
    unsigned across = log2_width(block->size) ? 2 : 1, down = log2_height(block->size) ? 2 : 1;
    unsigned group = largest_transform(block->size);
    for (unsigned i = 0; i < 4; i++) {
        if ((across == 2 && i & 1) || (down == 2 && i & 2)) {
            block->sub_modes[i] = block->sub_modes[across == 2 && i & 1 ? i - 1 : i - 2];
            continue;
        }
        block->sub_modes[i] = (uint8_t)bools_tree(b, vp9_mode_tree, p->probabilities->y_mode[group]);
        p->counts->y_mode[group][block->sub_modes[i]]++;
    }
}

static void read_intra(struct vp9_picture *p, struct bools *b, const struct vp9_place *at)
{
    struct vp9_block *block = at->block;
    block->reference[0] = VP9_INTRA, block->reference[1] = NO_SECOND;
    block->filter = FILTER_BILINEAR; /* a context of its own */
    if (p->intra_only)
        key_modes(b, at);
    else
        intra_modes(p, b, block);
    block->mode = block->sub_modes[3];
    block->uv_mode = (uint8_t)bools_tree(b, vp9_mode_tree, p->probabilities->uv_mode[block->mode]);
    p->counts->uv_mode[block->mode][block->uv_mode]++;
}

/* -- a block -------------------------------------------------------------------------------------------------------- */

static int read_inter(struct vp9_picture *p, struct bools *b, const struct vp9_place *at)
{
    const struct vp9_segment *segment = &p->segment[at->block->segment];
    if (p->intra_only)
        return 0;
    if (p->segmentation && segment->has_reference)
        return segment->reference != VP9_INTRA;
    unsigned context = vp9_inter_context(at);
    int inter = bools_read(b, p->probabilities->inter[context]);
    p->counts->inter[context][inter]++;
    return inter;
}

static void keep_motion(struct vp9_picture *p, const struct vp9_place *at)
{
    const struct vp9_block *block = at->block;
    struct vp9_motion motion = {{block->vectors[3][0], block->vectors[3][1]}, 0};
    motion.references = (uint8_t)(block->reference[0] | (is_compound(block) ? block->reference[1] << 4 : 0));
    for (unsigned y = 0; y < at->height; y++)
        for (unsigned x = 0; x < at->width; x++)
            p->motion[(size_t)(at->y + y) * p->columns + at->x + x] = motion;
}

void vp9_modes(struct vp9_picture *p, struct bools *b, const struct vp9_place *at)
{
    struct vp9_block *block = at->block;
    block->segment = (uint8_t)read_segment(p, b, at);
    block->skip = (uint8_t)read_skip(p, b, at);
    int inter = read_inter(p, b, at);
    block->tx = (uint8_t)read_transform(p, b, at, !block->skip || !inter);
    if (inter)
        vp9_vectors(p, b, at);
    else
        read_intra(p, b, at);
    block->level = p->segment[block->segment].levels[block->reference[0]][inter && block->mode != ZERO_MODE];
    keep_motion(p, at);
}
