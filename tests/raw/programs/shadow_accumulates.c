/* A shadow grows by the derivative: it is not overwritten. */
#include "autodiff.h"

double f(const double *x) { return x[0] * x[1]; }

int main(void) {
    double x[2] = {3, 4}, dx[2] = {100, 200};
    __enzyme_autodiff((void *)f, x, dx);
    SAME(dx[0], 104);
    SAME(dx[1], 203);
    return 0;
}
