/* VP8 pictures: rows of macroblocks, each with its partition of coefficients (5, 9.5). */
#include <string.h>

#include "vp8.h"

enum { ROWS = 16 }; /* of a call */

static void residual(struct vp8_picture *p, const struct vp8_mb *mb, unsigned x, unsigned y, int16_t blocks[25][16], uint32_t coded)
{
    for (int i = mb->mode == B_PRED ? 16 : 0; i < 24; i++) {
        const struct plane *plane = &p->picture->frame.plane[i < 16 ? 0 : i < 20 ? 1 : 2];
        unsigned size = i < 16 ? 16 : 8, across = i < 16 ? (unsigned)i & 3 : (unsigned)i & 1, down = i < 16 ? (unsigned)i >> 2 : (unsigned)i >> 1 & 1;
        if (coded >> i & 1)
            vp8_add_4x4(plane->samples + (size_t)(y * size + 4 * down) * plane->stride + x * size + 4 * across, (ptrdiff_t)plane->stride, blocks[i]);
    }
}

/* Whether there is a reference for it, if it needs one. */
static int reconstruct(struct vp8_picture *p, const struct vp8_mb *mb, unsigned x, unsigned y, int16_t blocks[25][16], uint32_t coded)
{
    const struct plane *planes = p->picture->frame.plane;
    if (coded >> 24 & 1) {
        vp8_luma_dc(blocks[24], blocks);
        memset(blocks[24], 0, sizeof blocks[24]);
        for (int i = 0; i < 16; i++)
            coded |= (uint32_t)(blocks[i][0] != 0) << i;
    }
    if (mb->reference != INTRA_FRAME) {
        if (!vp8_predict(p, mb, x, y))
            return 0;
    } else {
        if (mb->mode == B_PRED)
            vp8_intra_blocks(&planes[0], x, y, mb, blocks, coded);
        else
            vp8_intra_plane(&planes[0], x, y, 16, mb->mode);
        vp8_intra_plane(&planes[1], x, y, 8, mb->uv_mode);
        vp8_intra_plane(&planes[2], x, y, 8, mb->uv_mode);
    }
    if (coded)
        residual(p, mb, x, y, blocks, coded);
    return 1;
}

/* Coefficients of a macroblock; bits of blocks that have some. */
static uint32_t coefficients(struct vp8_picture *p, struct bools *tokens, struct vp8_mb *mb, struct vp8_context *context, int16_t blocks[25][16])
{
    uint32_t coded = 0;
    if (mb->coded)
        coded = vp8_tokens(p, tokens, mb, context, blocks);
    else { /* the context of Y2 stays where a macroblock has none */
        int kept = mb->mode == B_PRED || mb->mode == SPLIT_MV;
        memset(context->above, 0, (size_t)(VP8_ABOVE_BYTES - kept));
        memset(context->left, 0, (size_t)(VP8_ABOVE_BYTES - kept));
    }
    mb->coded = coded != 0;
    return coded;
}

static void decode_row(struct vp8_picture *p, unsigned y)
{
    struct bools *tokens = &p->tokens[y % p->partitions];
    unsigned width = p->picture->width;
    int16_t blocks[25][16] = {{0}};
    struct vp8_context context = {0};
    for (unsigned x = 0; x < width; x++) {
        struct vp8_mb *mb = p->mbs + (size_t)(y + 1) * (width + 1) + x + 1;
        context.above = p->above + (size_t)x * VP8_ABOVE_BYTES;
        vp8_modes(p, mb, x, y);
        uint32_t coded = coefficients(p, tokens, mb, &context, blocks);
        if (bools_overrun(&p->header) || bools_overrun(tokens)) {
            p->picture->errors |= VP8_PREMATURE_END;
            p->broken = 1;
            return;
        }
        if (!reconstruct(p, mb, x, y, blocks, coded)) {
            p->picture->errors |= VP8_CONCEALED;
            memset(blocks, 0, sizeof blocks);
            continue;
        }
        p->picture->state[(size_t)y * width + x] = DECODED;
    }
}

/* Macroblocks that could not be decoded are those of the last picture; without one they are grey. */
static void conceal(struct vp8_picture *p)
{
    struct picture *picture = p->picture;
    for (unsigned i = 0; i < picture->width * picture->height; i++) {
        if (picture->state[i] == DECODED)
            continue;
        conceal_macroblock(picture, i, 0);
        memset(&p->mbs[(size_t)(i / picture->width + 1) * (picture->width + 1) + i % picture->width + 1], 0, sizeof(struct vp8_mb));
    }
}

static void open_streams(struct vp8_picture *p)
{
    bools_resume(&p->header, p->data[0], p->size[0], p->value, p->range, p->used);
    for (unsigned i = 0; i < p->partitions; i++)
        bools_start(&p->tokens[i], p->data[1 + i], p->size[1 + i]);
}

/* Entry: a picture, some rows of macroblocks at a time; answers how many are left. */
ENTRY int64_t vp8_decode(struct vp8_picture *p, void *record)
{
    struct picture *picture = p->picture;
    (void)record;
    if (!p->row)
        open_streams(p);
    for (unsigned end = p->row + ROWS; p->row < end && p->row < picture->height && !p->broken; p->row++)
        decode_row(p, p->row);
    if (p->row < picture->height && !p->broken)
        return picture->height - p->row;
    conceal(p);
    if (picture->surfaces[0].base)
        store_rows(picture, &picture->surfaces[0], 0, picture->height);
    picture->surfaces[0].base = 0;
    if (picture->surfaces[1].base)
        vp8_filter(p);
    return 0;
}
