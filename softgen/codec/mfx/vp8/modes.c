/* Modes and motion vectors of VP8's macroblocks (8, 11, 16, 17). */
#include <string.h>

#include "vp8.h"

enum { SHORT_TREE = 2, LONG_BITS = 9, LONG_WIDTH = 10 }; /* places in a component's probabilities: is long, sign, then these */
enum { LEFT_BLOCK, ABOVE_BLOCK, ZERO_BLOCK, NEW_BLOCK };
enum { MARGIN = 16 * 4 }; /* how far a predicted vector may leave the picture */

static const int8_t segment_tree[] = {2, 4, 0, -1, -2, -3};
static const int8_t y_tree[] = {-DC_PRED, 2, 4, 6, -V_PRED, -H_PRED, -TM_PRED, -B_PRED};
static const int8_t key_y_tree[] = {-B_PRED, 2, 4, 6, -DC_PRED, -V_PRED, -H_PRED, -TM_PRED};
static const int8_t uv_tree[] = {-DC_PRED, 2, -V_PRED, 4, -H_PRED, -TM_PRED};
static const int8_t sub_tree[] = {-B_DC, 2, -B_TM, 4, -B_VE, 6, 8, 12, -B_HE, 10, -B_RD, -B_VR, -B_LD, 14, -B_VL, 16, -B_HD, -B_HU};
static const int8_t short_tree[] = {2, 8, 4, 6, 0, -1, -2, -3, 10, 12, -4, -5, -6, -7};
static const int8_t block_tree[] = {-LEFT_BLOCK, 2, -ABOVE_BLOCK, 4, -ZERO_BLOCK, -NEW_BLOCK};
static const uint8_t key_y_modes[4] = {145, 156, 163, 128}, key_uv_modes[3] = {142, 114, 183};
static const uint8_t sub_modes[9] = {120, 90, 79, 133, 87, 85, 80, 111, 151};
static const uint8_t vector_modes[6][4] = {
    {7, 1, 1, 143}, {14, 18, 14, 107}, {135, 64, 57, 68}, {60, 56, 128, 65}, {159, 134, 128, 34}, {234, 188, 128, 28}};
static const uint8_t block_vectors[5][3] = {{147, 136, 18}, {106, 145, 1}, {179, 121, 1}, {223, 1, 34}, {208, 1, 1}};
static const uint8_t implied_sub_mode[4] = {B_DC, B_VE, B_HE, B_TM};

/* The part of each 4x4 block: halves above each other, beside each other, quarters. */
static const uint8_t parts[3][16] = {{0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1}, {0, 0, 1, 1, 0, 0, 1, 1, 0, 0, 1, 1, 0, 0, 1, 1},
                                     {0, 0, 1, 1, 0, 0, 1, 1, 2, 2, 3, 3, 2, 2, 3, 3}};
static const uint8_t first_blocks[3][4] = {{0, 8}, {0, 2}, {0, 2, 8, 10}};

/* -- vectors -------------------------------------------------------------------------------------------------------- */

static int same(struct vp8_vector a, struct vp8_vector b)
{
    return a.x == b.x && a.y == b.y;
}

static int is_zero(struct vp8_vector v)
{
    return !v.x && !v.y;
}

static int component(struct bools *b, const uint8_t *p)
{
    int value = 0;
    if (!bools_read(b, p[0]))
        value = bools_tree(b, short_tree, p + SHORT_TREE);
    else {
        for (int i = 0; i < 3; i++)
            value |= bools_read(b, p[LONG_BITS + i]) << i;
        for (int i = LONG_WIDTH - 1; i > 3; i--)
            value |= bools_read(b, p[LONG_BITS + i]) << i;
        if (value < 16 || bools_read(b, p[LONG_BITS + 3])) /* a long number has a bit that a short one lacks */
            value += 8;
    }
    return value && bools_read(b, p[1]) ? -value : value;
}

static struct vp8_vector new_vector(struct vp8_picture *p, struct vp8_vector best)
{
    int y = component(&p->header, p->vectors[0]), x = component(&p->header, p->vectors[1]);
    return (struct vp8_vector){(int16_t)(best.x + x), (int16_t)(best.y + y)};
}

static struct vp8_vector within(const struct vp8_picture *p, struct vp8_vector v, unsigned x, unsigned y)
{
    int left = -(int)x * 64 - MARGIN, top = -(int)y * 64 - MARGIN;
    int right = ((int)p->picture->width - 1 - (int)x) * 64 + MARGIN, bottom = ((int)p->picture->height - 1 - (int)y) * 64 + MARGIN;
    return (struct vp8_vector){(int16_t)clamp(v.x, left, right), (int16_t)clamp(v.y, top, bottom)};
}

/* A neighbour's vector as this macroblock's reference sees it. */
static struct vp8_vector seen(const struct vp8_picture *p, const struct vp8_mb *from, const struct vp8_mb *mb)
{
    struct vp8_vector v = from->vectors[15];
    if (p->sign_bias[from->reference] != p->sign_bias[mb->reference])
        v = (struct vp8_vector){(int16_t)-v.x, (int16_t)-v.y};
    return v;
}

struct candidates {
    struct vp8_vector vector[4]; /* none, nearest, near, a third */
    int weight[4];
};

/* Vectors of the neighbours above, to the left, and between (16.3). */
static void find(const struct vp8_picture *p, const struct vp8_mb *mb, const struct vp8_mb *neighbours[3], struct candidates *c)
{
    int last = 0;
    memset(c, 0, sizeof *c);
    for (int i = 0; i < 3; i++) {
        const struct vp8_mb *from = neighbours[i];
        int weight = i < 2 ? 2 : 1;
        if (from->reference == INTRA_FRAME)
            continue;
        if (is_zero(from->vectors[15])) {
            c->weight[0] += weight;
            continue;
        }
        struct vp8_vector v = seen(p, from, mb);
        if (!last || !same(v, c->vector[last]))
            c->vector[++last] = v;
        c->weight[last] += weight;
    }
    if (c->weight[3] && same(c->vector[last], c->vector[1]))
        c->weight[1]++;
    if (c->weight[2] > c->weight[1]) {
        struct candidates old = *c;
        c->weight[1] = old.weight[2], c->weight[2] = old.weight[1];
        c->vector[1] = old.vector[2], c->vector[2] = old.vector[1];
    }
}

static const uint8_t *block_context(struct vp8_vector left, struct vp8_vector above)
{
    if (same(left, above))
        return block_vectors[is_zero(above) ? 4 : 3];
    return block_vectors[is_zero(above) ? 2 : is_zero(left) ? 1 : 0];
}

static void split(struct vp8_picture *p, struct vp8_mb *mb, const struct vp8_mb *above, const struct vp8_mb *left, struct vp8_vector best)
{
    struct bools *b = &p->header;
    mb->partitioning = 3;
    if (bools_read(b, 110))
        mb->partitioning = bools_read(b, 111) ? (uint8_t)bools_read(b, 150) : 2;
    int count = mb->partitioning == 3 ? 16 : mb->partitioning == 2 ? 4 : 2;
    for (int part = 0; part < count; part++) {
        int at = count == 16 ? part : first_blocks[mb->partitioning][part];
        struct vp8_vector l = at & 3 ? mb->vectors[at - 1] : left->vectors[at + 3], a = at >> 2 ? mb->vectors[at - 4] : above->vectors[at + 12];
        struct vp8_vector v = {0, 0};
        switch (bools_tree(b, block_tree, block_context(l, a))) {
        case LEFT_BLOCK: v = l; break;
        case ABOVE_BLOCK: v = a; break;
        case NEW_BLOCK: v = new_vector(p, best); break;
        }
        for (int i = 0; i < 16; i++)
            if (count == 16 ? i == part : parts[mb->partitioning][i] == part)
                mb->vectors[i] = v;
    }
}

static void inter(struct vp8_picture *p, struct vp8_mb *mb, unsigned x, unsigned y)
{
    const struct vp8_mb *left = mb - 1, *above = mb - (p->picture->width + 1);
    const struct vp8_mb *neighbours[3] = {above, left, above - 1};
    struct bools *b = &p->header;
    struct candidates c;
    struct vp8_vector v = {0, 0};
    mb->reference = LAST_FRAME;
    if (bools_read(b, p->last))
        mb->reference = bools_read(b, p->golden) ? ALTREF_FRAME : GOLDEN_FRAME;
    find(p, mb, neighbours, &c);
    mb->mode = ZERO_MV;
    if (bools_read(b, vector_modes[c.weight[0]][0])) {
        struct vp8_vector best = within(p, c.vector[c.weight[1] >= c.weight[0] ? 1 : 0], x, y);
        int splits = 2 * ((above->mode == SPLIT_MV) + (left->mode == SPLIT_MV)) + (neighbours[2]->mode == SPLIT_MV);
        if (!bools_read(b, vector_modes[c.weight[1]][1])) {
            mb->mode = NEAREST_MV;
            v = within(p, c.vector[1], x, y);
        } else if (!bools_read(b, vector_modes[c.weight[2]][2])) {
            mb->mode = NEAR_MV;
            v = within(p, c.vector[2], x, y);
        } else if (!bools_read(b, vector_modes[splits][3])) {
            mb->mode = NEW_MV;
            v = new_vector(p, best);
        } else {
            mb->mode = SPLIT_MV;
            split(p, mb, above, left, best);
            return;
        }
    }
    for (int i = 0; i < 16; i++)
        mb->vectors[i] = v;
}

/* -- modes ---------------------------------------------------------------------------------------------------------- */

static void intra(struct vp8_picture *p, struct vp8_mb *mb)
{
    const struct vp8_mb *left = mb - 1, *above = mb - (p->picture->width + 1);
    struct bools *b = &p->header;
    mb->reference = INTRA_FRAME;
    memset(mb->vectors, 0, sizeof mb->vectors);
    mb->mode = (uint8_t)(p->key_frame ? bools_tree(b, key_y_tree, key_y_modes) : bools_tree(b, y_tree, p->y_modes));
    if (mb->mode != B_PRED)
        memset(mb->sub_modes, implied_sub_mode[mb->mode], sizeof mb->sub_modes);
    else
        for (int i = 0; i < 16; i++) {
            int a = i >> 2 ? mb->sub_modes[i - 4] : above->sub_modes[i + 12], l = i & 3 ? mb->sub_modes[i - 1] : left->sub_modes[i + 3];
            mb->sub_modes[i] = (uint8_t)bools_tree(b, sub_tree, p->key_frame ? vp8_key_sub_modes[a][l] : sub_modes);
        }
    mb->uv_mode = (uint8_t)bools_tree(b, uv_tree, p->key_frame ? key_uv_modes : p->uv_modes);
}

void vp8_modes(struct vp8_picture *p, struct vp8_mb *mb, unsigned x, unsigned y)
{
    struct bools *b = &p->header;
    uint8_t *segment = p->segments + (size_t)y * p->picture->width + x;
    if (p->segmentation && p->read_segments)
        *segment = (uint8_t)bools_tree(b, segment_tree, p->segment_tree);
    mb->segment = p->segmentation ? *segment & 3 : 0;
    mb->coded = !(p->skip_enabled && bools_read(b, p->skip));
    if (p->key_frame || !bools_read(b, p->intra))
        intra(p, mb);
    else
        inter(p, mb, x, y);
}
