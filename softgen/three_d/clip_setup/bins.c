/* Bins: numbers of the records that touch each tile, in order. A stable counting sort. */
#include "../draw/draw.h"

#include "geometry.h"

/* Whether an edge function is below zero on all samples of a tile: then nothing of the tile is inside. Edges are of one place in each
 * pixel; where pixels have several samples, the others are less than a pixel away. */
static int misses(const struct setup_record *r, int64_t x, int64_t y)
{
    for (uint32_t i = 0; i < r->edges; i++) {
        int64_t most = r->edge[i] + r->edge_dx[i] * (x + (r->edge_dx[i] > 0 ? TILE : -1));
        most += r->edge_dy[i] * (y + (r->edge_dy[i] > 0 ? TILE : -1));
        if (most < 0)
            return 1;
    }
    return 0;
}

/* Appends the tiles of a record; -1 if there is no room for all of them. */
static int64_t add_record(const struct binning *b, const struct setup_record *r, uint64_t count)
{
    struct bins *bins = b->bins;
    int32_t x0 = r->x0 / TILE, y0 = r->y0 / TILE, x1 = (r->x1 - 1) / TILE, y1 = (r->y1 - 1) / TILE;
    uint64_t most = (uint64_t)(x1 - x0 + 1) * (uint64_t)(y1 - y0 + 1);
    if (count + most > bins->capacity)
        return -1;
    int single = most == 1;
    for (int32_t y = y0; y <= y1; y++)
        for (int32_t x = x0; x <= x1; x++)
            if (single || !misses(r, (int64_t)x * TILE, (int64_t)y * TILE))
                b->tiles[count++] = (uint32_t)y * bins->tiles_x + (uint32_t)x;
    return (int64_t)count;
}

/* Sorts records from `from` on into tiles, as many as there is room for; how many they are. */
EXPORT int64_t bins_fill(struct binning *b)
{
    struct bins *bins = b->bins;
    uint64_t pairs = 0, done = b->first, start = 0;
    uint32_t tiles = bins->tiles_x * bins->tiles_y;
    for (uint32_t t = 0; t <= tiles; t++)
        bins->first[t] = 0;
    for (; done < b->records->count; done++) {
        int64_t after = add_record(b, &b->records->records[done], pairs);
        if (after < 0)
            break;
        b->ends[done - b->first] = (uint32_t)(pairs = (uint64_t)after);
    }
    for (uint64_t i = 0; i < pairs; i++)
        bins->first[b->tiles[i] + 1]++;
    for (uint32_t t = 0; t < tiles; t++)
        bins->first[t + 1] += bins->first[t];
    for (uint64_t record = b->first; record < done; record++)
        for (; start < b->ends[record - b->first]; start++)
            bins->numbers[bins->first[b->tiles[start]]++] = (uint32_t)record;
    for (uint32_t t = tiles; t > 0; t--) /* each now says where its tile ends: the next one's beginning */
        bins->first[t] = bins->first[t - 1];
    bins->first[0] = 0;
    return (int64_t)(done - b->first);
}

/* -- the stage ----------------------------------------------------------------------------------------------------------------------- */

/* Sorts records that are not in bins yet. */
EXPORT int64_t stage_bins(struct draw *d, struct stage *s, void *record)
{
    const struct bins_stage *plan = s->plan;
    struct binning *b = s->loop;
    struct bins *bins = b->bins;
    (void)record;
    if (!s->begun) {
        bins->tiles_x = plan->tiles_x;
        bins->tiles_y = plan->tiles_y;
        bins->capacity = plan->capacity;
        b->records = d->records;
        b->first = s->more ? d->binned : 0;
        d->binned_from = b->first;
        d->binned = b->first + (uint64_t)bins_fill(b);
        s->more = d->binned < d->records->count;
        s->begun = d->select;
        if (d->select)
            return DRAW_SELECT;
    }
    s->begun = 0;
    return bins->first[bins->tiles_x * bins->tiles_y] ? THREADS_DONE : STAGE_EMPTY;
}
