/* Contexts of how a block refers to other pictures, from the blocks above and to the left (9.3.1). */
#include "vp9.h"

/* What a neighbour refers to; a picture is counted by `uses`. */
static int uses(const struct vp9_block *b, int reference)
{
    return b->reference[0] == reference || b->reference[1] == reference;
}

unsigned vp9_inter_context(const struct vp9_place *at)
{
    const struct vp9_block *above = at->above, *left = at->left;
    if (above && left)
        return !is_inter(left) && !is_inter(above) ? 3 : !is_inter(left) || !is_inter(above);
    if (above || left)
        return is_inter(above ? above : left) ? 0 : 2;
    return 0;
}

unsigned vp9_compound_context(const struct vp9_picture *p, const struct vp9_place *at)
{
    const struct vp9_block *above = at->above, *left = at->left;
    int fixed = (int)p->fixed_reference;
    if (above && left) {
        if (!is_compound(above) && !is_compound(left))
            return (above->reference[0] == fixed) ^ (left->reference[0] == fixed);
        if (is_compound(above) && is_compound(left))
            return 4;
        const struct vp9_block *single = is_compound(above) ? left : above;
        return 2 + (single->reference[0] == fixed || !is_inter(single));
    }
    if (!above && !left)
        return 1;
    const struct vp9_block *edge = above ? above : left;
    return is_compound(edge) ? 3 : edge->reference[0] == fixed;
}

/* Both neighbours have motion: by what their variable references are. */
static unsigned both_variable(const struct vp9_picture *p, const struct vp9_block *above, const struct vp9_block *left, unsigned index)
{
    int first = (int)p->variable_reference[0], second = (int)p->variable_reference[1], fixed = (int)p->fixed_reference;
    int single_above = !is_compound(above), single_left = !is_compound(left);
    int a = above->reference[single_above ? 0 : index], l = left->reference[single_left ? 0 : index];
    if (a == l && a == second)
        return 0;
    if (single_above && single_left) {
        if ((a == fixed && l == first) || (l == fixed && a == first))
            return 4;
        return a == l ? 3 : 1;
    }
    if (!single_above && !single_left)
        return a == l ? 4 : 2;
    int compound = single_left ? a : l, single = single_above ? a : l;
    if (compound == second && single != second)
        return 1;
    return single == second && compound != second ? 2 : 4;
}

unsigned vp9_compound_reference_context(const struct vp9_picture *p, const struct vp9_place *at)
{
    const struct vp9_block *above = at->above, *left = at->left;
    unsigned index = !p->sign_bias[p->fixed_reference];
    int second = (int)p->variable_reference[1];
    if (above && left && is_inter(above) && is_inter(left))
        return both_variable(p, above, left, index);
    if (above && left) {
        const struct vp9_block *edge = is_inter(above) ? above : left;
        if (!is_inter(edge))
            return 2;
        return 1 + 2 * (edge->reference[is_compound(edge) ? index : 0] != second);
    }
    const struct vp9_block *edge = above ? above : left;
    if (!edge || !is_inter(edge))
        return 2;
    return is_compound(edge) ? 4 * (edge->reference[index] != second) : 3 * (edge->reference[0] != second);
}

/* One neighbour has motion, or there is one alone. */
static unsigned one_last(const struct vp9_block *edge)
{
    return is_compound(edge) ? 1 + uses(edge, VP9_LAST) : 4 * (edge->reference[0] == VP9_LAST);
}

/* Whether a block with one reference has the last picture. */
unsigned vp9_last_context(const struct vp9_place *at)
{
    const struct vp9_block *above = at->above, *left = at->left;
    if (above && left && is_inter(above) && is_inter(left)) {
        if (is_compound(above) && is_compound(left))
            return 1 + (uses(above, VP9_LAST) || uses(left, VP9_LAST));
        if (!is_compound(above) && !is_compound(left))
            return 2 * (above->reference[0] == VP9_LAST) + 2 * (left->reference[0] == VP9_LAST);
        const struct vp9_block *single = is_compound(above) ? left : above, *compound = is_compound(above) ? above : left;
        return (single->reference[0] == VP9_LAST ? 3 : 0) + uses(compound, VP9_LAST);
    }
    const struct vp9_block *edge = above && (!left || is_inter(above)) ? above : left;
    return edge && is_inter(edge) ? one_last(edge) : 2;
}

static unsigned both_golden(const struct vp9_block *above, const struct vp9_block *left)
{
    if (is_compound(above) && is_compound(left)) {
        if (above->reference[0] != left->reference[0] || above->reference[1] != left->reference[1])
            return 2;
        return 3 * (uses(above, VP9_GOLDEN) || uses(left, VP9_GOLDEN));
    }
    if (!is_compound(above) && !is_compound(left)) {
        int a = above->reference[0], l = left->reference[0];
        if (a == VP9_LAST && l == VP9_LAST)
            return 3;
        if (a == VP9_LAST || l == VP9_LAST)
            return 4 * ((a == VP9_LAST ? l : a) == VP9_GOLDEN);
        return 2 * (a == VP9_GOLDEN) + 2 * (l == VP9_GOLDEN);
    }
    const struct vp9_block *single = is_compound(above) ? left : above, *compound = is_compound(above) ? above : left;
    if (single->reference[0] == VP9_GOLDEN)
        return 3 + uses(compound, VP9_GOLDEN);
    return single->reference[0] == VP9_ALTREF ? uses(compound, VP9_GOLDEN) : 1 + 2 * uses(compound, VP9_GOLDEN);
}

/* Whether a block whose one reference is not the last picture has the golden one. */
unsigned vp9_golden_context(const struct vp9_place *at)
{
    const struct vp9_block *above = at->above, *left = at->left;
    if (above && left && is_inter(above) && is_inter(left))
        return both_golden(above, left);
    if (above && left) {
        const struct vp9_block *edge = is_inter(above) ? above : left;
        if (!is_inter(edge))
            return 2;
        if (is_compound(edge))
            return 1 + 2 * uses(edge, VP9_GOLDEN);
        return edge->reference[0] == VP9_LAST ? 3 : 4 * (edge->reference[0] == VP9_GOLDEN);
    }
    const struct vp9_block *edge = above ? above : left;
    if (!edge || !is_inter(edge) || (edge->reference[0] == VP9_LAST && !is_compound(edge)))
        return 2;
    return is_compound(edge) ? 3 * uses(edge, VP9_GOLDEN) : 4 * (edge->reference[0] == VP9_GOLDEN);
}
