/* What memset overwrites has no derivative. */
#include "autodiff.h"

double f(double *x, int n) {
    double sum = 0;
    for (int i = 0; i < n; i++) sum += x[i] * x[i];
    memset(x, 0, n / 2 * sizeof(double));
    for (int i = 0; i < n; i++) sum += 3 * x[i];
    return sum;
}

int main(void) {
    double x[4] = {1, 2, 3, 4}, dx[4] = {0};
    __enzyme_autodiff((void *)f, x, dx, 4);
    double wanted[4] = {2, 4, 9, 11};
    for (int i = 0; i < 4; i++) SAME(dx[i], wanted[i]);
    SAME(x[0], 0);
    return 0;
}
