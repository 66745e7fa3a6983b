/* A switch with cases that fall through. */
#include "autodiff.h"

double f(double x, int kind) {
    double y = 0;
    switch (kind) {
    case 0: return x;
    case 1: y += x * x; /* falls through */
    case 2: y += sin(x); break;
    case 7: y = exp(x); break;
    default: y = 1;
    }
    return y * 2;
}

int main(void) {
    double x = 0.8;
    SAME(__enzyme_autodiff((void *)f, x, 0), 1);
    SAME(__enzyme_autodiff((void *)f, x, 1), 4 * x + 2 * cos(x));
    SAME(__enzyme_autodiff((void *)f, x, 2), 2 * cos(x));
    SAME(__enzyme_autodiff((void *)f, x, 7), 2 * exp(x));
    SAME(__enzyme_autodiff((void *)f, x, 9), 0);
    return 0;
}
