/* Merge candidates (8.5.3.2.2 to 8.5.3.2.5): motion taken from blocks beside, from the collocated picture, combined, or none. */
#include <string.h>

#include "hevc.h"

struct candidates {
    struct hevc_motion list[6];
    int count;
};

static int same_motion(const struct hevc_motion *a, const struct hevc_motion *b)
{
    if (!a || !b)
        return 0;
    for (int list = 0; list < HEVC_LISTS; list++)
        if (a->index[list] != b->index[list] || (a->index[list] >= 0 && memcmp(a->vector[list], b->vector[list], sizeof a->vector[list])))
            return 0;
    return 1;
}

/* Motion of the inter block at a place beside a prediction block, if it may be used (6.4.2); else null. */
const struct hevc_motion *hevc_neighbour(const struct hevc_decoder *d, const struct hevc_block *b, int x, int y)
{
    const struct hevc_picture *p = d->hevc;
    int inside = x >= b->cu_x && y >= b->cu_y && x < b->cu_x + b->cu_size && y < b->cu_y + b->cu_size;
    if (inside ? b->part_mode == PART_NXN && b->part == 1 && y >= b->cu_y + b->height && x < b->cu_x + b->width
               : !hevc_available(d, b->x, b->y, x, y))
        return NULL;
    return hevc_cu_at(p, x, y)->kind == CU_INTER ? &p->motions[hevc_block_at(p, x, y)] : NULL;
}

static const struct hevc_motion *beside(const struct hevc_decoder *d, const struct hevc_block *b, int x, int y)
{
    unsigned level = d->hevc->log2_merge;
    return b->x >> level == x >> level && b->y >> level == y >> level ? NULL : hevc_neighbour(d, b, x, y);
}

static void append(struct candidates *c, const struct hevc_motion *m)
{
    if (m)
        c->list[c->count++] = *m;
}

static void spatial(const struct hevc_decoder *d, const struct hevc_block *b, struct candidates *c)
{
    int right = b->x + b->width, below = b->y + b->height, mode = b->part_mode;
    int upright = mode == PART_NX2N || mode == PART_NLX2N || mode == PART_NRX2N;
    int flat = mode == PART_2NXN || mode == PART_2NXNU || mode == PART_2NXND;
    const struct hevc_motion *a1 = b->part == 1 && upright ? NULL : beside(d, b, b->x - 1, below - 1);
    const struct hevc_motion *b1 = b->part == 1 && flat ? NULL : beside(d, b, right - 1, b->y - 1);
    const struct hevc_motion *b0 = beside(d, b, right, b->y - 1), *a0 = beside(d, b, b->x - 1, below), *b2;
    append(c, a1);
    append(c, same_motion(a1, b1) ? NULL : b1);
    append(c, same_motion(b1, b0) ? NULL : b0);
    append(c, same_motion(a1, a0) ? NULL : a0);
    if (c->count == 4)
        return;
    b2 = beside(d, b, b->x - 1, b->y - 1);
    append(c, same_motion(a1, b2) || same_motion(b1, b2) ? NULL : b2);
}

static void set_list(const struct hevc_slice *s, struct hevc_motion *m, int list, int index)
{
    m->index[list] = (int8_t)index;
    m->store[list] = (int8_t)(index < 0 ? -1 : s->list[list][index].store);
    m->vector[list][0] = m->vector[list][1] = 0;
}

static void temporal(const struct hevc_decoder *d, const struct hevc_block *b, struct candidates *c)
{
    struct hevc_motion m;
    int any = 0;
    for (int list = 0; list < HEVC_LISTS; list++) {
        int16_t vector[2];
        int found = (list == 0 || d->slice->type == HEVC_B) && hevc_temporal(d, b, list, 0, vector);
        set_list(d->slice, &m, list, found ? 0 : -1);
        if (found)
            memcpy(m.vector[list], vector, sizeof vector);
        any |= found;
    }
    append(c, any ? &m : NULL);
}

/* Both lists of pairs of candidates, until there are enough. */
static void combined(const struct hevc_decoder *d, struct candidates *c, int most)
{
    static const uint8_t first[12] = {0, 1, 0, 2, 1, 2, 0, 3, 1, 3, 2, 3}, second[12] = {1, 0, 2, 0, 2, 1, 3, 0, 3, 1, 3, 2};
    const struct hevc_slice *s = d->slice;
    int count = c->count;
    for (int i = 0; count > 1 && i < count * (count - 1) && c->count < most; i++) {
        const struct hevc_motion *a = &c->list[first[i]], *b = &c->list[second[i]];
        if (a->index[0] < 0 || b->index[1] < 0)
            continue;
        if (s->list[0][a->index[0]].store == s->list[1][b->index[1]].store && !memcmp(a->vector[0], b->vector[1], sizeof a->vector[0]))
            continue;
        struct hevc_motion m = *a;
        m.index[1] = b->index[1];
        m.store[1] = b->store[1];
        memcpy(m.vector[1], b->vector[1], sizeof m.vector[1]);
        append(c, &m);
    }
}

static void zero(const struct hevc_decoder *d, struct candidates *c, int most)
{
    const struct hevc_slice *s = d->slice;
    int is_b = s->type == HEVC_B, count = (int)(is_b && s->counts[1] < s->counts[0] ? s->counts[1] : s->counts[0]);
    for (int i = 0; c->count < most; i++) {
        struct hevc_motion m;
        set_list(s, &m, 0, i < count ? i : 0);
        set_list(s, &m, 1, !is_b ? -1 : i < count ? i : 0);
        append(c, &m);
    }
}

void hevc_merge(struct hevc_decoder *d, const struct hevc_block *b, int index, struct hevc_motion *out)
{
    struct hevc_block block = *b;
    struct candidates c = {.count = 0};
    int most = (int)d->slice->merge_count;
    if (d->hevc->log2_merge > 2 && b->cu_size == 8) /* all parts of a small unit share the candidates of the whole */
        block = (struct hevc_block){b->cu_x, b->cu_y, 8, 8, 0, b->cu_x, b->cu_y, 8, PART_2NX2N};
    spatial(d, &block, &c);
    if (c.count < most)
        temporal(d, &block, &c);
    if (d->slice->type == HEVC_B && c.count < most)
        combined(d, &c, most);
    zero(d, &c, most);
    *out = c.list[index];
    if (b->width + b->height == 12 && out->index[0] >= 0 && out->index[1] >= 0)
        set_list(d->slice, out, 1, -1);
}
