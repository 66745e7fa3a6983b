/* Derivatives in a loop. */
#include "autodiff.h"

double loss(const double *x) { return (x[0] - 3) * (x[0] - 3) + 2 * (x[1] + 1) * (x[1] + 1); }

int main(void) {
    double x[2] = {0, 0};
    for (int i = 0; i < 200; i++) {
        double dx[2] = {0, 0};
        __enzyme_autodiff((void *)loss, enzyme_dup, x, dx);
        x[0] -= 0.1 * dx[0];
        x[1] -= 0.1 * dx[1];
    }
    NEAR(x[0], 3, 1e-8);
    NEAR(x[1], -1, 1e-8);
    return 0;
}
