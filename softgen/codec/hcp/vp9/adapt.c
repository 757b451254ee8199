/* Probabilities adapted to how often symbols were decoded (8.4). */
#include "vp9.h"

enum { MOST_COUNT = 20, MOST_FACTOR = 128, COEFFICIENT_COUNT = 24, COEFFICIENT_FACTOR = 112, COEFFICIENT_FACTOR_AFTER_KEY = 128 };

static uint8_t merge(unsigned before, uint32_t zeros, uint32_t ones, unsigned most, unsigned most_factor)
{
    uint64_t sum = (uint64_t)zeros + ones;
    if (!sum)
        return (uint8_t)before;
    uint64_t measured = ((uint64_t)zeros * 256 + (sum >> 1)) / sum;
    unsigned found = measured < 1 ? 1 : measured > 255 ? 255 : (unsigned)measured;
    unsigned factor = most_factor * (unsigned)(sum < most ? sum : most) / most;
    return (uint8_t)((before * (256 - factor) + found * factor + 128) >> 8);
}

static void binary(uint8_t *to, const uint8_t *before, const uint32_t counts[2])
{
    *to = merge(*before, counts[0], counts[1], MOST_COUNT, MOST_FACTOR);
}

static void binaries(uint8_t *to, const uint8_t *before, const uint32_t counts[][2], unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        binary(to + i, before + i, counts[i]);
}

static uint32_t branches(uint8_t *to, const uint8_t *before, const uint32_t *counts, const int8_t *tree, int at)
{
    uint32_t sums[2];
    for (int i = 0; i < 2; i++) {
        int next = tree[at + i];
        sums[i] = next > 0 ? branches(to, before, counts, tree, next) : counts[-next];
    }
    binary(to + (at >> 1), before + (at >> 1), sums);
    return sums[0] + sums[1];
}

static void coefficients(struct vp9_picture *p)
{
    unsigned factor = !p->intra_only && p->after_key ? COEFFICIENT_FACTOR_AFTER_KEY : COEFFICIENT_FACTOR;
    for (unsigned i = 0; i < 4 * 2 * 2; i++) {
        uint8_t *to = p->probabilities->coefficients[0][0][0] + i * 99;
        const uint8_t *before = p->before.coefficients[0][0][0] + i * 99;
        const uint32_t(*counts)[4] = p->counts->coefficients[0][0][0] + i * 36;
        const uint32_t *more = p->counts->more[0][0][0] + i * 36;
        for (unsigned context = 0; context < 33; context++) {
            unsigned from = context < 3 ? context : context + 3; /* counts have 6 contexts in the first band too */
            const uint32_t *c = counts[from];
            const uint32_t pairs[3][2] = {{c[3], more[from] - c[3]}, {c[0], c[1] + c[2]}, {c[1], c[2]}};
            for (unsigned k = 0; k < 3; k++)
                to[3 * context + k] = merge(before[3 * context + k], pairs[k][0], pairs[k][1], COEFFICIENT_COUNT, factor);
        }
    }
}

static void transform_sizes(struct vp9_picture *p)
{
    struct vp9_probabilities *to = p->probabilities;
    const struct vp9_probabilities *before = &p->before;
    const struct vp9_counts *c = p->counts;
    static const int8_t tree[] = {0, 2, -1, 4, -2, -3};
    for (unsigned i = 0; i < 2; i++) {
        const uint32_t of_16[4] = {c->tx_16[i][0], c->tx_16[i][1], c->tx_16[i][2], 0};
        uint8_t probabilities[3], old[3] = {before->tx_16[i][0], before->tx_16[i][1], 128};
        binary(&to->tx_8[i][0], &before->tx_8[i][0], c->tx_8[i]);
        branches(probabilities, old, of_16, tree, 0);
        memcpy(to->tx_16[i], probabilities, 2);
        branches(to->tx_32[i], before->tx_32[i], c->tx_32[i], tree, 0);
    }
}

static void motion(struct vp9_picture *p)
{
    struct vp9_probabilities *to = p->probabilities;
    const struct vp9_probabilities *before = &p->before;
    branches(to->joint, before->joint, p->counts->joint, vp9_joint_tree, 0);
    for (unsigned i = 0; i < 2; i++) {
        const typeof(p->counts->component[0]) *c = &p->counts->component[i];
        binary(&to->component[i].sign, &before->component[i].sign, c->sign);
        branches(to->component[i].classes, before->component[i].classes, c->classes, vp9_class_tree, 0);
        binary(&to->component[i].class0, &before->component[i].class0, c->class0);
        binaries(to->component[i].bits, before->component[i].bits, c->bits, 10);
        for (unsigned j = 0; j < 2; j++)
            branches(to->fraction[i].class0[j], before->fraction[i].class0[j], c->class0_fraction[j], vp9_fraction_tree, 0);
        branches(to->fraction[i].other, before->fraction[i].other, c->fraction, vp9_fraction_tree, 0);
        if (p->high_precision) {
            binary(&to->eighth[i].class0, &before->eighth[i].class0, c->class0_eighth);
            binary(&to->eighth[i].other, &before->eighth[i].other, c->eighth);
        }
    }
}

static void modes(struct vp9_picture *p)
{
    struct vp9_probabilities *to = p->probabilities;
    const struct vp9_probabilities *before = &p->before;
    const struct vp9_counts *c = p->counts;
    binaries(to->inter, before->inter, c->inter, 4);
    binaries(to->compound, before->compound, c->compound, 5);
    binaries(to->compound_reference, before->compound_reference, c->compound_reference, 5);
    binaries(to->single[0], before->single[0], c->single[0], 10);
    binaries(to->skip, before->skip, c->skip, 3);
    for (unsigned i = 0; i < 7; i++)
        branches(to->inter_mode[i], before->inter_mode[i], c->inter_mode[i], vp9_inter_mode_tree, 0);
    for (unsigned i = 0; i < 4; i++)
        branches(to->y_mode[i], before->y_mode[i], c->y_mode[i], vp9_mode_tree, 0);
    for (unsigned i = 0; i < 10; i++)
        branches(to->uv_mode[i], before->uv_mode[i], c->uv_mode[i], vp9_mode_tree, 0);
    for (unsigned i = 0; i < 16; i++)
        branches(to->partition[i], before->partition[i], c->partition[i], vp9_partition_tree, 0);
    for (unsigned i = 0; i < 4 && p->filter == FILTER_SWITCHABLE; i++)
        branches(to->filter[i], before->filter[i], c->filter[i], vp9_filter_tree, 0);
}

/* Pictures without references adapt coefficients alone. */
void vp9_adapt(struct vp9_picture *p)
{
    coefficients(p);
    if (p->intra_only)
        return;
    modes(p);
    if (p->tx_mode == TX_SELECT)
        transform_sizes(p);
    motion(p);
}
