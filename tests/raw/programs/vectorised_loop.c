/* Loops that clang vectorises at -O2 and -O3. */
#include "autodiff.h"

void f(double *restrict y, const double *restrict x, double a, int n) {
    for (int i = 0; i < n; i++) y[i] = a * x[i] * x[i] + y[i];
}

int main(void) {
    enum { N = 37 };
    double x[N], dx[N] = {0}, y[N], dy[N], wanted = 0;
    for (int i = 0; i < N; i++) x[i] = 0.1 * i - 1, y[i] = 1, dy[i] = 1 + 0.5 * i, wanted += dy[i] * x[i] * x[i];
    double da = __enzyme_autodiff((void *)f, y, dy, x, dx, 2.0, N);
    SAME(da, wanted);
    for (int i = 0; i < N; i++) {
        SAME(dx[i], 4 * x[i] * (1 + 0.5 * i));
        SAME(dy[i], 1 + 0.5 * i);
    }
    return 0;
}
