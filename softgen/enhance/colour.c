/* Colour: a matrix with offsets, which also is what procamp does (enhance.h). */
#include "enhance.h"

enum { POINT = 16, HALF = 1 << (POINT - 1) };

static uint16_t row_of_matrix(const int64_t *coefficients, const int64_t *values, int64_t offset)
{
    int64_t sum = coefficients[0] * values[0] + coefficients[1] * values[1] + coefficients[2] * values[2];
    return clamp16(((sum + HALF) >> POINT) + offset);
}

/* Planes of one size: three colours at each place. */
static void transform(const struct colour_matrix *m)
{
    const struct sample_plane *p = m->frame.planes;
    uint64_t count = (uint64_t)p[0].width * p[0].height;
    for (uint64_t i = 0; i < count; i++) {
        int64_t values[3];
        for (int n = 0; n < 3; n++)
            values[n] = p[n].samples[i] + m->offset_in[n];
        for (int n = 0; n < 3; n++)
            p[n].samples[i] = row_of_matrix(m->coefficients + 3 * n, values, m->offset_out[n]);
    }
}

/* Luma and chroma have nothing to do with each other: planes may be of different sizes. */
static void transform_apart(const struct colour_matrix *m)
{
    const struct sample_plane *p = m->frame.planes;
    for (uint64_t i = 0, count = (uint64_t)p[0].width * p[0].height; i < count; i++) {
        int64_t values[3] = {p[0].samples[i] + m->offset_in[0], 0, 0};
        p[0].samples[i] = row_of_matrix(m->coefficients, values, m->offset_out[0]);
    }
    for (uint64_t i = 0, count = p[1].samples ? (uint64_t)p[1].width * p[1].height : 0; i < count; i++) {
        int64_t values[3] = {0, p[1].samples[i] + m->offset_in[1], p[2].samples[i] + m->offset_in[2]};
        p[1].samples[i] = row_of_matrix(m->coefficients + 3, values, m->offset_out[1]);
        p[2].samples[i] = row_of_matrix(m->coefficients + 6, values, m->offset_out[2]);
    }
}

/* Entry: every colour of a frame. */
ENTRY int64_t enhance_colours(struct colour_matrix *m, void *record)
{
    const int64_t *c = m->coefficients;
    (void)record;
    if (c[1] || c[2] || c[3] || c[6])
        transform(m);
    else
        transform_apart(m);
    return 0;
}
