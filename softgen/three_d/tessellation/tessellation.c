/* TE: from the factors of each patch to points for DS threads, and the objects between them (tessellation.py). Points and objects go to a
 * chunk of their own; patches that it has no room for follow in the next one. */
#include "tessellation.h"

#include "../draw/draw.h"

#include <string.h>

enum { ROW = 64, LAST = OBJECT_LAST, CONTINUES = OBJECT_CONTINUES };

/* -- points and connectivity of patches with the same factors ------------------------------------------------------------------------ */

static uint32_t set_of(const struct tess_factors *f)
{
    uint32_t hash = f->odd;
    for (int i = 0; i < TESS_FACTORS; i++)
        hash = hash * 0x9e3779b1u + f->fixed[i];
    return hash >> 16 & (CACHE_SETS - 1);
}

/* Points and indices by factors, computed if they are not held. */
EXPORT const struct tess_result *tess_find(struct tess_cache *cache, const struct tess_plan *plan, const struct tess_factors *factors)
{
    struct cached_factors *set = cache->held + CACHE_WAYS * set_of(factors), *oldest = set;
    cache->stamp++;
    for (struct cached_factors *c = set; c < set + CACHE_WAYS; c++) {
        if (c->stamp && !memcmp(&c->factors, factors, sizeof *factors) && !memcmp(&c->plan, plan, sizeof *plan)) {
            c->stamp = cache->stamp;
            return &c->result;
        }
        if (c->stamp < oldest->stamp)
            oldest = c;
    }
    oldest->plan = *plan;
    oldest->factors = *factors;
    oldest->stamp = cache->stamp;
    cache->made++;
    tessellate(plan, factors, &oldest->result);
    return &oldest->result;
}

/* -- a chunk ------------------------------------------------------------------------------------------------------------------------- */

/* What a patch becomes: indices of points, or all points in order; `points` are in memory if the tessellator is software. */
struct shape {
    const float (*points)[2];
    const uint16_t *indices; /* NULL: points are taken in order */
    uint32_t point_count, index_count; /* index_count: vertices of objects */
    uint64_t address;
};

/* How many of `wanted` more vertices and objects the chunk has room for. An empty one takes a whole patch. */
static uint32_t room(const struct draw *d, const struct tessellation *t, uint32_t wanted)
{
    const struct vertex_array *v = t->chunk.vertices;
    uint32_t most = v->count && d->most_vertices < v->capacity ? d->most_vertices : v->capacity;
    uint32_t left = most > v->count ? most - v->count : 0;
    return wanted < left ? wanted : left;
}

static int has_objects(const struct tessellation *t, uint64_t objects)
{
    const struct object_array *o = t->chunk.objects;
    return objects <= o->capacity - o->count;
}

/* The entry of the patch under way where DS threads read it: its handle. */
static uint32_t copy_entry(struct tessellation *t, const uint8_t *entry)
{
    struct patch_array *copies = &t->copies;
    uint64_t at = copies->count++ * copies->stride;
    memcpy(copies->entries + at, entry, copies->stride);
    return (uint32_t)(at / ROW);
}

static void add_groups(struct tessellation *t, uint32_t handle, uint32_t primitive, uint32_t first, uint32_t count)
{
    for (uint32_t done = 0; done < count; done += t->per_thread) {
        uint32_t left = count - done;
        t->out->groups[t->out->group_count++] =
            (struct point_group){handle, primitive, first + done, left < t->per_thread ? left : t->per_thread};
    }
}

/* Flags of the line from vertex `a` to `b`: the lines of a row are a strip (BDW 11281). */
static uint32_t line_flags(struct object_array *objects, uint64_t first, uint32_t a)
{
    struct object *before = objects->count > first ? &objects->objects[objects->count - 1] : NULL;
    if (!before || before->vertex[1] != a)
        return LAST;
    before->flags &= ~(uint32_t)LAST;
    return LAST | CONTINUES;
}

/* Objects of `count` indices; `vertex` is that of the first point. */
static void add_objects(struct tessellation *t, const uint16_t *indices, uint32_t count, uint32_t vertex, uint32_t primitive)
{
    struct object_array *objects = t->chunk.objects;
    uint64_t first = objects->count;
    for (uint32_t i = 0; i < count; i += t->corners) {
        struct object o = {.flags = t->flags, .primitive = primitive};
        for (uint32_t c = 0; c < 3; c++) {
            uint32_t at = i + (c < t->corners ? c : 0);
            o.vertex[c] = vertex + (indices ? indices[at] : at);
        }
        if (t->corners == 2)
            o.flags |= line_flags(objects, first, o.vertex[0]);
        objects->objects[objects->count++] = o;
    }
}

static void take_points(struct tessellation *t, const float (*points)[2], uint32_t count)
{
    struct vertex_array *v = t->chunk.vertices;
    memcpy(t->out->points[v->count], points, count * sizeof *points);
    v->count += count;
}

/* A patch whose points are shared by its objects; 0 if the chunk has no room for it. */
static int add_shared(const struct draw *d, struct tessellation *t, const struct shape *shape, const uint8_t *entry, uint32_t primitive)
{
    uint32_t vertex = t->chunk.vertices->count;
    if (room(d, t, shape->point_count) < shape->point_count || !has_objects(t, shape->index_count / t->corners))
        return 0;
    take_points(t, shape->points, shape->point_count);
    add_groups(t, copy_entry(t, entry), primitive, vertex, shape->point_count);
    add_objects(t, shape->indices, shape->index_count, vertex, primitive);
    return 1;
}

/* A point of a software tessellator. The address space may go on elsewhere in host memory between its dwords (graphics_memory.h). */
static void read_point(const struct tessellation *t, uint64_t address, float *into)
{
    for (uint32_t c = 0; c < 2; c++)
        memcpy(into + c, graphics_memory(t->memory, (address & ~3ull) + 4 * c), sizeof *into);
}

/* A patch each of whose indices is a vertex of its own, from t->index on; 0 if some are left. */
static int add_apart(const struct draw *d, struct tessellation *t, const struct shape *shape, const uint8_t *entry, uint32_t primitive)
{
    uint32_t vertex = t->chunk.vertices->count, left = shape->index_count - t->index, count = room(d, t, left);
    count -= count % t->corners;
    if (!count || !has_objects(t, count / t->corners))
        return 0;
    for (uint32_t i = t->index; i < t->index + count; i++) {
        float point[1][2];
        if (t->software)
            read_point(t, shape->address + i * sizeof *point, point[0]);
        else
            memcpy(point, shape->points[shape->indices ? shape->indices[i] : i], sizeof *point);
        take_points(t, point, 1);
    }
    add_groups(t, copy_entry(t, entry), primitive, vertex, count);
    add_objects(t, NULL, count, vertex, primitive);
    t->index = count < left ? t->index + count : 0;
    return count == left;
}

static float factor(const uint8_t *entry, uint32_t offset)
{
    float f;
    memcpy(&f, entry + offset, sizeof f);
    return f;
}

/* The shape of a patch; of one that is culled it has no vertices. */
static struct shape shape_of(const struct tessellation *t, const uint8_t *entry)
{
    float outer[4], inner[2];
    struct tess_factors factors;
    if (t->software) {
        struct shape s = {0};
        memcpy(&s.index_count, entry + t->count_offset, sizeof s.index_count);
        memcpy(&s.address, entry + t->address_offset, sizeof s.address);
        s.index_count -= s.index_count % t->corners;
        return s;
    }
    for (int i = 0; i < 4; i++)
        outer[i] = factor(entry, t->outer[i]);
    for (int i = 0; i < 2; i++)
        inner[i] = factor(entry, t->inner[i]);
    tess_read_factors(&t->plan, outer, inner, &factors);
    if (factors.culled)
        return (struct shape){0};
    const struct tess_result *r = tess_find(t->cache, &t->plan, &factors);
    return (struct shape){(const float (*)[2])r->points, t->corners > 1 ? r->indices : NULL, r->point_count,
                          t->corners > 1 ? r->index_count : r->point_count, 0};
}

/* -- the stage ----------------------------------------------------------------------------------------------------------------------- */

/* Patches from t->patch on, as many as there is room for; 1 when none is left. */
static int fill_chunk(const struct draw *d, struct tessellation *t)
{
    const struct patch_array *patches = t->patches;
    for (; t->patch < patches->count; t->patch++) {
        const uint8_t *entry = patches->entries + t->patch * patches->stride;
        struct shape shape = shape_of(t, entry);
        if (!shape.index_count)
            continue;
        if (t->copies.count == t->copies.capacity)
            return 0;
        if (!(t->uncached || t->software ? add_apart : add_shared)(d, t, &shape, entry, patches->primitives[t->patch]))
            return 0;
    }
    return 1;
}

EXPORT int64_t stage_tessellation(struct draw *d, struct stage *s, void *record)
{
    struct tessellation *t = s->loop;
    (void)record;
    if (s->more && slice_is_over(&d->deadline))
        return DRAW_MORE;
    if (!s->more)
        t->patch = t->index = 0;
    t->chunk.vertices->count = t->copies.count = 0;
    t->chunk.objects->count = t->out->group_count = 0;
    s->more = !fill_chunk(d, t);
    d->chunk = t->chunk;
    return t->chunk.vertices->count ? THREADS_DONE : STAGE_EMPTY;
}
