/* Recursion over parts of an array. */
#include "autodiff.h"

double product(const double *x, int n) {
    if (n == 1) return x[0];
    return product(x, n / 2) * product(x + n / 2, n - n / 2);
}

int main(void) {
    double x[7] = {1.5, 2, -1, 0.5, 3, 1.25, 2.5}, dx[7] = {0};
    __enzyme_autodiff((void *)product, x, dx, 7);
    for (int i = 0; i < 7; i++) SAME(dx[i], product(x, 7) / x[i]);
    return 0;
}
