/* Intra prediction of VP8 (12). Outside the picture samples are 127 above and 129 to the left. */
#include <string.h>

#include "vp8.h"

enum { ABOVE = 127, LEFT = 129, NOTHING = 128 };

struct edges {
    uint8_t above[16], left[16], corner;
};

static void read_edges(struct edges *e, const uint8_t *at, size_t stride, unsigned x, unsigned y, unsigned size)
{
    memset(e->above, ABOVE, sizeof e->above);
    memset(e->left, LEFT, sizeof e->left);
    e->corner = y ? LEFT : ABOVE;
    if (y)
        memcpy(e->above, at - stride, size);
    for (unsigned i = 0; x && i < size; i++)
        e->left[i] = at[(ptrdiff_t)(i * stride) - 1];
    if (x && y)
        e->corner = at[-(ptrdiff_t)stride - 1];
    else if (x)
        e->corner = ABOVE;
}

static uint8_t mean(const struct edges *e, unsigned x, unsigned y, unsigned size)
{
    unsigned sum = 0, count = (x ? size : 0) + (y ? size : 0);
    for (unsigned i = 0; i < size; i++)
        sum += (y ? e->above[i] : 0u) + (x ? e->left[i] : 0u);
    return (uint8_t)(count ? (sum + count / 2) / count : NOTHING);
}

/* A macroblock of a plane whose sides have `size` samples. */
void vp8_intra_plane(const struct plane *plane, unsigned x, unsigned y, unsigned size, int mode)
{
    struct edges e;
    size_t stride = plane->stride;
    uint8_t *to = plane->samples + (size_t)y * size * stride + (size_t)x * size;
    read_edges(&e, to, stride, x, y, size);
    int dc = mode == DC_PRED ? mean(&e, x, y, size) : 0;
    for (unsigned row = 0; row < size; row++, to += stride)
        switch (mode) {
        case DC_PRED: memset(to, dc, size); break;
        case V_PRED: memcpy(to, e.above, size); break;
        case H_PRED: memset(to, e.left[row], size); break;
        default:
            for (unsigned i = 0; i < size; i++)
                to[i] = clamp_sample(e.left[row] + e.above[i] - e.corner);
        }
}

/* -- blocks of 4x4 -------------------------------------------------------------------------------------------------- */

static uint8_t two(int a, int b)
{
    return (uint8_t)((a + b + 1) >> 1);
}

static uint8_t three(int a, int b, int c)
{
    return (uint8_t)((a + 2 * b + c + 2) >> 2);
}

/* `e`: the edge from the lowest sample of the left side (0) over the corner (4) to the last one above and to the right (12). */
static uint8_t smooth(const uint8_t *e, int at)
{
    return three(e[at - 1], e[at], e[at + 1]);
}

static uint8_t predicted(const uint8_t *e, int mode, int x, int y)
{
    switch (mode) {
    case B_VE: return smooth(e, 5 + x);
    case B_HE: return y == 3 ? three(e[1], e[0], e[0]) : smooth(e, 3 - y);
    case B_LD: return x + y == 6 ? three(e[11], e[12], e[12]) : smooth(e, 6 + x + y);
    case B_RD: return smooth(e, 4 + x - y);
    case B_VR:
        if (!x && y > 1)
            return smooth(e, 5 - y);
        return y & 1 ? smooth(e, 4 + x - (y >> 1)) : two(e[4 + x - (y >> 1)], e[5 + x - (y >> 1)]);
    case B_VL:
        if (x == 3 && y >= 2)
            return smooth(e, y == 2 ? 10 : 11);
        return y & 1 ? smooth(e, 6 + x + (y >> 1)) : two(e[5 + x + (y >> 1)], e[6 + x + (y >> 1)]);
    case B_HD:
        if (!y && x > 1)
            return smooth(e, 3 + x);
        return x & 1 ? smooth(e, 4 - y + (x >> 1)) : two(e[3 - y + (x >> 1)], e[4 - y + (x >> 1)]);
    default: { /* B_HU: beyond the lowest sample of the left side it goes on */
        int at = y + (x >> 1), z = 2 * y + x;
        if (z > 5)
            return e[0];
        if (z == 5)
            return three(e[1], e[0], e[0]);
        return z & 1 ? smooth(e, 2 - at) : two(e[3 - at], e[2 - at]);
    }
    }
}

static void block(uint8_t *to, size_t stride, int mode, const uint8_t *e)
{
    int dc = 4;
    for (int i = 0; i < 4; i++)
        dc += e[i] + e[5 + i];
    for (int y = 0; y < 4; y++, to += stride)
        for (int x = 0; x < 4; x++)
            to[x] = mode == B_DC ? (uint8_t)(dc >> 3) : mode == B_TM ? clamp_sample(e[3 - y] + e[5 + x] - e[4]) : predicted(e, mode, x, y);
}

/* Luma of a macroblock in blocks, each with its residual: blocks to the right and below are predicted from it. The samples above and to
 * the right of lower rows of blocks are those of the row above the macroblock. */
void vp8_intra_blocks(const struct plane *plane, unsigned x, unsigned y, const struct vp8_mb *mb, int16_t blocks[25][16], uint32_t coded)
{
    enum { ROOM = 32, FIRST = 8 };
    uint8_t room[17 * ROOM], *inner = room + ROOM + FIRST, *to;
    size_t stride = plane->stride;
    struct edges e;
    to = plane->samples + (size_t)y * 16 * stride + (size_t)x * 16;
    read_edges(&e, to, stride, x, y, 16);
    memcpy(inner - ROOM, e.above, 16);
    inner[-ROOM - 1] = e.corner;
    for (int i = 0; i < 16; i++)
        inner[i * ROOM - 1] = e.left[i];
    if (!y)
        memset(inner - ROOM + 16, ABOVE, 4);
    else if (16 * (x + 1) < plane->width)
        memcpy(inner - ROOM + 16, to - stride + 16, 4);
    else
        memset(inner - ROOM + 16, e.above[15], 4);
    for (int row = 4; row < 16; row += 4)
        memcpy(inner + (row - 1) * ROOM + 16, inner - ROOM + 16, 4);
    for (int i = 0; i < 16; i++) {
        uint8_t edge[13], *at = inner + (i >> 2) * 4 * ROOM + (i & 3) * 4;
        for (int j = 0; j < 4; j++)
            edge[j] = at[(3 - j) * ROOM - 1];
        memcpy(edge + 4, at - ROOM - 1, 9);
        block(at, ROOM, mb->sub_modes[i], edge);
        if (coded >> i & 1)
            vp8_add_4x4(at, ROOM, blocks[i]);
    }
    for (int i = 0; i < 16; i++)
        memcpy(to + (size_t)i * stride, inner + i * ROOM, 16);
}
