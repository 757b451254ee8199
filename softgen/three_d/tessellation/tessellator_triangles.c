/* Triangles between the points of a patch's domain: strips between rings, and what is left in the middle. */
#include "tessellator_domain.h"

/* Triangles are found clockwise. */
struct strip {
    struct tess_result *result;
    int counter_clockwise;
    uint16_t outside[TESS_MOST + 2], inside[TESS_MOST + 2]; /* points of the two rows */
    uint32_t o, i; /* how far along them */
};

static void triangle(struct strip *s, uint16_t a, uint16_t b, uint16_t c)
{
    uint16_t *into = s->result->indices + s->result->index_count;
    into[0] = a;
    into[1] = s->counter_clockwise ? c : b;
    into[2] = s->counter_clockwise ? b : c;
    s->result->index_count += 3;
}

/* A step along the outer row, and one along the inner row. */
static void step_outside(struct strip *s, int outside_first)
{
    uint16_t *o = s->outside + s->o++, i = s->inside[s->i];
    if (outside_first)
        triangle(s, o[0], o[1], i);
    else
        triangle(s, i, o[0], o[1]);
}

static void step_inside(struct strip *s)
{
    uint16_t *i = s->inside + s->i++;
    triangle(s, i[0], s->outside[s->o], i[1]);
}

/* The order in which points appear in half of a row as its factor grows. */
static const uint8_t APPEARANCE[] = {0, 32, 16, 8, 17, 4, 18, 9, 19, 2, 20, 10, 21, 5, 22, 11, 23,
                                     1, 24, 12, 25, 6, 26, 13, 27, 3, 28, 14, 29, 7, 30, 15, 31};

/* A strip between rows of different factors: the outer ring and the first one inside. */
static void stitch_transition(struct strip *s, const struct axis *outside, const struct axis *inside)
{
    uint32_t no = outside->half_points - (uint32_t)outside->odd, ni = inside->half_points - (uint32_t)inside->odd;
    s->o = s->i = 0;
    if (no)
        step_outside(s, 1);
    for (int k = 1; k <= TESS_MOST / 2; k++) {
        if (APPEARANCE[k] < ni)
            step_inside(s);
        if (APPEARANCE[k] < no)
            step_outside(s, 1);
    }
    if (outside->odd && inside->odd) {
        uint16_t *o = s->outside + s->o++, *i = s->inside + s->i++;
        triangle(s, i[0], o[0], i[1]);
        triangle(s, i[1], o[0], o[1]);
    } else if (outside->odd)
        step_outside(s, 0);
    else if (inside->odd)
        step_inside(s);
    for (int k = TESS_MOST / 2; k > 0; k--) {
        if (APPEARANCE[k] < no)
            step_outside(s, 1);
        if (APPEARANCE[k] < ni)
            step_inside(s);
    }
    if (no)
        step_outside(s, 1);
}

/* Two triangles, with the diagonal from the outer row's first point, or from the inner row's. */
static void quad_from_outside(struct strip *s)
{
    uint16_t *o = s->outside + s->o++, *i = s->inside + s->i++;
    triangle(s, o[0], i[1], i[0]);
    triangle(s, o[0], o[1], i[1]);
}

static void quad_from_inside(struct strip *s)
{
    step_outside(s, 0);
    step_inside(s);
}

/* A strip between two rings of the grid: `points` inside, two more outside. Diagonals are mirrored at its middle. */
static void stitch_rings(struct strip *s, uint32_t points)
{
    s->o = s->i = 0;
    step_outside(s, 1);
    for (uint32_t p = 0; p + 1 < points; p++)
        if (p < points / 2)
            quad_from_outside(s);
        else
            quad_from_inside(s);
    step_outside(s, 1);
}

/* The points of a ring: its edges one after another from `first` on. A ring that is a single row has its points on both long edges. */
struct ring {
    uint32_t first, edges;
    uint32_t points[4]; /* of each edge, with its last */
    int is_row;
};

static void edge_points(const struct ring *g, uint32_t edge, uint16_t *into)
{
    uint32_t count = g->points[edge], before = 0, all = 0;
    for (uint32_t e = 0; e < g->edges; e++) {
        before += e < edge ? g->points[e] - 1 : 0;
        all += g->points[e] - 1;
    }
    uint32_t row = (all / 2); /* number of the last point of a single row */
    for (uint32_t p = 0; p < count; p++) {
        uint32_t at = before + p;
        if (g->is_row)
            into[p] = (uint16_t)(g->first + (at <= row ? at : all - at));
        else
            into[p] = (uint16_t)(g->first + (at < all ? at : 0));
    }
}

static uint32_t points_in(const struct ring *g)
{
    uint32_t all = 0;
    for (uint32_t e = 0; e < g->edges; e++)
        all += g->points[e] - 1;
    return all;
}

/* What the innermost ring leaves of a quad whose shorter axis has an even number of points: a row between that ring's two long edges. */
static void quad_center(struct strip *s, const struct ring *last, const struct axis *inner)
{
    int along_u = inner[AXIS_U].points > inner[AXIS_V].points;
    if (!inner[along_u ? AXIS_V : AXIS_U].odd)
        return;
    uint32_t edge = along_u ? 1 : 0, count = last->points[edge];
    uint16_t other[TESS_MOST + 2];
    edge_points(last, edge, s->outside);
    edge_points(last, edge + 2, other);
    for (uint32_t p = 0; p < count; p++)
        s->inside[p] = other[count - 1 - p];
    int mirrored = !along_u && inner[AXIS_V].odd; /* the diagonal in the middle of the row is the other one */
    s->o = s->i = 0;
    for (uint32_t p = 0; p + 1 < count; p++)
        if (mirrored && p == count / 2 - 1)
            quad_from_outside(s);
        else {
            step_outside(s, mirrored);
            step_inside(s);
        }
}

void connect_points(const struct tess_plan *plan, const struct tess_factors *f, const struct axis *inner, struct tess_result *r)
{
    int quad = plan->domain == TESS_QUAD;
    struct strip s = {.result = r, .counter_clockwise = plan->output == TESS_TRI_CCW};
    struct ring outside = {.edges = quad ? 4 : 3};
    const struct axis *axes[4] = {&inner[quad ? AXIS_V : AXIS_U], &inner[AXIS_U], &inner[quad ? AXIS_V : AXIS_U], &inner[AXIS_U]};
    uint32_t least = axes[0]->points < axes[1]->points ? axes[0]->points : axes[1]->points, first = 0;
    for (uint32_t e = 0; e < outside.edges; e++)
        outside.points[e] = points_of(f->fixed[e], f->odd >> e & 1);
    for (uint32_t ring = 1; ring < (least + 1) / 2; ring++) {
        first += points_in(&outside);
        struct ring inside = {.first = first, .edges = outside.edges};
        for (uint32_t e = 0; e < inside.edges; e++)
            inside.points[e] = axes[e]->points - 2 * ring;
        inside.is_row = quad && least == 2 * ring + 1;
        for (uint32_t e = 0; e < inside.edges; e++) {
            edge_points(&outside, e, s.outside);
            edge_points(&inside, e, s.inside);
            struct axis outer = outer_axis(f, (int)e);
            if (ring == 1)
                stitch_transition(&s, &outer, axes[e]);
            else
                stitch_rings(&s, inside.points[e]);
        }
        outside = inside;
    }
    if (quad)
        quad_center(&s, &outside, inner);
    else if (inner->odd)
        triangle(&s, (uint16_t)outside.first, (uint16_t)(outside.first + 1), (uint16_t)(outside.first + 2));
}

/* A domain whose factors are all 1: its corners. */
void whole_domain(const struct tess_plan *plan, struct tess_result *r)
{
    struct strip s = {.result = r, .counter_clockwise = plan->output == TESS_TRI_CCW};
    int quad = plan->domain == TESS_QUAD, triangles = plan->output >= TESS_TRI_CW;
    if (quad) {
        add_point(r, 0, 0);
        add_point(r, TESS_ONE, 0);
        add_point(r, TESS_ONE, TESS_ONE);
        add_point(r, 0, TESS_ONE);
    } else {
        add_point(r, 0, TESS_ONE);
        add_point(r, 0, 0);
        add_point(r, TESS_ONE, 0);
    }
    if (triangles && quad) {
        triangle(&s, 0, 1, 3);
        triangle(&s, 1, 2, 3);
    } else if (triangles)
        triangle(&s, 0, 1, 2);
}
