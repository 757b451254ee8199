/* Slice data: macroblocks in the order of the stream, skipped ones, pairs of MBAFF frames (7.3.4). */
#include <string.h>

#include "avc.h"

static int infers_field(const struct avc_decoder *d)
{
    return d->beside[0] ? d->beside[0]->field : d->beside[1] ? d->beside[1]->field : 0;
}

/* Whether slice data goes on: there are bits before the stop bit, which is the last that is set. */
static int has_more(const struct avc_decoder *d)
{
    uint64_t size = d->bits.size;
    while (size && !d->bits.data[size - 1])
        size--;
    return size && d->bits.at < 8 * size - (unsigned)__builtin_ctz(d->bits.data[size - 1]) - 1;
}

static void set_field(struct avc_decoder *d, int field)
{
    d->field = field;
    avc_enter(d, d->x, d->y);
}

static void begin(struct avc_slice *s)
{
    struct avc_decoder *d = s->decoder;
    memset(d, 0, sizeof *d);
    d->slice = s;
    d->avc = s->avc;
    d->type = (int)s->type;
    d->number = (int)++s->avc->slices;
    d->qp = (int)s->qp;
    d->bits = (struct bits){s->data, s->size, s->start};
    if (d->avc->cabac) {
        cabac_contexts(d);
        cabac_start(&d->cabac, s->data, s->size, (s->start + 7) >> 3);
    }
    d->x = s->first_x;
    d->y = s->first_y;
    d->field = (int)d->avc->field;
    s->begun = 1;
}

static int ends_early(const struct avc_decoder *d)
{
    return d->avc->cabac ? cabac_overrun(&d->cabac) : bits_left(&d->bits) < 0;
}

/* mb_skip_flag of the bottom macroblock of a pair whose top one is skipped; if it is not, the pair's field_decoding_flag follows. */
static void look_below(struct avc_decoder *d)
{
    struct avc_mb *top = d->mb;
    top->slice = (uint32_t)d->number;
    top->skip = 1;
    top->kind = INTER;
    top->field = (uint8_t)d->field;
    avc_enter(d, d->x, d->y + 1);
    int skip = cabac_skip(d);
    d->skip_next = 1 + skip;
    avc_enter(d, d->x, d->y - 1);
    if (!skip) {
        set_field(d, cabac_field(d));
        d->field_read = 1;
    }
}

static int cabac_is_skipped(struct avc_decoder *d)
{
    int skip;
    if (d->skip_next) {
        skip = d->skip_next - 1;
        d->skip_next = 0;
        return skip;
    }
    skip = cabac_skip(d);
    if (skip && d->avc->mbaff && !(d->y & 1))
        look_below(d);
    return skip;
}

static int cavlc_is_skipped(struct avc_decoder *d)
{
    if (!d->skip_read) {
        uint32_t run = bits_ue(&d->bits);
        d->skip_run = run > INT32_MAX ? INT32_MAX : (int)run;
        d->skip_read = 1;
    }
    if (!d->skip_run) {
        d->skip_read = 0;
        return 0;
    }
    d->skip_run--;
    if (d->avc->mbaff && !(d->y & 1) && !d->skip_run && has_more(d)) { /* the bottom macroblock is not skipped */
        set_field(d, (int)bits_read(&d->bits, 1));
        d->field_read = 1;
    }
    return 1;
}

/* The current macroblock; whether it is well formed. */
static int one(struct avc_decoder *d, int *skipped)
{
    int top = !(d->y & 1), mbaff = (int)d->avc->mbaff;
    *skipped = 0;
    avc_enter(d, d->x, d->y);
    if (mbaff && top) {
        d->field_read = 0;
        set_field(d, infers_field(d));
    }
    if (d->type != I_SLICE)
        *skipped = d->avc->cabac ? cabac_is_skipped(d) : cavlc_is_skipped(d);
    if (*skipped) {
        avc_skipped(d);
        return 1;
    }
    if (mbaff && !d->field_read) {
        set_field(d, d->avc->cabac ? cabac_field(d) : (int)bits_read(&d->bits, 1));
        d->field_read = 1;
    }
    return avc_macroblock(d);
}

/* Whether the slice goes on behind the current macroblock. */
static int goes_on(struct avc_decoder *d, int skipped)
{
    if (!d->avc->cabac)
        return (skipped && d->skip_run) || has_more(d);
    if (d->avc->mbaff && !(d->y & 1))
        return 1;
    return !cabac_end(&d->cabac);
}

static void advance(struct avc_decoder *d)
{
    if (d->avc->mbaff && !(d->y & 1)) {
        d->y++;
        return;
    }
    d->y -= d->avc->mbaff ? d->y & 1 : 0;
    if (++d->x == d->avc->width) {
        d->x = 0;
        d->y += 1 + d->avc->mbaff;
    }
}

static void give_up(struct avc_decoder *d, uint32_t error)
{
    d->avc->picture->errors |= error | d->error;
    d->mb->slice = 0;
    d->mb->kind = NOT_DECODED;
}

/* Entry: macroblocks up to the end of a row; answers how many rows of macroblocks may be left. */
ENTRY int64_t avc_decode(struct avc_slice *s, void *record)
{
    struct avc_decoder *d = s->decoder;
    (void)record;
    if (!s->begun)
        begin(s);
    for (;;) {
        int skipped;
        if (d->y >= d->avc->height || d->x >= d->avc->width)
            return 0;
        if (!one(d, &skipped) || ends_early(d)) {
            give_up(d, AVC_BAD_COEFFICIENT);
            return 0;
        }
        d->avc->picture->state[(size_t)d->y * d->avc->width + d->x] = DECODED;
        if (!goes_on(d, skipped))
            return 0;
        advance(d);
        if (!d->x)
            return (int64_t)d->avc->height - d->y;
    }
}
