/* Predictions of VC-1: bicubic and bilinear blocks of references in quarters of a sample, intensity compensation (8.3.6.5, 8.3.8). */
#include <string.h>

#include "vc1.h"

enum { ROOM = 24 }; /* of a row of a block with the samples about it */

/* A block of a reference: its samples, mapped where the picture says so; beyond an edge the last sample is repeated. */
struct source {
    const uint8_t *samples;
    int stride, width, height;
    const uint8_t *lut;
};

static int source_of(struct vc1_decoder *d, int direction, int number, struct source *s)
{
    const struct vc1_picture *p = d->p;
    const struct frame *from = reference_frame(p->picture, (unsigned)direction);
    if (!from)
        return 0;
    const struct plane *plane = &from->plane[number];
    int width = (int)(number ? (p->edge[0] + 1) / 2 : p->edge[0]), height = (int)(number ? (p->edge[1] + 1) / 2 : p->edge[1]);
    *s = (struct source){plane->samples, (int)plane->stride, width, height, p->mapped[direction] ? p->lut[direction][number != 0] : NULL};
    return 1;
}

static const uint8_t *fetch(const struct source *s, int x, int y, int width, int height, uint8_t *room, int *stride)
{
    if (x >= 0 && y >= 0 && x + width <= s->width && y + height <= s->height && !s->lut) {
        *stride = s->stride;
        return s->samples + (ptrdiff_t)y * s->stride + x;
    }
    for (int j = 0; j < height; j++)
        for (int i = 0; i < width; i++) {
            uint8_t sample = s->samples[(ptrdiff_t)clamp(y + j, 0, s->height - 1) * s->stride + clamp(x + i, 0, s->width - 1)];
            room[j * ROOM + i] = s->lut ? s->lut[sample] : sample;
        }
    *stride = ROOM;
    return room;
}

/* Four samples from the one before, by quarters of a sample. */
static int bicubic(int a, int b, int c, int d, int quarter)
{
    return quarter == 1 ? -4 * a + 53 * b + 18 * c - 3 * d : quarter == 2 ? -a + 9 * b + 9 * c - d : -3 * a + 18 * b + 53 * c - 4 * d;
}

static void one_way(uint8_t *to, const uint8_t *from, int stride, int step, int quarter, int rounding, int size)
{
    int shift = quarter == 2 ? 4 : 6;
    for (int y = 0; y < size; y++, to += 16, from += stride)
        for (int x = 0; x < size; x++)
            to[x] = clamp_sample((bicubic(from[x - step], from[x], from[x + step], from[x + 2 * step], quarter) + (1 << (shift - 1)) - rounding) >> shift);
}

/* Down, then across; what is between has as many bits as fit (8.3.6.5.2). */
static void both_ways(uint8_t *to, const uint8_t *from, int stride, int across, int down, int rounding, int size)
{
    static const uint8_t shifts[4] = {0, 5, 1, 5};
    int shift = (shifts[across] + shifts[down]) >> 1;
    int16_t between[16][19];
    from--;
    for (int y = 0; y < size; y++, from += stride)
        for (int x = 0; x < size + 3; x++) {
            int sum = bicubic(from[x - stride], from[x], from[x + stride], from[x + 2 * stride], down);
            between[y][x] = (int16_t)((sum + (1 << (shift - 1)) + rounding - 1) >> shift);
        }
    for (int y = 0; y < size; y++, to += 16)
        for (int x = 0; x < size; x++) {
            const int16_t *b = between[y] + x;
            to[x] = clamp_sample((bicubic(b[0], b[1], b[2], b[3], across) + 64 - rounding) >> 7);
        }
}

static void bilinear_luma(uint8_t *to, const uint8_t *p, int stride, int half_x, int half_y, int rounding, int size)
{
    for (int y = 0; y < size; y++, to += 16, p += stride)
        for (int x = 0; x < size; x++)
            if (half_x && half_y)
                to[x] = (uint8_t)((p[x] + p[x + 1] + p[x + stride] + p[x + stride + 1] + 2 - rounding) >> 2);
            else
                to[x] = (uint8_t)(half_x || half_y ? (p[x] + p[x + (half_x ? 1 : stride)] + 1 - rounding) >> 1 : p[x]);
}

static void put(uint8_t *to, size_t stride, const uint8_t *block, int size, int average)
{
    for (int y = 0; y < size; y++, to += stride, block += 16)
        for (int x = 0; x < size; x++)
            to[x] = (uint8_t)(average ? (to[x] + block[x] + 1) >> 1 : block[x]);
}

/* Where a block of a reference begins: no more than a block beyond its edges. */
static int within(const struct vc1_picture *p, int at, int vertical, int chroma)
{
    int size = (int)(p->advanced ? p->edge[vertical] : 16 * (vertical ? p->picture->height : p->picture->width));
    if (chroma)
        return clamp(at, -8, size >> 1);
    return clamp(at, p->advanced ? vertical ? -18 : -17 : -16, size + (p->advanced && vertical));
}

static int luma(struct vc1_decoder *d, int direction, int block, int size, const int16_t vector[2], int average)
{
    const struct vc1_picture *p = d->p;
    uint8_t room[ROOM * ROOM], made[16 * 16];
    struct source s;
    size_t to_stride;
    int stride, rounding = (int)p->rounding;
    if (!source_of(d, direction, 0, &s))
        return 0;
    int x = within(p, (int)d->x * 16 + 8 * (block & 1) + (vector[0] >> 2), 0, 0), across = vector[0] & 3;
    int y = within(p, (int)d->y * 16 + 4 * (block & 2) + (vector[1] >> 2), 1, 0), down = vector[1] & 3;
    const uint8_t *from = fetch(&s, x - 1, y - 1, size + 3, size + 3, room, &stride) + stride + 1;
    uint8_t *to = vc1_place(d, block, &to_stride);
    if (p->mode == HALF_PEL_BILINEAR)
        bilinear_luma(made, from, stride, across >> 1, down >> 1, rounding, size);
    else if (across && down)
        both_ways(made, from, stride, across, down, rounding, size);
    else if (across)
        one_way(made, from, stride, 1, across, rounding, size);
    else if (down)
        one_way(made, from, stride, stride, down, 1 - rounding, size);
    else
        bilinear_luma(made, from, stride, 0, 0, 0, size);
    put(to, to_stride, made, size, average);
    return 1;
}

static int chroma(struct vc1_decoder *d, int direction, const int vector[2], int average)
{
    const struct vc1_picture *p = d->p;
    int across = 2 * (vector[0] & 3), down = 2 * (vector[1] & 3), half = p->rounding ? 28 : 32;
    for (int block = 4; block < VC1_BLOCKS; block++) {
        uint8_t room[ROOM * ROOM], made[16 * 8];
        struct source s;
        size_t to_stride;
        int stride;
        if (!source_of(d, direction, block - 3, &s))
            return 0;
        const uint8_t *from = fetch(&s, within(p, (int)d->x * 8 + (vector[0] >> 2), 0, 1), within(p, (int)d->y * 8 + (vector[1] >> 2), 1, 1), 9, 9, room, &stride);
        for (int y = 0; y < 8; y++, from += stride)
            for (int x = 0; x < 8; x++)
                made[16 * y + x] = (uint8_t)(((8 - across) * (8 - down) * from[x] + across * (8 - down) * from[x + 1]
                                              + (8 - across) * down * from[x + stride] + across * down * from[x + stride + 1] + half) >> 6);
        uint8_t *to = vc1_place(d, block, &to_stride);
        put(to, to_stride, made, 8, average);
    }
    return 1;
}

/* A chroma vector of a luma vector, rounded to halves where the picture says so (8.3.5.4.3). */
static void chroma_vector(const struct vc1_picture *p, const int16_t from[2], int16_t kept[2], int rounded[2])
{
    for (int i = 0; i < 2; i++) {
        kept[i] = (int16_t)((from[i] + ((from[i] & 3) == 3)) >> 1);
        int odd = kept[i] & 1;
        rounded[i] = kept[i] + (p->fast_chroma ? kept[i] < 0 ? odd : -odd : 0);
    }
}

int vc1_predict_whole(struct vc1_decoder *d, int direction, int average)
{
    const int16_t *vector = d->mb->vectors[direction][0];
    int16_t kept[2];
    int rounded[2];
    chroma_vector(d->p, vector, kept, rounded);
    if (!direction)
        memcpy(d->mb->chroma, kept, sizeof kept);
    return luma(d, direction, 0, 16, vector, average) && chroma(d, direction, rounded, average);
}

int vc1_predict_luma_block(struct vc1_decoder *d, int block)
{
    return luma(d, 0, block, 8, d->mb->vectors[0][block], 0);
}

/* The median of three numbers, the mean of those in the middle of four, or of two (8.3.5.4.4). */
static int16_t middle(const int16_t *v, int count)
{
    int low = v[0], high = v[0], sum = 0;
    for (int i = 0; i < count; i++) {
        low = v[i] < low ? v[i] : low;
        high = v[i] > high ? v[i] : high;
        sum += v[i];
    }
    return (int16_t)(count == 2 ? sum / 2 : count == 3 ? sum - low - high : (sum - low - high) / 2);
}

int vc1_predict_four_chroma(struct vc1_decoder *d)
{
    int16_t found[2][4], *vector = d->mb->vectors[1][0];
    int rounded[2], count = 0;
    for (int block = 0; block < 4; block++)
        if (!(d->mb->intra >> block & 1)) {
            found[0][count] = d->mb->vectors[0][block][0];
            found[1][count++] = d->mb->vectors[0][block][1];
        }
    for (int i = 0; i < 2; i++)
        vector[i] = middle(found[i], count);
    chroma_vector(d->p, vector, d->mb->chroma, rounded);
    return chroma(d, 0, rounded, 0);
}
