/* Coefficients of VP8 (13): tokens of a partition, dequantised. */
#include <string.h>

#include "vp8.h"

enum { Y_AFTER_Y2, Y2, CHROMA, Y_WITH_DC }; /* block types */
enum { ABOVE_U = 4, ABOVE_V = 6, ABOVE_Y2 = 8, Y2_BLOCK = 24 };

static const uint8_t bands[17] = {0, 1, 2, 3, 6, 4, 5, 6, 6, 6, 6, 6, 6, 6, 6, 7, 0};
static const uint8_t scan[16] = {0, 1, 4, 8, 5, 2, 3, 6, 9, 12, 13, 10, 7, 11, 14, 15};
static const uint8_t extra[4][12] = {
    {173, 148, 140}, {176, 155, 140, 135}, {180, 157, 141, 134, 130}, {254, 254, 243, 230, 196, 177, 153, 140, 133, 130, 129}};

/* A number of at least two, by the probabilities of its token. */
static inline int large(struct bools *b, const uint8_t *p)
{
    if (!bools_read(b, p[3])) {
        if (!bools_read(b, p[4]))
            return 2;
        return 3 + bools_read(b, p[5]);
    }
    if (!bools_read(b, p[6])) {
        if (!bools_read(b, p[7]))
            return 5 + bools_read(b, 159);
        int high = bools_read(b, 165);
        return 7 + 2 * high + bools_read(b, 145);
    }
    int high = bools_read(b, p[8]), category = 2 * high + bools_read(b, p[9 + high]), value = 0;
    for (const uint8_t *e = extra[category]; *e; e++)
        value = 2 * value + bools_read(b, *e);
    return value + 3 + (8 << category);
}

/* A block from its coefficient `at` on; whether there is one. */
static inline int read_block(struct bools *b, const uint8_t probabilities[8][3][11], int context, int at, const uint16_t scale[2], int16_t out[16])
{
    const uint8_t *p = probabilities[bands[at]][context];
    if (!bools_read(b, p[0]))
        return 0;
    for (;;) {
        while (!bools_read(b, p[1])) {
            if (++at == 16)
                return 1;
            p = probabilities[bands[at]][0];
        }
        int is_large = bools_read(b, p[2]), value = is_large ? large(b, p) : 1, negative = bools_read(b, 128);
        out[scan[at]] = (int16_t)((negative ? -value : value) * scale[at > 0]);
        if (++at == 16)
            return 1;
        p = probabilities[bands[at]][1 + is_large];
        if (!bools_read(b, p[0]))
            return 1;
    }
}

/* The decoder is a copy while a block is read, which stays in registers. */
static int block(struct bools *b, const uint8_t probabilities[8][3][11], int context, int at, const uint16_t scale[2], int16_t out[16])
{
    struct bools copy = *b;
    int found = read_block(&copy, probabilities, context, at, scale, out);
    *b = copy;
    return found;
}

uint32_t vp8_tokens(const struct vp8_picture *p, struct bools *b, const struct vp8_mb *mb, struct vp8_context *context, int16_t blocks[25][16])
{
    const uint16_t(*scale)[2] = p->quantisers[mb->segment];
    uint8_t *above = context->above, *left = context->left;
    uint32_t coded = 0;
    int has_y2 = mb->mode != B_PRED && mb->mode != SPLIT_MV;
    if (has_y2) {
        int is = block(b, p->coefficients[Y2], above[ABOVE_Y2] + left[ABOVE_Y2], 0, scale[2], blocks[Y2_BLOCK]);
        above[ABOVE_Y2] = left[ABOVE_Y2] = (uint8_t)is;
        coded |= (uint32_t)is << Y2_BLOCK;
    }
    for (int i = 0; i < 16; i++) {
        uint8_t *a = above + (i & 3), *l = left + (i >> 2);
        int is = block(b, p->coefficients[has_y2 ? Y_AFTER_Y2 : Y_WITH_DC], *a + *l, has_y2, scale[0], blocks[i]);
        *a = *l = (uint8_t)is;
        coded |= (uint32_t)is << i;
    }
    for (int i = 0; i < 8; i++) {
        int plane = i < 4 ? ABOVE_U : ABOVE_V;
        uint8_t *a = above + plane + (i & 1), *l = left + plane + (i >> 1 & 1);
        int is = block(b, p->coefficients[CHROMA], *a + *l, 0, scale[1], blocks[16 + i]);
        *a = *l = (uint8_t)is;
        coded |= (uint32_t)is << (16 + i);
    }
    return coded;
}
