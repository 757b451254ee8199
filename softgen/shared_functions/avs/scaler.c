/* sample_8x8 in compiled code: what messages.py and filter.py do, on surfaces and states that were resolved (bound.py).
 *
 * What messages.py refuses is left to it before anything is done. Runs under the guard (memory/guard.c) and may be left at any byte. */
#include "scaler_samples.h"

#include <stddef.h>
#include <string.h>
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#if defined(__x86_64__)
#define VECTORIZED __attribute__((target_clones("arch=x86-64-v3", "default")))
#else
#define VECTORIZED
#endif
#define ENTRY __attribute__((visibility("default"))) /* called by compiled code */

enum { STEPS = 512, FULL = 255, MOST = 0xffff, DROPPED = 4 }; /* DROPPED: bits of a sum that results do not have */
enum { FUNCTION_SHIFT = 28, BYPASS_EDGES = 1 << 27, BLOCK_SHIFT = 25, BLOCK_MASK = 3, OUTPUT_SHIFT = 18, OUTPUT_MASK = 3, MASK_SHIFT = 12 };
static const double FARTHEST = 1 << 30;

static float number(uint32_t bits)
{
    float found;
    memcpy(&found, &bits, sizeof found);
    return found;
}

static int64_t floor_of(double value)
{
    int64_t found = (int64_t)value;
    return found - (value < (double)found);
}

/* Places from one, its step and second derivative; 0 where they are no numbers, or far outside. */
static int places(struct axis *a, uint32_t first_number, uint32_t count, const float given[3], double size, double siting, uint32_t shift)
{
    a->count = count;
    a->straight = 1;
    for (uint32_t i = 0; i < count; i++) {
        double n = first_number + i, place = ((double)given[0] + (double)given[1] * n + (double)given[2] * n * (n - 1) / 2) * size;
        if (!(place <= FARTHEST && place >= -FARTHEST)) /* nor a NaN */
            return 0;
        if (shift || siting != 0.0)
            place = (place - siting) / (double)(1u << shift);
        int64_t steps = floor_of(place * STEPS + 0.5);
        a->first[i] = (steps >> 9) - SCALER_MIDDLE;
        a->phase[i] = (uint32_t)(steps & (STEPS - 1)) * SCALER_PHASES / STEPS;
        a->straight &= !i || (a->first[i] >= a->first[i - 1] && a->first[i] <= a->first[i - 1] + SCALER_TAPS);
    }
    return 1;
}

/* -- sums ---------------------------------------------------------------------------------------------------------------------------- */

#if defined(__SSE2__)
/* The sums of four columns. */
static inline __m128i four_sums(const uint8_t *row, const uint32_t *place, const uint32_t *phase, const int16_t *taps)
{
    __m128i sum[4];
    for (int i = 0; i < 4; i++) {
        __m128i samples = _mm_unpacklo_epi8(_mm_loadl_epi64((const __m128i *)(row + place[i])), _mm_setzero_si128());
        sum[i] = _mm_madd_epi16(samples, _mm_loadu_si128((const __m128i *)(taps + phase[i] * SCALER_TAPS)));
    }
    __m128i a = _mm_add_epi32(_mm_unpacklo_epi32(sum[0], sum[1]), _mm_unpackhi_epi32(sum[0], sum[1]));
    __m128i b = _mm_add_epi32(_mm_unpacklo_epi32(sum[2], sum[3]), _mm_unpackhi_epi32(sum[2], sum[3]));
    return _mm_add_epi32(_mm_unpacklo_epi64(a, b), _mm_unpackhi_epi64(a, b));
}

static void sum_row(const uint8_t *row, const uint32_t *place, const uint32_t *phase, const int16_t *taps, int32_t *found)
{
    for (int i = 0; i < SCALED_COLUMNS; i += 4)
        _mm_storeu_si128((__m128i *)(found + i), four_sums(row, place + i, phase + i, taps));
}
#else
static void sum_row(const uint8_t *row, const uint32_t *place, const uint32_t *phase, const int16_t *taps, int32_t *found)
{
    for (int i = 0; i < SCALED_COLUMNS; i++) {
        found[i] = 0;
        for (int tap = 0; tap < SCALER_TAPS; tap++)
            found[i] += taps[phase[i] * SCALER_TAPS + tap] * row[place[i] + tap];
    }
}
#endif

/* Sums over taps, across first; rows that several places need are filtered once. No sum has more than 31 bits: coefficients have 8. */
VECTORIZED static void sums(const struct block_samples *b, const struct axis *xs, const struct axis *ys, const int16_t *x_taps,
                            const int16_t *y_taps, int32_t found[SCALED_ROWS][SCALED_COLUMNS])
{
    int32_t across[LINES][SCALED_COLUMNS];
    for (uint32_t n = 0; n < b->count; n++)
        sum_row(b->row[n], b->place, xs->phase, x_taps, across[n]);
    for (uint32_t j = 0; j < ys->count; j++) {
        int32_t total[SCALED_COLUMNS] = {0};
        for (int tap = 0; tap < SCALER_TAPS; tap++) {
            int32_t weight = y_taps[ys->phase[j] * SCALER_TAPS + tap];
            for (int i = 0; i < SCALED_COLUMNS; i++)
                total[i] += weight * across[b->line[j][tap]][i];
        }
        memcpy(found[j], total, sizeof total);
    }
}

/* How much softer the steepest of neighbours from a tap on makes a place, of 255. */
static int64_t softness(const uint8_t line[SCALER_TAPS], int first, int end, uint32_t limit, uint32_t ramp)
{
    int64_t steepest = 0;
    for (int k = first; k + 1 < end; k++) {
        int64_t step = (int64_t)line[k + 1] - line[k];
        step = step < 0 ? -step : step;
        steepest = step > steepest ? step : steepest;
    }
    int64_t found = ((steepest - (int64_t)limit) * FULL) >> ramp;
    return found < 0 ? 0 : found > FULL ? FULL : found;
}

static int64_t softest(const struct scaler_surface *s, const struct block_samples *b, uint32_t j, int i)
{
    int64_t most = 0;
    for (int axis = 0; axis < 2; axis++) {
        uint8_t line[SCALER_TAPS];
        if (!(axis ? s->adaptive_y : s->adaptive_x))
            continue;
        for (int k = 0; k < SCALER_TAPS; k++)
            line[k] = axis ? b->row[b->line[j][k]][b->place[i] + SCALER_MIDDLE] : b->row[b->line[j][SCALER_MIDDLE]][b->place[i] + k];
        int64_t four = softness(line, 2, 6, s->derivative_4, s->transition_4);
        int64_t eight = softness(line, 0, SCALER_TAPS, s->derivative_8, s->transition_8);
        four = four > eight ? four : eight;
        most = four > most ? four : most;
    }
    return most;
}

static int64_t floor_divided(int64_t value, int64_t by)
{
    return value >= 0 ? value / by : -((by - 1 - value) / by);
}

static int is_adaptive(const struct scaler_surface *s)
{
    return s->adaptive_x || s->adaptive_y;
}

VECTORIZED static void round_results(int32_t sums[SCALED_ROWS][SCALED_COLUMNS], uint16_t out[SCALED_ROWS][SCALED_COLUMNS])
{
    for (int j = 0; j < SCALED_ROWS; j++)
        for (int i = 0; i < SCALED_COLUMNS; i++) {
            int32_t value = sums[j][i] >> DROPPED;
            out[j][i] = (uint16_t)(value < 0 ? 0 : value > MOST ? MOST : value);
        }
}

static void filter(const struct scaler_surface *s, const struct scaler_channel *c, const struct block_samples *b, const struct axis *xs,
                   const struct axis *ys, uint16_t out[SCALED_ROWS][SCALED_COLUMNS])
{
    int32_t sharp[SCALED_ROWS][SCALED_COLUMNS], soft[SCALED_ROWS][SCALED_COLUMNS];
    const int16_t *taps = s->taps + c->table * 2 * SCALER_PHASES * SCALER_TAPS;
    int adaptive = is_adaptive(s);
    if (adaptive || s->sharpness)
        sums(b, xs, ys, taps, taps + SCALER_PHASES * SCALER_TAPS, sharp);
    if (adaptive || s->sharpness != FULL)
        sums(b, xs, ys, s->bilinear, s->bilinear, soft);
    for (uint32_t j = 0; (adaptive || s->sharpness % FULL) && j < SCALED_ROWS; j++)
        for (int i = 0; i < SCALED_COLUMNS; i++) {
            int64_t weight = adaptive ? FULL - softest(s, b, j, i) : (int64_t)s->sharpness;
            sharp[j][i] = (int32_t)floor_divided(sharp[j][i] * weight + soft[j][i] * (FULL - weight), FULL);
        }
    round_results(adaptive || s->sharpness ? sharp : soft, out);
}

/* Whether the places of a channel are those of the one before. */
static int same_places(const struct scaler_channel *a, const struct scaler_channel *b)
{
    return a->shift_x == b->shift_x && a->shift_y == b->shift_y && a->width == b->width && a->height == b->height && a->step <= MOST_STEP
        && b->step <= MOST_STEP;
}

/* What the channels of a message have in common. */
struct block {
    struct axis xs, ys;
    struct block_samples samples;
    const struct scaler_channel *last; /* that was filtered */
};

/* The results of a channel; 0 where its coordinates are refused. */
static int scale(struct context_head *context, const struct scaler_surface *s, const struct scaler_channel *c, const uint32_t *given,
                 struct block *b, uint16_t out[SCALED_ROWS][SCALED_COLUMNS])
{
    float u[3] = {number(given[2]), number(given[4]), number(given[6])}, v[3] = {number(given[3]), number(given[5]), number(given[0])};
    double siting_x = c->shift_x ? c->siting_x : 0.0, siting_y = c->shift_y ? c->siting_y : 0.0;
    if (!c->held) {
        for (int n = 0; n < SCALED_ROWS * SCALED_COLUMNS; n++)
            out[n / SCALED_COLUMNS][n % SCALED_COLUMNS] = (uint16_t)c->value;
        return 1;
    }
    const struct scaler_channel *known = b->last && same_places(b->last, c) ? b->last : NULL;
    if (!known && (!places(&b->xs, 0, SCALED_COLUMNS, u, (double)s->width, siting_x, c->shift_x)
        || !places(&b->ys, SCALED_ROWS * given[1], SCALED_ROWS, v, (double)s->height, siting_y, c->shift_y)))
        return 0;
    read_block(context, s, c, &b->xs, &b->ys, &b->samples, known);
    filter(s, c, &b->samples, &b->xs, &b->ys, out);
    b->last = c;
    return 1;
}

/* A message whose answer has room for so many bytes; `on`: the channels that send. */
ENTRY void scaler_sample(struct context_head *context, const struct scaler_surface *s, struct scaler_message *message, uint64_t on,
                         uint64_t room)
{
    enum { PLANE = SCALED_ROWS * SCALED_COLUMNS, HALF = SCALED_COLUMNS / 2 };
    uint32_t masked = message->header[2] >> MASK_SHIFT & 15, flags = message->parameters[7], count = 0;
    memset(message->given, 0, sizeof message->given);
    message->refused = message->header[2] >> OUTPUT_SHIFT & OUTPUT_MASK || flags >> FUNCTION_SHIFT || (flags >> BLOCK_SHIFT & BLOCK_MASK)
                    || (s->edges && !(flags & BYPASS_EDGES)) || message->parameters[1] > 1u << 24;
    if (message->refused)
        return;
    uint16_t planes[SCALER_CHANNELS][SCALED_ROWS][SCALED_COLUMNS];
    struct block b;
    b.last = NULL;
    b.samples.from = 0;
    for (int n = 0; n < SCALER_CHANNELS && !message->refused; n++)
        if (!(masked >> n & 1))
            message->refused |= !scale(context, s, &s->channels[n], message->parameters, &b, planes[count++]);
    message->refused |= count * PLANE * sizeof(uint16_t) > room;
    if (message->refused || !on)
        return;
    for (uint32_t n = 0; n < count; n++)
        for (int j = 0; j < SCALED_ROWS; j++)
            for (int half = 0; half < 2; half++)
                memcpy(message->words + (s->shuffled ? (half * count + n) * PLANE / 2 + j * HALF : n * PLANE + j * SCALED_COLUMNS + half * HALF),
                       &planes[n][j][half * HALF], HALF * sizeof(uint16_t));
    memset(message->given, 0xff, count * PLANE * sizeof(uint16_t) / 32 * sizeof message->given[0]);
}
