/* The tessellator: the points of a patch's domain, and the triangles or lines between them. */
#ifndef SOFTGEN_TESSELLATOR_H
#define SOFTGEN_TESSELLATOR_H

#include <stdint.h>

/* Fields of 3DSTATE_TE, as it codes them (BDW 11260-11302). */
enum tess_partitioning { TESS_INTEGER, TESS_ODD_FRACTIONAL, TESS_EVEN_FRACTIONAL };
enum tess_output { TESS_POINT, TESS_LINE, TESS_TRI_CW, TESS_TRI_CCW };
enum tess_domain { TESS_QUAD, TESS_TRI, TESS_ISOLINE };

enum {
    TESS_FACTORS = 6, /* outer ones, then inner ones */
    TESS_MOST = 64, /* the largest factor */
    TESS_MOST_POINTS = (TESS_MOST + 1) * (TESS_MOST + 1),
    TESS_MOST_INDICES = TESS_MOST * TESS_MOST * 2 * 3,
};

struct tess_plan {
    uint32_t partitioning, output, domain;
    float maximum_odd, maximum; /* factors of odd partitioning, and of the others */
};

/* Factors as the tessellator uses them: clamped, rounded, in 16.16 fixed point. Patches with the same ones have the same points. */
struct tess_factors {
    uint32_t fixed[TESS_FACTORS];
    uint32_t odd; /* a bit for each factor: its edge has an odd number of segments */
    uint32_t culled; /* nothing is left of the patch */
};

struct tess_result {
    float (*points)[2]; /* u and v; room for TESS_MOST_POINTS */
    uint16_t *indices; /* of points: three of a triangle, two of a line; room for TESS_MOST_INDICES */
    uint32_t point_count, index_count;
};

void tess_read_factors(const struct tess_plan *plan, const float *outer, const float *inner, struct tess_factors *into);
void tessellate(const struct tess_plan *plan, const struct tess_factors *factors, struct tess_result *into);

#endif
