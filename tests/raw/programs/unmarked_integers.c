/* Pointers to integers without a marker are constant: no shadow comes behind them. */
#include "autodiff.h"

double gather(const double *x, const int *index, int n) {
    double sum = 0;
    for (int i = 0; i < n; i++) sum += x[index[i]] * x[index[i]];
    return sum;
}

double segment(double *x, const long *bounds, const unsigned char *mask, double factor) {
    double sum = 0;
    for (long i = bounds[0]; i < bounds[1]; i++)
        if (mask[i]) sum += x[i] * factor;
    return sum;
}

int main(void) {
    double x[4] = {1, 2, 3, 4}, dx[4] = {0};
    int index[5] = {3, 0, 0, 2, 3};
    __enzyme_autodiff((void *)gather, x, dx, index, 5);
    SAME(dx[0], 4);
    SAME(dx[1], 0);
    SAME(dx[2], 6);
    SAME(dx[3], 16);

    long bounds[2] = {1, 4};
    unsigned char mask[4] = {1, 1, 0, 1};
    double more[4] = {0};
    SAME(__enzyme_autodiff((void *)segment, x, more, bounds, mask, 2.0), 6);
    SAME(more[1] + more[3], 4);
    SAME(more[0] + more[2], 0);
    return 0;
}
