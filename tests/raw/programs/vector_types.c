/* Vectors as clang's own types: arithmetic, elements, shuffles. */
#include "autodiff.h"

typedef double double4 __attribute__((vector_size(32)));

double f(const double *x) {
    double4 a = {x[0], x[1], x[2], x[3]};
    double4 b = __builtin_shufflevector(a, a, 3, 2, 1, 0);
    double4 c = a * b + 2.0 * a;
    c[1] = c[1] * c[2];
    return c[0] + c[1] + c[3];
}

int main(void) {
    double x[4] = {1, 2, 3, 4}, dx[4] = {0}, h = 1e-6;
    __enzyme_autodiff((void *)f, x, dx);
    for (int i = 0; i < 4; i++) {
        double up[4], down[4];
        memcpy(up, x, sizeof x), memcpy(down, x, sizeof x);
        up[i] += h, down[i] -= h;
        NEAR(dx[i], (f(up) - f(down)) / (2 * h), 1e-7);
    }
    return 0;
}
