/* Denoise: hot pixels, then a temporal filter where blocks stand still and a spatial one where they move (enhance.h).
 *
 * The manuals name the thresholds (KBL 27408-27650), not the equations. Ours: a block of 4x4 samples stands still if the sum of its absolute
 * differences to the previous frame, the absolute value of their sum, and the number of samples that differ by more than the temporal
 * threshold are all within theirs. Its history then grows by a step to its maximum, otherwise it starts anew. A sample of such a block is
 * mixed with the previous one by history / 256, less of it as their difference goes from the low to the high threshold. Other blocks are
 * smoothed within 5x5: each neighbour has the weight of its distance times that of its difference. */
#include <string.h>

#include "enhance.h"

enum { BLOCK = 4, FULL = 256, NEIGHBOURS = 9, REACH = 2 };

/* A plane's field, or the whole plane. */
struct field {
    uint32_t first, step, rows;
};

static const uint16_t *field_row(const struct sample_plane *p, const struct field *f, int64_t y)
{
    y = y < 0 ? 0 : y >= f->rows ? f->rows - 1 : y;
    return p->samples + (uint64_t)(f->first + y * f->step) * p->width;
}

static uint16_t median(uint16_t *values)
{
    for (int i = 1; i < NEIGHBOURS; i++)
        for (int k = i; k > 0 && values[k - 1] > values[k]; k--) {
            uint16_t swapped = values[k];
            values[k] = values[k - 1];
            values[k - 1] = swapped;
        }
    return values[NEIGHBOURS / 2];
}

/* The median of 3x3 where enough neighbours differ: a count of 0 filters every sample (KBL 27504-27516). */
static uint16_t without_hot(const struct denoise_channel *c, const struct sample_plane *p, const struct field *f, uint32_t x, uint32_t y)
{
    uint16_t values[NEIGHBOURS], own = field_row(p, f, y)[x];
    uint32_t differing = 0;
    int n = 0;
    for (int j = -1; j <= 1; j++)
        for (int i = -1; i <= 1; i++) {
            values[n] = field_row(p, f, (int64_t)y + j)[clamp((int)x + i, 0, (int)p->width - 1)];
            differing += distance(values[n++], own) > (int)c->hot_threshold;
        }
    return differing >= c->hot_count ? median(values) : own;
}

static void remove_hot(const struct denoise_channel *c, const struct sample_plane *from, const struct sample_plane *to, const struct field *f)
{
    for (uint32_t y = 0; y < f->rows; y++) {
        uint16_t *row = to->samples + (uint64_t)(f->first + y * f->step) * to->width;
        for (uint32_t x = 0; x < from->width; x++)
            row[x] = c->hot_count < NEIGHBOURS ? without_hot(c, from, f, x, y) : field_row(from, f, y)[x];
    }
}

/* -- one block ------------------------------------------------------------------------------------------------------- */

static int stands_still(const struct denoise_channel *c, const struct sample_plane *now, const struct sample_plane *before,
                        const struct field *f, uint32_t bx, uint32_t by)
{
    uint32_t sad = 0, moving = 0;
    int sum = 0;
    for (uint32_t y = by; y < by + BLOCK && y < f->rows; y++)
        for (uint32_t x = bx; x < bx + BLOCK && x < now->width; x++) {
            int d = field_row(now, f, y)[x] - field_row(before, f, y)[x];
            sad += (uint32_t)(d < 0 ? -d : d);
            sum += d;
            moving += (uint32_t)(d < 0 ? -d : d) > c->moving_threshold;
        }
    return sad <= c->sad && (uint32_t)(sum < 0 ? -sum : sum) <= c->sum && moving <= c->moving_pixels;
}

static uint16_t mixed(const struct denoise_channel *c, int now, int before, uint32_t weight)
{
    uint32_t d = (uint32_t)distance(now, before);
    if (d >= c->high)
        return (uint16_t)now;
    if (d > c->low)
        weight = weight * (c->high - d) / (c->high - c->low);
    return (uint16_t)((now * (int)(FULL - weight) + before * (int)weight + FULL / 2) / FULL);
}

static uint16_t smoothed(const struct denoising *d, const struct denoise_channel *c, const struct sample_plane *p, const struct field *f,
                         uint32_t x, uint32_t y)
{
    uint64_t sum = 0, weights = 0;
    int own = field_row(p, f, y)[x];
    for (int j = -REACH; j <= REACH; j++)
        for (int i = -REACH; i <= REACH; i++) {
            int value = field_row(p, f, (int64_t)y + j)[clamp((int)x + i, 0, (int)p->width - 1)], range = 0;
            while (range < RANGES - 1 && (uint32_t)distance(value, own) >= c->range_threshold[range])
                range++;
            uint64_t weight = (uint64_t)d->distance_weight[j < 0 ? -j : j][i < 0 ? -i : i] * c->range_weight[range];
            sum += weight * (uint64_t)value;
            weights += weight;
        }
    return weights ? (uint16_t)((sum + weights / 2) / weights) : (uint16_t)own;
}

static void filter_block(const struct denoising *d, int n, const struct sample_plane *hot_free, const struct field *f, uint32_t bx,
                         uint32_t by, int still, uint32_t weight)
{
    const struct denoise_channel *c = &d->channels[n];
    const struct sample_plane *before = &d->previous.planes[n], *to = &d->result.planes[n];
    for (uint32_t y = by; y < by + BLOCK && y < f->rows; y++)
        for (uint32_t x = bx; x < bx + BLOCK && x < to->width; x++) {
            uint16_t *result = to->samples + (uint64_t)(f->first + y * f->step) * to->width + x;
            if (still)
                *result = mixed(c, field_row(hot_free, f, y)[x], field_row(before, f, y)[x], weight);
            else
                *result = smoothed(d, c, hot_free, f, x, y);
        }
}

/* -- a plane --------------------------------------------------------------------------------------------------------- */

/* History of a row of blocks stands behind that of motion, in the right half of a row of the driver's buffer. */
static int64_t history_at(const struct surface *s)
{
    return s->pitch / 2;
}

/* `row`: where the driver's buffer has the history of these blocks. */
static void filter_row(struct denoising *d, int n, const struct sample_plane *from, const struct field *f, uint32_t by, int64_t row)
{
    const struct denoise_channel *c = &d->channels[n];
    uint32_t blocks = (from->width + BLOCK - 1) / BLOCK;
    int64_t room = history_at(&d->history.in), count = room < blocks ? room : blocks;
    int remembered = row < d->current.planes[LUMA].height, temporal = c->temporal && !d->first_frame;
    memset(d->line_in, (int)d->history_start, blocks);
    memset(d->line_out, (int)d->history_start, blocks);
    if (remembered && temporal && d->history.have_in)
        read_surface_row(&d->memory, &d->history.in, room, row, d->line_in, count);
    for (uint32_t b = 0; b < blocks && (temporal || !c->temporal); b++) {
        int still = temporal && stands_still(c, from, &d->previous.planes[n], f, b * BLOCK, by);
        uint32_t grown = d->line_in[b] + d->history_step;
        if (still)
            d->line_out[b] = (uint8_t)(grown < d->history_max ? grown : d->history_max);
        filter_block(d, n, from, f, b * BLOCK, by, still, d->line_out[b]);
    }
    if (remembered && d->history.have_out)
        write_surface_row(&d->memory, &d->history.out, room, row, d->line_out, count);
}

static void filter_plane(struct denoising *d, int n, int64_t *row)
{
    const struct sample_plane *from = &d->current.planes[n], *to = &d->result.planes[n];
    memcpy(from->samples, to->samples, (uint64_t)from->width * from->height * sizeof *from->samples);
    for (uint32_t k = 0; k < d->fields; k++) {
        struct field f = {k, d->fields, (from->height + d->fields - 1 - k) / d->fields};
        for (uint32_t y = 0; y < f.rows; y += BLOCK)
            filter_row(d, n, from, &f, y, (*row)++);
    }
}

/* Entry: the denoised frame in `result`; `current` loses its hot pixels. In the first frame of a sequence nothing else is done. */
ENTRY int64_t enhance_denoise(struct denoising *d, void *record)
{
    int64_t row = 0;
    (void)record;
    for (int n = 0; n < 3; n++) {
        const struct sample_plane *from = &d->current.planes[n];
        for (uint32_t k = 0; from->samples && k < d->fields; k++) {
            struct field f = {k, d->fields, (from->height + d->fields - 1 - k) / d->fields};
            remove_hot(&d->channels[n], from, &d->result.planes[n], &f);
        }
        if (from->samples && d->channels[n].enable)
            filter_plane(d, n, &row);
    }
    return 0;
}
