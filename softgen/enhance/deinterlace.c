/* Deinterlace: lines of one field are kept, those between come from both fields where nothing moves, else from the lines beside (enhance.h).
 *
 * The manuals name the parameters (KBL 27650-27838), not the equations. Ours: motion at a place is the sum of absolute differences between
 * the two frames over 3x3 samples, shifted up and down, over a divisor that grows with the vertical differences there. Of that and of what
 * fades of the motion before, the larger counts. From minimum to maximum the line goes from the mean of both fields to the mean of the lines
 * above and below. Directions of edges and motion vectors are not looked for. */
#include <string.h>

#include "enhance.h"

enum { MOST_MOTION = 255, COMPLEXITY_SHIFT = 8, FADED = 256 };

static int column(const struct sample_plane *p, int64_t x)
{
    return (int)(x < 0 ? 0 : x >= p->width ? p->width - 1 : x);
}

/* Of 3x3 samples, in steps of bytes: what changed between frames, and what differs from line to line of a field. */
static uint32_t motion(const struct deinterlacing *d, int n, int64_t x, int64_t y)
{
    const struct sample_plane *now = &d->current.planes[n], *before = &d->previous.planes[n];
    uint32_t temporal = 0, vertical = 0;
    for (int j = -1; j <= 1; j++)
        for (int i = -1; i <= 1; i++) {
            int at = column(now, x + i);
            temporal += (uint32_t)distance(plane_row(now, y + j)[at], plane_row(before, y + j)[at]);
        }
    for (int i = -1; i <= 1; i++)
        vertical += (uint32_t)distance(plane_row(now, y - 1)[column(now, x + i)], plane_row(now, y + 1)[column(now, x + i)]);
    uint32_t divisor = d->divisor + ((vertical >> BYTE_SHIFT) * d->complexity_factor >> COMPLEXITY_SHIFT);
    uint32_t found = (temporal >> BYTE_SHIFT << d->shift_up >> d->shift_down) / divisor;
    return found < MOST_MOTION ? found : MOST_MOTION;
}

static uint32_t faded(const struct deinterlacing *d, uint32_t before)
{
    uint32_t middle = (d->motion_min + d->motion_max) / 2;
    return before * (before > middle ? d->fade_large : d->fade_small) / FADED;
}

/* How much of a sample comes from the lines beside it, of 1 << output_shift. */
static uint32_t spatial_weight(const struct deinterlacing *d, uint32_t found)
{
    uint32_t full = 1u << d->output_shift;
    if (found <= d->motion_min)
        return 0;
    return found - d->motion_min < full && found < d->motion_max ? found - d->motion_min : full;
}

static int mean(int a, int b)
{
    return (a + b + 1) >> 1;
}

static uint16_t between(const struct deinterlacing *d, int n, uint32_t x, uint32_t y, uint32_t found)
{
    const struct sample_plane *now = &d->current.planes[n], *before = &d->previous.planes[n], *kept = d->of_previous ? before : now;
    int above = plane_row(kept, y ? (int64_t)y - 1 : 1)[x], below = plane_row(kept, y + 1 < kept->height ? (int64_t)y + 1 : (int64_t)y - 1)[x];
    int woven = mean(plane_row(now, y)[x], plane_row(before, y)[x]), full = 1 << d->output_shift, weight = (int)spatial_weight(d, found);
    return (uint16_t)((mean(above, below) * weight + woven * (full - weight) + full / 2) >> d->output_shift);
}

/* Luma's motion is kept for the next frame: a byte for two columns. */
static void row_of_motion(struct deinterlacing *d, uint32_t y, uint16_t *to)
{
    const struct sample_plane *now = &d->current.planes[LUMA];
    uint32_t pairs = (now->width + 1) / 2;
    int64_t count = d->history.in.pitch / 2 < pairs ? d->history.in.pitch / 2 : pairs;
    memset(d->line_in, 0, pairs);
    if (d->history.have_in)
        read_surface_row(&d->memory, &d->history.in, 0, y, d->line_in, count);
    for (uint32_t pair = 0; pair < pairs; pair++) {
        uint32_t past = faded(d, d->line_in[pair]), most = 0;
        for (uint32_t x = 2 * pair; x < 2 * pair + 2 && x < now->width; x++) {
            uint32_t moved = d->first_frame ? MOST_MOTION : motion(d, LUMA, x, y), found = moved > past ? moved : past;
            most = found > most ? found : most;
            to[x] = between(d, LUMA, x, y, found);
        }
        d->line_out[pair] = (uint8_t)(d->first_frame ? 0 : most);
    }
    if (d->history.have_out)
        write_surface_row(&d->memory, &d->history.out, 0, y, d->line_out, count);
}

static void row_of_chroma(struct deinterlacing *d, int n, uint32_t y, uint16_t *to)
{
    for (uint32_t x = 0; x < d->current.planes[n].width; x++)
        to[x] = between(d, n, x, y, d->first_frame ? MOST_MOTION : motion(d, n, x, y));
}

/* Film: the lines between are known to be those of the frame before or after. */
static const struct sample_plane *other_field(const struct deinterlacing *d, int n)
{
    return d->cadence == WITH_PREVIOUS_FIELD ? &d->previous.planes[n] : &d->current.planes[n];
}

/* Entry: a frame of all lines in `result`. */
ENTRY int64_t enhance_deinterlace(struct deinterlacing *d, void *record)
{
    (void)record;
    for (int n = 0; n < CHANNELS; n++) {
        const struct sample_plane *kept = d->of_previous ? &d->previous.planes[n] : &d->current.planes[n], *to = &d->result.planes[n];
        for (uint32_t y = 0; kept->samples && y < kept->height; y++) {
            uint16_t *row = plane_row(to, y);
            if ((y & 1) == d->kept || kept->height < 2)
                memcpy(row, plane_row(kept, y), kept->width * sizeof *row);
            else if (d->cadence != DEINTERLACE)
                memcpy(row, plane_row(other_field(d, n), y), kept->width * sizeof *row);
            else if (n == LUMA)
                row_of_motion(d, y, row);
            else
                row_of_chroma(d, n, y, row);
        }
    }
    return 0;
}
