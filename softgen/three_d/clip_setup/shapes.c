/* SETUP: points and lines, as the squares and parallelograms that they cover; the inputs of SF threads. */
#include "geometry.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { PIXEL = 256 };

/* The width of a point: the state's, or the vertex's, between the limits that CLIP has for it (BDW 2199-2222). */
static double point_width(const struct setup_plan *plan, const uint8_t *entry)
{
    float width = plan->point_width;
    if (plan->point_width_vertex) {
        uint32_t bits;
        memcpy(&bits, entry + 4 * HEADER_POINT_WIDTH, sizeof bits);
        memcpy(&width, &bits, sizeof width);
        if (plan->point_width_bits)
            width = (float)(bits >> plan->point_width_bits & 0x7ff) / 8;
        width = width >= plan->point_width_min ? width : plan->point_width_min; /* a NaN is the least */
        width = width <= plan->point_width_max ? width : plan->point_width_max;
    }
    return width;
}

static struct plane constant(double value)
{
    return (struct plane){value, 0, 0};
}

/* A straight edge of a square: in units of 1/65536 with the sign that makes inside 0 or more. */
static void square_edge(struct setup_record *record, int32_t number, int64_t value, int64_t sample, int vertical, int low, int inside)
{
    int64_t step = (low ? 1 : -1) * PIXEL * PIXEL;
    record->edge[number] = (low ? sample - value : value - sample) * PIXEL - !inside;
    record->edge_dx[number] = vertical ? step : 0;
    record->edge_dy[number] = vertical ? 0 : step;
}

/* The square of a point, given by its corners; that of a smooth one is half a pixel larger on all sides, where coverage falls to 0. */
static int set_square(const struct setup_plan *plan, const struct screen_vertex *corners, struct setup_record *record)
{
    int64_t more = plan->point_coverage == COVERAGE_SMOOTH_POINT ? PIXEL / 2 : 0;
    struct screen_vertex v[2] = {corners[0], corners[1]};
    v[0].x -= more, v[0].y -= more, v[1].x += more, v[1].y += more;
    record->coverage = plan->point_coverage;
    record->edges = 4;
    square_edge(record, 0, v[0].x, plan->sample_x, 1, 1, !plan->point_right);
    square_edge(record, 1, v[1].x, plan->sample_x, 1, 0, plan->point_right);
    square_edge(record, 2, v[0].y, plan->sample_y, 0, 1, 1);
    square_edge(record, 3, v[1].y, plan->sample_y, 0, 0, 0);
    return set_bounds(plan, v, 2, record);
}

/* A point: a square about its centre. Which of its vertical edges is in is a rule of the state (G45 5195-5212); the upper one always is.
 * b1 and b2 go from left to right and from top to bottom. */
int set_point(const struct geometry *g, const struct object *object, uint32_t entry, const struct screen_vertex *centre,
              struct setup_record *record)
{
    const struct setup_plan *plan = g->setup;
    double half = point_width(plan, entry_of(g->vertices, entry)) / 2;
    struct screen_vertex v[3] = {*centre, *centre, *centre};
    v[0].x = v[2].x = snap(plan, centre->exact_x - half), v[1].x = snap(plan, centre->exact_x + half);
    v[0].y = snap(plan, centre->exact_y - half), v[1].y = v[2].y = snap(plan, centre->exact_y + half);
    if (v[0].x == v[1].x || v[0].y == v[1].y || !set_square(plan, v, record))
        return 0;
    record->line[0] = (int32_t)(centre->x - plan->sample_x), record->line[1] = (int32_t)(centre->y - plan->sample_y);
    record->line[2] = (int32_t)(v[1].x - v[0].x);
    double width = (double)(v[1].x - v[0].x), height = (double)(v[1].y - v[0].y);
    record->z = constant(centre->z);
    record->rhw = constant(centre->rhw);
    record->linear[0] = (struct plane){(double)(plan->sample_x - v[0].x) / width, PIXEL / width, 0};
    record->linear[1] = (struct plane){(double)(plan->sample_y - v[0].y) / height, 0, PIXEL / height};
    for (int i = 0; i < 2; i++) {
        struct plane b = record->linear[i];
        record->perspective[i] = (struct plane){b.c * centre->rhw, b.dx * centre->rhw, b.dy * centre->rhw};
    }
    if (g->sf_inputs)
        set_sf_input(plan, object, v, record, &g->sf_inputs[g->records->count]);
    return 1;
}

/* A value that changes along the line only. */
static struct plane along(const struct setup_plan *plan, const struct screen_vertex *v, double f0, double f1)
{
    double dx = (double)(v[1].x - v[0].x), dy = (double)(v[1].y - v[0].y), scale = (f1 - f0) * PIXEL / (dx * dx + dy * dy);
    double x = (double)(plan->sample_x - v[0].x) / PIXEL, y = (double)(plan->sample_y - v[0].y) / PIXEL;
    struct plane p = {0, dx * scale, dy * scale};
    p.c = f0 + p.dx * x + p.dy * y;
    return p;
}

/* Where a line's pixels are, as a multiple of the pixel along its major axis: counts of pixels that lie before the line's ends. A wide
 * line covers pixels from its left or upper end on, up to the other; a one-pixel line begins in the pixel that its start is nearest to. */
static int64_t pixel_before(const struct setup_plan *plan, int64_t position)
{
    return plan->line_coverage == COVERAGE_LINE ? -(-position >> 8) : (position + PIXEL / 2) >> 8;
}

/* The Line Stipple Counter of a line's first pixel; behind its last, it is that of the next (G45 6442-6450). */
static void count_stipple(const struct geometry *g, struct setup_record *record)
{
    const int32_t *line = record->line;
    int x_major = llabs((int64_t)line[2] - line[0]) >= llabs((int64_t)line[3] - line[1]);
    int64_t start = pixel_before(g->setup, line[!x_major]), end = pixel_before(g->setup, line[2 + !x_major]);
    record->stipple = *g->stipple;
    *g->stipple += (uint32_t)llabs(end - start);
}

/* A line without antialiasing: a parallelogram, the ends moved by half the width along the minor axis; a diagonal line is x-major
 * (G45 5515-5519). About a one-pixel line, a parallelogram that has all pixels which it may touch. */
static int aliased_corners(const struct setup_plan *plan, const struct screen_vertex *ends, struct screen_vertex *v)
{
    int64_t dx = ends[1].x - ends[0].x, dy = ends[1].y - ends[0].y, major = llabs(dx) >= llabs(dy) ? llabs(dx) : llabs(dy);
    int64_t half = plan->line_coverage == COVERAGE_LINE ? snap(plan, plan->line_width / 2) : PIXEL;
    for (int i = 0; i < 4; i++)
        *(llabs(dx) >= llabs(dy) ? &v[i].y : &v[i].x) += i < 2 ? -half : half;
    for (int i = 0; i < 4 && plan->line_coverage != COVERAGE_LINE; i++) {
        int64_t longer = i == 0 || i == 3 ? -PIXEL : PIXEL;
        v[i].x += dx * longer / major, v[i].y += dy * longer / major;
    }
    return half != 0;
}

/* An antialiased line: a rectangle of the line's width, longer at both ends by the cap region (G45 5529-5531). Edges 0 and 2 are its
 * sides, 1 and 3 its caps. A multisampled line (COVERAGE_EDGES) is one without cap regions. */
static int smooth_corners(const struct setup_plan *plan, const struct screen_vertex *ends, struct screen_vertex *v)
{
    double dx = (double)(ends[1].x - ends[0].x), dy = (double)(ends[1].y - ends[0].y), length = sqrt(dx * dx + dy * dy);
    double half = plan->line_width / 2 * PIXEL / length, cap = plan->line_cap * PIXEL / length;
    for (int i = 0; i < 4; i++) {
        double side = i < 2 ? -half : half, along = i == 0 || i == 3 ? -cap : cap;
        v[i].x += llrint(dx * along - dy * side), v[i].y += llrint(dy * along + dx * side);
    }
    return half > 0;
}

int set_line(const struct geometry *g, const struct screen_vertex *ends, struct setup_record *record)
{
    const struct setup_plan *plan = g->setup;
    struct screen_vertex v[4] = {ends[0], ends[1], ends[1], ends[0]};
    if (ends[0].x == ends[1].x && ends[0].y == ends[1].y)
        return 0;
    record->coverage = plan->line_coverage;
    int32_t grid = record->coverage == COVERAGE_DIAMOND ? plan->diamond_grid : 1; /* sub-pixels go by their upper left corners (G45 5415) */
    for (int i = 0; i < 2; i++) {
        record->line[2 * i] = (int32_t)(ends[i].x - plan->sample_x) & -grid;
        record->line[2 * i + 1] = (int32_t)(ends[i].y - plan->sample_y) & -grid;
    }
    if (plan->line_stipple)
        count_stipple(g, record);
    int rectangle = plan->line_coverage == COVERAGE_SMOOTH_LINE || plan->line_coverage == COVERAGE_EDGES;
    int wide = rectangle ? smooth_corners(plan, ends, v) : aliased_corners(plan, ends, v);
    if (!wide || !set_bounds(plan, v, 4, record))
        return 0;
    set_edges(plan, v, 4, record);
    record->z = along(plan, ends, ends[0].z, ends[1].z);
    record->rhw = along(plan, ends, ends[0].rhw, ends[1].rhw);
    for (int i = 0; i < 2; i++) {
        record->linear[i] = along(plan, ends, ends[0].linear[i], ends[1].linear[i]);
        record->perspective[i] = along(plan, ends, ends[0].perspective[i] * ends[0].rhw, ends[1].perspective[i] * ends[1].rhw);
    }
    return 1;
}

/* The order of an object's vertices for its SF thread: from the topmost (of several, the leftmost) on clockwise (G45 5826-5850). */
static void start_order(const struct screen_vertex *v, uint32_t count, uint32_t order[3])
{
    uint32_t start = 0;
    for (uint32_t i = 1; i < count; i++)
        if (v[i].y < v[start].y || (v[i].y == v[start].y && v[i].x < v[start].x))
            start = i;
    uint32_t step = count == 3 && determinant(v) < 0 ? 2 : 1;
    for (uint32_t i = 0; i < count; i++)
        order[i] = (start + i * step) % count;
}

static uint32_t bits_of(double value)
{
    float narrow = (float)value;
    uint32_t bits;
    memcpy(&bits, &narrow, sizeof bits);
    return bits;
}

/* r1 and r2 of an SF thread (G45 5852-5945). Of a point, `v` are the upper left, lower right and lower left corner. */
void set_sf_input(const struct setup_plan *plan, const struct object *object, const struct screen_vertex *v, struct setup_record *record,
                  struct sf_input *into)
{
    uint32_t vertices = object->flags & OBJECT_VERTICES, provoking = object->flags >> OBJECT_PROVOKING_SHIFT & 3, order[3] = {0, 1, 2};
    double x[3] = {0}, y[3] = {0};
    memset(into, 0, sizeof *into);
    into->vertices = vertices;
    if (vertices > 1)
        start_order(v, vertices, order);
    for (uint32_t i = 0; i < 3; i++) {
        if (vertices == 2 && i == 2)
            break;
        const struct screen_vertex *from = &v[order[i]];
        x[i] = (double)(from->x - v[order[0]].x) / PIXEL, y[i] = (double)(from->y - v[order[0]].y) / PIXEL;
        into->r2[2 * i] = bits_of(from->z), into->r2[2 * i + 1] = bits_of(from->rhw);
        if (i < vertices) {
            into->vertex[i] = object->vertex[order[i]];
            if (order[i] == provoking)
                into->r1[1] = i;
        }
    }
    into->r1[0] = (object->flags >> OBJECT_TOPOLOGY_SHIFT & 0xffff) | plan->sprite << 16 | record->back_facing << 17;
    into->r1[2] = bits_of(vertices == 2 ? x[1] * x[1] + y[1] * y[1] : x[1] * y[2] - x[2] * y[1]);
    into->r1[3] = bits_of(x[1]), into->r1[4] = bits_of(x[2]), into->r1[5] = bits_of(y[1]), into->r1[6] = bits_of(y[2]);
    record->x_start = (float)((double)(v[order[0]].x - plan->sample_x) / PIXEL);
    record->y_start = (float)((double)(v[order[0]].y - plan->sample_y) / PIXEL);
}
