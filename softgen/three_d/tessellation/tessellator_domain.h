/* What the files of the tessellator share. */
#ifndef SOFTGEN_TESSELLATOR_DOMAIN_H
#define SOFTGEN_TESSELLATOR_DOMAIN_H

#include "tessellator.h"

#define TESS_ONE 0x10000u
#define HIDDEN __attribute__((visibility("hidden")))

enum { TESS_INNER = 4 }; /* the first inner factor */
enum { AXIS_U, AXIS_V };

/* An edge or inner axis between 0 and 1, symmetric about its middle. Its points are between those of the next even or odd numbers of segments
 * below and above the factor: the point after `split` is the one that appears. */
struct axis {
    uint32_t points, half_points, split, fraction, below, above; /* `below`, `above`: 1 / segments in 16.16 */
    int odd;
};

/* tessellator_points.c */
HIDDEN struct axis inner_axis(const struct tess_factors *f, int number);
HIDDEN struct axis outer_axis(const struct tess_factors *f, int number);
HIDDEN uint32_t points_of(uint32_t factor, int odd);
HIDDEN uint32_t place(const struct axis *a, uint32_t point);
HIDDEN void add_point(struct tess_result *r, uint32_t u, uint32_t v);
HIDDEN void quad_points(const struct tess_factors *f, const struct axis *inner, struct tess_result *r);
HIDDEN void triangle_points(const struct tess_factors *f, const struct axis *inner, struct tess_result *r);

/* tessellator_triangles.c */
HIDDEN void connect_points(const struct tess_plan *plan, const struct tess_factors *f, const struct axis *inner, struct tess_result *r);
HIDDEN void whole_domain(const struct tess_plan *plan, struct tess_result *r);

#endif
