/* One function, asked for in several ways. */
#include "autodiff.h"

double f(const double *x, double y) { return x[0] * x[0] * y + x[1]; }

int main(void) {
    double x[2] = {3, 4}, dx[2] = {0};
    SAME(__enzyme_autodiff((void *)f, x, dx, 5.0), 9);
    SAME(dx[0], 30);
    SAME(dx[1], 1);
    SAME(__enzyme_autodiff((void *)f, enzyme_const, x, 6.0), 9);
    double dz[2] = {0};
    __enzyme_autodiff((void *)f, enzyme_dup, x, dz, enzyme_const, 6.0);
    SAME(dz[0], 36);
    SAME(__irad_autodiff((void *)f, enzyme_const, x, 7.0), 9);
    return 0;
}
