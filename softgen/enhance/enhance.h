/* Frames as the enhancement engine's C code sees them (structures.py fills the structures).
 *
 * A frame's samples have 16 bits in host memory, whatever their surface has: a byte is in the upper eight, so sums and fractions keep their
 * places, and all formats take one road. Graphics memory is touched in frame_store.c and, for motion history, in deinterlace.c and
 * denoise.c, through surface_walk.c. All of it runs under the guard (memory/guard.c) and owns nothing. */
#ifndef SOFTGEN_ENHANCE_H
#define SOFTGEN_ENHANCE_H

#include "../codec/codec.h"

enum { CHANNELS = 4, LUMA = 0, ALPHA = 3, TAPS = 8, PHASES = 32, RANGES = 6 };
enum { SAMPLE_MAX = 0xFFFF, BYTE_SHIFT = 8 };
enum cadence { DEINTERLACE, WITH_PREVIOUS_FIELD, WITH_NEXT_FIELD };

/* Where a channel is in a surface: sample (x, y) of it is at byte `offset + step * x` of row `row + y`. */
struct channel {
    uint32_t present, row, offset, step;
    uint32_t bytes; /* of a sample: 1 or 2 */
    uint32_t half_pitch; /* its rows are half as long as those of luma */
};

struct enhance_surface {
    struct surface walk;
    struct channel channels[CHANNELS];
};

struct sample_plane {
    uint16_t *samples; /* null: the frame has no such channel */
    uint32_t width, height;
};

struct enhance_frame {
    struct sample_plane planes[CHANNELS]; /* Y or R, U or G, V or B, alpha */
};

/* Rows of a surface read into a frame, or of a frame written to it: `enhance_load`, `enhance_store`. */
struct transfer {
    struct graphics memory;
    struct enhance_surface surface;
    struct enhance_frame frame;
    uint8_t *line; /* room for a row of the surface */
    uint32_t first_x, end_x; /* luma columns that are written */
    uint32_t fill; /* of channels that the frame lacks */
    uint32_t reserved;
};

/* Planes of one sampling made planes of another: `enhance_resample`. */
struct resampling {
    struct enhance_frame from, to;
    uint32_t average; /* of samples that become one; else the first is taken */
    uint32_t reserved;
};

/* `enhance_adjust`: out = matrix * (in + offset_in) + offset_out for the three colours of each place. */
struct colour_matrix {
    struct enhance_frame frame;
    int64_t coefficients[9]; /* with 16 bits behind the point */
    int64_t offset_in[3], offset_out[3];
};

/* What motion was before, in the driver's buffer, layout ours: a byte for two luma columns, then one for each block of 4x4 samples. */
struct history {
    struct surface in, out;
    uint32_t have_in, have_out; /* else there is nothing to read, or no place to write to */
};

struct denoise_channel {
    uint32_t enable, temporal, moving_threshold, moving_pixels, low, high, sad, sum; /* thresholds of samples with 16 bits */
    uint32_t range_threshold[RANGES], range_weight[RANGES];
    uint32_t hot_threshold, hot_count; /* count 9: no sample is hot */
};

struct denoising {
    struct graphics memory;
    struct enhance_frame current, previous, result;
    struct history history;
    uint8_t *line_in, *line_out; /* room for a row of history */
    struct denoise_channel channels[3];
    uint32_t distance_weight[3][3]; /* by rows and columns from the middle */
    uint32_t history_start, history_step, history_max;
    uint32_t fields; /* 2: lines of a field are neighbours */
    uint32_t first_frame;
    uint32_t reserved;
};

struct deinterlacing {
    struct graphics memory;
    struct enhance_frame current, previous, result;
    struct history history;
    uint8_t *line_in, *line_out;
    uint32_t kept; /* the field whose lines are kept: 0 top, 1 bottom */
    uint32_t of_previous; /* lines are kept of the previous frame, else of the current one */
    uint32_t cadence; /* enum cadence */
    uint32_t first_frame;
    uint32_t shift_up, shift_down, divisor, complexity_factor;
    uint32_t motion_min, motion_max, output_shift;
    uint32_t fade_small, fade_large; /* of 256, by which motion of the past fades */
    uint32_t reserved;
};

/* The polyphase filter of a channel; coefficients with six bits behind the point. */
struct scaled_plane {
    struct sample_plane from, to;
    int64_t start_x, start_y, step_x, step_y; /* with SCALE_BITS behind the point */
    int8_t x[PHASES][TAPS], y[PHASES][TAPS];
    int32_t *rows; /* room for TAPS rows of the result's width */
    uint32_t bilinear, reserved;
};

enum { SCALE_BITS = 17 };

static inline uint16_t clamp16(int64_t value)
{
    return (uint16_t)(value < 0 ? 0 : value > SAMPLE_MAX ? SAMPLE_MAX : value);
}

static inline int distance(int a, int b)
{
    return a < b ? b - a : a - b;
}

static inline uint16_t *plane_row(const struct sample_plane *p, int64_t y)
{
    y = y < 0 ? 0 : y >= p->height ? p->height - 1 : y;
    return p->samples + (uint64_t)y * p->width;
}

#endif
