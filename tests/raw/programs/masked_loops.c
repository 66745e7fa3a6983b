/* Loops that clang vectorises with masks, at -O3: loads, stores, gathers and scatters under a condition. */
#include "autodiff.h"

#define N 21

__attribute__((target("avx512f,avx512vl"))) double f(const double *restrict x, const double *restrict c,
                                                     double *restrict y, const int *restrict k, int n) {
    double sum = 0;
    for (int i = 0; i < n; i++)
        if (c[i] > 0) y[i] = x[i] * x[i] * c[i];
    for (int i = 0; i < n; i++)
        if (x[i] < 3) y[i] += y[i] * x[i];
    for (int i = 0; i < n; i++)
        if (c[i] < 0.5) y[i] += x[k[i]] * c[i];
#pragma clang loop vectorize(assume_safety)
    for (int i = 0; i < n; i++)
        if (c[i] > 0.2) y[k[i]] = x[i] * c[i];
    for (int i = 0; i < n; i++) sum += y[i] * y[i];
    return sum;
}

static double value(const double *x, const double *c, const int *k) {
    double y[N];
    for (int i = 0; i < N; i++) y[i] = 1;
    return f(x, c, y, k, N);
}

int main(void) {
    if (!__builtin_cpu_supports("avx512vl")) return 0;
    double x[N], c[N], y[N], dx[N] = {0}, dc[N] = {0}, dy[N] = {0}, h = 1e-6;
    int k[N];
    for (int i = 0; i < N; i++) x[i] = i * 0.37 + 0.1, c[i] = sin(i + 1), y[i] = 1, k[i] = (i * 8) % N;
    __enzyme_autodiff((void *)f, x, dx, c, dc, y, dy, enzyme_const, k, N);
    for (int i = 0; i < N; i++) {
        double *const arrays[2] = {x, c}, *const found[2] = {dx, dc};
        for (int a = 0; a < 2; a++) {
            double kept = arrays[a][i], up, down;
            arrays[a][i] = kept + h, up = value(x, c, k);
            arrays[a][i] = kept - h, down = value(x, c, k);
            arrays[a][i] = kept;
            NEAR(found[a][i], (up - down) / (2 * h), 1e-5);
        }
    }
    return 0;
}
