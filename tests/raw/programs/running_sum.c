/* In place: each element depends on the one before. */
#include "autodiff.h"

void f(double *x, int n) {
    for (int i = 1; i < n; i++) x[i] = x[i] * x[i - 1];
}

int main(void) {
    double x[4] = {2, 3, 4, 5}, dx[4] = {0, 0, 0, 1};
    __irad_autodiff_void((void *)f, x, dx, 4);
    double wanted[4] = {60, 40, 30, 24};
    for (int i = 0; i < 4; i++) SAME(dx[i], wanted[i]);
    SAME(x[3], 120);
    return 0;
}
