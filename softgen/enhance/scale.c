/* The scaler of SFC: a polyphase filter of 8x8 taps (enhance.h).
 *
 * Coefficients have six bits behind the point, 32 phases. Sums are kept in full until both directions are done; the result is rounded. */
#include "enhance.h"

enum { POINT = 6, ROUND = 1 << (2 * POINT - 1), PHASE_SHIFT = SCALE_BITS - 5, MIDDLE = 3 };

static int64_t at(int64_t start, int64_t step, uint32_t i, int *phase)
{
    int64_t place = start + step * i;
    *phase = (int)(place >> PHASE_SHIFT & (PHASES - 1));
    return place >> SCALE_BITS;
}

static int64_t inside(int64_t x, uint32_t count)
{
    return x < 0 ? 0 : x >= count ? count - 1 : x;
}

/* A row of the source, filtered horizontally. */
static void across(const struct scaled_plane *s, int64_t y, int32_t *to)
{
    const uint16_t *row = plane_row(&s->from, y);
    for (uint32_t i = 0; i < s->to.width; i++) {
        int phase;
        int64_t x = at(s->start_x, s->step_x, i, &phase) - MIDDLE;
        int32_t sum = 0;
        for (int k = 0; k < TAPS; k++)
            sum += s->x[phase][k] * row[inside(x + k, s->from.width)];
        to[i] = sum;
    }
}

/* Entry: a plane, scaled. Rows that were filtered are kept for the next row of the result. */
ENTRY int64_t enhance_scale(struct scaled_plane *s, void *record)
{
    int64_t held[TAPS], next;
    (void)record;
    for (int k = 0; k < TAPS; k++)
        held[k] = -1;
    for (uint32_t j = 0; j < s->to.height; j++) {
        int phase;
        next = at(s->start_y, s->step_y, j, &phase) - MIDDLE;
        const int32_t *rows[TAPS];
        for (int k = 0; k < TAPS; k++) {
            int64_t y = inside(next + k, s->from.height);
            int32_t *room = s->rows + (uint64_t)(y % TAPS) * s->to.width;
            if (held[y % TAPS] != y)
                across(s, held[y % TAPS] = y, room);
            rows[k] = room;
        }
        uint16_t *to = plane_row(&s->to, j);
        for (uint32_t i = 0; i < s->to.width; i++) {
            int64_t sum = ROUND;
            for (int k = 0; k < TAPS; k++)
                sum += (int64_t)s->y[phase][k] * rows[k][i];
            to[i] = clamp16(sum >> 2 * POINT);
        }
    }
    return 0;
}
