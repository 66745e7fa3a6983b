/* Copies and fills that check the size of their target, as -D_FORTIFY_SOURCE makes them. */
#include "autodiff.h"

double f(const double *x, long n) {
    double a[8], b[8];
    __builtin___memset_chk(b, 0, (n + 1) * sizeof(double), sizeof b);
    __builtin___memcpy_chk(a, x, n * sizeof(double), sizeof a);
    __builtin___memmove_chk(b + 1, a, n * sizeof(double), sizeof b - sizeof(double));
    double sum = 0;
    for (int i = 0; i <= n; i++) sum += b[i] * b[i] * i;
    return sum;
}

int main(void) {
    double x[3] = {1, 2, 3}, dx[3] = {0};
    __enzyme_autodiff((void *)f, x, dx, 3L);
    for (int i = 0; i < 3; i++) SAME(dx[i], 2 * x[i] * (i + 1));
    return 0;
}
