/* What is marked constant has no derivative, and no shadow. */
#include "autodiff.h"

double f(const double *x, const double *weights, double scale, int n) {
    double sum = 0;
    for (int i = 0; i < n; i++) sum += weights[i] * x[i] * x[i];
    return scale * sum;
}

int main(void) {
    double x[3] = {1, 2, 3}, dx[3] = {0}, weights[3] = {2, 4, 8};
    __enzyme_autodiff((void *)f, enzyme_dup, x, dx, enzyme_const, weights, enzyme_const, 0.5, 3);
    for (int i = 0; i < 3; i++) SAME(dx[i], weights[i] * x[i]);
    double by_scale = __enzyme_autodiff((void *)f, enzyme_const, x, enzyme_const, weights, enzyme_out, 0.5, 3);
    SAME(by_scale, 2 * 1 + 4 * 4 + 8 * 9);
    return 0;
}
