/* The largest element is taken out first. */
#include "autodiff.h"

double f(const double *x, int n) {
    double top = x[0], sum = 0;
    for (int i = 1; i < n; i++) top = fmax(top, x[i]);
    for (int i = 0; i < n; i++) sum += exp(x[i] - top);
    return top + log(sum);
}

int main(void) {
    double x[4] = {1000, 1001, 999, 1000.5}, dx[4] = {0}, sum = 0;
    __enzyme_autodiff((void *)f, x, dx, 4);
    for (int i = 0; i < 4; i++) sum += exp(x[i] - 1001);
    for (int i = 0; i < 4; i++) SAME(dx[i], exp(x[i] - 1001) / sum);
    return 0;
}
