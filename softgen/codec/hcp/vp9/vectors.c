/* Blocks with motion (6.4.16 to 6.4.22): references, modes, and vectors predicted from neighbours and the previous picture (6.4.23). */
#include <stdlib.h>

#include "vp9.h"

enum { CANDIDATES = 8, BORDER = 16 << 3, MOST_PRECISE = 8 };

static const int8_t neighbours[BLOCK_SIZES][CANDIDATES][2] = { /* x, y */
    {{0, -1}, {-1, 0}, {-1, -1}, {0, -2}, {-2, 0}, {-1, -2}, {-2, -1}, {-2, -2}},
    {{0, -1}, {-1, 0}, {-1, -1}, {0, -2}, {-2, 0}, {-1, -2}, {-2, -1}, {-2, -2}},
    {{0, -1}, {-1, 0}, {-1, -1}, {0, -2}, {-2, 0}, {-1, -2}, {-2, -1}, {-2, -2}},
    {{0, -1}, {-1, 0}, {-1, -1}, {0, -2}, {-2, 0}, {-1, -2}, {-2, -1}, {-2, -2}},
    {{-1, 0}, {0, -1}, {-1, 1}, {-1, -1}, {-2, 0}, {0, -2}, {-1, -2}, {-2, -1}},
    {{0, -1}, {-1, 0}, {1, -1}, {-1, -1}, {0, -2}, {-2, 0}, {-2, -1}, {-1, -2}},
    {{0, -1}, {-1, 0}, {1, -1}, {-1, 1}, {-1, -1}, {0, -3}, {-3, 0}, {-3, -3}},
    {{-1, 0}, {0, -1}, {-1, 2}, {-1, -1}, {1, -1}, {-3, 0}, {0, -3}, {-3, -3}},
    {{0, -1}, {-1, 0}, {2, -1}, {-1, -1}, {-1, 1}, {0, -3}, {-3, 0}, {-3, -3}},
    {{1, -1}, {-1, 1}, {2, -1}, {-1, 2}, {-1, -1}, {0, -3}, {-3, 0}, {-3, -3}},
    {{-1, 0}, {0, -1}, {-1, 4}, {2, -1}, {-1, -1}, {-3, 0}, {0, -3}, {-1, 2}},
    {{0, -1}, {-1, 0}, {4, -1}, {-1, 2}, {-1, -1}, {0, -3}, {-3, 0}, {2, -1}},
    {{3, -1}, {-1, 3}, {4, -1}, {-1, 4}, {-1, -1}, {0, -1}, {-1, 0}, {6, -1}}};

/* Vectors found so far: two that differ. */
struct list {
    union vp9_vector found[2];
    unsigned count, wanted;
};

static int add(struct list *list, union vp9_vector vector)
{
    if (!list->count || (list->count == 1 && list->found[0].both != vector.both))
        list->found[list->count++] = vector;
    return list->count >= list->wanted;
}

/* The block that has an 8x8 which is decoded and in this tile; else null. */
static const struct vp9_block *neighbour(const struct vp9_picture *p, const struct vp9_place *at, const int8_t offset[2])
{
    int x = (int)at->x + offset[0], y = (int)at->y + offset[1];
    if (y < 0 || y >= (int)p->rows || x < (int)p->tile->first_column || x >= (int)p->tile->end_column)
        return NULL;
    return p->grid[(size_t)y * p->columns + (size_t)x];
}

static union vp9_vector turned(const struct vp9_picture *p, union vp9_vector vector, int from, int to)
{
    if (p->sign_bias[from] != p->sign_bias[to]) {
        vector.x = (int16_t)-vector.x;
        vector.y = (int16_t)-vector.y;
    }
    return vector;
}

static int add_others(const struct vp9_picture *p, struct list *list, const int8_t of[2], const union vp9_vector vectors[2], int reference)
{
    if (of[0] <= VP9_INTRA)
        return 0;
    if (of[0] != reference && add(list, turned(p, vectors[0], of[0], reference)))
        return 1;
    return of[1] > VP9_INTRA && of[1] != reference && vectors[1].both != vectors[0].both && add(list, turned(p, vectors[1], of[1], reference));
}

static int16_t within(int value, int low, int high)
{
    return (int16_t)clamp(value, low, high);
}

static void clamp_to_border(const struct vp9_picture *p, const struct vp9_place *at, union vp9_vector *v)
{
    int x = (int)at->x * 64, y = (int)at->y * 64, width = (int)units_across(at->block->size) * 64, height = (int)units_down(at->block->size) * 64;
    v->x = within(v->x, -x - BORDER, (int)p->columns * 64 - width - x + BORDER);
    v->y = within(v->y, -y - BORDER, (int)p->rows * 64 - height - y + BORDER);
}

/* The vector of a neighbour beside 4x4 block `sub`, or of its last one. */
static union vp9_vector beside(const struct vp9_block *b, int second, int is_left, int sub)
{
    static const uint8_t nearest[4][2] = {{2, 1}, {3, 1}, {2, 3}, {3, 3}}; /* above, to the left */
    if (sub < 0 || b->size >= BLOCK_8X8)
        return b->vectors[3][second];
    return b->vectors[nearest[sub][is_left]][second];
}

static int search(const struct vp9_picture *p, const struct vp9_place *at, int reference, int sub, struct list *list)
{
    const struct vp9_block *around[CANDIDATES];
    const struct vp9_motion *earlier = p->earlier ? p->earlier + (size_t)at->y * p->columns + at->x : NULL;
    for (int i = 0; i < CANDIDATES; i++) {
        const int8_t *offset = neighbours[at->block->size][i];
        around[i] = neighbour(p, at, offset);
        for (int k = 0; around[i] && k < 2; k++)
            if (around[i]->reference[k] == reference) {
                if (add(list, beside(around[i], k, offset[0] < 0, i < 2 ? sub : -1)))
                    return 1;
                break;
            }
    }
    const int8_t of[2] = {earlier ? earlier->references & 3 : 0, earlier ? earlier->references >> 4 & 3 : 0};
    const union vp9_vector vectors[2] = {earlier ? earlier->vectors[0] : (union vp9_vector){.both = 0},
                                         earlier ? earlier->vectors[1] : (union vp9_vector){.both = 0}};
    if (earlier && (of[0] == reference || of[1] == reference) && add(list, vectors[of[0] != reference]))
        return 1;
    for (int i = 0; i < CANDIDATES; i++)
        if (around[i] && add_others(p, list, around[i]->reference, around[i]->vectors[3], reference))
            return 1;
    return earlier && add_others(p, list, of, vectors, reference);
}

/* The nearest, or the nearest and the near vector of a reference; `sub`: of a 4x4 block, else negative. */
static void candidates(const struct vp9_picture *p, const struct vp9_place *at, int reference, int sub, unsigned wanted, union vp9_vector found[2])
{
    struct list list = {.wanted = wanted};
    search(p, at, reference, sub, &list);
    for (int i = 0; i < 2; i++) {
        clamp_to_border(p, at, &list.found[i]);
        found[i] = list.found[i];
    }
}

static int is_precise(union vp9_vector v)
{
    return abs(v.x) < MOST_PRECISE << 3 && abs(v.y) < MOST_PRECISE << 3;
}

static int16_t even(int value)
{
    return (int16_t)(value & 1 ? value + (value > 0 ? -1 : 1) : value);
}

static void round_vector(const struct vp9_picture *p, union vp9_vector *v)
{
    if (p->high_precision && is_precise(*v))
        return;
    v->x = even(v->x);
    v->y = even(v->y);
}

/* -- what is coded -------------------------------------------------------------------------------------------------- */

static int component(struct vp9_picture *p, struct bools *b, int i, int precise)
{
    const struct vp9_probabilities *from = p->probabilities;
    typeof(p->counts->component[0]) *counts = &p->counts->component[i];
    int negative = bools_read(b, from->component[i].sign), class = bools_tree(b, vp9_class_tree, from->component[i].classes), whole = 0;
    counts->sign[negative]++;
    counts->classes[class]++;
    if (!class) {
        whole = bools_read(b, from->component[i].class0);
        counts->class0[whole]++;
    }
    for (int k = 0; k < class; k++) {
        int bit = bools_read(b, from->component[i].bits[k]);
        counts->bits[k][bit]++;
        whole |= bit << k;
    }
    int fraction = bools_tree(b, vp9_fraction_tree, class ? from->fraction[i].other : from->fraction[i].class0[whole]);
    (class ? counts->fraction : counts->class0_fraction[whole])[fraction]++;
    int eighth = precise ? bools_read(b, class ? from->eighth[i].other : from->eighth[i].class0) : 1;
    (class ? counts->eighth : counts->class0_eighth)[eighth]++; /* also where it is not coded (8.4.4) */
    int size = (class ? 2 << (class + 2) : 0) + (whole << 3 | fraction << 1 | eighth) + 1;
    return negative ? -size : size;
}

static union vp9_vector read_vector(struct vp9_picture *p, struct bools *b, union vp9_vector near)
{
    int precise = p->high_precision && is_precise(near), joint = bools_tree(b, vp9_joint_tree, p->probabilities->joint);
    p->counts->joint[joint]++;
    if (joint & 2)
        near.y = (int16_t)(near.y + component(p, b, 0, precise));
    if (joint & 1)
        near.x = (int16_t)(near.x + component(p, b, 1, precise));
    return near;
}

static void read_references(struct vp9_picture *p, struct bools *b, const struct vp9_place *at)
{
    struct vp9_block *block = at->block;
    const struct vp9_segment *segment = &p->segment[block->segment];
    const struct vp9_probabilities *from = p->probabilities;
    int compound = p->compound == COMPOUND;
    block->reference[0] = VP9_LAST, block->reference[1] = NO_SECOND;
    if (p->segmentation && segment->has_reference) {
        block->reference[0] = (int8_t)segment->reference;
        return;
    }
    if (p->compound == COMPOUND_SELECT) {
        unsigned context = vp9_compound_context(p, at);
        compound = bools_read(b, from->compound[context]);
        p->counts->compound[context][compound]++;
    }
    if (compound) {
        unsigned context = vp9_compound_reference_context(p, at), index = p->sign_bias[p->fixed_reference];
        int bit = bools_read(b, from->compound_reference[context]);
        p->counts->compound_reference[context][bit]++;
        block->reference[index] = (int8_t)p->fixed_reference;
        block->reference[!index] = (int8_t)p->variable_reference[bit];
        return;
    }
    unsigned context = vp9_last_context(at);
    int other = bools_read(b, from->single[context][0]);
    p->counts->single[context][0][other]++;
    if (other) {
        context = vp9_golden_context(at);
        int bit = bools_read(b, from->single[context][1]);
        p->counts->single[context][1][bit]++;
        block->reference[0] = bit ? VP9_ALTREF : VP9_GOLDEN;
    }
}

static unsigned mode_context(const struct vp9_picture *p, const struct vp9_place *at)
{
    static const uint8_t weight[4] = {0, 0, 3, 1}; /* nearest, near, zero, new */
    static const uint8_t contexts[19] = {2, 3, 4, 1, 3, 0, 0, 0, 0, 5, 5, 0, 5, 0, 0, 0, 0, 0, 6};
    unsigned sum = 0;
    for (int i = 0; i < 2; i++) {
        const struct vp9_block *b = neighbour(p, at, neighbours[at->block->size][i]);
        if (b)
            sum += is_inter(b) ? weight[b->mode - NEAREST_MODE] : 9;
    }
    return contexts[sum];
}

static unsigned read_mode(struct vp9_picture *p, struct bools *b, unsigned context)
{
    unsigned mode = (unsigned)bools_tree(b, vp9_inter_mode_tree, p->probabilities->inter_mode[context]);
    p->counts->inter_mode[context][mode]++;
    return NEAREST_MODE + mode;
}

static unsigned read_filter(struct vp9_picture *p, struct bools *b, const struct vp9_place *at)
{
    if (p->filter != FILTER_SWITCHABLE)
        return p->filter;
    unsigned none = FILTER_BILINEAR, left = at->left ? at->left->filter : none, above = at->above ? at->above->filter : none;
    unsigned context = left == above ? left : left == none ? above : above == none ? left : none;
    unsigned filter = (unsigned)bools_tree(b, vp9_filter_tree, p->probabilities->filter[context]);
    p->counts->filter[context][filter]++;
    return filter;
}

/* -- vectors of a block --------------------------------------------------------------------------------------------- */

/* The nearest or near vector of a 4x4 block: blocks of the same 8x8 come before its neighbours. */
static union vp9_vector of_sub_block(const struct vp9_picture *p, const struct vp9_place *at, unsigned sub, int k, unsigned mode)
{
    const struct vp9_block *block = at->block;
    union vp9_vector list[4] = {{.both = 0}}, nearest;
    unsigned count = 0;
    if (sub && mode == NEAREST_MODE)
        return block->vectors[sub == 3 ? 2 : 0][k];
    if (sub == 3)
        list[count++] = block->vectors[1][k], list[count++] = block->vectors[0][k];
    candidates(p, at, block->reference[k], (int)sub, sub || mode == NEAR_MODE ? 2 : 1, list + count);
    if (!sub)
        return list[mode == NEAR_MODE];
    nearest = block->vectors[sub == 3 ? 2 : 0][k];
    for (unsigned i = 0; i < count + 2; i++)
        if (list[i].both != nearest.both)
            return list[i];
    return (union vp9_vector){.both = 0};
}

static void sub_blocks(struct vp9_picture *p, struct bools *b, const struct vp9_place *at, unsigned context)
{
    struct vp9_block *block = at->block;
    unsigned across = 1u << log2_width(block->size), down = 1u << log2_height(block->size);
    int count = 1 + is_compound(block), has_near = 0;
    union vp9_vector near[2] = {{.both = 0}};
    for (unsigned y = 0; y < 2; y += down)
        for (unsigned x = 0; x < 2; x += across) {
            unsigned sub = 2 * y + x, mode = read_mode(p, b, context);
            for (int k = 0; k < count && mode == NEW_MODE && !has_near; k++) {
                union vp9_vector found[2];
                candidates(p, at, block->reference[k], -1, 1, found);
                round_vector(p, &found[0]);
                near[k] = found[0];
            }
            has_near |= mode == NEW_MODE;
            union vp9_vector vectors[2] = {{.both = 0}, {.both = 0}};
            for (int k = 0; k < count && mode != ZERO_MODE; k++)
                vectors[k] = mode == NEW_MODE ? read_vector(p, b, near[k]) : of_sub_block(p, at, sub, k, mode);
            for (unsigned i = 0; i < across * down; i++)
                memcpy(block->vectors[sub + (across == 2 ? i & 1 : 0) + 2 * (across == 2 ? i >> 1 : i)], vectors, sizeof vectors);
            block->mode = (uint8_t)mode;
        }
}

static void whole_block(struct vp9_picture *p, struct bools *b, const struct vp9_place *at)
{
    struct vp9_block *block = at->block;
    int is_near = block->mode == NEAR_MODE;
    union vp9_vector vectors[2] = {{.both = 0}, {.both = 0}};
    for (int k = 0; k < 1 + is_compound(block) && block->mode != ZERO_MODE; k++) {
        union vp9_vector found[2];
        candidates(p, at, block->reference[k], -1, is_near ? 2 : 1, found);
        vectors[k] = found[is_near];
        round_vector(p, &vectors[k]);
    }
    for (int k = 0; k < 1 + is_compound(block) && block->mode == NEW_MODE; k++)
        vectors[k] = read_vector(p, b, vectors[k]);
    for (int i = 0; i < 4; i++)
        memcpy(block->vectors[i], vectors, sizeof vectors);
}

void vp9_vectors(struct vp9_picture *p, struct bools *b, const struct vp9_place *at)
{
    struct vp9_block *block = at->block;
    int skips = p->segmentation && p->segment[block->segment].skip;
    read_references(p, b, at);
    unsigned context = mode_context(p, at);
    block->mode = ZERO_MODE;
    if (!skips && block->size >= BLOCK_8X8)
        block->mode = (uint8_t)read_mode(p, b, context);
    block->filter = (uint8_t)read_filter(p, b, at);
    memset(block->sub_modes, DC_MODE, sizeof block->sub_modes);
    block->uv_mode = DC_MODE;
    if (block->size < BLOCK_8X8 && !skips)
        sub_blocks(p, b, at, context);
    else
        whole_block(p, b, at);
}
