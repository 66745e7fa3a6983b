/* A recursive function reads a global table that might change: constant, and so is an integer that it returns. */
#include "autodiff.h"

double table[4] = {1, 2, 3, 4};

static double combined(const double *t, double x, int n) {
    if (n == 0) return x * t[0];
    return combined(t, x * t[n], n - 1) + combined(t + 1, x, (n - 1) / 2);
}
static int depth(double x, int n) {
    if (x < 1 || n > 20) return n;
    return depth(x * 0.5, n + 1) + (x > 3 ? depth(x * 0.1, n + 2) : 0);
}

double f(double x) { return combined(table, x * x, 2) * depth(x, 1); }

int main(void) {
    double x = 5.5, h = 1e-6;
    for (int i = 0; i < 2; i++) NEAR(__enzyme_autodiff((void *)f, x), (f(x + h) - f(x - h)) / (2 * h), 1e-6);
    return 0;
}
