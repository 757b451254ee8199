/* Predictions of VP8 from reference pictures (18): blocks displaced by quarters of a sample, of chroma by eighths. */
#include <string.h>

#include "../../block_fetch.h"
#include "../../sample_lanes.h"
#include "vp8.h"

enum { TAPS = 6, BEFORE = 2, AFTER = 3, BIAS = 128 };

static const int16_t six_tap[8][TAPS] = {{0, 0, 128, 0, 0, 0},     {0, -6, 123, 12, -1, 0},  {2, -11, 108, 36, -8, 1}, {0, -9, 93, 50, -6, 0},
                                         {3, -16, 77, 77, -16, 3}, {0, -6, 50, 93, -9, 0},   {1, -8, 36, 108, -11, 2}, {0, -1, 12, 123, -6, 0}};
static const int16_t bilinear[8][TAPS] = {{0, 0, 128, 0, 0, 0}, {0, 0, 112, 16, 0, 0}, {0, 0, 96, 32, 0, 0}, {0, 0, 80, 48, 0, 0},
                                          {0, 0, 64, 64, 0, 0}, {0, 0, 48, 80, 0, 0},  {0, 0, 32, 96, 0, 0}, {0, 0, 16, 112, 0, 0}};

/* A block with the samples around it that filters need: coordinates beyond an edge read the edge. */
static const uint8_t *fetch(const struct plane *p, int x, int y, int size, uint8_t *room, ptrdiff_t *stride)
{
    struct sample_view v = {p->samples, p->stride, (int)p->width, (int)p->height};
    int whole = size + BEFORE + AFTER;
    return fetch_block(&v, x - BEFORE, y - BEFORE, whole, whole, room, stride) + BEFORE * (*stride + 1);
}

/* Rows of `width` samples, filtered along `step`. A sum may need 17 bits, but not less BIAS in units of its last place. */
static INLINE void filter(uint8_t *to, ptrdiff_t to_stride, const uint8_t *from, ptrdiff_t stride, ptrdiff_t step, const int16_t taps[TAPS],
                          int width, int rows)
{
    for (int y = 0, height = lanes_height(width); y < rows; y += height, to += height * to_stride, from += height * stride) {
        int alone = y + height > rows; /* the last row of an odd number, twice */
        lanes sum = lanes_of(64 - (BIAS << 7));
        for (int i = 0; i < TAPS; i++)
            sum += taps[i] * lanes_rows(from + (i - BEFORE) * step, alone ? 0 : stride, width);
        lanes_put_rows(to, alone ? 0 : to_stride, width, lanes_saturated((sum >> 7) + BIAS));
    }
}

static INLINE void filter_block(uint8_t *to, ptrdiff_t to_stride, const uint8_t *from, ptrdiff_t stride, const int16_t *across,
                                const int16_t *down, int size)
{
    uint8_t rows[(16 + BEFORE + AFTER) * 16];
    if (!down)
        filter(to, to_stride, from, stride, 1, across, size, size);
    else if (!across)
        filter(to, to_stride, from, stride, stride, down, size, size);
    else {
        filter(rows, 16, from - BEFORE * stride, stride, 1, across, size, size + BEFORE + AFTER);
        filter(to, to_stride, rows + BEFORE * 16, 16, 16, down, size, size);
    }
}

VECTORIZED static void filter_any(uint8_t *to, ptrdiff_t to_stride, const uint8_t *from, ptrdiff_t stride, const int16_t *across,
                                  const int16_t *down, int size)
{
    if (size == 16)
        filter_block(to, to_stride, from, stride, across, down, 16);
    else if (size == 8)
        filter_block(to, to_stride, from, stride, across, down, 8);
    else
        filter_block(to, to_stride, from, stride, across, down, 4);
}

/* A block at (x, y), displaced by eighths of a sample. */
static void block(const struct plane *to, const struct plane *from, int is_bilinear, int x, int y, int vx, int vy, int size)
{
    uint8_t room[(16 + BEFORE + AFTER) * FETCH_STRIDE], *out = to->samples + (size_t)y * to->stride + x;
    ptrdiff_t stride;
    const int16_t(*taps)[TAPS] = is_bilinear ? bilinear : six_tap;
    const int16_t *across = vx & 7 ? taps[vx & 7] : NULL, *down = vy & 7 ? taps[vy & 7] : NULL;
    const uint8_t *p = fetch(from, x + (vx >> 3), y + (vy >> 3), size, room, &stride);
    if (!across && !down)
        for (int j = 0; j < size; j++)
            memcpy(out + (size_t)j * to->stride, p + j * stride, (size_t)size);
    else
        filter_any(out, (ptrdiff_t)to->stride, p, stride, across, down, size);
}

/* The vector of four blocks of luma for their block of chroma: the mean, rounded away from zero. */
static int mean(int sum)
{
    return (sum + (sum < 0 ? -2 : 2)) / 4;
}

static void split_chroma(struct vp8_picture *p, const struct frame *from, const struct vp8_mb *mb, int x, int y)
{
    for (int i = 0; i < 4; i++) {
        const struct vp8_vector *v = mb->vectors + (i >> 1) * 8 + (i & 1) * 2;
        int vx = mean(v[0].x + v[1].x + v[4].x + v[5].x), vy = mean(v[0].y + v[1].y + v[4].y + v[5].y);
        if (p->full_pixel)
            vx &= ~7, vy &= ~7;
        for (int plane = 1; plane < PLANES; plane++)
            block(&p->picture->frame.plane[plane], &from->plane[plane], (int)p->bilinear, x + (i & 1) * 4, y + (i >> 1) * 4, vx, vy, 4);
    }
}

static void split_luma(struct vp8_picture *p, const struct frame *from, const struct vp8_mb *mb, int x, int y)
{
    int size = mb->partitioning == 3 ? 4 : 8;
    for (int j = 0; j < 16; j += size)
        for (int i = 0; i < 16; i += size) {
            struct vp8_vector v = mb->vectors[j + i / 4];
            block(&p->picture->frame.plane[0], &from->plane[0], (int)p->bilinear, x + i, y + j, 2 * v.x, 2 * v.y, size);
        }
}

/* The reference, of which what the macroblock's vectors lead to has been read. */
static const struct frame *reference_of(struct vp8_picture *p, const struct vp8_mb *mb, int x, int y)
{
    struct vp8_vector low = mb->vectors[0], high = low;
    for (int i = 1; mb->mode == SPLIT_MV && i < 16; i++) {
        struct vp8_vector v = mb->vectors[i];
        low = (struct vp8_vector){v.x < low.x ? v.x : low.x, v.y < low.y ? v.y : low.y};
        high = (struct vp8_vector){v.x > high.x ? v.x : high.x, v.y > high.y ? v.y : high.y};
    }
    return reference_block(p->picture, (unsigned)mb->reference - 1, x + (low.x >> 2), y + (low.y >> 2), 16 + ((high.x - low.x) >> 2) + 1,
                           16 + ((high.y - low.y) >> 2) + 1);
}

int vp8_predict(struct vp8_picture *p, const struct vp8_mb *mb, unsigned x, unsigned y)
{
    const struct frame *from = reference_of(p, mb, (int)x * 16, (int)y * 16);
    if (!from)
        return 0;
    if (mb->mode == SPLIT_MV) {
        split_luma(p, from, mb, (int)x * 16, (int)y * 16);
        split_chroma(p, from, mb, (int)x * 8, (int)y * 8);
        return 1;
    }
    int vx = mb->vectors[0].x, vy = mb->vectors[0].y, mask = p->full_pixel ? ~7 : ~0;
    block(&p->picture->frame.plane[0], &from->plane[0], (int)p->bilinear, (int)x * 16, (int)y * 16, 2 * vx, 2 * vy, 16);
    for (int plane = 1; plane < PLANES; plane++)
        block(&p->picture->frame.plane[plane], &from->plane[plane], (int)p->bilinear, (int)x * 8, (int)y * 8, vx & mask, vy & mask, 8);
    return 1;
}
