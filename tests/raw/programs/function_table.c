/* A constant table of functions. */
#include "autodiff.h"

static double linear(double x) { return 2 * x; }
static double square(double x) { return x * x; }
static double inverse(double x) { return 1 / x; }
static double (*const TABLE[])(double) = {linear, square, inverse};

double chain(double x, const int *order, int n) {
    for (int i = 0; i < n; i++) x = TABLE[order[i]](x);
    return x;
}

int main(void) {
    int order[4] = {1, 0, 2, 1}; /* (1 / (2 x²))² */
    double x = 1.3;
    SAME(__enzyme_autodiff((void *)chain, x, enzyme_const, order, 4), -pow(x, -5));
    return 0;
}
