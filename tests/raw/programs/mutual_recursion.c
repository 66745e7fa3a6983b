/* Two functions that call each other. */
#include "autodiff.h"

double odd(double x, int n);
double even(double x, int n) { return n == 0 ? 1 : x * odd(x + 0.1, n - 1); }
double odd(double x, int n) { return n == 0 ? x : sin(x) + even(x * 1.1, n - 1); }

int main(void) {
    double x = 0.9, h = 1e-6;
    for (int n = 0; n < 6; n++)
        NEAR(__enzyme_autodiff((void *)even, x, n), (even(x + h, n) - even(x - h, n)) / (2 * h), 1e-8);
    return 0;
}
