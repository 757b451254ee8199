/* The walk: consecutive commands of a batch, executed where they are in memory, to the first that needs Python.
 *
 * State commands are latched by their rules; a command with an actor (../walk.h) is executed by it. Progress is written to struct walk
 * before each access to memory and each actor: the walk runs under the guard, and may be left at any of them. */
#include "latch.h"

#include "../memory/graphics_memory.h"
#include "../walk.h"

enum { PAGE = 4096 };

/* A command of so many dwords is begun: what comes now may leave the walk. */
static void begin(struct walk *w, uint32_t header, uint32_t length)
{
    w->last = w->address;
    w->last_header = header;
    w->address += 4 * (uint64_t)length;
    w->commands++;
}

/* Accesses the last dword of a command that reaches into another page, so that none is latched in part. */
static void touch_end(const uint32_t *dwords, uint64_t address, uint32_t length)
{
    if (address % PAGE + 4 * (uint64_t)length > PAGE)
        (void)*(const volatile uint32_t *)(dwords + length - 1);
}

/* A command with an actor; its dwords are copied, because programs may write to the batch meanwhile. */
static int64_t act(struct walk *w, const struct latch_rule *rule, const uint32_t *dwords, uint32_t header, uint32_t length)
{
    const struct walk_actor *actor = &w->actors[rule->actor - 1];
    uint32_t copy[WALK_DWORDS];
    for (uint32_t i = 1; i < length; i++)
        copy[i] = dwords[i];
    copy[0] = header;
    begin(w, header, length);
    w->reason = WALK_ACTING;
    int64_t answer = actor->act(actor->state, w, copy, length);
    w->reason = WALK_COMMAND;
    if (answer == ACTOR_REFUSES) {
        w->address = w->last;
        w->commands--;
    }
    return answer;
}

/* Whether a command may come while work has been collected: its actor does the same, or is not ready. */
static int collects(const struct walk *w, const struct latch_rule *rule)
{
    return rule->actor && (w->actors[rule->actor - 1].collects || !w->actors[rule->actor - 1].act);
}

/* The next command; whether the walk goes on. */
static int step(struct walk *w)
{
    const uint32_t *dwords = (const uint32_t *)graphics_memory(w->memory, w->address);
    uint32_t header = *(const volatile uint32_t *)dwords;
    const struct latch_rule *rule = rule_for(w->table, header);
    uint64_t room = (w->end - w->address) / 4;
    if (!rule || (w->collected && !collects(w, rule)))
        return 0;
    if (rule->actor) {
        uint32_t length = (header >> rule->length_low & rule->length_mask) + rule->bias;
        if (length < rule->least || length > rule->most || length > room || length > WALK_DWORDS)
            return 0;
        if (!w->actors[rule->actor - 1].act) {
            w->reason = WALK_ACTOR;
            return 0;
        }
        int64_t answer = act(w, rule, dwords, header, length);
        if (answer == ACTOR_TIME)
            w->reason = WALK_TIME;
        else if (answer == ACTOR_NEEDS_PYTHON)
            w->reason = WALK_HALF_DONE;
        return answer == ACTOR_DONE;
    }
    uint32_t length = latched_length(rule, w->latches, header, dwords, room);
    if (!length)
        return 0;
    touch_end(dwords, w->address, length);
    latch(w->table, rule, w->latches, dwords, length);
    begin(w, header, length);
    w->latched++;
    if (++w->in_a_row == WALK_AT_ONCE) {
        w->reason = WALK_TIME;
        return 0;
    }
    return 1;
}

int64_t walk_run(struct walk *w, void *record)
{
    w->record = record;
    w->in_a_row = 0;
    w->reason = WALK_COMMAND;
    do
        __atomic_signal_fence(__ATOMIC_SEQ_CST); /* progress is in memory before the next access */
    while (w->address < w->end && step(w));
    return 0;
}
