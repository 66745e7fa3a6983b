/* A shift of an array over itself. */
#include "autodiff.h"

double f(double *x, int n) {
    memmove(x + 1, x, (n - 1) * sizeof(double));
    double sum = 0;
    for (int i = 0; i < n; i++) sum += (i + 1) * x[i] * x[i];
    return sum;
}

int main(void) {
    double x[4] = {1, 2, 3, 4}, dx[4] = {0};
    __enzyme_autodiff((void *)f, x, dx, 4);
    double wanted[4] = {2 * 1 * 1 + 2 * 2 * 1, 2 * 3 * 2, 2 * 4 * 3, 0};
    for (int i = 0; i < 4; i++) SAME(dx[i], wanted[i]);
    return 0;
}
