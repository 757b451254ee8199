/* 3DPRIMITIVE in a walk over a batch: a draw with a kept record, executed and counted without Python.
 *
 * What may be different from draw to draw is looked at here; all else that a draw depends on only Python changes, which looks at it before a
 * walk begins (draw_actor.py). A draw that needs Python is left as it is, in struct draw, and gone on with there. */
#include "draw_actor.h"

#include "../../memory/guard.h"
#include "../../walk.h"
#include "draw.h"

_Static_assert((int)ACTOR_COUNTS == (int)DRAW_COUNTS, "counts of a walk");

static uint32_t field(const struct draw_field *f, const uint32_t *dwords)
{
    return dwords[f->dword] >> f->low & f->mask;
}

/* Whether Python has to execute the command. */
static int refuses(const struct walked_draws *a, const struct latches *l, const uint32_t *dwords, uint32_t count)
{
    for (const struct draw_bits *b = a->refused; b < a->refused + REFUSED_BITS && b->mask; b++)
        if (b->dword >= count || dwords[b->dword] & b->mask)
            return 1;
    if (a->bases_slot && l->counts[a->bases_slot - 1] != a->bases_count)
        return 1;
    if (a->pipeline_slot && l->counts[a->pipeline_slot - 1] && field(&a->pipeline, l->slots))
        return 1;
    if (a->topology_slot && !l->counts[a->topology_slot - 1])
        return 1;
    return __atomic_load_n(a->changes, __ATOMIC_RELAXED) != a->seen_changes;
}

static void read_call(const struct walked_draws *a, struct draw *d, const uint32_t *dwords)
{
    d->topology = field(&a->topology, a->topology_slot ? d->latches->slots : dwords);
    d->indexed = field(&a->indexed, dwords);
    d->vertices = field(&a->vertices, dwords);
    d->start_vertex = field(&a->start_vertex, dwords);
    d->instances = field(&a->instances, dwords);
    d->start_instance = field(&a->start_instance, dwords);
    d->base_vertex = field(&a->base_vertex, dwords);
    d->phase = DRAW_FIND;
    d->compared = 0;
}

/* Adds up what a draw has done. */
static void count_draw(struct walked_draws *a, const struct draw *d)
{
    struct draw_record *p = d->found;
    for (uint32_t i = 0; i < DRAW_COUNTS; i++)
        a->counts[i] += d->counts[i];
    if (!p->runs++) {
        p->touched = a->touched;
        a->touched = p;
    }
    for (struct stage *s = p->stages; s < p->stages + p->stage_count; s++)
        if (s->threaded && s->work.threads) {
            s->total.threads += s->work.threads;
            s->total.instructions += s->work.instructions;
            s->total.nanoseconds += s->work.nanoseconds;
            s->dispatches++;
        }
    if (a->log_room)
        a->log[a->finished] = p;
    a->finished++;
}

EXPORT int64_t draw_act(void *state, struct walk *w, const uint32_t *dwords, uint32_t count)
{
    struct walked_draws *a = state;
    struct draw *d = a->draw;
    if (refuses(a, d->latches, dwords, count))
        return ACTOR_REFUSES;
    read_call(a, d, dwords);
    if (!d->vertices || !d->instances)
        return ACTOR_REFUSES;
    ((struct fault_record *)w->record)->ip = UINT64_MAX;
    a->draws++;
    w->work++;
    w->in_a_row = 0;
    a->why = draw_run(d, w->record);
    if (a->why != DRAW_DONE || d->found->reports || d->oversized)
        return ACTOR_NEEDS_PYTHON;
    count_draw(a, d);
    return d->deadline - d->slice >= w->deadline || a->finished == a->log_room ? ACTOR_TIME : ACTOR_DONE;
}
