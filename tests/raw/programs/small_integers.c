/* Arguments that variable arguments of C widen: char, short, bool. */
#include "autodiff.h"
#include <stdbool.h>

double f(double x, char times, short shift, bool negate, unsigned char mask) {
    double y = 0;
    for (char i = 0; i < times; i++) y += x * x;
    y = (y + shift) * (mask & 3);
    return negate ? -y : y;
}

int main(void) {
    SAME(__enzyme_autodiff((void *)f, 2.0, (char)3, (short)-7, (bool)1, (unsigned char)254), -2 * 3 * 2 * 2.0);
    SAME(__enzyme_autodiff((void *)f, 2.0, (char)3, (short)-7, (bool)0, (unsigned char)1), 3 * 2 * 2.0);
    return 0;
}
