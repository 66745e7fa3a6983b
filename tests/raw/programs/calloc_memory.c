/* Cleared memory from the heap. */
#include "autodiff.h"

double f(const double *x, const int *bin, int n, int bins) {
    double *sums = (double *)calloc(bins, sizeof(double));
    for (int i = 0; i < n; i++) sums[bin[i]] += x[i];
    double result = 0;
    for (int b = 0; b < bins; b++) result += sums[b] * sums[b];
    free(sums);
    return result;
}

int main(void) {
    double x[5] = {1, 2, 3, 4, 5}, dx[5] = {0}, sums[3] = {1 + 4, 2 + 5, 3};
    int bin[5] = {0, 1, 2, 0, 1};
    __enzyme_autodiff((void *)f, x, dx, enzyme_const, bin, 5, 3);
    for (int i = 0; i < 5; i++) SAME(dx[i], 2 * sums[bin[i]]);
    return 0;
}
