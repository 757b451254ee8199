/* Samples of a block: prediction, and transform blocks of residuals (6.4.21). */
#include "vp9.h"

enum { DCT, ADST_DOWN, ADST_ACROSS, ADST_BOTH };

static const uint8_t types[VP9_MODES] = {DCT, ADST_DOWN, ADST_ACROSS, DCT, ADST_BOTH, ADST_DOWN, ADST_ACROSS, ADST_ACROSS, ADST_DOWN, ADST_BOTH};

/* A plane of a block, in units of 4x4 samples. */
struct part {
    int plane;
    unsigned tx, x, y, width, height; /* of the plane; sizes: with what is outside the picture */
    unsigned inside_width, inside_height;
};

static void set_part(const struct vp9_picture *p, const struct vp9_place *at, int plane, struct part *part)
{
    const struct vp9_block *b = at->block;
    unsigned shift = plane ? 0 : 1;
    part->plane = plane;
    part->tx = plane ? chroma_transform(b) : b->tx;
    part->x = at->x << shift, part->y = at->y << shift;
    part->width = units_across(b->size) << shift, part->height = units_down(b->size) << shift;
    part->inside_width = (p->columns - at->x) << shift, part->inside_height = (p->rows - at->y) << shift;
    part->inside_width = part->inside_width < part->width ? part->inside_width : part->width;
    part->inside_height = part->inside_height < part->height ? part->inside_height : part->height;
}

static int any(const uint8_t *flags, unsigned count)
{
    unsigned found = 0;
    for (unsigned i = 0; i < count; i++)
        found |= flags[i];
    return found != 0;
}

/* Outside of the picture there are no coefficients. */
static void set(uint8_t *flags, unsigned count, unsigned inside, int value)
{
    for (unsigned i = 0; i < count; i++)
        flags[i] = (uint8_t)(value && i < inside);
}

/* The residual of a transform block at (x, y) of a part; whether there is one. */
static int residual(struct vp9_picture *p, struct bools *b, const struct vp9_place *at, const struct part *part, unsigned x, unsigned y, unsigned type)
{
    uint8_t *above = p->above_nonzero[part->plane] + part->x + x, *left = p->left_nonzero[part->plane] + ((part->y + y) & (part->plane ? 7 : 15));
    const struct plane *plane = &p->picture->frame.plane[part->plane];
    unsigned size = 1u << part->tx, context = (unsigned)(any(above, size) + any(left, size));
    unsigned count = vp9_tokens(p, b, at->block, part->plane, part->tx, type, context);
    set(above, size, part->inside_width - x, count > 0);
    set(left, size, part->inside_height - y, count > 0);
    if (count)
        vp9_add(samples_at(plane, 4 * (part->x + x), 4 * (part->y + y)), (ptrdiff_t)plane->stride, p->coefficients,
                &(struct vp9_transform){part->tx, type, p->reach, p->lossless, p->depth});
    return count > 0;
}

static void intra_block(struct vp9_picture *p, struct bools *b, const struct vp9_place *at, const struct part *part, unsigned x, unsigned y)
{
    const struct vp9_block *block = at->block;
    unsigned mode = part->plane ? block->uv_mode : block->sub_modes[block->size < BLOCK_8X8 ? 2 * y + x : 0];
    struct vp9_edges edges = {4 * (part->x + x), 4 * (part->y + y), y || at->above, x || at->left, x + (1u << part->tx) < part->width};
    vp9_intra(p, part->plane, part->tx, (int)mode, &edges);
    if (!block->skip)
        residual(p, b, at, part, x, y, part->plane || p->lossless || part->tx == TX_32X32 ? DCT : types[mode]);
}

static int each_transform(struct vp9_picture *p, struct bools *b, const struct vp9_place *at, const struct part *part)
{
    unsigned step = 1u << part->tx;
    int found = 0;
    for (unsigned y = 0; y < part->inside_height; y += step)
        for (unsigned x = 0; x < part->inside_width; x += step)
            if (is_inter(at->block))
                found |= residual(p, b, at, part, x, y, DCT);
            else
                intra_block(p, b, at, part, x, y);
    return found;
}

static void clear_contexts(struct vp9_picture *p, const struct part *part)
{
    memset(p->above_nonzero[part->plane] + part->x, 0, part->width);
    memset(p->left_nonzero[part->plane] + (part->y & (part->plane ? 7 : 15)), 0, part->height);
}

void vp9_reconstruct(struct vp9_picture *p, struct bools *b, const struct vp9_place *at)
{
    struct vp9_block *block = at->block;
    int found = 0, inter = is_inter(block);
    if (inter && !vp9_predict(p, at))
        __atomic_fetch_or(&p->picture->errors, VP9_CONCEALED, __ATOMIC_RELAXED);
    for (int plane = 0; plane < PLANES; plane++) {
        struct part part;
        set_part(p, at, plane, &part);
        if (block->skip)
            clear_contexts(p, &part);
        if (!inter || !block->skip)
            found |= each_transform(p, b, at, &part);
    }
    if (inter && block->size >= BLOCK_8X8 && !found)
        block->skip = 1; /* for the loop filter, and for contexts of its neighbours */
}
