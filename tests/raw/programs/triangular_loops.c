/* Nested loops whose inner bounds depend on the outer one. */
#include "autodiff.h"

double f(const double *x, int n) {
    double sum = 0;
    for (int i = 0; i < n; i++)
        for (int j = 0; j < i; j++) sum += x[i] * x[j] * (i - j);
    return sum;
}

int main(void) {
    double x[6] = {1, -2, 3, 0.5, 2, 1.5}, dx[6] = {0};
    __enzyme_autodiff((void *)f, x, dx, 6);
    for (int i = 0; i < 6; i++) {
        double wanted = 0;
        for (int j = 0; j < 6; j++) wanted += x[j] * abs(i - j);
        SAME(dx[i], wanted);
    }
    return 0;
}
