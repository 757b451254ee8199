/* Macroblocks of VC-1: their syntax, and what becomes of them (7.1.4, 8.1, 8.3, 8.4). */
#include <stdlib.h>
#include <string.h>

#include "vc1.h"

enum { MOST_QUANTISER = 31, LUMA_BLOCKS = 4 };

static int plane(const struct vc1_decoder *d, int bit)
{
    return (d->p->planes[(size_t)d->y * d->p->picture->width + d->x] & bit) != 0;
}

/* A flag that has a bit plane or stands in the stream. */
static int flag(struct vc1_decoder *d, uint32_t raw, int bit)
{
    return raw ? (int)bits_read(d->bits, 1) : plane(d, bit);
}

/* MQUANT; negative: not that of the picture (7.1.3.4). */
static void read_quantiser(struct vc1_decoder *d)
{
    const struct vc1_picture *p = d->p;
    int quantiser = (int)p->quantiser;
    if (p->quantisers == EDGES) {
        unsigned at = (d->x == 0) | (unsigned)(d->y == 0) << 1 | (unsigned)(d->x == p->picture->width - 1) << 2
                    | (unsigned)(d->y == p->picture->height - 1) << 3;
        quantiser = at & p->edges ? -(int)p->alternative : quantiser;
    } else if (p->quantisers == TWO_QUANTISERS)
        quantiser = bits_read(d->bits, 1) ? -(int)p->alternative : quantiser;
    else if (p->quantisers == DIFFERENCES) {
        int more = (int)bits_read(d->bits, 3);
        quantiser = more == 7 ? -(int)bits_read(d->bits, 5) : -quantiser - more;
    }
    d->mb->quantiser = (int8_t)(quantiser && abs(quantiser) <= MOST_QUANTISER ? quantiser : 1);
}

/* Samples of an intra block, less 128 where they are to be smoothed. */
static int put_intra(struct vc1_decoder *d, int block, int coded)
{
    int16_t coefficients[64], samples[64];
    size_t stride;
    uint8_t *to = vc1_place(d, block, &stride);
    const struct vc1_picture *p = d->p;
    int number = block < LUMA_BLOCKS ? 0 : block - 3, offset = p->advanced || p->overlap || (p->type != VC1_I && p->type != VC1_BI) ? 128 : 0;
    if (!vc1_intra_block(d, block, coded, coefficients))
        return 0;
    vc1_inverse(coefficients, 8, 8, 8, samples, 8);
    if (p->samples[number]) {
        int16_t *plain = p->samples[number] + (to - p->picture->frame.plane[number].samples);
        for (int y = 0; y < 8; y++)
            memcpy(plain + (size_t)y * stride, samples + 8 * y, 16);
    } else
        for (int y = 0; y < 8; y++)
            for (int x = 0; x < 8; x++)
                to[(size_t)y * stride + x] = clamp_sample(samples[8 * y + x] + offset);
    d->mb->coded |= 15u << (4 * block);
    return 1;
}

/* Blocks of a macroblock, `coded` and `intra` by the number of the block. */
static int blocks(struct vc1_decoder *d, unsigned coded, int transform)
{
    int first = 1;
    for (int block = 0; block < VC1_BLOCKS; block++) {
        if (d->mb->intra >> block & 1) {
            if (!put_intra(d, block, coded >> block & 1))
                return 0;
        } else if (coded >> block & 1) {
            if (!vc1_inter_block(d, block, transform, first))
                return 0;
            if (!d->p->frame_transform && transform < 8)
                transform = -1;
            first = 0;
        }
    }
    return 1;
}

/* TTMB, or the transform of the whole picture. */
static int read_transform(struct vc1_decoder *d)
{
    static const uint8_t whole[4] = {TT_8X8, TT_8X4, TT_4X8, TT_4X4};
    return d->p->frame_transform ? whole[d->p->transform & 3] : vc1_read_mb_transform(d->bits, d->step);
}

/* A pattern's highest bit is the first block's. */
static unsigned by_block(int pattern)
{
    unsigned coded = 0;
    for (int block = 0; block < VC1_BLOCKS; block++)
        coded |= (unsigned)(pattern >> (5 - block) & 1) << block;
    return coded;
}

/* -- I and BI pictures ------------------------------------------------------------------------------------------------- */

/* Whether a luma block is coded: predicted from those beside it (8.1.2.2). */
static unsigned predict_pattern(const struct vc1_decoder *d, unsigned coded)
{
    for (int block = 0; block < LUMA_BLOCKS; block++) {
        const struct vc1_mb *const corners[4] = {d->corner, d->above, d->left, NULL};
        unsigned left = block & 1 ? coded >> (block ^ 1) & 1 : d->left ? d->left->pattern >> (block ^ 1) & 1 : 0;
        unsigned above = block & 2 ? coded >> (block ^ 2) & 1 : d->above ? d->above->pattern >> (block ^ 2) & 1 : 0;
        unsigned corner = block == 3 ? coded & 1 : corners[block] ? corners[block]->pattern >> (block ^ 3) & 1 : 0;
        coded ^= (corner == above ? left : above) << block;
    }
    return coded;
}

static int intra_macroblock(struct vc1_decoder *d)
{
    const struct vc1_picture *p = d->p;
    int pattern = vc1_read_intra_pattern(d->bits);
    if (pattern == NO_CODE)
        return 0;
    d->mb->intra = 63;
    d->ac_prediction = flag(d, !p->advanced || p->raw_ac_prediction, PLANE_AC_PREDICTION);
    if (p->advanced && p->overlap == OVERLAP_SELECTED)
        d->mb->overlap = (uint8_t)flag(d, p->raw_overlap, PLANE_OVERLAP);
    if (p->advanced)
        read_quantiser(d);
    d->mb->pattern = (uint8_t)predict_pattern(d, by_block(pattern));
    return blocks(d, d->mb->pattern, 0);
}

/* -- P pictures -------------------------------------------------------------------------------------------------------- */

static void keep_motion(const struct vc1_decoder *d, const int16_t vector[2])
{
    if (d->p->motion)
        memcpy(d->p->motion[(size_t)d->y * d->p->picture->width + d->x], vector, 4);
}

static int one_vector(struct vc1_decoder *d, const int difference[2])
{
    vc1_predict_vector(d, 0, 1, difference);
    keep_motion(d, d->mb->vectors[0][0]);
    return vc1_predict_whole(d, 0, 0);
}

/* What follows the vectors of a macroblock whose blocks are all intra, or none of them. */
static int rest_of_macroblock(struct vc1_decoder *d, int coded)
{
    int pattern = 0, transform = 0;
    if (d->mb->intra && !coded) {
        read_quantiser(d);
        d->ac_prediction = (int)bits_read(d->bits, 1);
    } else if (coded) {
        if (d->mb->intra)
            d->ac_prediction = (int)bits_read(d->bits, 1);
        pattern = vc1_read_pattern(d->bits, d->p->pattern_table);
        read_quantiser(d);
        if (!d->mb->intra)
            transform = read_transform(d);
    }
    return pattern != NO_CODE && transform != NO_CODE && blocks(d, by_block(pattern), transform);
}

static int one_vector_macroblock(struct vc1_decoder *d)
{
    int difference[2], coded, intra;
    if (!vc1_read_difference(d, difference, &coded, &intra))
        return 0;
    d->mb->intra = intra ? 63 : 0;
    if (!intra && !one_vector(d, difference))
        return 0;
    return rest_of_macroblock(d, coded);
}

/* Vectors of the four luma blocks, of which those in `pattern` have a difference; answers which blocks have coefficients. */
static int four_vectors(struct vc1_decoder *d, unsigned pattern, unsigned *coded_blocks)
{
    *coded_blocks = pattern & ~15u;
    for (int block = 0; block < LUMA_BLOCKS; block++) {
        int difference[2] = {0}, coded = 0, intra = 0;
        if (pattern >> block & 1 && !vc1_read_difference(d, difference, &coded, &intra))
            return 0;
        d->mb->intra |= (uint8_t)(intra << block);
        *coded_blocks |= (unsigned)coded << block;
        if (!intra) {
            vc1_predict_vector(d, block, 0, difference);
            if (!vc1_predict_luma_block(d, block))
                return 0;
        }
    }
    int chroma = __builtin_popcount(d->mb->intra) >= 3 ? 0x30 : 0;
    if (!chroma && !vc1_predict_four_chroma(d))
        return 0;
    if (!chroma)
        keep_motion(d, d->mb->vectors[1][0]);
    d->mb->intra |= (uint8_t)chroma;
    return 1;
}

static int four_vector_macroblock(struct vc1_decoder *d)
{
    int pattern = vc1_read_pattern(d->bits, d->p->pattern_table), transform = 0;
    unsigned coded;
    if (pattern == NO_CODE || !four_vectors(d, by_block(pattern), &coded))
        return 0;
    if (!d->mb->intra && !coded)
        return 1;
    read_quantiser(d);
    d->ac_prediction = 0;
    for (int block = 0; block < VC1_BLOCKS; block++)
        if (d->mb->intra >> block & 1 && vc1_has_neighbours(d, block)) {
            d->ac_prediction = (int)bits_read(d->bits, 1);
            break;
        }
    if (coded & ~(unsigned)d->mb->intra)
        transform = read_transform(d);
    return transform != NO_CODE && blocks(d, coded, transform);
}

static int p_macroblock(struct vc1_decoder *d)
{
    static const int none[2];
    int four = flag(d, d->p->raw_mixed, PLANE_MIXED);
    if (!flag(d, d->p->raw_skip, PLANE_SKIP))
        return four ? four_vector_macroblock(d) : one_vector_macroblock(d);
    d->mb->quantiser = 0;
    unsigned coded;
    return four ? four_vectors(d, 0, &coded) : one_vector(d, none);
}

/* -- B pictures -------------------------------------------------------------------------------------------------------- */

enum { FORWARD_MV = 1, BACKWARD_MV = 2 };

static int predict_b(struct vc1_decoder *d, int directions)
{
    if (directions & FORWARD_MV && !vc1_predict_whole(d, 0, 0))
        return 0;
    return !(directions & BACKWARD_MV) || vc1_predict_whole(d, 1, (directions & FORWARD_MV) != 0);
}

/* BMVTYPE: the first code is the reference that is nearer in time (7.1.4.14). */
static int read_directions(struct vc1_decoder *d)
{
    int late = d->p->b_fraction >= 128;
    if (!bits_read(d->bits, 1))
        return late ? BACKWARD_MV : FORWARD_MV;
    return bits_read(d->bits, 1) ? FORWARD_MV | BACKWARD_MV : late ? FORWARD_MV : BACKWARD_MV;
}

static int b_macroblock(struct vc1_decoder *d)
{
    int direct = flag(d, d->p->raw_direct, PLANE_DIRECT), skipped = flag(d, d->p->raw_skip, PLANE_SKIP);
    int difference[2][2] = {{0}}, coded = direct && !skipped, intra = 0, directions = FORWARD_MV | BACKWARD_MV;
    d->mb->quantiser = 0;
    if (!direct && !skipped && !vc1_read_difference(d, difference[1], &coded, &intra))
        return 0;
    if (intra) {
        d->mb->intra = 63;
        return rest_of_macroblock(d, coded);
    }
    if (!direct) {
        directions = read_directions(d);
        if (directions == FORWARD_MV)
            memcpy(difference[0], difference[1], sizeof difference[0]);
        else if (directions != BACKWARD_MV && coded && (!vc1_read_difference(d, difference[0], &coded, &intra) || intra))
            return 0;
    }
    vc1_direct_vectors(d);
    for (int direction = 0; direction < 2 && !direct; direction++)
        if (directions >> direction & 1)
            vc1_predict_b_vector(d, direction, difference[direction]);
    return predict_b(d, directions) && rest_of_macroblock(d, coded);
}

int vc1_macroblock(struct vc1_decoder *d)
{
    d->mb->quantiser = (int8_t)d->p->quantiser;
    if (d->p->type == VC1_P)
        return p_macroblock(d);
    return d->p->type == VC1_B ? b_macroblock(d) : intra_macroblock(d);
}
