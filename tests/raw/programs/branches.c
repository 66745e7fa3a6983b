/* The derivative is that of the branch taken. */
#include "autodiff.h"

double f(double x, double y) {
    double a = x > y ? x * x : y * 3;
    if (a > 5 && x != 4) a = fmax(a, 7 * x);
    return fabs(a) + fmin(x, y);
}

int main(void) {
    double points[4][2] = {{1, 2}, {3, 1}, {4, 0}, {-2, -3}};
    for (int i = 0; i < 4; i++) {
        double x = points[i][0], y = points[i][1], h = 1e-7;
        double found = __enzyme_autodiff((void *)f, x, enzyme_const, y);
        NEAR(found, i == 2 ? 8 : (f(x + h, y) - f(x - h, y)) / (2 * h), 1e-6);
    }
    return 0;
}
