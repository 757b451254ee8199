/* A draw: its stages in order, over one chunk of vertices after another, until it is done or Python is needed.
 *
 *     find the record ► { assemble ► vertices ► [GS] ► clip ► [CLIP threads] ► { set up ► [SF threads] ► { sort into bins ► pixels } } }
 *
 * Which stages there are, and in which order, the record says (stages.py); a stage's C file has what it does. Everything that they know is
 * in struct draw and their own structures, so that all of this can return and be called again. */
#include "draw.h"

#include <stddef.h>
#include <string.h>

static void begin_draw(struct draw *d)
{
    const struct draw_record *p = d->found;
    d->deadline = monotonic_time() + d->slice;
    apply_state(d);
    memset(d->counts, 0, sizeof d->counts);
    d->oversized = d->viewports = 0;
    for (struct stage *s = p->stages; s < p->stages + p->stage_count; s++)
        s->begun = s->more = s->used = 0;
    d->stage = 0;
    d->phase = DRAW_WALK;
}

static void end_draw(struct draw *d)
{
    const struct draw_record *p = d->found;
    struct stage_work *work = d->works;
    for (struct stage *s = p->stages; s < p->stages + p->stage_count; s++)
        if (s->threaded) {
            count_work(s);
            *work++ = s->work;
        }
}

/* After a stage: the next one, if there is output for it; else the innermost one before that has more. 0: there is none. */
static int next_stage(struct draw *d, int output)
{
    const struct draw_record *p = d->found;
    if (output && d->stage + 1 < p->stage_count) {
        d->stage++;
        return 1;
    }
    while (!p->stages[d->stage].more)
        if (!d->stage--)
            return 0;
    return 1;
}

/* The draw whose parameters are in `d`, from d->phase on. */
EXPORT int64_t draw_run(struct draw *d, void *record)
{
    if (d->phase == DRAW_FIND) {
        if (!find_draw(d))
            return DRAW_NOT_FOUND;
        d->phase = DRAW_BEGIN;
    }
    if (d->phase == DRAW_BEGIN)
        begin_draw(d);
    for (;;) {
        struct stage *s = &d->found->stages[d->stage];
        int64_t why = s->run(d, s, record);
        if (why != THREADS_DONE && why != STAGE_EMPTY)
            return why;
        if (!next_stage(d, why == THREADS_DONE))
            break;
    }
    end_draw(d);
    return DRAW_DONE;
}
