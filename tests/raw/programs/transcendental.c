/* Functions of the C library, alone and composed. */
#include "autodiff.h"

double f(double x) { return sin(x) * exp(-x) + log(1 + x * x) / sqrt(x) + pow(x, 2.5) + tanh(x); }

int main(void) {
    double x = 0.7, t = tanh(x);
    double wanted = (cos(x) - sin(x)) * exp(-x) + 2 * x / (1 + x * x) / sqrt(x) -
                    0.5 * log(1 + x * x) * pow(x, -1.5) + 2.5 * pow(x, 1.5) + 1 - t * t;
    SAME(__enzyme_autodiff((void *)f, x), wanted);
    return 0;
}
