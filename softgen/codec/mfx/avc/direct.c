/* Direct prediction (8.4.1.2): from neighbours, or from the motion of the collocated macroblock of list 1's first picture.
 *
 * Motion that pictures to come may need is kept in AVC_MOTION bytes a macroblock: 16 vectors of 14 and 12 bits, an id of the picture that
 * each 8x8 block refers to, and flags. A frame's macroblocks stand in raster order, those of a bottom field behind those of the top one. */
#include <stdlib.h>
#include <string.h>

#include "avc.h"

enum { X_BITS = 14, Y_BITS = 12, VECTOR_BITS = X_BITS + Y_BITS, ID_WORD = 13, FLAG_WORD = 15 };
enum { IS_INTRA = 1, IS_FIELD_MB = 2, IS_FIELD_PICTURE = 4, QUARTER_FLAGS = 8, FIRST_INDEX = 1, PARITY_SHIFT = 1 };
enum change { AS_IT_IS, FRAME_TO_FIELD, FIELD_TO_FRAME };

struct collocated {
    int intra, first_index, parity, id, vector[2];
    enum change change;
};

/* -- kept motion ---------------------------------------------------------------------------------------------------- */

static void put_bits(uint32_t *words, unsigned at, unsigned count, uint32_t value)
{
    uint64_t shifted = (uint64_t)(value & ((1u << count) - 1)) << (at & 31);
    words[at >> 5] |= (uint32_t)shifted;
    if (shifted >> 32)
        words[(at >> 5) + 1] |= (uint32_t)(shifted >> 32);
}

static int signed_bits(const uint32_t *words, unsigned at, unsigned count)
{
    uint64_t both = words[at >> 5] | (uint64_t)words[(at >> 5) + 1] << 32;
    uint32_t value = (uint32_t)(both >> (at & 31)) & ((1u << count) - 1);
    return (int)value - (int)((value >> (count - 1)) << count);
}

static void keep(const struct avc_picture *p, const struct avc_mb *mb, uint32_t words[AVC_MOTION / 4])
{
    uint16_t ids[4] = {0};
    memset(words, 0, AVC_MOTION);
    words[FLAG_WORD] = (mb->kind != INTER ? IS_INTRA : 0) | (mb->field ? IS_FIELD_MB : 0) | (p->field ? IS_FIELD_PICTURE : 0);
    for (int q = 0; q < 4 && mb->kind == INTER; q++) {
        int list = mb->index[0][q] < 0, picture = mb->picture[list][q];
        if (picture < 0)
            continue;
        ids[q] = p->ids[picture >> 2];
        words[FLAG_WORD] |= (uint32_t)((mb->index[list][q] == 0 ? FIRST_INDEX : 0) | (picture & 3) << PARITY_SHIFT) << (QUARTER_FLAGS + 4 * q);
        for (int i = 0; i < 4; i++) {
            int block = 8 * (q >> 1) + 2 * (q & 1) + 4 * (i >> 1) + (i & 1);
            put_bits(words, (unsigned)(block * VECTOR_BITS), X_BITS, (uint32_t)mb->vector[list][block][0]);
            put_bits(words, (unsigned)(block * VECTOR_BITS + X_BITS), Y_BITS, (uint32_t)mb->vector[list][block][1]);
        }
    }
    memcpy(words + ID_WORD, ids, sizeof ids);
}

void avc_keep_motion(struct avc_picture *p)
{
    uint32_t words[AVC_MOTION / 4];
    for (size_t i = 0; p->motion && i < (size_t)p->width * p->height; i++) {
        keep(p, &p->mbs[i], words);
        memcpy(p->motion + i * AVC_MOTION, words, AVC_MOTION);
    }
}

/* -- the collocated macroblock -------------------------------------------------------------------------------------- */

int avc_poc(const struct avc_picture *p, const struct avc_reference *r)
{
    int top = p->poc[2 * r->store], bottom = p->poc[2 * r->store + 1];
    return r->parity == TOP_PARITY ? top : r->parity == BOTTOM_PARITY ? bottom : top < bottom ? top : bottom;
}

/* Of the current macroblock: of its field, or of the frame. */
int avc_own_poc(const struct avc_decoder *d)
{
    const struct avc_picture *p = d->avc;
    if (p->field)
        return p->poc[32 + p->bottom];
    if (d->field)
        return p->poc[32 + (d->y & 1)];
    return p->poc[32] < p->poc[33] ? p->poc[32] : p->poc[33];
}

/* Whether the bottom field of list 1's first picture is the nearer one. */
static int bottom_is_nearer(const struct avc_decoder *d, int store)
{
    const struct avc_picture *p = d->avc;
    int own = p->poc[32] < p->poc[33] ? p->poc[32] : p->poc[33];
    return abs(p->poc[2 * store] - own) >= abs(p->poc[2 * store + 1] - own);
}

static uint32_t flags_at(const struct avc_picture *p, const uint8_t *base, unsigned x, unsigned row)
{
    uint32_t flags;
    memcpy(&flags, base + ((size_t)row * p->width + x) * AVC_MOTION + 4 * FLAG_WORD, 4);
    return flags;
}

/* Where the motion of a block at (x, y) of the current macroblock is: a row of macroblocks in `base`; y becomes that of the block there
 * (tables 8-6 and 8-8). */
static unsigned locate(const struct avc_decoder *d, const uint8_t *base, const struct avc_reference *r, int *y, enum change *change)
{
    const struct avc_picture *p = d->avc;
    unsigned half = p->field ? p->height : p->height / 2, row = d->y, lower = *y >= 8;
    int fields = (flags_at(p, base, 0, 0) & IS_FIELD_PICTURE) != 0;
    *change = AS_IT_IS;
    if (p->field) {
        if (fields)
            return row + (r->parity == BOTTOM_PARITY ? half : 0);
        if (flags_at(p, base, d->x, 2 * row) & IS_FIELD_MB)
            return 2 * row + p->bottom;
        row *= 2;
    } else if (!d->field) {
        int field_mb = !fields && flags_at(p, base, d->x, row) & IS_FIELD_MB;
        if (!fields && !field_mb)
            return row;
        *change = FIELD_TO_FRAME;
        *y = 8 * (int)(row & 1) + 4 * (int)lower;
        unsigned bottom = (unsigned)bottom_is_nearer(d, r->store);
        return fields ? row / 2 + bottom * half : (row & ~1u) + bottom;
    } else {
        if (fields)
            return row / 2 + (row & 1 ? half : 0);
        if (flags_at(p, base, d->x, row) & IS_FIELD_MB)
            return row;
        row &= ~1u;
    }
    *change = FRAME_TO_FIELD;
    *y = 2 * *y & 15;
    return row + lower;
}

static struct collocated collocated(const struct avc_decoder *d, const struct avc_reference *r, int x, int y)
{
    struct collocated found = {.intra = 1};
    const uint8_t *base = r ? d->avc->collocated[r->store] : NULL;
    uint32_t words[AVC_MOTION / 4];
    uint16_t ids[4];
    if (!base)
        return found;
    unsigned row = locate(d, base, r, &y, &found.change);
    if (row >= d->avc->height << d->avc->field) /* a pair of fields at the end of a frame that is not made of pairs */
        return found;
    memcpy(words, base + ((size_t)row * d->avc->width + d->x) * AVC_MOTION, AVC_MOTION);
    memcpy(ids, words + ID_WORD, sizeof ids);
    int quarter = (y >> 3) * 2 + (x >> 3), block = (y >> 2) * 4 + (x >> 2);
    uint32_t flags = words[FLAG_WORD] >> (QUARTER_FLAGS + 4 * quarter);
    found.intra = words[FLAG_WORD] & IS_INTRA;
    found.first_index = flags & FIRST_INDEX;
    found.parity = flags >> PARITY_SHIFT & 3;
    found.id = ids[quarter];
    found.vector[0] = signed_bits(words, (unsigned)(block * VECTOR_BITS), X_BITS);
    found.vector[1] = signed_bits(words, (unsigned)(block * VECTOR_BITS + X_BITS), Y_BITS);
    return found;
}

/* -- predictions ---------------------------------------------------------------------------------------------------- */

int avc_distance_scale(const struct avc_decoder *d, const struct avc_reference *first, const struct avc_reference *second, int *scale)
{
    int own = avc_own_poc(d), near = avc_poc(d->avc, first);
    int tb = clamp(own - near, -128, 127), td = clamp(avc_poc(d->avc, second) - near, -128, 127);
    if (!td || first->long_term)
        return 0;
    int tx = (16384 + abs(td / 2)) / td;
    *scale = clamp((tb * tx + 32) >> 6, -1024, 1023);
    return 1;
}

struct spatial {
    int index[AVC_LISTS], vector[AVC_LISTS][2], none;
};

static void set_block(struct avc_decoder *d, int list, int block, int x, int y)
{
    d->mb->vector[list][block][0] = (int16_t)x;
    d->mb->vector[list][block][1] = (int16_t)y;
}

static void spatial_block(struct avc_decoder *d, const struct spatial *s, const struct avc_reference *r, int block, int x, int y)
{
    struct collocated c = {.intra = 1};
    if (!s->none && r && !r->long_term)
        c = collocated(d, r, x, y);
    int still = !c.intra && c.first_index && abs(c.vector[0]) <= 1 && abs(c.vector[1]) <= 1;
    for (int list = 0; list < AVC_LISTS; list++) {
        int zero = s->index[list] < 0 || (still && !s->index[list]);
        set_block(d, list, block, zero ? 0 : s->vector[list][0], zero ? 0 : s->vector[list][1]);
    }
}

/* The index in list 0 of the picture that a collocated block refers to, or of its field or frame (8.4.1.2.3). */
static int index_of(const struct avc_decoder *d, const struct collocated *c)
{
    const struct avc_picture *p = d->avc;
    int own = p->field ? (p->bottom ? BOTTOM_PARITY : TOP_PARITY) : d->field ? (d->y & 1 ? BOTTOM_PARITY : TOP_PARITY) : WHOLE_FRAME;
    int parity = own == WHOLE_FRAME ? WHOLE_FRAME : c->change == FRAME_TO_FIELD ? own : c->parity;
    for (unsigned i = 0; i < d->slice->counts[0] && i < AVC_MOST_INDEX; i++) {
        const struct avc_reference *r = &d->slice->list[0][i];
        if (r->store < 0 || p->ids[r->store] != c->id)
            continue;
        if (p->mbaff && d->field)
            return 2 * (int)i + (parity != own);
        if (r->parity == parity)
            return (int)i;
    }
    return 0;
}

static void temporal_block(struct avc_decoder *d, const struct avc_reference *second, int block, int x, int y)
{
    struct collocated c = collocated(d, second, x, y);
    struct avc_reference room;
    int index = c.intra ? 0 : index_of(d, &c), scale, quarter = (block >> 3) * 2 + ((block & 3) >> 1);
    const struct avc_reference *first = avc_reference(d, 0, index, &room);
    if (c.change == FRAME_TO_FIELD)
        c.vector[1] /= 2;
    if (c.change == FIELD_TO_FRAME)
        c.vector[1] *= 2;
    d->mb->index[0][quarter] = (int8_t)index;
    d->mb->index[1][quarter] = 0;
    if (c.intra)
        c.vector[0] = c.vector[1] = 0;
    if (!first || !second || !avc_distance_scale(d, first, second, &scale)) {
        set_block(d, 0, block, c.vector[0], c.vector[1]);
        set_block(d, 1, block, 0, 0);
        return;
    }
    int mx = (scale * c.vector[0] + 128) >> 8, my = (scale * c.vector[1] + 128) >> 8;
    set_block(d, 0, block, mx, my);
    set_block(d, 1, block, mx - c.vector[0], my - c.vector[1]);
}

static struct spatial spatial(struct avc_decoder *d)
{
    struct spatial s = {.none = 0};
    for (int list = 0; list < AVC_LISTS; list++)
        s.index[list] = avc_spatial(d, list, s.vector[list]);
    if (s.index[0] < 0 && s.index[1] < 0) {
        s.index[0] = s.index[1] = 0;
        s.none = 1;
    }
    return s;
}

/* Motion of the 8x8 blocks of the current macroblock that `quarters` has bits of. */
void avc_direct(struct avc_decoder *d, unsigned quarters)
{
    struct avc_reference room;
    struct spatial s = {.none = 1};
    const struct avc_reference *second = avc_reference(d, 1, 0, &room);
    if (d->slice->spatial_direct)
        s = spatial(d);
    for (int i = 0; i < 16; i++) {
        int block = avc_raster(i), x = 4 * avc_block_x[i], y = 4 * avc_block_y[i], quarter = i >> 2;
        if (!(quarters >> quarter & 1))
            continue;
        if (d->avc->inference8 && i & 3) { /* as the first block of the quarter */
            for (int list = 0; list < AVC_LISTS; list++)
                memcpy(d->mb->vector[list][block], d->mb->vector[list][avc_raster(i & ~3)], sizeof d->mb->vector[list][block]);
            continue;
        }
        if (d->avc->inference8) { /* the block in the macroblock's corner stands for all four */
            x = quarter & 1 ? 12 : 0;
            y = quarter & 2 ? 12 : 0;
        }
        if (d->slice->spatial_direct) {
            for (int list = 0; list < AVC_LISTS; list++)
                d->mb->index[list][quarter] = (int8_t)s.index[list];
            spatial_block(d, &s, second, block, x, y);
        } else
            temporal_block(d, second, block, x, y);
    }
}
