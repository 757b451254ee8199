/* Plans and arrays of CLIP and SETUP.
 *
 * A triangle that must be clipped keeps its own three vertices: attributes are theirs, as are the provoking and the leading vertex. What
 * clipping makes are corners on the screen with weights of these vertices, so that each part of a clipped object has planes of the
 * barycentrics of the whole one; entries are not interpolated, and barycentrics without perspective are exact too (BDW 2096-2106).
 */
#ifndef SOFTGEN_GEOMETRY_H
#define SOFTGEN_GEOMETRY_H

#include "../three_d.h"

enum { VIEWPORTS = 16, CORNERS = 3 + 15 + 1, PARTS = CORNERS, OUTPUTS = 32, ATTRIBUTE_BYTES = 64 };

/* -- clip ---------------------------------------------------------------------------------------------------------------------------- */

/* Outcodes of vertices, and of objects as r0.2 of CLIP threads has them (G45 4653-4736); the low byte is not in the payload. */
enum outcode {
    OUT_X_MIN = (int)(1u << 31), OUT_X_MAX = 1 << 30, OUT_Y_MIN = 1 << 29, OUT_Y_MAX = 1 << 28, OUT_Z_MIN = 1 << 27, OUT_Z_MAX = 1 << 26,
    OUT_GUARD_X_MIN = 1 << 25, OUT_GUARD_X_MAX = 1 << 24, OUT_GUARD_Y_MIN = 1 << 23, OUT_GUARD_Y_MAX = 1 << 22,
    OUT_USER_SHIFT = 14, OUT_BAD = 1 << 13, OUT_NEGATIVE_W = 1 << 12, OUT_CULL_SHIFT = 0,
    OUT_XY = (int)0xf0000000, OUT_Z = 3 << 26, OUT_GUARD = 15 << 22, OUT_USER = 255 << OUT_USER_SHIFT, OUT_CULL = 255,
};

struct limits { float x_min, x_max, y_min, y_max; };

enum clip_statistics { CLIP_COUNTS_NOTHING, CLIP_COUNTS_OBJECTS, CLIP_COUNTS_THREADS };

enum clip_mode { CLIP_NORMAL, CLIP_ALL, CLIP_NON_REJECTED, CLIP_REJECT_ALL, CLIP_ACCEPT_ALL };

struct clip_plan {
    uint32_t enabled, mode;
    uint32_t clip_space; /* positions are in clip space: the unit tests there and divides; else they are NDC or screen, with 1/w */
    uint32_t test_xy, test_guardband, test_z_min, test_z_max, test_negative_w;
    uint32_t user_clip, user_cull; /* masks of distances, or of flags in the header */
    uint32_t user_flags; /* user clip codes are flags in the vertex header (4, 4.5), not distances */
    uint32_t w_flag; /* a negative 1/w counts as user clip flag 7, and that flag as a bad position */
    uint32_t user_must_clip; /* a vertex outside a user plane makes the object one to clip */
    uint32_t viewports; /* that are valid: an index past them counts as 0 */
    uint32_t statistics; /* what CL_INVOCATION_COUNT counts: enum clip_statistics */
    float z_min;
    struct limits viewport; /* of the XY test */
    struct limits guardband[VIEWPORTS];
};

enum clip_action { CLIP_DISCARD, CLIP_PASS, CLIP_MUST };

/* What CLIP does with an object. Where threads clip, `outcodes` is r0.2 of the thread. */
struct clip_result {
    uint32_t action, outcodes;
};

/* A corner of a clipped object: clip-space position, weights of the object's vertices, user clip distances. */
struct corner {
    double position[4], weight[3], distance[8];
};

/* -- setup --------------------------------------------------------------------------------------------------------------------------- */

struct viewport {
    float m00, m11, m22, m30, m31, m32;
    int32_t x0, y0, x1, y1; /* pixels of scissor, viewport extents, drawing rectangle and surface; x1, y1 are outside */
};

enum { NOT_ON_SCREEN = INT32_MIN };

enum fill_mode { FILL_SOLID, FILL_WIREFRAME, FILL_POINT };

struct setup_plan {
    uint32_t transform;
    uint32_t front_counter_clockwise, cull_front, cull_back;
    uint32_t fill_front, fill_back; /* enum fill_mode of triangles */
    uint32_t line_coverage, point_coverage; /* enum coverage */
    uint32_t last_pixel; /* of a one-pixel line is drawn */
    uint32_t conservative; /* triangles cover all pixels that they touch */
    uint32_t sampled; /* the rasterizer looks at several samples of a pixel */
    uint32_t line_stipple;
    float line_cap; /* pixels that a smooth line goes on after its ends */
    int32_t origin_x, origin_y; /* drawing rectangle, pixels */
    int32_t grid; /* of positions, in 1/256 pixel: 1 or 16 */
    int32_t diamond_grid; /* of the ends of one-pixel lines, for the tests of diamonds */
    int32_t sample_x, sample_y; /* of a pixel, in 1/256 */
    int32_t limit; /* positions are clamped to -limit to limit - 1, in 1/256 */
    uint32_t viewports, zero_layer;
    uint32_t point_width_bits; /* vertex header: bit 0 of a U8.3 there, or 0 where it is a float */
    uint32_t point_width_vertex; /* the width is the vertex's */
    uint32_t point_right; /* of a point's edges, the right one is in, not the left one */
    float point_width, point_width_min, point_width_max, line_width;
    uint32_t offset; /* depth offset of triangles: a bit for each fill mode */
    uint32_t offset_float; /* the constant is in units of the largest z's last place */
    float offset_constant, offset_scale, offset_clamp;
    uint32_t start_vertex; /* fill in struct sf_input: attributes are set up by threads */
    uint32_t sprite; /* of SF_STATE, for threads */
    uint32_t statistics; /* CL_PRIMITIVES_COUNT counts objects */
    double steps; /* of the grid in a pixel */
    double limit_steps; /* the limit in steps of the grid */
    struct viewport viewport[VIEWPORTS];
};

/* Where a component of a pixel shader input comes from. */
enum component { COMPONENT_ZERO = 4, COMPONENT_ONE, COMPONENT_PRIMITIVE }; /* below: that component of the source */

struct attribute {
    uint32_t source; /* byte of the entry */
    uint32_t facing; /* bytes to add for back-facing objects */
    uint8_t component[4];
    uint32_t flat; /* the provoking vertex's */
    uint32_t sprite; /* of points: texture coordinates */
    uint32_t wrap; /* components that are interpolated the shorter way around a circle of length 1 */
};

struct attribute_plan {
    uint32_t count;
    uint32_t sprite_lower_left;
    struct attribute attributes[OUTPUTS];
};

/* What an SF thread gets of a record (GRAPHICS_THREADS 2.3): r1, r2, and the entries of its vertices in their new order. */
struct sf_input {
    uint32_t r1[8], r2[8];
    uint32_t vertex[3], vertices;
    float depth_offset; /* of the object, which is added to the depth that its thread sets up */
};

/* -- a chunk on its way through CLIP and SETUP --------------------------------------------------------------------------------------- */

struct geometry {
    const struct clip_plan *clip;
    const struct setup_plan *setup;
    const struct attribute_plan *attributes;
    struct vertex_array *vertices;
    struct object_array *objects;
    uint32_t *outcodes; /* of each vertex */
    struct clip_result *results; /* of each object; NULL: all pass */
    struct clip_result *tested; /* memory for them */
    struct screen_place *places; /* of each vertex: memory for them */
    struct record_array *records;
    struct sf_input *sf_inputs; /* of each record; NULL where none are wanted */
    uint64_t next; /* object to set up next */
    uint64_t invocations, primitives; /* CL_INVOCATION_COUNT, CL_PRIMITIVES_COUNT */
    uint32_t *stipple; /* the Line Stipple Counter, which outlives draws */
    uint64_t oversized; /* objects whose bounding box is larger than positions may be from the origin */
};

/* Where a vertex of the only viewport is on the screen: pixels without the drawing rectangle's origin, and on the grid. */
struct screen_place {
    float x, y, z, rhw;
    int32_t grid_x, grid_y; /* grid_x NOT_ON_SCREEN: its position is not a number */
};

/* What the stages CLIP, SETUP and BIN know besides. */
struct clip_stage {
    uint32_t one_viewport; /* of the viewports, only the first was compared */
    uint32_t counts_objects; /* GS_PRIMITIVES_COUNT */
};
struct setup_stage { uint64_t attribute_stride; };
struct bins_stage { uint32_t tiles_x, tiles_y; uint64_t capacity; }; /* of the bins */

/* A vertex on the screen. */
struct screen_vertex {
    int64_t x, y; /* 1/256 pixel, on the grid */
    double exact_x, exact_y; /* pixels, before they were put there */
    double z, rhw;
    double perspective[2], linear[2]; /* b1 and b2 here */
};

/* Records on their way into bins. */
struct binning {
    const struct record_array *records;
    struct bins *bins;
    uint32_t *tiles; /* scratch, of bins->capacity: the tile of each pair of tile and record */
    uint32_t *ends; /* scratch, of the records' capacity: where the pairs of a record end */
    uint64_t first; /* record to begin with */
};

static inline const uint8_t *entry_of(const struct vertex_array *vertices, uint32_t number)
{
    return vertices->entries + number * vertices->stride;
}

/* The unit's view of a viewport index: past the last valid one it is 0 (BDW 2254-2263). */
static inline uint32_t viewport_index(uint32_t index, uint32_t viewports)
{
    return index < viewports ? index : 0;
}

/* Twice the area; above zero when the vertices are clockwise as seen on the screen, where y points down (G45 5353-5361). */
static inline int64_t determinant(const struct screen_vertex *v)
{
    return (v[1].x - v[0].x) * (v[2].y - v[0].y) - (v[2].x - v[0].x) * (v[1].y - v[0].y);
}

/* A coordinate on the grid of positions: nearest, half up, so that moving an object by whole pixels does not change it. */
static inline int64_t snap(const struct setup_plan *plan, double value)
{
    double steps = value * plan->steps + 0.5;
    if (!(steps > -plan->limit_steps))
        return -plan->limit;
    if (steps >= plan->limit_steps)
        return plan->limit - 1;
    int64_t below = (int64_t)steps;
    return (below - (steps < (double)below)) * plan->grid;
}

int set_bounds(const struct setup_plan *plan, const struct screen_vertex *v, uint32_t count, struct setup_record *record);
void set_edges(const struct setup_plan *plan, const struct screen_vertex *v, uint32_t count, struct setup_record *record);
void set_planes(const struct setup_plan *plan, const struct screen_vertex *v, struct setup_record *record);
int set_touched_bounds(const struct setup_plan *plan, const struct screen_vertex *v, struct setup_record *record);
void widen_edges(struct setup_record *record);
float depth_offset(const struct setup_plan *plan, const struct screen_vertex *v, const struct plane *z);
int set_point(const struct geometry *g, const struct object *object, uint32_t entry, const struct screen_vertex *centre,
              struct setup_record *record);
int set_line(const struct geometry *g, const struct screen_vertex *ends, struct setup_record *record);
void set_sf_input(const struct setup_plan *plan, const struct object *object, const struct screen_vertex *v, struct setup_record *record,
                  struct sf_input *into);
uint32_t clip_object(const struct geometry *g, const struct object *object, uint32_t outcodes, struct corner *corners);
struct setup_record *begin_record(struct geometry *g, const struct object *object, uint32_t back_facing);
void keep_record(struct geometry *g, const struct object *object, uint64_t *attributes);
void add_outline(struct geometry *g, const struct object *object, const struct screen_vertex *v, const uint32_t *edges,
                 const uint32_t *entries, uint32_t count, uint32_t back_facing);
int64_t clip_test(struct geometry *g);
void setup_objects(struct geometry *g);
void write_attributes(const struct geometry *g, const struct object *object, uint32_t back_facing, uint8_t *into);

#endif
