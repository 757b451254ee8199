/* One-dimensional inverse transforms of VP9 (8.7.1), of as many rows or columns as `lanes` has elements. Included with `lanes`, `element` and NAME
 * defined: NAME(f) is f for that type. Each transform reads inputs `step` apart and leaves its results in order. */

static const int16_t NAME(cosine)[33] = {16384, 16364, 16305, 16207, 16069, 15893, 15679, 15426, 15137, 14811, 14449, 14053, 13623, 13160, 12665, 12140, 11585,
                                         11003, 10394, 9760, 9102, 8423, 7723, 7005, 6270, 5520, 4756, 3981, 3196, 2404, 1606, 804, 0};

static INLINE lanes NAME(rounded)(lanes x)
{
    return (x + 8192) >> 14;
}

/* A rotation by an angle: (x cos - y sin, x sin + y cos); `angle` in 1/64 of a half turn. */
static INLINE void NAME(rotate)(lanes x, lanes y, int angle, lanes *a, lanes *b)
{
    *a = NAME(rounded)(x * NAME(cosine)[angle] - y * NAME(cosine)[32 - angle]);
    *b = NAME(rounded)(x * NAME(cosine)[32 - angle] + y * NAME(cosine)[angle]);
}

static INLINE void NAME(turn)(lanes *x, lanes *y, int angle)
{
    lanes a = *x, b = *y;
    *x = NAME(rounded)(b * NAME(cosine)[32 - angle] - a * NAME(cosine)[angle]);
    *y = NAME(rounded)(a * NAME(cosine)[32 - angle] + b * NAME(cosine)[angle]);
}

static INLINE void NAME(turn_back)(lanes *x, lanes *y, int angle)
{
    lanes a = *x, b = *y;
    *x = NAME(rounded)(-a * NAME(cosine)[angle] - b * NAME(cosine)[32 - angle]);
    *y = NAME(rounded)(b * NAME(cosine)[angle] - a * NAME(cosine)[32 - angle]);
}

static INLINE void NAME(halves)(lanes *x, lanes *y)
{
    lanes a = *x, b = *y;
    *x = NAME(rounded)((b - a) * NAME(cosine)[16]);
    *y = NAME(rounded)((a + b) * NAME(cosine)[16]);
}

/* (x + y, x - y) */
static INLINE void NAME(sums)(lanes *x, lanes *y)
{
    lanes a = *x, b = *y;
    *x = a + b, *y = a - b;
}

/* Results of the even half, `out`, with those of the odd one in reverse. */
static INLINE void NAME(join)(lanes *out, const lanes *odd, int half)
{
    lanes even[16];
    for (int i = 0; i < half; i++)
        even[i] = out[i];
    for (int i = 0; i < half; i++) {
        out[i] = even[i] + odd[half - 1 - i];
        out[2 * half - 1 - i] = even[i] - odd[half - 1 - i];
    }
}

static INLINE void NAME(dct_4)(const lanes *in, int step, lanes *out)
{
    lanes a = NAME(rounded)((in[0] + in[2 * step]) * NAME(cosine)[16]), b = NAME(rounded)((in[0] - in[2 * step]) * NAME(cosine)[16]), c, d;
    NAME(rotate)(in[step], in[3 * step], 24, &c, &d);
    out[0] = a + d, out[1] = b + c, out[2] = b - c, out[3] = a - d;
}

static INLINE void NAME(dct_8)(const lanes *in, int step, lanes *out)
{
    lanes o[4];
    NAME(dct_4)(in, 2 * step, out);
    NAME(rotate)(in[step], in[7 * step], 28, &o[0], &o[3]);
    NAME(rotate)(in[5 * step], in[3 * step], 12, &o[1], &o[2]);
    NAME(sums)(&o[0], &o[1]);
    NAME(sums)(&o[3], &o[2]);
    NAME(halves)(&o[1], &o[2]);
    NAME(join)(out, o, 4);
}

static INLINE void NAME(dct_16)(const lanes *in, int step, lanes *out)
{
    lanes o[8];
    NAME(dct_8)(in, 2 * step, out);
    NAME(rotate)(in[step], in[15 * step], 30, &o[0], &o[7]);
    NAME(rotate)(in[9 * step], in[7 * step], 14, &o[1], &o[6]);
    NAME(rotate)(in[5 * step], in[11 * step], 22, &o[2], &o[5]);
    NAME(rotate)(in[13 * step], in[3 * step], 6, &o[3], &o[4]);
    for (int i = 0; i < 8; i += 4) {
        NAME(sums)(&o[i], &o[i + 1]);
        NAME(sums)(&o[i + 3], &o[i + 2]);
    }
    NAME(turn)(&o[1], &o[6], 8);
    NAME(turn_back)(&o[2], &o[5], 24);
    for (int i = 0; i < 2; i++) {
        NAME(sums)(&o[i], &o[3 - i]);
        NAME(sums)(&o[7 - i], &o[4 + i]);
    }
    NAME(halves)(&o[2], &o[5]);
    NAME(halves)(&o[3], &o[4]);
    NAME(join)(out, o, 8);
}

static INLINE void NAME(odd_32)(lanes o[16])
{
    for (int i = 0; i < 16; i += 4) {
        NAME(sums)(&o[i], &o[i + 1]);
        NAME(sums)(&o[i + 3], &o[i + 2]);
    }
    NAME(turn)(&o[1], &o[14], 4);
    NAME(turn_back)(&o[2], &o[13], 28);
    NAME(turn)(&o[5], &o[10], 20);
    NAME(turn_back)(&o[6], &o[9], 12);
    for (int i = 0; i < 16; i += 8)
        for (int k = 0; k < 2; k++) {
            NAME(sums)(&o[i + k], &o[i + 3 - k]);
            NAME(sums)(&o[i + 7 - k], &o[i + 4 + k]);
        }
    NAME(turn)(&o[2], &o[13], 8);
    NAME(turn)(&o[3], &o[12], 8);
    NAME(turn_back)(&o[4], &o[11], 24);
    NAME(turn_back)(&o[5], &o[10], 24);
    for (int k = 0; k < 4; k++) {
        NAME(sums)(&o[k], &o[7 - k]);
        NAME(sums)(&o[15 - k], &o[8 + k]);
    }
    for (int k = 4; k < 8; k++)
        NAME(halves)(&o[k], &o[15 - k]);
}

static INLINE void NAME(dct_32)(const lanes *in, int step, lanes *out)
{
    static const uint8_t order[8][3] = {{1, 31, 31}, {17, 15, 15}, {9, 23, 23}, {25, 7, 7}, {5, 27, 27}, {21, 11, 11}, {13, 19, 19}, {29, 3, 3}};
    lanes o[16];
    NAME(dct_16)(in, 2 * step, out);
    for (int i = 0; i < 8; i++)
        NAME(rotate)(in[order[i][0] * step], in[order[i][1] * step], order[i][2], &o[i], &o[15 - i]);
    NAME(odd_32)(o);
    NAME(join)(out, o, 16);
}

static INLINE void NAME(adst_4)(const lanes *in, lanes *out)
{
    lanes a = 5283 * in[0] + 15212 * in[2] + 9929 * in[3], b = 9929 * in[0] - 5283 * in[2] - 15212 * in[3], c = 13377 * in[1];
    out[2] = NAME(rounded)(13377 * (in[0] - in[2] + in[3]));
    out[0] = NAME(rounded)(a + c);
    out[1] = NAME(rounded)(b + c);
    out[3] = NAME(rounded)(a + b - c);
}

/* Two rotations whose results are added and subtracted before they are rounded; the second one the other way round if `is_back`. */
static INLINE void NAME(rotate_two)(lanes *x, int first, int second, int is_back)
{
    const int16_t *c = NAME(cosine);
    lanes a = x[0] * c[first] + x[1] * c[32 - first], b = x[0] * c[32 - first] - x[1] * c[first], d, e;
    d = x[2] * c[second] + x[3] * c[32 - second], e = x[2] * c[32 - second] - x[3] * c[second];
    if (is_back)
        d = x[3] * c[second] - x[2] * c[32 - second], e = x[2] * c[second] + x[3] * c[32 - second];
    x[0] = NAME(rounded)(a + d), x[1] = NAME(rounded)(b + e), x[2] = NAME(rounded)(a - d), x[3] = NAME(rounded)(b - e);
}

static INLINE void NAME(adst_8)(const lanes *in, lanes *out)
{
    lanes p[4] = {in[7], in[0], in[3], in[4]}, q[4] = {in[5], in[2], in[1], in[6]}, high[4];
    NAME(rotate_two)(p, 2, 18, 0);
    NAME(rotate_two)(q, 10, 26, 0);
    NAME(sums)(&p[0], &q[0]);
    NAME(sums)(&p[1], &q[1]);
    high[0] = p[2], high[1] = p[3], high[2] = q[2], high[3] = q[3];
    NAME(rotate_two)(high, 8, 8, 1);
    lanes c = q[0], d = q[1], e = high[2], f = high[3];
    out[0] = p[0], out[7] = -p[1], out[1] = -high[0], out[6] = high[1];
    out[3] = -NAME(rounded)((c + d) * NAME(cosine)[16]);
    out[4] = NAME(rounded)((c - d) * NAME(cosine)[16]);
    out[2] = NAME(rounded)((e + f) * NAME(cosine)[16]);
    out[5] = -NAME(rounded)((e - f) * NAME(cosine)[16]);
}

static INLINE void NAME(adst_16)(const lanes *in, lanes *out)
{
    const int16_t half = NAME(cosine)[16];
    lanes x[16], s[4][4];
    for (int i = 0; i < 4; i++) { /* pairs i and i + 4 */
        lanes pair[4] = {in[15 - 2 * i], in[2 * i], in[7 - 2 * i], in[8 + 2 * i]};
        NAME(rotate_two)(pair, 1 + 4 * i, 17 + 4 * i, 0);
        x[2 * i] = pair[0], x[2 * i + 1] = pair[1], x[8 + 2 * i] = pair[2], x[9 + 2 * i] = pair[3];
    }
    for (int i = 0; i < 4; i++)
        NAME(sums)(&x[i], &x[4 + i]);
    for (int i = 0; i < 2; i++) { /* 8, 9 with 12, 13; 10, 11 with 14, 15 */
        lanes pair[4] = {x[8 + 2 * i], x[9 + 2 * i], x[12 + 2 * i], x[13 + 2 * i]};
        NAME(rotate_two)(pair, i ? 20 : 4, i ? 20 : 4, 1);
        for (int k = 0; k < 4; k++)
            s[i][k] = pair[k];
    }
    x[8] = s[0][0], x[9] = s[0][1], x[12] = s[0][2], x[13] = s[0][3];
    x[10] = s[1][0], x[11] = s[1][1], x[14] = s[1][2], x[15] = s[1][3];
    for (int i = 0; i < 16; i += 8) {
        NAME(sums)(&x[i], &x[i + 2]);
        NAME(sums)(&x[i + 1], &x[i + 3]);
        NAME(rotate_two)(&x[i + 4], 8, 8, 1);
    }
    out[0] = x[0], out[15] = -x[1], out[3] = -x[4], out[12] = x[5], out[1] = -x[8], out[14] = x[9], out[2] = x[12], out[13] = -x[13];
    out[7] = NAME(rounded)(-half * (x[2] + x[3])), out[8] = NAME(rounded)(half * (x[2] - x[3]));
    out[4] = NAME(rounded)(half * (x[6] + x[7])), out[11] = NAME(rounded)(half * (x[7] - x[6]));
    out[6] = NAME(rounded)(half * (x[10] + x[11])), out[9] = NAME(rounded)(half * (x[11] - x[10]));
    out[5] = NAME(rounded)(-half * (x[14] + x[15])), out[10] = NAME(rounded)(half * (x[14] - x[15]));
}

static INLINE void NAME(transform)(const lanes *in, lanes *out, int log2_size, int is_adst)
{
    if (log2_size == 5)
        NAME(dct_32)(in, 1, out);
    else if (log2_size == 4)
        is_adst ? NAME(adst_16)(in, out) : NAME(dct_16)(in, 1, out);
    else if (log2_size == 3)
        is_adst ? NAME(adst_8)(in, out) : NAME(dct_8)(in, 1, out);
    else
        is_adst ? NAME(adst_4)(in, out) : NAME(dct_4)(in, 1, out);
}

/* Rows become columns; halves of eight lanes stay apart until the last step. */
static INLINE void NAME(transpose)(lanes *s)
{
#if LANES == 4
    const lanes low = {0, 4, 1, 5}, high = {2, 6, 3, 7}, first = {0, 1, 4, 5}, second = {2, 3, 6, 7};
#else
    const lanes low = {0, 8, 1, 9, 4, 12, 5, 13}, high = {2, 10, 3, 11, 6, 14, 7, 15};
    const lanes first = {0, 1, 8, 9, 4, 5, 12, 13}, second = {2, 3, 10, 11, 6, 7, 14, 15};
    const lanes lower = {0, 1, 2, 3, 8, 9, 10, 11}, upper = {4, 5, 6, 7, 12, 13, 14, 15};
#endif
    for (int i = 0; i < LANES; i += 4) {
        lanes a = __builtin_shuffle(s[i], s[i + 1], low), b = __builtin_shuffle(s[i], s[i + 1], high);
        lanes c = __builtin_shuffle(s[i + 2], s[i + 3], low), d = __builtin_shuffle(s[i + 2], s[i + 3], high);
        s[i] = __builtin_shuffle(a, c, first), s[i + 1] = __builtin_shuffle(a, c, second);
        s[i + 2] = __builtin_shuffle(b, d, first), s[i + 3] = __builtin_shuffle(b, d, second);
    }
#if LANES == 8
    for (int i = 0; i < 4; i++) {
        lanes a = s[i], b = s[i + 4];
        s[i] = __builtin_shuffle(a, b, lower), s[i + 4] = __builtin_shuffle(a, b, upper);
    }
#endif
}

/* Loads `used` inputs `size` apart; the others are zero. */
static INLINE void NAME(inputs)(const element *from, lanes *in, int size, int used)
{
    for (int k = 0; k < size; k++) {
        in[k] = (lanes){0};
        if (k < used)
            memcpy(&in[k], from + k * size, sizeof *in);
    }
}

/* Rows, then columns: the residual of a block whose coefficients are kept column by column. Only its first `used` columns and rows have
 * some; callers name a constant, so that what is zero is not computed. */
static INLINE void NAME(residual)(const element *block, element *to, const struct vp9_transform *t, int log2_size, int used)
{
    element middle[1024];
    lanes in[32], out[32];
    int size = 1 << log2_size;
    for (int first = 0; first < used; first += LANES) {
        NAME(inputs)(block + first, in, size, used);
        NAME(transform)(in, out, log2_size, (t->type & ADST_ACROSS) != 0);
        for (int k = 0; k < size; k += LANES) {
            NAME(transpose)(out + k);
            for (int i = 0; i < LANES; i++)
                memcpy(middle + (first + i) * size + k, &out[k + i], sizeof *out);
        }
    }
    for (int first = 0; first < size; first += LANES) {
        NAME(inputs)(middle + first, in, size, used);
        NAME(transform)(in, out, log2_size, (t->type & ADST_DOWN) != 0);
        for (int k = 0; k < size; k++)
            memcpy(to + k * size + first, &out[k], sizeof *out);
    }
}
