/* A loop whose number of iterations depends on the data. */
#include "autodiff.h"

double root(double a) {
    double x = a;
    while (fabs(x * x - a) > 1e-14 * a) x = 0.5 * (x + a / x);
    return x;
}

int main(void) {
    for (double a = 0.5; a < 5; a += 0.7) NEAR(__enzyme_autodiff((void *)root, a), 0.5 / sqrt(a), 1e-9);
    return 0;
}
