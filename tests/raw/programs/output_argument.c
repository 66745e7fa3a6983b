/* A result in memory: its shadow holds the cotangent, which is taken out. */
#include "autodiff.h"

void f(const double *x, double *y, int n) {
    for (int i = 0; i < n; i++) y[i] = x[i] * x[i] + (i > 0 ? x[i - 1] : 0);
}

int main(void) {
    double x[4] = {1, 2, 3, 4}, dx[4] = {0}, y[4], dy[4] = {1, 10, 100, 1000};
    __irad_autodiff_void((void *)f, enzyme_dup, x, dx, enzyme_dup, y, dy, 4);
    for (int i = 0; i < 4; i++) {
        SAME(y[i], x[i] * x[i] + (i > 0 ? x[i - 1] : 0));
        SAME(dy[i], 0);
        SAME(dx[i], 2 * x[i] * pow(10, i) + (i < 3 ? pow(10, i + 1) : 0));
    }
    return 0;
}
