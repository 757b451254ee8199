/* The tessellator: the points of a patch's domain, and the triangles or lines between them (tessellator.py).
 *
 * The manual names the modes (BDW 11260-11366) and leaves the algorithm open. This is the one that Direct3D 11 prescribes bit for bit
 * (public: D3D11.3 functional specification, 11.7), in 16.16 fixed point: a domain is a ring of points around rings of a regular grid
 * (tessellator_points.c), and a strip of triangles between each two rings (tessellator_triangles.c). */
#include "tessellator_domain.h"

#include "../three_d.h"

#include <math.h>
#include <string.h>

/* -- factors ------------------------------------------------------------------------------------------------------------------------- */

/* NaN becomes `low`. */
static float clamp(float f, float low, float high)
{
    if (!(f > low))
        return low;
    return f < high ? f : high;
}

static uint32_t fixed(float f)
{
    return (uint32_t)nearbyintf(f * TESS_ONE);
}

static int is_odd(uint32_t partitioning, float f)
{
    if (partitioning != TESS_INTEGER)
        return partitioning == TESS_ODD_FRACTIONAL;
    return (int)f & 1;
}

/* A factor within its bounds; integer ones are rounded up. */
static float bounded(const struct tess_plan *plan, uint32_t partitioning, float f, float low)
{
    float high = partitioning == TESS_ODD_FRACTIONAL ? plan->maximum_odd : plan->maximum;
    f = clamp(f, low, high < TESS_MOST ? high : TESS_MOST);
    return partitioning == TESS_INTEGER ? ceilf(f) : f;
}

static float lowest(uint32_t partitioning)
{
    return partitioning == TESS_EVEN_FRACTIONAL ? 2 : 1;
}

static void set_factor(struct tess_factors *into, int number, float f, int odd)
{
    into->fixed[number] = fixed(f);
    into->odd |= (uint32_t)odd << number;
}

/* The lines of isolines are always of integer partitioning (BDW 11346-11349). */
static void read_isoline(const struct tess_plan *plan, const float *outer, struct tess_factors *into)
{
    float density = bounded(plan, TESS_INTEGER, outer[0], 1), detail = bounded(plan, plan->partitioning, outer[1], lowest(plan->partitioning));
    set_factor(into, 0, density, is_odd(TESS_INTEGER, density));
    set_factor(into, 1, detail, is_odd(plan->partitioning, detail));
}

EXPORT void tess_read_factors(const struct tess_plan *plan, const float *outer, const float *inner, struct tess_factors *into)
{
    static const int outers[] = {4, 3, 2}, inners[] = {2, 1, 0};
    uint32_t partitioning = plan->partitioning;
    float low = lowest(partitioning), largest = 0;
    memset(into, 0, sizeof *into);
    for (int i = 0; i < outers[plan->domain]; i++)
        into->culled |= !(outer[i] > 0);
    if (into->culled)
        return;
    if (plan->domain == TESS_ISOLINE) {
        read_isoline(plan, outer, into);
        return;
    }
    for (int i = 0; i < outers[plan->domain]; i++) {
        float f = bounded(plan, partitioning, outer[i], low);
        largest = fmaxf(largest, f);
        set_factor(into, i, f, is_odd(partitioning, f));
    }
    for (int i = 0; i < inners[plan->domain]; i++)
        if (plan->domain == TESS_QUAD)
            largest = fmaxf(largest, inner[i]);
    if (partitioning == TESS_ODD_FRACTIONAL && largest > 1 + 0x1p-17f)
        low = 1 + 0x1p-16f; /* rings inside, however narrow */
    for (int i = 0; i < inners[plan->domain]; i++) {
        float f = bounded(plan, partitioning, inner[i], low);
        set_factor(into, TESS_INNER + i, f, (partitioning != TESS_INTEGER || f != 1) && is_odd(partitioning, f));
    }
}

/* -- all ----------------------------------------------------------------------------------------------------------------------------- */

static void isolines(const struct tess_factors *f, uint32_t output, struct tess_result *r)
{
    struct axis density = outer_axis(f, 0), detail = outer_axis(f, 1);
    for (uint32_t line = 0; line + 1 < density.points; line++)
        for (uint32_t p = 0; p < detail.points; p++) {
            if (p && output == TESS_LINE) {
                r->indices[r->index_count++] = (uint16_t)(r->point_count - 1);
                r->indices[r->index_count++] = (uint16_t)r->point_count;
            }
            add_point(r, place(&detail, p), place(&density, line));
        }
}

static int all_one(const struct tess_plan *plan, const struct tess_factors *f)
{
    for (int i = 0; i < TESS_FACTORS; i++)
        if (f->fixed[i] && f->fixed[i] != TESS_ONE)
            return 0;
    return plan->partitioning != TESS_EVEN_FRACTIONAL;
}

EXPORT void tessellate(const struct tess_plan *plan, const struct tess_factors *f, struct tess_result *r)
{
    r->point_count = r->index_count = 0;
    if (f->culled)
        return;
    if (plan->domain == TESS_ISOLINE) {
        isolines(f, plan->output, r);
        return;
    }
    if (all_one(plan, f)) {
        whole_domain(plan, r);
        return;
    }
    struct axis inner[2] = {inner_axis(f, 0), inner_axis(f, plan->domain == TESS_QUAD ? 1 : 0)};
    if (plan->domain == TESS_QUAD)
        quad_points(f, inner, r);
    else
        triangle_points(f, inner, r);
    if (plan->output >= TESS_TRI_CW)
        connect_points(plan, f, inner, r);
}
