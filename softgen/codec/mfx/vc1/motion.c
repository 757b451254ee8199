/* Motion vectors of VC-1: differences, predictions, those of direct macroblocks (8.3.5, 8.4.5). */
#include <stdlib.h>

#include "vc1.h"

enum { PLAIN = 37, WRITTEN_OUT = 35, IS_INTRA = 36, HYBRID = 32, MACROBLOCK = 64 };

static int quarter_samples(const struct vc1_picture *p)
{
    return p->mode == MIXED_MV || p->mode == ONE_MV;
}

static int range_of(const struct vc1_picture *p, int vertical)
{
    return 1 << (vertical ? 7 + p->range : 8 + p->range + (p->range >> 1));
}

static int component(struct vc1_decoder *d, int number)
{
    static const uint8_t sizes[6] = {0, 2, 3, 4, 5, 8}, offsets[6] = {0, 1, 3, 7, 15, 31};
    int size = sizes[number] - (number == 5 && !quarter_samples(d->p)), value = offsets[number];
    if (size > 0) {
        int bits = (int)bits_read(d->bits, (unsigned)size);
        value += bits >> 1;
        value = bits & 1 ? -value : value;
    }
    return value;
}

int vc1_read_difference(struct vc1_decoder *d, int difference[2], int *coded, int *intra)
{
    int code = vc1_read_vector(d->bits, d->p->vector_table), quarter = quarter_samples(d->p);
    if (code == NO_CODE)
        return 0;
    code++;
    *coded = code >= PLAIN;
    code -= *coded ? PLAIN : 0;
    *intra = code == IS_INTRA;
    difference[0] = difference[1] = 0;
    if (code == WRITTEN_OUT) {
        for (int i = 0; i < 2; i++) {
            int range = range_of(d->p, i);
            difference[i] = (int)bits_read(d->bits, (unsigned)(__builtin_ctz((unsigned)range) + quarter));
        }
    } else if (code != IS_INTRA) {
        difference[0] = component(d, code % 6);
        difference[1] = component(d, code / 6);
    }
    return 1;
}

/* -- predictions ------------------------------------------------------------------------------------------------------- */

struct candidate {
    const int16_t *vector; /* null: there is none */
    int intra;
};

static struct candidate candidate(const struct vc1_mb *mb, int block)
{
    return mb ? (struct candidate){mb->vectors[0][block], mb->intra >> block & 1} : (struct candidate){0};
}

static int median(int a, int b, int c)
{
    int low = a < b ? a : b, high = a < b ? b : a;
    return c < low ? low : c > high ? high : c;
}

/* The macroblock above and to the right, or in the last column to the left. */
static const struct vc1_mb *beyond(const struct vc1_decoder *d, int right)
{
    return right && d->above ? d->above + 1 : d->corner;
}

/* Above, beyond it, to the left (8.3.5.3.1 and on). */
static void candidates(const struct vc1_decoder *d, int block, int whole, struct candidate found[3])
{
    int last = d->x == d->p->picture->width - 1;
    const struct vc1_mb *mb = d->mb;
    found[2] = candidate(block & 1 ? mb : d->left, block ^ 1);
    if (block & 2) {
        found[0] = candidate(mb, block - 2);
        found[1] = candidate(mb, block == 2 ? 1 : 0);
        return;
    }
    found[0] = candidate(d->above, block + 2);
    if (whole)
        found[1] = candidate(last && d->p->picture->width == 1 ? NULL : beyond(d, !last), last ? 3 : 2);
    else if (block == 0)
        found[1] = d->x ? candidate(d->corner, 3) : candidate(d->above, 3);
    else
        found[1] = last ? candidate(d->above, 2) : candidate(beyond(d, 1), 2);
}

/* Keeps a block within reach of the picture (8.3.5.3.4). */
static int pulled_back(int predicted, unsigned mb, int offset, unsigned count, int low, int scale)
{
    int at = (int)mb * scale + offset, high = (int)count * scale - 4;
    predicted = at + predicted < low ? low - at : predicted;
    return at + predicted > high ? high - at : predicted;
}

static int distance(struct candidate c, const int predicted[2])
{
    int x = c.intra ? 0 : c.vector[0], y = c.intra ? 0 : c.vector[1];
    return abs(predicted[0] - x) + abs(predicted[1] - y);
}

/* Whether the stream says which one of two candidates is the prediction (8.3.5.3.5). */
static void choose(struct vc1_decoder *d, const struct candidate found[3], int predicted[2])
{
    if (!found[0].vector || !found[2].vector || (distance(found[0], predicted) <= HYBRID && distance(found[2], predicted) <= HYBRID))
        return;
    const int16_t *chosen = found[bits_read(d->bits, 1) ? 0 : 2].vector;
    predicted[0] = chosen[0];
    predicted[1] = chosen[1];
}

/* A sum modulo the range of vectors (4.11). */
static int16_t wrapped(int sum, int range)
{
    return (int16_t)(((sum + range) & (2 * range - 1)) - range);
}

void vc1_predict_vector(struct vc1_decoder *d, int block, int whole, const int difference[2])
{
    struct candidate found[3];
    int predicted[2] = {0}, count = 0, factor = quarter_samples(d->p) ? 1 : 2, low = whole ? -60 : -28;
    candidates(d, block, whole, found);
    for (int i = 0; i < 3; i++)
        count += found[i].vector != NULL;
    for (int i = 0; i < 2; i++) {
        int a = found[0].vector ? found[0].vector[i] : 0, b = found[1].vector ? found[1].vector[i] : 0, c = found[2].vector ? found[2].vector[i] : 0;
        predicted[i] = count > 1 ? median(a, b, c) : found[0].vector ? a : found[2].vector ? c : b;
    }
    predicted[0] = pulled_back(predicted[0], d->x, block & 1 ? 32 : 0, d->p->picture->width, low, MACROBLOCK);
    predicted[1] = pulled_back(predicted[1], d->y, block & 2 ? 32 : 0, d->p->picture->height, low, MACROBLOCK);
    choose(d, found, predicted);
    for (int i = 0; i < 2; i++) {
        int16_t sum = wrapped(predicted[i] + factor * difference[i], range_of(d->p, i));
        for (int other = block; other < (whole ? 4 : block + 1); other++)
            d->mb->vectors[0][other][i] = sum;
    }
}

/* -- B pictures -------------------------------------------------------------------------------------------------------- */

static int scaled(const struct vc1_picture *p, int value, int backward)
{
    int factor = (int)p->b_fraction - (backward ? 256 : 0);
    return quarter_samples(p) ? (value * factor + 128) >> 8 : 2 * ((value * factor + 255) >> 9);
}

void vc1_direct_vectors(struct vc1_decoder *d)
{
    const struct vc1_picture *p = d->p;
    const int16_t *of = p->direct ? p->direct[(size_t)d->y * p->picture->width + d->x] : NULL;
    for (int direction = 0; direction < 2; direction++)
        for (int i = 0; i < 2; i++) {
            int vector = of ? scaled(p, of[i], direction) : 0;
            vector = pulled_back(vector, i ? d->y : d->x, 0, i ? p->picture->height : p->picture->width, -60, MACROBLOCK);
            d->mb->vectors[direction][0][i] = (int16_t)vector;
        }
}

void vc1_predict_b_vector(struct vc1_decoder *d, int direction, const int difference[2])
{
    const struct vc1_picture *p = d->p;
    int scale = p->advanced ? MACROBLOCK : MACROBLOCK / 2, factor = quarter_samples(p) ? 1 : 2, last = d->x == p->picture->width - 1;
    for (int i = 0; i < 2; i++) {
        int c = d->left ? d->left->vectors[direction][0][i] : 0, predicted = c;
        if (d->above) {
            int a = d->above->vectors[direction][0][i];
            predicted = p->picture->width == 1 ? a : median(a, beyond(d, !last)->vectors[direction][0][i], c);
        }
        predicted = pulled_back(predicted, i ? d->y : d->x, 0, i ? p->picture->height : p->picture->width, 4 - scale, scale);
        d->mb->vectors[direction][0][i] = wrapped(predicted + factor * difference[i], range_of(p, i));
    }
}
