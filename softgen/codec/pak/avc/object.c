/* Macroblocks as MFC_AVC_PAK_OBJECT says they are (bits of its dwords: public mfxFeiPakMBCtrl), and a slice of them. */
#include <string.h>

#include "object.h"

enum { TYPE_8X8 = 22, PCM_TYPE = 25, ALL_DIRECT = 31, BLOCKS = 16, PAIR_BYTES = 8 };

static unsigned field(const uint32_t *dwords, unsigned dword, unsigned high, unsigned low)
{
    return dwords[dword] >> low & ((2u << (high - low)) - 1);
}

/* -- motion --------------------------------------------------------------------------------------------------------- */

static void part_types(struct avc_choice *c, unsigned type)
{
    unsigned pair = (type - 4) >> 1;
    for (int i = 0; i < 4; i++)
        c->uses[i] = (uint8_t)(type < 4 ? type : avc_b_parts[pair][(c->shape == 1 ? i >> 1 : i & 1)]);
}

static void sub_types(struct avc_choice *c, const uint32_t *o)
{
    for (unsigned i = 0; i < 4; i++) {
        unsigned lists = field(o, 7, 9 + 2 * i, 8 + 2 * i);
        c->sub[i] = (uint8_t)field(o, 7, 1 + 2 * i, 2 * i);
        c->uses[i] = (uint8_t)(lists < 2 ? lists + 1 : 3);
        if (c->direct >> i & 1)
            c->sub[i] = c->uses[i] = 0;
    }
    if ((c->direct & 15) == 15)
        c->direct = ALL_DIRECT;
}

/* Vectors of the 16 blocks in coding order, or of the four 8x8 blocks: a pair for both lists each. */
static int read_vectors(const struct pak_objects *r, struct avc_choice *c, const struct pak_object *o)
{
    struct surface line = {.base = r->vectors, .pitch = INT64_MAX};
    int16_t pairs[BLOCKS][AVC_LISTS][2];
    unsigned count = o->length / PAIR_BYTES;
    if (count != 4 && count != BLOCKS)
        return 0;
    read_surface_row(&r->memory, &line, o->offset, 0, (uint8_t *)pairs, o->length);
    for (int i = 0; i < BLOCKS; i++)
        for (int list = 0; list < AVC_LISTS; list++)
            memcpy(c->vector[list][avc_raster(i)], pairs[count == 4 ? i >> 2 : i][list], sizeof pairs[0][0]);
    return 1;
}

/* What the object's parts leave undivided has one vector: that of its first block. */
static void spread(struct avc_choice *c)
{
    static const uint8_t across[4] = {2, 2, 1, 1}, down[4] = {2, 1, 2, 1};
    for (int list = 0; list < AVC_LISTS; list++)
        for (int y = 0; y < 4; y++)
            for (int x = 0; x < 4; x++) {
                int shape = c->shape, sub = c->sub[(y >> 1) * 2 + (x >> 1)], fx = x, fy = y;
                if (shape == 3) {
                    fx -= x % across[sub];
                    fy -= y % down[sub];
                } else {
                    fx = shape == 2 ? x & 2 : 0;
                    fy = shape == 1 ? y & 2 : 0;
                }
                memcpy(c->vector[list][4 * y + x], c->vector[list][4 * fy + fx], sizeof c->vector[0][0]);
            }
}

static enum pak_error check_indices(const struct avc_encoder *e, const struct avc_choice *c)
{
    for (int list = 0; list < AVC_LISTS; list++)
        for (int q = 0; q < 4; q++) {
            struct avc_reference room;
            if (!(c->uses[q] >> list & 1))
                continue;
            if (c->index[list][q] < 0 || (uint32_t)c->index[list][q] >= e->slice->counts[list]
                || !avc_reference(e->d, list, c->index[list][q], &room)
                || !reference_frame(e->d->avc->picture, (unsigned)e->slice->list[list][(int)c->index[list][q]].store))
                return PAK_NO_REFERENCE;
        }
    return PAK_FINE;
}

static enum pak_error inter(const struct pak_objects *r, const struct pak_object *o, struct avc_choice *c)
{
    const struct avc_encoder *e = r->encoder;
    unsigned type = field(o->dwords, 3, 12, 8);
    c->kind = INTER;
    c->shape = (uint8_t)field(o->dwords, 3, 1, 0);
    if (e->d->type == I_SLICE || !type || type > TYPE_8X8 || (c->shape == 3) != (type == TYPE_8X8) || (c->shape == 0) != (type < 4))
        return PAK_BAD_TYPE;
    c->direct = (uint8_t)(e->d->type == B_SLICE && c->shape == 3 ? field(o->dwords, 6, 31, 28) : 0);
    if (c->shape == 3)
        sub_types(c, o->dwords);
    else
        part_types(c, type);
    for (unsigned q = 0; q < 4; q++) {
        if (e->d->type == P_SLICE && c->uses[q] != 1)
            return PAK_BAD_TYPE;
        c->index[0][q] = (int8_t)field(o->dwords, 8, 8 * q + 7, 8 * q);
        c->index[1][q] = (int8_t)field(o->dwords, 9, 8 * q + 7, 8 * q);
    }
    if (c->direct != ALL_DIRECT && !read_vectors(r, c, o))
        return PAK_NO_VECTORS;
    spread(c);
    c->transform8 = (uint8_t)(e->d->avc->transform8 && field(o->dwords, 3, 15, 15));
    for (int q = 0; q < 4; q++)
        if (c->sub[q] || (c->direct >> q & 1 && !e->d->avc->inference8))
            c->transform8 = 0;
    return check_indices(e, c);
}

/* -- intra ---------------------------------------------------------------------------------------------------------- */

static int has_whole(int mode, const struct avc_edges *e, int vertical, int horizontal, int plane)
{
    int left = e->left[0] && e->left[1];
    return !((mode == vertical && !e->top) || (mode == horizontal && !left) || (mode == plane && !(left && e->top && e->corner)));
}

static enum pak_error check_blocks(const struct avc_choice *c, const struct avc_edges *e)
{
    for (int i = 0; i < BLOCKS; i++) {
        int x = avc_block_x[i], y = avc_block_y[i], big = c->kind == INTRA_8X8;
        if (big) {
            x &= ~1;
            y &= ~1;
        }
        int corner = x && y ? 1 : x ? e->top : y ? e->left[(4 * y - 1) >> 3] : e->corner;
        int mode = c->modes[avc_raster(i)];
        if (mode > 8 || !avc_has_samples(mode, x || e->left[y >> 1], y || e->top, corner))
            return PAK_BAD_MODE;
    }
    return PAK_FINE;
}

static enum pak_error intra(const struct pak_objects *r, const struct pak_object *o, struct avc_choice *c)
{
    struct avc_decoder *d = r->encoder->d;
    unsigned type = field(o->dwords, 3, 12, 8), transform8 = field(o->dwords, 3, 15, 15);
    if (type > PCM_TYPE || (transform8 && (type || !d->avc->transform8)))
        return PAK_BAD_TYPE;
    c->kind = type == PCM_TYPE ? INTRA_PCM : type ? INTRA_16X16 : transform8 ? INTRA_8X8 : INTRA_4X4;
    c->transform8 = (uint8_t)transform8;
    c->intra16_mode = (uint8_t)((type - 1) & 3);
    c->chroma_mode = (uint8_t)field(o->dwords, 9, 1, 0);
    for (unsigned i = 0; i < BLOCKS; i++) {
        unsigned at = c->kind == INTRA_8X8 ? i & ~3u : i;
        c->modes[avc_raster((int)i)] = (int8_t)field(o->dwords, 7 + at / 8, 4 * (at % 8) + 3, 4 * (at % 8));
    }
    if (c->kind == INTRA_PCM)
        return PAK_FINE;
    avc_apply_choice(r->encoder, c);
    struct avc_edges edges = avc_edges_of(d);
    if (!has_whole(c->chroma_mode, &edges, 2, 1, 3))
        return PAK_BAD_MODE;
    if (c->kind == INTRA_16X16)
        return has_whole(c->intra16_mode, &edges, 0, 1, 3) ? PAK_FINE : PAK_BAD_MODE;
    return check_blocks(c, &edges);
}

/* -- both ----------------------------------------------------------------------------------------------------------- */

/* P_Skip or B_Skip, whatever else the object says. */
static enum pak_error skipped(const struct pak_objects *r, struct avc_choice *c)
{
    struct avc_decoder *d = r->encoder->d;
    c->kind = INTER;
    c->allowed = 0;
    c->keep_skip = 0;
    if (d->type == B_SLICE) {
        c->shape = 3;
        c->direct = ALL_DIRECT;
        return PAK_FINE;
    }
    if (d->type == I_SLICE)
        return PAK_BAD_TYPE;
    avc_begin_mb(d);
    d->mb->kind = INTER;
    avc_skip_motion(d);
    memcpy(c->vector, d->mb->vector, sizeof c->vector);
    memset(c->uses, 1, sizeof c->uses);
    memset(c->index[0], 0, sizeof c->index[0]);
    return check_indices(r->encoder, c);
}

static enum pak_error choice_of(const struct pak_objects *r, const struct pak_object *o, struct avc_choice *c)
{
    memset(c, 0, sizeof *c);
    memset(c->index, NO_INDEX, sizeof c->index);
    c->allowed = field(o->dwords, 4, 31, 16) | field(o->dwords, 5, 3, 0) << 16 | field(o->dwords, 5, 19, 16) << 20
               | field(o->dwords, 3, 19, 19) << 24 | field(o->dwords, 3, 18, 18) << 25 | field(o->dwords, 3, 17, 17) << 26;
    c->qp = (uint8_t)field(o->dwords, 6, 7, 0);
    c->keep_skip = (uint8_t)field(o->dwords, 6, 25, 25);
    if (c->qp > 51)
        return PAK_BAD_QP;
    if (field(o->dwords, 3, 2, 2))
        return skipped(r, c);
    return field(o->dwords, 3, 13, 13) ? intra(r, o, c) : inter(r, o, c);
}

/* Entry: objects up to the end of a row of macroblocks; answers how many are left. Their position is the slice's, and counted from there. */
ENTRY int64_t avc_pak(struct pak_objects *r, void *record)
{
    struct avc_encoder *e = r->encoder;
    struct avc_choice choice;
    (void)record;
    if (!e->begun)
        avc_begin_slice(e);
    uint64_t start = writer_position(e->writer);
    int more = 1;
    while (r->next < r->count && more) {
        const struct pak_object *o = &r->objects[r->next];
        avc_enter(e->d, e->d->x, e->d->y);
        r->error = choice_of(r, o, &choice);
        if (r->error == PAK_FINE && !avc_encode_macroblock(e, &choice))
            r->error = PAK_NO_REFERENCE;
        if (r->error != PAK_FINE)
            return 0;
        r->next++;
        e->end_x = r->next == r->count ? (e->d->x + 1) % e->d->avc->width : 0;
        e->end_y = r->next == r->count ? e->d->y + !e->end_x : UINT32_MAX;
        more = avc_next_macroblock(e);
        if (!e->d->x)
            break;
    }
    e->bits += writer_position(e->writer) - start;
    return more ? r->count - r->next : 0;
}
