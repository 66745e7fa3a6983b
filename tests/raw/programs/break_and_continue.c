/* Loops that are left early and iterations that are skipped. */
#include "autodiff.h"

double f(const double *x, int n) {
    double product = 1;
    for (int i = 0; i < n; i++) {
        if (x[i] < 0) continue;
        product *= x[i];
        if (product > 20) break;
    }
    return product;
}

int main(void) {
    double x[6] = {2, -1, 3, -5, 4, 7}, dx[6] = {0};
    __enzyme_autodiff((void *)f, x, dx, 6);
    double wanted[6] = {12, 0, 8, 0, 6, 0};
    for (int i = 0; i < 6; i++) SAME(dx[i], wanted[i]);
    return 0;
}
