/* A matrix as an array of pointers to rows. */
#include "autodiff.h"

double f(double **rows, int n) {
    double sum = 0;
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) sum += rows[i][j] * rows[j][i];
    return sum;
}

int main(void) {
    double a[3][3], da[3][3] = {{0}}, *rows[3], *drows[3];
    for (int i = 0; i < 3; i++) {
        rows[i] = a[i], drows[i] = da[i];
        for (int j = 0; j < 3; j++) a[i][j] = 1 + i * 3 + j;
    }
    __enzyme_autodiff((void *)f, rows, drows, 3);
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++) SAME(da[i][j], 2 * a[j][i]);
    return 0;
}
