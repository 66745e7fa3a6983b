/* Variables of the program whose names begin as markers do. */
#include "autodiff.h"

int irad_n = 3;
double *irad_buffer, *irad_shadow;

double f(const double *x, int n) { return x[0] * x[0] * n; }

int main(void) {
    double x = 3, dx = 0;
    irad_buffer = &x, irad_shadow = &dx;
    __enzyme_autodiff((void *)f, irad_buffer, irad_shadow, irad_n);
    SAME(dx, 18);
    return 0;
}
