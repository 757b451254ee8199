/* Samples in 16 lanes of 16 bits, for filters across edges: vectors that any host has, in one register of its own or several. */
#ifndef SOFTGEN_CODEC_SAMPLE_LANES_H
#define SOFTGEN_CODEC_SAMPLE_LANES_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define INLINE inline __attribute__((always_inline))

/* Code for several hosts; the best one is chosen when the library is loaded. All give the same bits. */
#ifdef __x86_64__
#define VECTORIZED __attribute__((target_clones("arch=x86-64-v3", "default")))
#else
#define VECTORIZED
#endif

enum { LANES = 16, EDGE_SIDE = 4, EDGE_LINES = 2 * EDGE_SIDE };

typedef int16_t lanes __attribute__((vector_size(2 * LANES)));
typedef uint8_t lane_bytes __attribute__((vector_size(LANES)));

/* A mask has all bits of a lane, or none. */
static INLINE lanes lanes_select(lanes mask, lanes a, lanes b)
{
    return (a & mask) | (b & ~mask);
}

static INLINE lanes lanes_smaller(lanes a, lanes b)
{
    return lanes_select(a < b, a, b);
}

static INLINE lanes lanes_greater(lanes a, lanes b)
{
    return lanes_select(a > b, a, b);
}

static INLINE lanes lanes_clamp(lanes value, lanes low, lanes high)
{
    return lanes_smaller(lanes_greater(value, low), high);
}

static INLINE lanes lanes_of(int value)
{
    return (lanes){0} + (int16_t)value;
}

static INLINE lanes lanes_distance(lanes a, lanes b)
{
    lanes difference = a - b;
    return lanes_greater(difference, -difference);
}

static INLINE int lanes_any(lanes mask)
{
    uint64_t words[4];
    memcpy(words, &mask, sizeof words);
    return (words[0] | words[1] | words[2] | words[3]) != 0;
}

static INLINE lanes lanes_widen(lane_bytes bytes)
{
    return __builtin_convertvector(bytes, lanes);
}

/* Values of 0 to 255. */
static INLINE lane_bytes lanes_narrow(lanes value)
{
    return __builtin_convertvector(value, lane_bytes);
}

static INLINE lane_bytes lanes_saturated(lanes value)
{
    return lanes_narrow(lanes_clamp(value, lanes_of(0), lanes_of(255)));
}

/* -- rows of blocks: one of 16 samples, or two of 8; narrower blocks read 8 as well -------------------------------------- */

static INLINE lane_bytes lane_bytes_of(const uint8_t *low, const uint8_t *high)
{
    uint64_t words[2];
    lane_bytes found;
    memcpy(&words[0], low, 8);
    memcpy(&words[1], high, 8);
    memcpy(&found, words, sizeof found);
    return found;
}

static INLINE lanes lanes_rows(const uint8_t *p, ptrdiff_t stride, int width)
{
    return lanes_widen(lane_bytes_of(p, width == LANES ? p + 8 : p + stride));
}

/* How many rows that are. */
static INLINE int lanes_height(int width)
{
    return width == LANES ? 1 : 2;
}

static INLINE void lanes_put_rows(uint8_t *to, ptrdiff_t stride, int width, lane_bytes bytes)
{
    uint8_t all[LANES];
    memcpy(all, &bytes, sizeof all);
    if (width == LANES)
        memcpy(to, all, LANES);
    else {
        memcpy(to, all, (size_t)width);
        memcpy(to + stride, all + 8, (size_t)width);
    }
}

static INLINE lanes lanes_mean(lanes a, lanes b)
{
    return (a + b + 1) >> 1;
}

/* -- lines along an edge: four before it and four behind it, 16 samples each ----------------------------------------- */

/* Where the samples of an edge are: those of lanes 0 to 7 and 8 to 15, of a line of luma or of two planes of chroma. */
struct edge_place {
    uint8_t *half[2]; /* the first sample behind the edge */
    ptrdiff_t across, along; /* one of them is 1 */
};

static INLINE lane_bytes lane_bytes_low(lane_bytes a, lane_bytes b)
{
    return __builtin_shuffle(a, b, (lane_bytes){0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23});
}

static INLINE lane_bytes lane_bytes_high(lane_bytes a, lane_bytes b)
{
    return __builtin_shuffle(a, b, (lane_bytes){8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31});
}

/* Each pass puts the bytes of rows that are half of the rest apart beside one another. */
static INLINE void lane_bytes_pass(const lane_bytes in[EDGE_LINES], lane_bytes out[EDGE_LINES])
{
    for (int i = 0; i < EDGE_LINES / 2; i++) {
        out[2 * i] = lane_bytes_low(in[i], in[i + EDGE_LINES / 2]);
        out[2 * i + 1] = lane_bytes_high(in[i], in[i + EDGE_LINES / 2]);
    }
}

static INLINE void edge_load(const struct edge_place *e, lane_bytes line[EDGE_LINES])
{
    if (e->along == 1) {
        for (int i = 0; i < EDGE_LINES; i++)
            line[i] = lane_bytes_of(e->half[0] + (i - EDGE_SIDE) * e->across, e->half[1] + (i - EDGE_SIDE) * e->across);
        return;
    }
    lane_bytes rows[EDGE_LINES], pass[EDGE_LINES];
    for (int i = 0; i < EDGE_LINES; i++) { /* rows i and i + 8 */
        lane_bytes low = lane_bytes_of(e->half[0] + i * e->along - EDGE_SIDE, e->half[0] + i * e->along - EDGE_SIDE);
        rows[i] = lane_bytes_low(low, lane_bytes_of(e->half[1] + i * e->along - EDGE_SIDE, e->half[1] + i * e->along - EDGE_SIDE));
    }
    lane_bytes_pass(rows, pass);
    lane_bytes_pass(pass, rows);
    lane_bytes_pass(rows, line);
}

/* Writes lines `first` to the one before `end`; of a vertical edge all of them. */
static INLINE void edge_store(const struct edge_place *e, const lane_bytes line[EDGE_LINES], int first, int end)
{
    uint64_t words[2];
    if (e->along == 1) {
        for (int i = first; i < end; i++) {
            memcpy(words, &line[i], sizeof words);
            memcpy(e->half[0] + (i - EDGE_SIDE) * e->across, &words[0], 8);
            memcpy(e->half[1] + (i - EDGE_SIDE) * e->across, &words[1], 8);
        }
        return;
    }
    lane_bytes pass[EDGE_LINES], rows[EDGE_LINES];
    lane_bytes_pass(line, pass);
    lane_bytes_pass(pass, rows);
    lane_bytes_pass(rows, pass);
    for (int i = 0; i < EDGE_LINES; i++) { /* two rows each */
        uint8_t *to = e->half[i / 4] + (2 * i % LANES % 8) * e->along - EDGE_SIDE;
        memcpy(words, &pass[i], sizeof words);
        memcpy(to, &words[0], 8);
        memcpy(to + e->along, &words[1], 8);
    }
}

#endif
