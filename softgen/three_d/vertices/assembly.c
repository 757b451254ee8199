/* Primitive assembly: index list, cuts, objects of every topology, and the vertices of a chunk without repetition (G45 2385-2480, 2644-2709).
 *
 * A vertex is known by its VertexID (the index that was read, or its number) until an object has it; then it gets an entry of the chunk.
 * So vertices without an object never get one (G45 2705-2709), and what a strip or fan needs in the next chunk is a few IDs.
 */
#include "assembly.h"

#include "../draw/draw.h"

#include <stddef.h>
#include <string.h>

enum { ROOM_OBJECTS = 4, ROOM_VERTICES = 12, POSITIONS = 1 << 20 }; /* that one vertex may need; vertices looked at in one call */
enum { EDGE_0 = 1 << OBJECT_EDGES_SHIFT, EDGE_1 = EDGE_0 << 1, EDGE_2 = EDGE_0 << 2 };

static uint32_t read_index(const struct assembly *a, uint32_t position)
{
    uint64_t at = ((uint64_t)a->first_index + position) * a->index_bytes;
    uint32_t index = 0;
    if (at + a->index_bytes > a->index_size)
        return 0;
    const uint8_t *from = graphics_memory(a->memory, a->index_address + at);
    switch (a->index_bytes) {
    case 1: return *from;
    case 2: memcpy(&index, from, 2); return index;
    default: memcpy(&index, from, 4); return index;
    }
}

/* -- the vertices of the chunk ------------------------------------------------------------------------------------------------------- */

/* The PrimitiveID of a vertex, given how many come before it in its primitive (G45 2651-2660). */
static uint32_t primitive_id(const struct assembly *a, uint32_t before)
{
    return a->id_base + (before < a->id_skip ? 0 : (before - a->id_skip + 1) / a->id_step);
}

static uint32_t entry_of(struct assembly *a, uint32_t vertex)
{
    struct cached_vertex *line = &a->cache[vertex % CACHE_LINES];
    if (line->vertex != vertex || line->stamp != a->stamp) {
        *line = (struct cached_vertex){vertex, a->stamp, a->entries};
        a->ids.vertex[a->entries] = a->uncached && a->index_bytes ? read_index(a, vertex) : vertex;
        a->ids.instance[a->entries] = a->instance;
        if (a->uncached)
            a->ids.primitive[a->entries] = primitive_id(a, vertex - a->id_start);
        a->entries++;
    }
    return line->entry;
}

static void append(struct assembly *a, const struct pending_object *o)
{
    struct object *into = &a->objects.objects[a->objects.count++];
    into->flags = o->flags;
    into->primitive = o->primitive;
    for (unsigned i = 0; i < 3; i++)
        into->vertex[i] = i < (o->flags & OBJECT_VERTICES) ? entry_of(a, o->vertex[i]) : into->vertex[0];
}

/* -- objects ------------------------------------------------------------------------------------------------------------------------- */

static void release(struct assembly *a)
{
    if (a->held.valid)
        append(a, &a->held);
    a->held.valid = 0;
}

/* An object whose vertices are in a list. */
static void append_list(struct assembly *a, const struct pending_object *o, const uint32_t *v)
{
    uint32_t number = (uint32_t)a->objects.count, *list = a->lists + (uint64_t)number * a->list;
    for (uint32_t i = 0; i < a->list; i++)
        list[i] = entry_of(a, v[i]);
    a->objects.objects[a->objects.count++] = (struct object){{number}, o->flags, o->primitive};
}

/* Two triangles that begin with the provoking vertex, as a polygon's do (G45 3336-3341). */
static void quadrilateral(struct assembly *a, struct pending_object o, const uint32_t v[CORNERS])
{
    unsigned start = a->provoking;
    o.vertex[0] = v[start];
    o.vertex[1] = v[(start + 1) % 4];
    o.vertex[2] = v[(start + 2) % 4];
    o.flags = a->flags & ~(uint32_t)EDGE_2;
    append(a, &o);
    o.vertex[1] = v[(start + 2) % 4];
    o.vertex[2] = v[(start + 3) % 4];
    o.flags = a->flags & ~(uint32_t)EDGE_0;
    append(a, &o);
}

/* An object of more than three vertices in two parts. */
static void append_whole(struct assembly *a, struct pending_object o, const uint32_t v[CORNERS])
{
    for (unsigned part = 0; part < CORNERS; part += 3) {
        for (unsigned i = 0; i < 3; i++)
            o.vertex[i] = v[part + i < a->corners ? part + i : part];
        append(a, &o);
    }
}

/* Triangle `k` of a strip with adjacent vertices; of the last one, the vertex across from its far edge is the strip's last (G45
 * 3318-3330). */
static void append_adjacent(struct assembly *a, uint32_t k, int last)
{
    uint32_t turn = a->trailing && k % 2 ? 4 : 0; /* (2k, ...) or (2k + 2, ...) comes first (BDW 5970-5988) */
    struct pending_object o = {.flags = a->flags, .primitive = a->primitive++, .valid = 1};
    uint32_t n = 2 * k, far = n + (last ? 5 : 6), places[2][CORNERS] = {{n, k ? n - 2 : 1, n + 2, far, n + 4, n + 3},
                                                                        {n, n + 3, n + 4, far, n + 2, n - 2}}, v[CORNERS];
    for (unsigned i = 0; i < CORNERS; i++)
        v[i] = a->recent[places[k % 2][(i + turn) % CORNERS] % RECENT];
    if (a->list)
        append_list(a, &o, v);
    else
        append_whole(a, o, v);
}

static uint32_t corner(const struct assembly *a, unsigned i)
{
    return a->back[i] == FIRST_VERTEX ? a->first : a->recent[(a->count - 1 - a->back[i]) % RECENT];
}

/* The object that the last vertex has completed. */
static void complete(struct assembly *a)
{
    a->objects_made++;
    if (a->adjacent_strip) {
        if (a->made++)
            append_adjacent(a, a->made - 2, 0);
        return;
    }
    struct pending_object o = {.flags = a->flags, .primitive = a->primitive++, .valid = 1};
    uint32_t v[LIST_VERTICES] = {0};
    if (a->list) {
        for (uint32_t i = 0; i < a->list; i++)
            v[i] = a->recent[(a->count - a->list + i) % RECENT];
        append_list(a, &o, v);
        return;
    }
    for (unsigned i = 0; i < a->corners; i++)
        v[i] = corner(a, i);
    if (a->whole) {
        append_whole(a, o, v);
    } else if (a->corners == 4) {
        quadrilateral(a, o, v);
    } else {
        memcpy(o.vertex, v, a->corners * sizeof *v);
        if (a->inverts && a->made % 2 == a->inverts % 2)
            o.flags |= OBJECT_INVERTED;
        if (a->line_strip && (a->made || a->continued))
            o.flags |= OBJECT_CONTINUES;
        if (a->polygon)
            o.flags &= ~(uint32_t)((a->made ? EDGE_0 : 0) | EDGE_2);
        if (a->polygon || a->line_strip) {
            release(a);
            a->held = o;
        } else {
            append(a, &o);
        }
    }
    a->made++;
}

/* The end of a primitive: at a cut, and of each instance. */
static void terminate(struct assembly *a)
{
    if (a->adjacent_strip && a->made)
        append_adjacent(a, a->made - 1, 1);
    if (a->closes && a->made) {
        struct pending_object o = {.flags = a->flags | OBJECT_CONTINUES, .primitive = a->primitive++, .valid = 1};
        o.vertex[0] = a->recent[(a->count - 1) % RECENT];
        o.vertex[1] = a->first;
        release(a);
        a->held = o;
    }
    if (a->held.valid) {
        a->held.flags |= a->polygon ? EDGE_2 : OBJECT_LAST;
        release(a);
    }
    if (a->count && a->uncached) /* a strip of triangles with adjacent vertices: once its S counter is satisfied (G45 2469-2474) */
        a->id_base = primitive_id(a, a->count - 1) + (a->id_extra && a->count >= a->id_skip);
    a->count = a->made = 0;
    a->next = a->minimum;
}

/* -- the stream of vertices ---------------------------------------------------------------------------------------------------------- */

/* An index; 0 outside the buffer (G45 2027; BDW 6671). */
static void take(struct assembly *a, uint32_t vertex)
{
    a->vertices_seen++;
    if (!a->count)
        a->first = vertex, a->id_start = a->position;
    a->recent[a->count % RECENT] = vertex;
    if (++a->count == a->next) {
        a->next += a->step;
        complete(a);
    }
}

static int room(const struct assembly *a)
{
    uint32_t vertices = a->list > ROOM_VERTICES ? a->list : ROOM_VERTICES;
    return a->objects.count + ROOM_OBJECTS <= a->objects.capacity && a->entries + vertices <= a->most_entries;
}

/* Whether what follows are whole triangles of a list. */
static int is_list(const struct assembly *a)
{
    return a->corners == 3 && a->minimum == 3 && a->step == 3 && a->count + 3 == a->next && a->back[0] == 2 && a->back[1] == 1 &&
           a->back[2] == 0 && !(a->list | a->whole | a->adjacent_strip | a->inverts | a->closes | a->polygon | a->line_strip);
}

/* Whether they are of consecutive vertices, none of which is another's. */
static int is_plain_list(const struct assembly *a)
{
    return !a->index_bytes && !a->cut_enable && is_list(a);
}

static uint32_t lesser(uint64_t a, uint64_t b)
{
    return (uint32_t)(a < b ? a : b);
}

/* Adds triangles of such a list, as many as there is room for and at most `most` vertices have; how many vertices they have. */
static uint32_t take_plain_list(struct assembly *a, uint32_t most)
{
    uint32_t vertices = lesser(a->vertices - a->position, most), triangles = vertices / 3;
    triangles = lesser(triangles, a->objects.capacity - ROOM_OBJECTS - a->objects.count + 1);
    triangles = lesser(triangles, (a->most_entries - ROOM_VERTICES - a->entries) / 3 + 1);
    struct object *into = a->objects.objects + a->objects.count;
    for (uint32_t i = 0; i < triangles; i++) {
        uint32_t entry = a->entries + 3 * i;
        into[i] = (struct object){{entry, entry + 1, entry + 2}, a->flags, a->primitive + i};
    }
    vertices = 3 * triangles;
    for (uint32_t i = 0; i < vertices; i++) {
        a->ids.vertex[a->entries + i] = a->position + i;
        a->ids.instance[a->entries + i] = a->instance;
        if (a->uncached)
            a->ids.primitive[a->entries + i] = primitive_id(a, a->count + i);
    }
    if (triangles && !a->count)
        a->first = a->id_start = a->position;
    a->objects.count += triangles, a->objects_made += triangles, a->primitive += triangles, a->made += triangles;
    a->entries += vertices, a->vertices_seen += vertices, a->position += vertices, a->count += vertices, a->next += vertices;
    return vertices;
}

/* -- lists of indexed triangles ------------------------------------------------------------------------------------------------------ */

/* Indices that are in the buffer, from the next one on: those whose memory is contiguous on the host. */
static uint64_t indices_left(const struct assembly *a)
{
    uint64_t first = ((uint64_t)a->first_index + a->position) * a->index_bytes, end = a->index_size - a->index_size % a->index_bytes;
    uint64_t at = a->index_address + first, part = (at | 0xffffffff) - at + 1;
    uint64_t bytes = first < end ? end - first : 0;
    return (bytes < part ? bytes : part) / a->index_bytes;
}

/* Adds triangles whose indices have a type, until there is no room, or an index cuts; how many vertices they have. */
#define TAKE_INDEXED(name, type)                                                                                                          \
    static uint32_t name(struct assembly *a, const uint8_t *from, uint32_t triangles)                                                     \
    {                                                                                                                                      \
        uint32_t taken = 0, cut = a->cut_enable;                                                                                           \
        for (; taken < triangles && room(a); taken++, from += 3 * sizeof(type)) {                                                          \
            type v[3];                                                                                                                     \
            memcpy(v, from, sizeof v);                                                                                                     \
            if (cut && (v[0] == a->cut_index || v[1] == a->cut_index || v[2] == a->cut_index))                                             \
                break;                                                                                                                     \
            struct object *into = &a->objects.objects[a->objects.count++];                                                                 \
            for (int i = 0; i < 3; i++)                                                                                                    \
                into->vertex[i] = entry_of(a, v[i]);                                                                                       \
            into->flags = a->flags;                                                                                                        \
            into->primitive = a->primitive++;                                                                                              \
        }                                                                                                                                  \
        return 3 * taken;                                                                                                                  \
    }
TAKE_INDEXED(take_bytes, uint8_t)
TAKE_INDEXED(take_shorts, uint16_t)
TAKE_INDEXED(take_words, uint32_t)

/* Adds triangles of such a list, of at most `most` vertices; how many vertices they have. What `take` would leave of them is left. */
static uint32_t take_indexed_list(struct assembly *a, uint32_t most)
{
    uint64_t left = indices_left(a);
    uint32_t triangles = lesser(lesser(a->vertices - a->position, most), left) / 3;
    const uint8_t *from = graphics_memory(a->memory, a->index_address + ((uint64_t)a->first_index + a->position) * a->index_bytes);
    uint32_t (*const of_type[])(struct assembly *, const uint8_t *, uint32_t) = {take_bytes, take_shorts, take_words};
    uint32_t start = a->position, vertices = of_type[a->index_bytes / 2](a, from, triangles), objects = vertices / 3;
    if (objects && !a->count)
        a->first = read_index(a, start), a->id_start = start;
    a->objects_made += objects, a->made += objects, a->position += vertices;
    a->vertices_seen += vertices, a->count += vertices, a->next += vertices;
    return vertices;
}

/* Fills the chunk, which is empty; 1 when the draw has no more objects. */
EXPORT int64_t assemble(struct assembly *a, void *record)
{
    uint32_t left = POSITIONS;
    (void)record;
    a->entries = 0;
    a->objects.count = 0;
    a->stamp++;
    while (a->instance < a->instances) {
        if (room(a) && is_plain_list(a))
            left -= take_plain_list(a, left);
        else if (a->index_bytes && !a->uncached && is_list(a))
            left -= take_indexed_list(a, left);
        for (; a->position < a->vertices; a->position++) {
            if (!room(a) || !left--)
                return 0;
            uint32_t vertex = a->index_bytes ? read_index(a, a->position) : a->position;
            if (a->cut_enable && vertex == a->cut_index)
                terminate(a);
            else
                take(a, a->uncached ? a->position : vertex);
        }
        if (!room(a))
            return 0;
        terminate(a);
        a->position = a->primitive = a->id_base = 0;
        a->instance++;
        a->stamp++;
        if (a->one_instance && a->entries)
            return a->instance == a->instances;
    }
    return 1;
}

/* -- the stage ----------------------------------------------------------------------------------------------------------------------- */

/* The next vertices and objects of the draw. */
EXPORT int64_t stage_assemble(struct draw *d, struct stage *s, void *record)
{
    const struct assembly_stage *plan = s->plan;
    struct assembly *a = d->assembly;
    if (s->more && slice_is_over(&d->deadline))
        return DRAW_MORE;
    d->chunk = plan->chunk;
    a->objects = *d->chunk.objects;
    a->lists = d->chunk.lists;
    a->most_entries = d->chunk.vertices->capacity < d->most_vertices ? d->chunk.vertices->capacity : d->most_vertices;
    s->more = !assemble(a, record);
    d->chunk.vertices->count = a->entries;
    d->chunk.objects->count = a->objects.count;
    if (plan->counts) {
        d->counts[IA_VERTICES] = a->vertices_seen;
        d->counts[IA_PRIMITIVES] = a->objects_made;
    }
    return a->entries ? THREADS_DONE : STAGE_EMPTY;
}

/* Sizes and offsets of the structures, for a check against Python's. */
EXPORT int64_t front_layout(uint64_t *into)
{
    uint64_t sizes[] = {sizeof(struct fetch_store), sizeof(struct fetch_element), sizeof(struct vertex_fetch), sizeof(struct assembly),
                        offsetof(struct assembly, objects), offsetof(struct assembly, held), offsetof(struct assembly, cache),
                        sizeof(struct fetch_run), sizeof(struct assembly_stage)};
    memcpy(into, sizes, sizeof sizes);
    return sizeof sizes / sizeof *sizes;
}
