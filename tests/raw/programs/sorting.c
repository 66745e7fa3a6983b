/* Numbers that change places. */
#include "autodiff.h"

double f(double *x, int n) {
    for (int i = 0; i < n; i++)
        for (int j = 0; j + 1 < n - i; j++)
            if (x[j] > x[j + 1]) {
                double t = x[j];
                x[j] = x[j + 1];
                x[j + 1] = t;
            }
    double sum = 0;
    for (int i = 0; i < n; i++) sum += (i + 1) * x[i];
    return sum;
}

int main(void) {
    double x[5] = {3, 1, 5, 2, 4}, dx[5] = {0}, wanted[5] = {3, 1, 5, 2, 4};
    __enzyme_autodiff((void *)f, x, dx, 5);
    for (int i = 0; i < 5; i++) SAME(dx[i], wanted[i]);
    return 0;
}
