/* What Python did for an earlier thread that left compiled code at the same ip, done again (struct fallback_answer of scheduler.h). */
#include "scheduler.h"

/* Jumps as an instruction that writes ip does, and chooses the code for where it leads to; 0 if Python has to, or to look at the clock. */
static int jumped(const struct scheduler_state *w, struct group_member *m, uint8_t *block, const struct fallback_answer *jump, int64_t *status)
{
    struct control_block *control = control_of(block);
    control->ip = (*(const uint32_t *)(block + jump->source) + jump->addend) & ~(uint32_t)(IP_ALIGNMENT - 1);
    control->executed++;
    *status = CR0_CHANGED;
    for (uint64_t i = 0; i < w->answer_count; i++) {
        const struct fallback_answer *a = &w->answers[i];
        if (a->status != CR0_CHANGED || a->control != jump->control || a->ip != control->ip)
            continue;
        m->function = a->function;
        m->program = a->program;
        if (!late(w))
            return 1;
        *status = OUT_OF_BUDGET;
        return 0;
    }
    return 0;
}

static int channel_on(const struct control_block *control)
{
    return control->active & control->imask & control->lmask & control->cmask & 1;
}

/* Repeats what Python did for an earlier thread; 0 if Python is needed, for `status`. */
int answered(const struct scheduler_state *w, struct group_member *m, uint8_t *block, int64_t *status)
{
    struct control_block *control = control_of(block);
    uint32_t *cr = (uint32_t *)(block + place.cr);
    for (uint64_t i = 0; i < w->answer_count; i++) {
        const struct fallback_answer *a = &w->answers[i];
        if (a->status != *status || a->control != *cr || a->ip != control->ip)
            continue;
        if (a->source)
            return (!a->masked || channel_on(control)) && jumped(w, m, block, a, status);
        if (a->function == m->function && a->program == m->program && !a->counts)
            return 0; /* that did not help */
        *cr = a->then;
        control->ip = a->next;
        control->executed += a->counts;
        m->function = a->function;
        m->program = a->program;
        return 1;
    }
    return 0;
}
