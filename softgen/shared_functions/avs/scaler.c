/* sample_8x8 in compiled code: what messages.py and filter.py do, on surfaces and states that were resolved (bound.py).
 *
 * What messages.py refuses is left to it before anything is done. Runs under the guard (memory/guard.c) and may be left at any byte. */
#include "scaler.h"

#include <stddef.h>
#include <string.h>
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "../../lanes/bytecode/memory.h"
#include "../../memory/graphics_memory.h"
#include "../context.h"

#if defined(__x86_64__)
#define VECTORIZED __attribute__((target_clones("arch=x86-64-v3", "default")))
#else
#define VECTORIZED
#endif
#define ENTRY __attribute__((visibility("default"))) /* called by compiled code */

enum { STEPS = 512, FULL = 255, MOST = 0xffff, DROPPED = 4 }; /* DROPPED: bits of a sum that results do not have */
enum { LINES = SCALED_ROWS * SCALER_TAPS, SPAN = 160, MOST_STEP = 4, PAGE = 4096 }; /* SPAN: samples that are read together */
enum { PIECES = SPAN * MOST_STEP, SHORT = 16, HEAD = 2 * SHORT, TAIL = 2 * SHORT }; /* room before and after what is read of a row */
enum { FUNCTION_SHIFT = 28, BYPASS_EDGES = 1 << 27, BLOCK_SHIFT = 25, BLOCK_MASK = 3, OUTPUT_SHIFT = 18, OUTPUT_MASK = 3, MASK_SHIFT = 12 };
static const double FARTHEST = 1 << 30;

/* Places along an axis: the samples that their first taps meet, wherever the surface ends, and their phases. */
struct axis {
    int64_t first[SCALED_COLUMNS];
    uint32_t phase[SCALED_COLUMNS], count;
    int straight; /* no place is before the one before it, or leaves samples out */
};

/* Bytes of a row that are one after another in memory, in all rows of a block. */
struct piece {
    int64_t offset; /* what the first one's column adds to an address */
    uint32_t at, size; /* in `raw` */
    uint32_t skip; /* bytes before them that are one after another, too: with those, SHORT are copied at once */
};

/* The samples that a block needs: row by row, the taps of column i from `place` on. `line`: rows by row of the block and tap down. */
struct block_samples {
    uint8_t raw[LINES][HEAD + SPAN * MOST_STEP + TAIL], rows[LINES][SPAN + TAIL];
    const uint8_t *row[LINES]; /* into these */
    int64_t low, inside_low, inside_end; /* the first sample of a row, those that the surface has */
    int64_t from; /* the byte of the surface's rows that is in `raw` at HEAD */
    int64_t at[LINES]; /* lines of the surface */
    uint32_t place[SCALED_COLUMNS], line[SCALED_ROWS][SCALER_TAPS], count;
    int far; /* columns are too far from each other to be read together */
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

/* -- samples ------------------------------------------------------------------------------------------------------------------------- */

/* What a byte's column, and its row, add to its address. */
static int64_t column_offset(const struct scaler_surface *s, int64_t byte)
{
    if (!s->column)
        return byte;
    return (byte >> s->tile_columns << (s->tile_columns + s->tile_rows)) + s->column[byte & (((int64_t)1 << s->tile_columns) - 1)];
}

static int64_t row_offset(const struct scaler_surface *s, const struct scaler_channel *c, int64_t line)
{
    if (!s->column)
        return line * c->across;
    return ((line >> s->tile_rows) * c->across << (s->tile_columns + s->tile_rows)) + s->row[line & (((int64_t)1 << s->tile_rows) - 1)];
}

/* Copies bytes, page by page; the note has them from now on. */
static inline void copy(struct context_head *context, const struct scaler_surface *s, int64_t offset, uint8_t *into, uint32_t size)
{
    uint64_t address = (s->base + (uint64_t)offset) & s->address_mask;
    uint32_t left = PAGE - (uint32_t)(address % PAGE), now = size < left ? size : left;
    context->mask = 1ull << NOTE_TABLE | 1ull << NOTE_BLOCK | (uint64_t)now << SIZE_SHIFT;
    context->base = address;
    __asm__ volatile("" ::: "memory");
    memcpy(into, graphics_memory(s->table, address), now);
    if (now < size)
        copy(context, s, offset + now, into + now, size - now);
}

/* The rows that a block needs, each once. */
static void choose_rows(const struct scaler_surface *s, const struct scaler_channel *c, const struct axis *ys, struct block_samples *b)
{
    int64_t low = inside(ys->first[0], c->height, s->mirrored);
    int64_t high = inside(ys->first[ys->count - 1] + SCALER_TAPS - 1, c->height, s->mirrored);
    b->count = 0;
    if (!s->mirrored && ys->straight && high - low < LINES) {
        b->count = (uint32_t)(high - low + 1);
        for (uint32_t n = 0; n < b->count; n++)
            b->at[n] = low + n;
        for (uint32_t j = 0; j < ys->count; j++)
            for (int tap = 0; tap < SCALER_TAPS; tap++)
                b->line[j][tap] = (uint32_t)(inside(ys->first[j] + tap, c->height, 0) - low);
        return;
    }
    for (uint32_t j = 0; j < ys->count; j++)
        for (int tap = 0; tap < SCALER_TAPS; tap++) {
            int64_t y = inside(ys->first[j] + tap, c->height, s->mirrored);
            uint32_t n = b->count;
            while (n > 0 && b->at[n - 1] != y)
                n--;
            if (!n) {
                b->at[b->count++] = y;
                n = b->count;
            }
            b->line[j][tap] = n - 1;
        }
}

/* Where the taps of columns are in a row. */
static void choose_columns(const struct scaler_surface *s, const struct scaler_channel *c, const struct axis *xs, struct block_samples *b)
{
    int64_t low = xs->first[0], high = low;
    for (int i = 1; i < SCALED_COLUMNS; i++) {
        low = xs->first[i] < low ? xs->first[i] : low;
        high = xs->first[i] > high ? xs->first[i] : high;
    }
    int64_t end = high + SCALER_TAPS;
    b->low = low;
    b->inside_low = low < 0 ? 0 : low;
    b->inside_end = end > c->width ? c->width : end;
    b->far = end - low > SPAN || c->step > MOST_STEP || b->inside_low >= b->inside_end;
    for (int64_t x = low; !b->far && x < end; x++) {
        int64_t at = x >= b->inside_low && x < b->inside_end ? x : inside(x, c->width, s->mirrored);
        b->far = at < b->inside_low || at >= b->inside_end;
    }
    for (int i = 0; i < SCALED_COLUMNS; i++)
        b->place[i] = b->far ? (uint32_t)(i * SCALER_TAPS) : (uint32_t)(xs->first[i] - low);
}

/* A piece of all rows, with all SHORT bytes that it is a part of: those are in one page. */
static void copy_column(struct context_head *context, const struct scaler_surface *s, struct block_samples *b, const int64_t *rows,
                        const struct piece *p)
{
    context->mask = 1ull << NOTE_TABLE | 1ull << NOTE_BLOCK | (uint64_t)p->size << SIZE_SHIFT;
    for (uint32_t n = 0; n < b->count; n++) {
        uint64_t address = (s->base + (uint64_t)(rows[n] + p->offset)) & s->address_mask;
        context->base = address;
        __asm__ volatile("" ::: "memory");
        memcpy(b->raw[n] + p->at - p->skip, graphics_memory(s->table, address) - p->skip, SHORT);
    }
}

/* Reads bytes of all rows. */
static void read_raw(struct context_head *context, const struct scaler_surface *s, const struct scaler_channel *c, struct block_samples *b,
                     int64_t from, int64_t bytes)
{
    struct piece pieces[PIECES];
    int64_t rows[LINES];
    uint32_t count = 0, first = (uint32_t)(HEAD + from - b->from);
    int64_t run = s->run > SHORT ? SHORT : s->run;
    for (int64_t at = 0, size; at < bytes; at += size) {
        uint32_t skip = s->column ? (uint32_t)((from + at) & (run - 1)) : 0;
        size = s->column ? run - skip : bytes;
        size = size < bytes - at ? size : bytes - at;
        pieces[count++] = (struct piece){column_offset(s, from + at), first + (uint32_t)at, (uint32_t)size, skip};
    }
    for (uint32_t n = 0; n < b->count; n++)
        rows[n] = row_offset(s, c, c->row + b->at[n]);
    for (const struct piece *p = pieces; p < pieces + count; p++)
        if (s->column && run == SHORT && !(s->base % SHORT))
            copy_column(context, s, b, rows, p);
        else
            for (uint32_t n = 0; n < b->count; n++)
                copy(context, s, rows[n] + p->offset, b->raw[n] + p->at, p->size);
}

/* Every second byte, and up to SHORT - 1 more. */
static inline void every_other(uint8_t *into, const uint8_t *from, uint32_t count)
{
#if defined(__SSE2__)
    const __m128i even = _mm_set1_epi16(0xff);
    for (uint32_t x = 0; x < count; x += SHORT, from += 2 * SHORT) {
        __m128i a = _mm_and_si128(_mm_loadu_si128((const __m128i *)from), even);
        __m128i b = _mm_and_si128(_mm_loadu_si128((const __m128i *)(from + SHORT)), even);
        _mm_storeu_si128((__m128i *)(into + x), _mm_packus_epi16(a, b));
    }
#else
    for (uint32_t x = 0; x < count; x++)
        into[x] = from[2 * x];
#endif
}

/* A channel's samples of the rows that were read, and those beyond the edges. */
static void pick_samples(const struct scaler_surface *s, const struct scaler_channel *c, struct block_samples *b,
                         int64_t from, uint32_t columns)
{
    uint32_t first = (uint32_t)(b->inside_low - b->low), count = (uint32_t)(b->inside_end - b->inside_low);
    for (uint32_t n = 0; n < b->count; n++) {
        uint8_t *row = b->rows[n], *into = row + first;
        const uint8_t *raw = b->raw[n] + HEAD + (from - b->from);
        b->row[n] = c->step == 1 && count >= columns ? raw : row;
        if (b->row[n] == raw)
            continue;
        if (c->step == 1)
            memcpy(into, raw, count);
        else if (c->step == 2)
            every_other(into, raw, count);
        else
            for (uint32_t x = 0; x < count; x++)
                into[x] = raw[c->step * x];
        for (uint32_t x = 0; x < first; x++)
            row[x] = row[inside(b->low + x, c->width, s->mirrored) - b->low];
        for (uint32_t x = first + count; x < columns; x++)
            row[x] = row[inside(b->low + x, c->width, s->mirrored) - b->low];
    }
}

/* Samples of columns that are far from each other, one by one. */
static void read_far(struct context_head *context, const struct scaler_surface *s, const struct scaler_channel *c, const struct axis *xs,
                     struct block_samples *b)
{
    for (uint32_t n = 0; n < b->count; n++)
        b->row[n] = b->rows[n];
    for (uint32_t n = 0; n < b->count; n++)
        for (int i = 0; i < SCALED_COLUMNS; i++)
            for (int tap = 0; tap < SCALER_TAPS; tap++) {
                int64_t x = inside(xs->first[i] + tap, c->width, s->mirrored);
                copy(context, s, row_offset(s, c, c->row + b->at[n]) + column_offset(s, c->offset + c->step * x),
                     b->rows[n] + i * SCALER_TAPS + tap, 1);
            }
}

/* The samples of a block. `known`: places are those of the channel before. */
static void read_block(struct context_head *context, const struct scaler_surface *s, const struct scaler_channel *c, const struct axis *xs,
                       const struct axis *ys, struct block_samples *b, const struct scaler_channel *known)
{
    if (!known) {
        choose_rows(s, c, ys, b);
        choose_columns(s, c, xs, b);
    }
    if (b->far) {
        read_far(context, s, c, xs, b);
        return;
    }
    int64_t from = c->offset + c->step * b->inside_low, more = from - b->from;
    int64_t bytes = (b->inside_end - b->inside_low - 1) * c->step + 1;
    if (!known || known->row != c->row || known->step != c->step || more <= -c->step || more >= c->step) {
        b->from = from;
        read_raw(context, s, c, b, from, bytes);
    } else if (more > 0) /* what lies between samples of another channel is there, but at the ends */
        read_raw(context, s, c, b, b->from + bytes, more);
    else if (more < 0)
        read_raw(context, s, c, b, from, -more);
    uint32_t most = 0;
    for (int i = 0; i < SCALED_COLUMNS; i++)
        most = b->place[i] > most ? b->place[i] : most;
    pick_samples(s, c, b, from, most + SCALER_TAPS);
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
