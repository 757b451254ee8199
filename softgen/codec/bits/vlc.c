/* Tables of variable-length codes (vlc.h). */
#include "vlc.h"

static void clear(struct vlc_entry *table, int count)
{
    for (int i = 0; i < count; i++)
        table[i] = (struct vlc_entry){NO_CODE, 0};
}

/* Bits behind the first ones of the longest code that begins like this one. */
static int rest_of(const struct vlc_code *codes, int count, int first, uint32_t start)
{
    int most = 0;
    for (int i = 0; i < count; i++)
        if (codes[i].length > first && codes[i].code >> (codes[i].length - first) == start && codes[i].length - first > most)
            most = codes[i].length - first;
    return most;
}

static void fill(struct vlc_entry *table, int bits, uint32_t code, int length, int value)
{
    for (uint32_t i = code << (bits - length), end = (code + 1) << (bits - length); i < end && i < 1u << bits; i++)
        table[i] = (struct vlc_entry){(int16_t)value, (int16_t)length};
}

int vlc_build(struct vlc_entry *table, int room, int first, const struct vlc_code *codes, int count)
{
    int used = 1 << first;
    if (used > room)
        return -1;
    clear(table, used);
    for (int i = 0; i < count; i++) {
        int more = codes[i].length - first;
        if (codes[i].length < 1 || codes[i].length > VLC_LONGEST || codes[i].code >> codes[i].length)
            continue;
        if (more <= 0) {
            fill(table, first, codes[i].code, codes[i].length, codes[i].value);
            continue;
        }
        struct vlc_entry *link = &table[codes[i].code >> more];
        if (link->length >= 0) {
            int bits = rest_of(codes, count, first, codes[i].code >> more);
            if (used + (1 << bits) > room)
                return -1;
            *link = (struct vlc_entry){(int16_t)used, (int16_t)-bits};
            clear(table + used, 1 << bits);
            used += 1 << bits;
        }
        fill(table + link->value, -link->length, codes[i].code & ((1u << more) - 1), more, codes[i].value);
    }
    return used;
}

int vlc_next(struct bits *b, const struct vlc_entry *table, int first)
{
    return vlc_read(b, table, first);
}
