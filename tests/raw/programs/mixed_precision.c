/* Sums of floats in double precision. */
#include "autodiff.h"

double f(const float *x, int n) {
    double sum = 0;
    for (int i = 0; i < n; i++) sum += (double)x[i] * x[i];
    return sqrt(sum);
}

int main(void) {
    float x[4] = {1, 2, 3, 4}, dx[4] = {0};
    __enzyme_autodiff((void *)f, enzyme_dup, x, dx, 4);
    for (int i = 0; i < 4; i++) NEAR(dx[i], x[i] / sqrt(30.0), 1e-6);
    return 0;
}
