/* Restrict pointers to one array that is only read, in a function that is not inlined; their shadow is one, too. */
#include "autodiff.h"

#define N 9

static double dot(const double *restrict a, const double *restrict b, int n, int depth) {
    double sum = 0;
    for (int i = 0; i < n; i++) sum += a[i] * b[i] * a[i];
    if (depth > 0) sum += dot(a, b, n - 1, depth - 1) * dot(b, a, n - 1, depth - 2);
    return sum;
}
double f(const double *a, const double *b, int n) { return dot(a, b, n, 3); }

int main(void) {
    double x[N], dx[N] = {0}, h = 1e-6;
    for (int i = 0; i < N; i++) x[i] = 0.1 + 0.05 * i;
    __enzyme_autodiff((void *)f, x, dx, x, dx, N);
    for (int i = 0; i < N; i++) {
        double up[N], down[N];
        memcpy(up, x, sizeof x), memcpy(down, x, sizeof x);
        up[i] += h, down[i] -= h;
        NEAR(dx[i], (f(up, up, N) - f(down, down, N)) / (2 * h), 1e-6);
    }
    return 0;
}
