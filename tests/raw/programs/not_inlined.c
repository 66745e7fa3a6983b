/* Callees that stay calls: of numbers, of arrays. */
#include "autodiff.h"

__attribute__((noinline)) static double square(double x) { return x * x; }
__attribute__((noinline)) static void scale(double *x, double by, int n) {
    for (int i = 0; i < n; i++) x[i] *= by;
}

double f(const double *x, double by, int n) {
    double copy[8], sum = 0;
    for (int i = 0; i < n; i++) copy[i] = square(x[i]);
    scale(copy, by, n);
    for (int i = 0; i < n; i++) sum += copy[i];
    return sum;
}

int main(void) {
    double x[3] = {1, 2, 3}, dx[3] = {0};
    double by = __enzyme_autodiff((void *)f, x, dx, 2.0, 3);
    SAME(by, 14);
    for (int i = 0; i < 3; i++) SAME(dx[i], 4 * x[i]);
    return 0;
}
