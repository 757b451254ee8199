/* The compressed header (6.3): transform mode, and changes of probabilities for this picture. */
#include "vp9.h"

enum { CHANGED = 252 }; /* the probability that a probability is not changed */

static unsigned recenter(unsigned value, unsigned middle)
{
    if (value > 2 * middle)
        return value;
    return value & 1 ? middle - ((value + 1) >> 1) : middle + (value >> 1);
}

/* Of 254 distances, 20 coarse ones come first (6.3.7). */
static unsigned distance(unsigned code)
{
    if (code < 20)
        return 7 + 13 * code;
    unsigned fine = code - 20;
    return code == 254 ? 253 : 1 + fine + (fine + 6) / 12;
}

static unsigned distance_code(struct bools *b)
{
    if (!bools_read(b, 128))
        return bools_literal(b, 4);
    if (!bools_read(b, 128))
        return 16 + bools_literal(b, 4);
    if (!bools_read(b, 128))
        return 32 + bools_literal(b, 5);
    unsigned value = bools_literal(b, 7);
    if (value >= 65)
        value = 2 * value - 65 + (unsigned)bools_read(b, 128);
    return 64 + value;
}

static void update(struct bools *b, uint8_t *probabilities, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        if (!bools_read(b, CHANGED))
            continue;
        unsigned d = distance(distance_code(b)), middle = probabilities[i] - 1u;
        unsigned changed = 2 * middle <= 255 ? 1 + recenter(d, middle) : 255 - recenter(d, 254 - middle);
        probabilities[i] = (uint8_t)(changed < 1 || changed > 255 ? 255 : changed);
    }
}

static void update_vectors(struct bools *b, uint8_t *probabilities, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        if (bools_read(b, CHANGED))
            probabilities[i] = (uint8_t)(bools_literal(b, 7) << 1 | 1);
}

static void transform_mode(struct vp9_picture *p, struct bools *b)
{
    struct vp9_probabilities *to = p->probabilities;
    p->tx_mode = p->lossless ? TX_4X4 : bools_literal(b, 2);
    if (p->tx_mode == TX_32X32)
        p->tx_mode += (unsigned)bools_read(b, 128);
    if (p->tx_mode == TX_SELECT)
        update(b, to->tx_8[0], sizeof to->tx_8 + sizeof to->tx_16 + sizeof to->tx_32);
}

static void coefficients(struct vp9_picture *p, struct bools *b)
{
    for (unsigned tx = 0; tx <= (p->tx_mode < TX_SELECT ? p->tx_mode : TX_32X32); tx++)
        if (bools_read(b, 128))
            update(b, p->probabilities->coefficients[tx][0][0], sizeof p->probabilities->coefficients[tx]);
}

/* Compound prediction needs references on both sides of the picture: which of them a block always has, which it chooses (7.4.2). */
static void choose_references(struct vp9_picture *p)
{
    const uint32_t *bias = p->sign_bias;
    if (bias[VP9_LAST] == bias[VP9_GOLDEN])
        p->fixed_reference = VP9_ALTREF, p->variable_reference[0] = VP9_LAST, p->variable_reference[1] = VP9_GOLDEN;
    else if (bias[VP9_LAST] == bias[VP9_ALTREF])
        p->fixed_reference = VP9_GOLDEN, p->variable_reference[0] = VP9_LAST, p->variable_reference[1] = VP9_ALTREF;
    else
        p->fixed_reference = VP9_LAST, p->variable_reference[0] = VP9_GOLDEN, p->variable_reference[1] = VP9_ALTREF;
}

static void references(struct vp9_picture *p, struct bools *b)
{
    struct vp9_probabilities *to = p->probabilities;
    int possible = p->sign_bias[VP9_GOLDEN] != p->sign_bias[VP9_LAST] || p->sign_bias[VP9_ALTREF] != p->sign_bias[VP9_LAST];
    p->compound = SINGLE;
    if (possible && bools_read(b, 128))
        p->compound = bools_read(b, 128) ? COMPOUND_SELECT : COMPOUND;
    choose_references(p);
    if (p->compound == COMPOUND_SELECT)
        update(b, to->compound, sizeof to->compound);
    if (p->compound != COMPOUND)
        update(b, to->single[0], sizeof to->single);
    if (p->compound != SINGLE)
        update(b, to->compound_reference, sizeof to->compound_reference);
}

static void motion(struct vp9_picture *p, struct bools *b)
{
    struct vp9_probabilities *to = p->probabilities;
    update_vectors(b, to->joint, sizeof to->joint);
    update_vectors(b, &to->component[0].sign, sizeof to->component);
    update_vectors(b, to->fraction[0].class0[0], sizeof to->fraction);
    if (p->high_precision)
        update_vectors(b, &to->eighth[0].class0, sizeof to->eighth);
}

int vp9_header(struct vp9_picture *p)
{
    struct vp9_probabilities *to = p->probabilities;
    struct bools b;
    if (p->header_bytes > p->size)
        return 0;
    bools_start(&b, p->data, p->header_bytes);
    if (bools_read(&b, 128)) /* the marker */
        return 0;
    transform_mode(p, &b);
    coefficients(p, &b);
    update(&b, to->skip, sizeof to->skip);
    if (!p->intra_only) {
        update(&b, to->inter_mode[0], sizeof to->inter_mode);
        if (p->filter == FILTER_SWITCHABLE)
            update(&b, to->filter[0], sizeof to->filter);
        update(&b, to->inter, sizeof to->inter);
        references(p, &b);
        update(&b, to->y_mode[0], sizeof to->y_mode);
        update(&b, to->partition[0], sizeof to->partition);
        motion(p, &b);
    }
    return !bools_overrun(&b);
}
