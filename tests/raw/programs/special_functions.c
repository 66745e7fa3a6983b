/* Less usual functions of the C library. */
#include "autodiff.h"

double f(double x) { return erf(x) + cbrt(x) + hypot(x, 2) + atan2(x, 3) + asinh(x) + expm1(x) + log1p(x) + exp2(x); }

int main(void) {
    double x = 0.6;
    double wanted = 2 / sqrt(M_PI) * exp(-x * x) + 1 / (3 * cbrt(x) * cbrt(x)) + x / hypot(x, 2) + 3 / (x * x + 9) +
                    1 / sqrt(x * x + 1) + exp(x) + 1 / (1 + x) + log(2) * exp2(x);
    SAME(__enzyme_autodiff((void *)f, x), wanted);
    double h = 1e-6;
    NEAR(__enzyme_autodiff((void *)lgamma, 2.5), (lgamma(2.5 + h) - lgamma(2.5 - h)) / (2 * h), 1e-8);
    return 0;
}
