/* Temporary arrays on the heap. */
#include "autodiff.h"

double f(const double *x, int n) {
    double *squares = (double *)malloc(n * sizeof(double));
    for (int i = 0; i < n; i++) squares[i] = x[i] * x[i];
    double sum = 0;
    for (int i = 1; i < n; i++) sum += squares[i] * squares[i - 1];
    free(squares);
    return sum;
}

int main(void) {
    double x[5] = {1, 2, 3, 4, 5}, dx[5] = {0};
    __enzyme_autodiff((void *)f, x, dx, 5);
    for (int i = 0; i < 5; i++) {
        double neighbours = (i > 0 ? x[i - 1] * x[i - 1] : 0) + (i < 4 ? x[i + 1] * x[i + 1] : 0);
        SAME(dx[i], 2 * x[i] * neighbours);
    }
    return 0;
}
