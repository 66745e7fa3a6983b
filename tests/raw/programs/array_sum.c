/* An array with its shadow. */
#include "autodiff.h"

double f(const double *x, int n) {
    double sum = 0;
    for (int i = 0; i < n; i++) sum += x[i] * x[i] * x[i];
    return sum;
}

int main(void) {
    double x[50], dx[50] = {0};
    for (int i = 0; i < 50; i++) x[i] = 0.1 * i;
    __enzyme_autodiff((void *)f, enzyme_dup, x, dx, 50);
    for (int i = 0; i < 50; i++) SAME(dx[i], 3 * x[i] * x[i]);
    return 0;
}
