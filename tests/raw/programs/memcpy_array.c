/* Numbers that are copied as bytes. */
#include "autodiff.h"

double f(const double *x, int n) {
    double copy[16];
    memcpy(copy, x, n * sizeof(double));
    for (int i = 0; i < n; i++) copy[i] *= copy[i];
    double back[16];
    memcpy(back, copy, sizeof(double) * n);
    double sum = 0;
    for (int i = 0; i < n; i++) sum += back[i];
    return sum;
}

int main(void) {
    double x[6] = {1, 2, 3, 4, 5, 6}, dx[6] = {0};
    __enzyme_autodiff((void *)f, x, dx, 6);
    for (int i = 0; i < 6; i++) SAME(dx[i], 2 * x[i]);
    return 0;
}
