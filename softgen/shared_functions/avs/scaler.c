/* sample_8x8 in compiled code: what messages.py and filter.py do, on surfaces and states that were resolved (bound.py).
 *
 * What messages.py refuses is left to it before anything is done. Runs under the guard (memory/guard.c) and may be left at any byte. */
#include "scaler.h"

#include <stddef.h>
#include <string.h>

#include "../../lanes/bytecode/memory.h"
#include "../../memory/graphics_memory.h"
#include "../context.h"

#define ENTRY __attribute__((visibility("default"))) /* called by compiled code */

enum { STEPS = 512, FULL = 255, MOST = 0xffff, DROPPED = 4 }; /* DROPPED: bits of a sum that results do not have */
enum { LINES = SCALED_ROWS * SCALER_TAPS, SPAN = 128 }; /* SPAN: samples of a row that are read in one piece at most */
enum { FUNCTION_SHIFT = 28, BYPASS_EDGES = 1 << 27, BLOCK_SHIFT = 25, BLOCK_MASK = 3, OUTPUT_SHIFT = 18, OUTPUT_MASK = 3, MASK_SHIFT = 12 };
static const double FARTHEST = 1 << 30;

/* Places along an axis: samples that the taps of each meet, and its phase. */
struct axis {
    int64_t at[SCALED_COLUMNS][SCALER_TAPS];
    uint32_t phase[SCALED_COLUMNS], count;
};

/* The samples that a block needs: `line` by row and tap down says which of the rows that were read. */
struct block_samples {
    uint8_t rows[LINES][SCALED_COLUMNS][SCALER_TAPS];
    uint32_t line[SCALED_ROWS][SCALER_TAPS];
};

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

static int64_t inside(int64_t at, int64_t count, uint32_t mirrored)
{
    if (mirrored) {
        at = (at < 0 ? -1 - at : at) % (2 * count);
        at = at >= count ? 2 * count - 1 - at : at;
    }
    return at < 0 ? 0 : at >= count ? count - 1 : at;
}

/* Places from one, its step and second derivative; 0 where they are no numbers, or far outside. */
static int places(struct axis *a, uint32_t first_number, uint32_t count, const float given[3], double size, double siting, uint32_t shift,
                  int64_t samples, uint32_t mirrored)
{
    a->count = count;
    for (uint32_t i = 0; i < count; i++) {
        double n = first_number + i, place = ((double)given[0] + (double)given[1] * n + (double)given[2] * n * (n - 1) / 2) * size;
        if (!(place <= FARTHEST && place >= -FARTHEST)) /* nor a NaN */
            return 0;
        if (shift || siting != 0.0)
            place = (place - siting) / (double)(1u << shift);
        int64_t steps = floor_of(place * STEPS + 0.5), left = steps >> 9;
        a->phase[i] = (uint32_t)(steps & (STEPS - 1)) * SCALER_PHASES / STEPS;
        for (int tap = 0; tap < SCALER_TAPS; tap++)
            a->at[i][tap] = inside(left + tap - SCALER_MIDDLE, samples, mirrored);
    }
    return 1;
}

/* Host address of a sample, which the note has from now on. */
static const uint8_t *sample(struct context_head *context, const struct scaler_surface *s, const struct scaler_channel *c, int64_t x, int64_t y)
{
    int64_t offset, byte = c->offset + c->step * x, line = c->row + y;
    if (s->column) {
        int64_t tile = (line >> s->tile_rows) * c->across + (byte >> s->tile_columns);
        offset = tile * ((int64_t)1 << (s->tile_columns + s->tile_rows)) + s->column[byte & (((int64_t)1 << s->tile_columns) - 1)]
               + s->row[line & (((int64_t)1 << s->tile_rows) - 1)];
    } else
        offset = line * c->across + byte;
    uint64_t address = (s->base + (uint64_t)offset) & s->address_mask;
    context->mask = 1ull << NOTE_TABLE | 1ull << NOTE_BLOCK | 1ull << SIZE_SHIFT;
    context->base = address;
    __asm__ volatile("" ::: "memory");
    return graphics_memory(s->table, address);
}

/* A row of samples for all columns and taps; each that occurs is read once. */
static void read_row(struct context_head *context, const struct scaler_surface *s, const struct scaler_channel *c, const struct axis *xs,
                     int64_t y, uint8_t row[SCALED_COLUMNS][SCALER_TAPS])
{
    uint8_t span[SPAN], known[SPAN] = {0};
    int64_t low = xs->at[0][0], high = low;
    for (int i = 0; i < SCALED_COLUMNS; i++)
        for (int tap = 0; tap < SCALER_TAPS; tap++) {
            low = xs->at[i][tap] < low ? xs->at[i][tap] : low;
            high = xs->at[i][tap] > high ? xs->at[i][tap] : high;
        }
    for (int i = 0; i < SCALED_COLUMNS; i++)
        for (int tap = 0; tap < SCALER_TAPS; tap++) {
            int64_t x = xs->at[i][tap], n = x - low;
            if (high - low >= SPAN) {
                row[i][tap] = *sample(context, s, c, x, y);
                continue;
            }
            if (!known[n]) {
                span[n] = *sample(context, s, c, x, y);
                known[n] = 1;
            }
            row[i][tap] = span[n];
        }
}

static void read_block(struct context_head *context, const struct scaler_surface *s, const struct scaler_channel *c, const struct axis *xs,
                       const struct axis *ys, struct block_samples *b)
{
    int64_t held[LINES];
    uint32_t count = 0;
    for (uint32_t j = 0; j < ys->count; j++)
        for (int tap = 0; tap < SCALER_TAPS; tap++) {
            int64_t y = ys->at[j][tap];
            uint32_t n = count;
            while (n > 0 && held[n - 1] != y)
                n--;
            if (!n) {
                read_row(context, s, c, xs, y, b->rows[count]);
                held[count++] = y;
                n = count;
            }
            b->line[j][tap] = n - 1;
        }
}

/* Sums over taps, across first; rows that several places need are filtered once. */
static void sums(const struct block_samples *b, const struct axis *xs, const struct axis *ys, const int32_t *x_taps, const int32_t *y_taps,
                 int64_t found[SCALED_ROWS][SCALED_COLUMNS])
{
    int32_t across[LINES][SCALED_COLUMNS];
    uint8_t done[LINES] = {0};
    for (uint32_t j = 0; j < ys->count; j++) {
        const int32_t *down = y_taps + ys->phase[j] * SCALER_TAPS;
        for (int i = 0; i < SCALED_COLUMNS; i++)
            found[j][i] = 0;
        for (int tap = 0; tap < SCALER_TAPS; tap++) {
            uint32_t n = b->line[j][tap];
            if (!done[n]) {
                for (int i = 0; i < SCALED_COLUMNS; i++) {
                    const int32_t *taps = x_taps + xs->phase[i] * SCALER_TAPS;
                    int32_t total = 0;
                    for (int k = 0; k < SCALER_TAPS; k++)
                        total += taps[k] * b->rows[n][i][k];
                    across[n][i] = total;
                }
                done[n] = 1;
            }
            for (int i = 0; i < SCALED_COLUMNS; i++)
                found[j][i] += (int64_t)down[tap] * across[n][i];
        }
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
            line[k] = axis ? b->rows[b->line[j][k]][i][SCALER_MIDDLE] : b->rows[b->line[j][SCALER_MIDDLE]][i][k];
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

static void filter(const struct scaler_surface *s, const struct scaler_channel *c, const struct block_samples *b, const struct axis *xs,
                   const struct axis *ys, uint16_t out[SCALED_ROWS][SCALED_COLUMNS])
{
    int64_t sharp[SCALED_ROWS][SCALED_COLUMNS], soft[SCALED_ROWS][SCALED_COLUMNS];
    const int32_t *taps = s->taps + c->table * 2 * SCALER_PHASES * SCALER_TAPS;
    int adaptive = s->adaptive_x || s->adaptive_y, mixed = adaptive || s->sharpness != FULL;
    sums(b, xs, ys, taps, taps + SCALER_PHASES * SCALER_TAPS, sharp);
    if (mixed)
        sums(b, xs, ys, s->bilinear, s->bilinear, soft);
    for (uint32_t j = 0; j < SCALED_ROWS; j++)
        for (int i = 0; i < SCALED_COLUMNS; i++) {
            int64_t value = sharp[j][i];
            if (mixed) {
                int64_t weight = adaptive ? FULL - softest(s, b, j, i) : (int64_t)s->sharpness;
                value = floor_divided(value * weight + soft[j][i] * (FULL - weight), FULL);
            }
            value >>= DROPPED;
            out[j][i] = (uint16_t)(value < 0 ? 0 : value > MOST ? MOST : value);
        }
}

/* The results of a channel; 0 where its coordinates are refused. */
static int scale(struct context_head *context, const struct scaler_surface *s, const struct scaler_channel *c, const uint32_t *given,
                 uint16_t out[SCALED_ROWS][SCALED_COLUMNS])
{
    float u[3] = {number(given[2]), number(given[4]), number(given[6])}, v[3] = {number(given[3]), number(given[5]), number(given[0])};
    double siting_x = c->shift_x ? c->siting_x : 0.0, siting_y = c->shift_y ? c->siting_y : 0.0;
    struct axis xs, ys;
    struct block_samples b;
    if (!c->held) {
        for (int n = 0; n < SCALED_ROWS * SCALED_COLUMNS; n++)
            out[n / SCALED_COLUMNS][n % SCALED_COLUMNS] = (uint16_t)c->value;
        return 1;
    }
    if (!places(&xs, 0, SCALED_COLUMNS, u, (double)s->width, siting_x, c->shift_x, c->width, s->mirrored)
        || !places(&ys, SCALED_ROWS * given[1], SCALED_ROWS, v, (double)s->height, siting_y, c->shift_y, c->height, s->mirrored))
        return 0;
    read_block(context, s, c, &xs, &ys, &b);
    filter(s, c, &b, &xs, &ys, out);
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
    for (int n = 0; n < SCALER_CHANNELS; n++)
        if (!(masked >> n & 1))
            message->refused |= !scale(context, s, &s->channels[n], message->parameters, planes[count++]);
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
