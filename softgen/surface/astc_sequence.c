/* Integer sequence encoding of ASTC: numbers of bits, with a trit or a quint above them; five trits share 8 bits, three quints 7. */
#include "astc.h"

const struct range astc_ranges[21] = {
    {1, 0, 0, 2}, {0, 1, 0, 3}, {2, 0, 0, 4}, {0, 0, 1, 5}, {1, 1, 0, 6}, {3, 0, 0, 8}, {1, 0, 1, 10}, {2, 1, 0, 12}, {4, 0, 0, 16},
    {2, 0, 1, 20}, {3, 1, 0, 24}, {5, 0, 0, 32}, {3, 0, 1, 40}, {4, 1, 0, 48}, {6, 0, 0, 64}, {4, 0, 1, 80}, {5, 1, 0, 96},
    {7, 0, 0, 128}, {5, 0, 1, 160}, {6, 1, 0, 192}, {8, 0, 0, 256},
};

uint32_t sequence_bits(const struct range *r, uint32_t count)
{
    return r->bits * count + (r->trits ? (8 * count + 4) / 5 : 0) + (r->quints ? (7 * count + 2) / 3 : 0);
}

/* Five trits of 8 bits; three quints of 7. */
static void unpack_trits(uint32_t t, uint32_t *into)
{
    uint32_t c;
    if ((t >> 2 & 7) == 7)
        c = (t >> 5 & 7) << 2 | (t & 3), into[4] = into[3] = 2;
    else {
        c = t & 31;
        if ((t >> 5 & 3) == 3)
            into[4] = 2, into[3] = t >> 7 & 1;
        else
            into[4] = t >> 7 & 1, into[3] = t >> 5 & 3;
    }
    if ((c & 3) == 3)
        into[2] = 2, into[1] = c >> 4 & 1, into[0] = (c >> 3 & 1) << 1 | (c >> 2 & 1 & ~(c >> 3));
    else if ((c >> 2 & 3) == 3)
        into[2] = 2, into[1] = 2, into[0] = c & 3;
    else
        into[2] = c >> 4 & 1, into[1] = c >> 2 & 3, into[0] = (c >> 1 & 1) << 1 | (c & 1 & ~(c >> 1));
}

static void unpack_quints(uint32_t q, uint32_t *into)
{
    uint32_t c;
    if ((q >> 1 & 3) == 3 && (q >> 5 & 3) == 0) {
        into[2] = (q & 1) << 2 | (q >> 4 & 1 & ~q) << 1 | (q >> 3 & 1 & ~q);
        into[1] = into[0] = 4;
        return;
    }
    if ((q >> 1 & 3) == 3)
        into[2] = 4, c = (q >> 3 & 3) << 3 | (~q >> 5 & 3) << 1 | (q & 1);
    else
        into[2] = q >> 5 & 3, c = q & 31;
    if ((c & 7) == 5)
        into[1] = 4, into[0] = c >> 3 & 3;
    else
        into[1] = c >> 3 & 3, into[0] = c & 7;
}

/* A number of a sequence that starts at a bit: its low bits, and its trit or quint above them. `reversed`: the block is read backwards. */
static uint32_t bit_at(const uint32_t *words, uint32_t at, int reversed)
{
    at = reversed ? 127 - at : at;
    return at < 128 ? words[at >> 5] >> (at & 31) & 1 : 0;
}

static uint32_t take(const uint32_t *words, uint32_t *at, uint32_t end, uint32_t count, int reversed)
{
    uint32_t found = 0;
    for (uint32_t i = 0; i < count; i++, (*at)++)
        found |= (*at < end ? bit_at(words, *at, reversed) : 0) << i; /* what a shortened last group lacks is zero */
    return found;
}

void read_sequence(const uint32_t *words, uint32_t first, const struct range *r, uint32_t count, int reversed, uint8_t *into)
{
    static const uint8_t trit_bits[5] = {2, 2, 1, 2, 1}, quint_bits[3] = {3, 2, 2};
    uint32_t group = r->trits ? 5 : r->quints ? 3 : 1, at = first, end = first + sequence_bits(r, count);
    for (uint32_t start = 0; start < count; start += group) {
        uint32_t low[5] = {0}, high[5] = {0}, packed = 0, shift = 0;
        for (uint32_t i = 0; i < group; i++) {
            low[i] = take(words, &at, end, r->bits, reversed);
            uint32_t more = r->trits ? trit_bits[i] : r->quints ? quint_bits[i] : 0;
            packed |= take(words, &at, end, more, reversed) << shift;
            shift += more;
        }
        if (r->trits)
            unpack_trits(packed, high);
        else if (r->quints)
            unpack_quints(packed, high);
        for (uint32_t i = 0; i < group && start + i < count; i++)
            into[start + i] = (uint8_t)(high[i] << r->bits | low[i]);
    }
}
