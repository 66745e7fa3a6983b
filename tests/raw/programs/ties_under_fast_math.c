/* Where both sides of a choice are equal, the side that is taken gets the derivative, under fast-math, too. */
// flags: -ffast-math -Xclang -disable-llvm-passes
#include "autodiff.h"

double larger(double a, double b) { return a <= b ? b : a; }

double last_largest(const double *x, int n) {
    double best = x[0];
    for (int i = 1; i < n; i++) best = best <= x[i] ? x[i] : best;
    return best;
}

double clipped(double x) { return larger(larger(x, 0.5) * x, 1.0); }

int main(void) {
    SAME(__enzyme_autodiff((void *)larger, enzyme_out, 2.0, enzyme_const, 2.0), 0);
    SAME(__enzyme_autodiff((void *)larger, enzyme_const, 2.0, enzyme_out, 2.0), 1);
    SAME(__enzyme_autodiff((void *)larger, enzyme_out, 3.0, enzyme_const, 2.0), 1);
    double x[4] = {1, 3, 3, 2}, dx[4] = {0};
    __enzyme_autodiff((void *)last_largest, x, dx, 4);
    SAME(dx[0], 0);
    SAME(dx[1], 0);
    SAME(dx[2], 1);
    SAME(dx[3], 0);
    SAME(__enzyme_autodiff((void *)clipped, 1.0), 0);
    SAME(__enzyme_autodiff((void *)clipped, 2.0), 4);
    return 0;
}
