/* GEOMETRY: threads for the objects of a chunk, in rounds, and what they put out as a chunk of its own. When that is full, the stage goes
 * on after the stages behind it: neither the vertices of all invocations nor their entries are ever there at the same time. */
#include "geometry_payload.h"

#include "../draw/draw.h"

#include <string.h>

enum { SLOT = 16, ROW = 64 };

/* The part of a round that is this loop's: one batch. */
EXPORT int64_t run_geometry_shader(struct geometry_shader *g, void *record)
{
    struct threads_worker *worker = g->head.worker;
    if (threads_pending(worker))
        return threads_resume(worker, record);
    uint64_t first = g->first + g->head.first_slot / g->slots * (uint64_t)g->part, end = first + g->part;
    if (end > g->end)
        end = g->end;
    if (g->started || first >= end)
        return THREADS_DONE;
    g->started = 1;
    for (uint64_t thread = first; thread < end; thread++) {
        uint64_t i = thread - first;
        g->masks[i] = write_geometry_payload(g, threads_payload(worker, i), g->head.first_slot + (uint32_t)i, thread);
    }
    return threads_run(worker, record, end - first, g->masks);
}

/* -- the stage ----------------------------------------------------------------------------------------------------------------------- */

/* Entries that no round of the draw has used may hold anything; read_entries clears those that one has. */
static void clear_entries(struct geometry_stage *p, uint64_t count)
{
    const struct geometry_form *f = p->form;
    for (; p->cleared < count; p->cleared++) {
        uint8_t *entry = p->loop->room + p->cleared * f->entry_bytes;
        memset(entry, 0, f->vertex_offset);
        for (uint32_t i = 0; i < f->most_vertices; i++)
            memset(entry + f->vertex_offset + i * f->vertex_bytes, 0, SLOT);
    }
}

static int64_t begin_input(struct draw *d, struct stage *s)
{
    struct geometry_stage *p = s->plan;
    struct geometry_shader *g = p->loop;
    const struct geometry_form *f = p->form;
    uint64_t objects = f->dropped ? 0 : d->chunk.objects->count;
    p->input = d->chunk;
    p->threads = f->one_object ? objects * threads_of_object(f) : (objects + f->lanes - 1) / f->lanes;
    g->first = g->end = p->read = 0;
    if (!s->used)
        p->cleared = 0;
    d->counts[GS_INVOCATIONS] += objects * f->instances * f->invocations;
    return geometry_payload_fits(f) ? THREADS_DONE : THREADS_TOO_LONG;
}

/* The threads of the next round: a batch for each loop, as far as there is room for their entries. */
static int64_t begin_round(struct draw *d, struct stage *s)
{
    struct geometry_stage *p = s->plan;
    struct geometry_shader *g = p->loop;
    uint64_t left = p->threads - g->end, entries = (uint64_t)p->form->lanes * p->form->entry_bytes, room = p->room_bytes / entries;
    int64_t why = share_stage(d, s, left / d->share_vertices < room ? left / d->share_vertices : room);
    if (why != THREADS_DONE)
        return why;
    uint64_t part = room / d->loops;
    g->part = (uint32_t)(part < g->slots ? part : g->slots);
    g->first = g->end;
    g->end += left < g->part * d->loops ? left : g->part * d->loops;
    g->input = &p->input;
    g->started = 0;
    p->read = 0;
    clear_entries(p, (g->end - g->first) * p->form->lanes);
    for (uint64_t i = 0; p->entries && i < g->end - g->first; i++)
        p->entries[(g->room - g->urb) / ROW + i * (entries / ROW)].dw2 = 0;
    p->running = 1;
    return THREADS_DONE;
}

/* Rounds until the chunk is full or the input used up. */
static int64_t run_rounds(struct draw *d, struct stage *s, void *record)
{
    struct geometry_stage *p = s->plan;
    for (;;) {
        if (p->running) {
            int64_t why = run_threads(d, s, record);
            if (why != THREADS_DONE)
                return why;
            p->running = 0;
        }
        if (!read_entries(p))
            break;
        if (p->loop->end == p->threads)
            return s->more = 0, THREADS_DONE;
        if (slice_is_over(&d->deadline))
            return DRAW_MORE;
        int64_t why = begin_round(d, s);
        if (why != THREADS_DONE)
            return why;
    }
    s->more = 1;
    return THREADS_DONE;
}

EXPORT int64_t stage_geometry_shader(struct draw *d, struct stage *s, void *record)
{
    struct geometry_stage *p = s->plan;
    if (!s->begun) {
        p->vertices->count = 0;
        p->objects->count = p->running = 0;
        int64_t why = s->more ? THREADS_DONE : begin_input(d, s);
        if (why != THREADS_DONE)
            return why;
    }
    s->begun = 1;
    int64_t why = run_rounds(d, s, record);
    if (why != THREADS_DONE)
        return why;
    s->begun = 0;
    if (p->form->invocations)
        d->counts[GS_PRIMITIVES] += p->objects->count;
    d->chunk = (struct stage_chunk){p->vertices, p->objects, NULL, 0};
    return p->objects->count ? THREADS_DONE : STAGE_EMPTY;
}
