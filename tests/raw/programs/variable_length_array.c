/* An array on the stack whose size is known when it runs. */
#include "autodiff.h"

double f(const double *x, int n) {
    double work[n];
    work[0] = x[0];
    for (int i = 1; i < n; i++) work[i] = work[i - 1] * x[i];
    return work[n - 1] + work[n / 2];
}

int main(void) {
    double x[5] = {1.5, 2, 0.5, 3, 1.25}, dx[5] = {0};
    __enzyme_autodiff((void *)f, x, dx, 5);
    double all = 1.5 * 2 * 0.5 * 3 * 1.25, half = 1.5 * 2 * 0.5;
    for (int i = 0; i < 5; i++) SAME(dx[i], all / x[i] + (i < 3 ? half / x[i] : 0));
    return 0;
}
