/* The work of bench/programs as a C programmer writes it for one core: plain loops that the compiler may vectorise. Where a loop goes
 * round inside the one over work items, which compilers do not vectorise, it goes round WIDE of them, as the kernels do. */
#include <math.h>
#include <stdint.h>

enum { LANES = 16, MOST_BODIES = 1 << 14, WIDE = 2 * LANES };

void saxpy(const float *restrict x, float *restrict y, float a, int n)
{
#pragma omp simd
    for (int i = 0; i < n; i++)
        y[i] = a * x[i] + y[i];
}

void matmul(const float *restrict a, const float *restrict b, float *restrict c, int n)
{
    for (int row = 0; row < n; row++) {
        for (int column = 0; column < n; column++)
            c[row * n + column] = 0;
        for (int k = 0; k < n; k++)
#pragma omp simd
            for (int column = 0; column < n; column++)
                c[row * n + column] += a[row * n + k] * b[k * n + column];
    }
}

void mandel(uint32_t *restrict out, int width, int height, float x0, float y0, float dx, float dy, uint32_t most)
{
    for (int y = 0; y < height; y++)
        for (int x = 0; x < width; x += LANES) {
            float cr[LANES], ci = y0 + dy * (float)y, zr[LANES] = {0}, zi[LANES] = {0};
            uint32_t it[LANES] = {0}, on = 1;
            for (int l = 0; l < LANES; l++)
                cr[l] = x0 + dx * (float)(x + l);
            for (uint32_t k = 0; k < most && on; k++) {
                on = 0;
#pragma omp simd reduction(| : on)
                for (int l = 0; l < LANES; l++) {
                    float a = zr[l] * zr[l], b = zi[l] * zi[l];
                    uint32_t in = !(a + b > 4.0f) && it[l] == k;
                    float r = a - b + cr[l], i = 2.0f * zr[l] * zi[l] + ci;
                    zr[l] = in ? r : zr[l];
                    zi[l] = in ? i : zi[l];
                    it[l] += in;
                    on |= in;
                }
            }
            for (int l = 0; l < LANES; l++)
                out[y * width + x + l] = it[l];
        }
}

void nbody(const float *restrict pos, float *restrict acc, int n, float eps2)
{
    static _Thread_local float x[MOST_BODIES], y[MOST_BODIES], z[MOST_BODIES], w[MOST_BODIES];
    for (int j = 0; j < n; j++) {
        x[j] = pos[4 * j];
        y[j] = pos[4 * j + 1];
        z[j] = pos[4 * j + 2];
        w[j] = pos[4 * j + 3];
    }
    for (int i = 0; i < n; i++) {
        float px = x[i], py = y[i], pz = z[i], ax = 0, ay = 0, az = 0;
#pragma omp simd reduction(+ : ax, ay, az)
        for (int j = 0; j < n; j++) {
            float dx = x[j] - px, dy = y[j] - py, dz = z[j] - pz;
            float inv = 1.0f / sqrtf(dx * dx + dy * dy + dz * dz + eps2);
            float s = w[j] * inv * inv * inv;
            ax += dx * s;
            ay += dy * s;
            az += dz * s;
        }
        acc[4 * i] = ax;
        acc[4 * i + 1] = ay;
        acc[4 * i + 2] = az;
        acc[4 * i + 3] = 0;
    }
}

void hist(const uint32_t *restrict in, uint32_t *restrict bins, int n)
{
    for (int i = 0; i < n; i++) /* others may count too */
        __atomic_fetch_add(&bins[in[i] & 255], 1, __ATOMIC_SEQ_CST);
}

void conv(const float *restrict in, float *restrict out, const float *restrict w, int width, int height)
{
    for (int y = 0; y < height; y++)
#pragma omp simd
        for (int x = 0; x < width; x++) {
            float sum = 0;
            if (x == 0 || y == 0 || x >= width - 1 || y >= height - 1)
                sum = in[y * width + x];
            else
                for (int j = -1; j <= 1; j++)
                    for (int i = -1; i <= 1; i++)
                        sum += w[(j + 1) * 3 + i + 1] * in[(y + j) * width + x + i];
            out[y * width + x] = sum;
        }
}

#define ROTATE(x, n) ((x) >> (n) | (x) << (32 - (n)))
#define ROUND(a, b, c, d, e, f, g, h, k, w)                                                                                      \
    {                                                                                                                            \
        uint32_t t = h + (ROTATE(e, 6) ^ ROTATE(e, 11) ^ ROTATE(e, 25)) + ((e & f) ^ (~e & g)) + k + w;                          \
        d += t;                                                                                                                  \
        h = t + (ROTATE(a, 2) ^ ROTATE(a, 13) ^ ROTATE(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));                                  \
    }
#define NEXT(w, x, y, z)                                                                                                         \
    w += (ROTATE(x, 7) ^ ROTATE(x, 18) ^ x >> 3) + y + (ROTATE(z, 17) ^ ROTATE(z, 19) ^ z >> 10);
#define EIGHT(k0, k1, k2, k3, k4, k5, k6, k7, w0, w1, w2, w3, w4, w5, w6, w7)                                                    \
    ROUND(a, b, c, d, e, f, g, h, k0, w0) ROUND(h, a, b, c, d, e, f, g, k1, w1)                                                  \
    ROUND(g, h, a, b, c, d, e, f, k2, w2) ROUND(f, g, h, a, b, c, d, e, k3, w3)                                                  \
    ROUND(e, f, g, h, a, b, c, d, k4, w4) ROUND(d, e, f, g, h, a, b, c, k5, w5)                                                  \
    ROUND(c, d, e, f, g, h, a, b, k6, w6) ROUND(b, c, d, e, f, g, h, a, k7, w7)
#define SCHEDULE                                                                                                                 \
    NEXT(w0, w1, w9, w14) NEXT(w1, w2, w10, w15) NEXT(w2, w3, w11, w0) NEXT(w3, w4, w12, w1) NEXT(w4, w5, w13, w2)               \
    NEXT(w5, w6, w14, w3) NEXT(w6, w7, w15, w4) NEXT(w7, w8, w0, w5) NEXT(w8, w9, w1, w6) NEXT(w9, w10, w2, w7)                  \
    NEXT(w10, w11, w3, w8) NEXT(w11, w12, w4, w9) NEXT(w12, w13, w5, w10) NEXT(w13, w14, w6, w11) NEXT(w14, w15, w7, w12)        \
    NEXT(w15, w0, w8, w13)
#define LOW w0, w1, w2, w3, w4, w5, w6, w7
#define HIGH w8, w9, w10, w11, w12, w13, w14, w15
#define EIGHT_OF(...) EIGHT(__VA_ARGS__)

void sha(uint32_t *restrict out, uint32_t salt, int n)
{
#pragma omp simd
    for (int i = 0; i < n; i++) {
        uint32_t w0 = (uint32_t)i, w1 = salt, w2 = 0x80000000u, w3 = 0, w4 = 0, w5 = 0, w6 = 0, w7 = 0;
        uint32_t w8 = 0, w9 = 0, w10 = 0, w11 = 0, w12 = 0, w13 = 0, w14 = 0, w15 = 64;
        uint32_t a = 0x6a09e667, b = 0xbb67ae85, c = 0x3c6ef372, d = 0xa54ff53a;
        uint32_t e = 0x510e527f, f = 0x9b05688c, g = 0x1f83d9ab, h = 0x5be0cd19;
        EIGHT_OF(0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5, LOW)
        EIGHT_OF(0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, HIGH)
        SCHEDULE
        EIGHT_OF(0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da, LOW)
        EIGHT_OF(0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, HIGH)
        SCHEDULE
        EIGHT_OF(0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, LOW)
        EIGHT_OF(0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, HIGH)
        SCHEDULE
        EIGHT_OF(0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3, LOW)
        EIGHT_OF(0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2, HIGH)
        out[i] = a + 0x6a09e667;
    }
}

void mandel_loop(float *restrict out, float dx, float dy, uint32_t count, int n)
{
    for (int first = 0; first < n; first += WIDE) {
        float cr[WIDE], ci[WIDE], zr[WIDE] = {0}, zi[WIDE] = {0};
        for (int l = 0; l < WIDE; l++) {
            cr[l] = dx * (float)(first + l & 1023) - 0.5f;
            ci[l] = dy * (float)(first + l >> 10);
        }
        for (uint32_t k = 0; k < count; k++)
#pragma omp simd
            for (int l = 0; l < WIDE; l++) {
                float a = zr[l] * zr[l], b = zi[l] * zi[l];
                zi[l] = 2.0f * zr[l] * zi[l] + ci[l];
                zr[l] = a - b + cr[l];
            }
        for (int l = 0; l < WIDE; l++)
            out[first + l] = zr[l] + zi[l];
    }
}

void nbody_loop(float *restrict out, float step, float eps2, uint32_t count, int n)
{
    for (int first = 0; first < n; first += WIDE) {
        float x[WIDE], ax[WIDE] = {0}, q = 0;
        for (int l = 0; l < WIDE; l++)
            x[l] = (float)(first + l) * 0.001f;
        for (uint32_t k = 0; k < count; k++) {
#pragma omp simd
            for (int l = 0; l < WIDE; l++) {
                float d = q - x[l], inv = 1.0f / sqrtf(d * d + eps2);
                ax[l] += d * inv * inv * inv;
            }
            q += step;
        }
        for (int l = 0; l < WIDE; l++)
            out[first + l] = ax[l];
    }
}

void hash_loop(uint32_t *restrict out, uint32_t salt, uint32_t count, int n)
{
    for (int first = 0; first < n; first += WIDE) {
        uint32_t x[WIDE];
        for (int l = 0; l < WIDE; l++)
            x[l] = (uint32_t)(first + l) + salt;
        for (uint32_t k = 0; k < count; k++)
#pragma omp simd
            for (int l = 0; l < WIDE; l++) {
                uint32_t one = x[l];
                one ^= one >> 16;
                one *= 0x7feb352du;
                one ^= one >> 15;
                one *= 0x846ca68bu;
                one ^= one >> 16;
                x[l] = one + k;
            }
        for (int l = 0; l < WIDE; l++)
            out[first + l] = x[l];
    }
}

