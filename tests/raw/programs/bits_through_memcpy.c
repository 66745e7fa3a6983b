/* The bits of a number are looked at, not computed with. */
#include "autodiff.h"

static int exponent(double x) {
    unsigned long bits;
    memcpy(&bits, &x, sizeof bits);
    return (int)(bits >> 52 & 0x7ff) - 1023;
}

double f(double x) {
    double copy;
    memcpy(&copy, &x, sizeof copy);
    return copy * copy * (1 + exponent(x));
}

int main(void) {
    SAME(__enzyme_autodiff((void *)f, 5.0), 10 * 3);
    SAME(__enzyme_autodiff((void *)f, 0.75), 1.5 * 0);
    return 0;
}
