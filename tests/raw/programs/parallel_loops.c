/* OpenMP: loops whose iterations are shared out statically, in blocks and in chunks, up and down, or not run at all. */
// flags: -fopenmp
#include "autodiff.h"

void squares(double *x, int n) {
#pragma omp parallel for
    for (int i = 0; i < n; i++) x[i] *= x[i];
    x[0] = 0;
}

void from_the_middle(float *x, unsigned n, unsigned first) {
#pragma omp parallel for schedule(static, 3)
    for (unsigned i = first; i < n; i++) x[i] = x[i] * x[i] * x[i];
}

static void set(double *into, double value) { *into = value; }

void downwards(double *x, const double *w, long n) {
#pragma omp parallel for firstprivate(w)
    for (long i = n - 1; i >= 0; i -= 2) {
        double own;
        set(&own, x[i] * w[0]);
        x[i] = own * own;
    }
}

int main(void) {
    double x[8], dx[8], w[1] = {1.5}, dw[1] = {0};
    for (int i = 0; i < 8; i++) x[i] = i + 1, dx[i] = 1;
    __enzyme_autodiff((void *)squares, x, dx, 8);
    for (int i = 0; i < 8; i++) SAME(dx[i], i == 0 ? 0 : 2 * (i + 1));
    for (int i = 0; i < 8; i++) SAME(x[i], i == 0 ? 0 : (i + 1) * (i + 1));

    float y[10], dy[10];
    for (int i = 0; i < 10; i++) y[i] = i, dy[i] = 1;
    __irad_autodiff_void((void *)from_the_middle, enzyme_dup, y, dy, 10, 4);
    for (int i = 0; i < 10; i++) NEAR(dy[i], i < 4 ? 1 : 3.0 * i * i, 1e-6);
    for (int i = 0; i < 10; i++) y[i] = i, dy[i] = 1;
    __irad_autodiff_void((void *)from_the_middle, enzyme_dup, y, dy, 4, 10);
    for (int i = 0; i < 10; i++) SAME(dy[i], 1);

    double sum = 0;
    for (int i = 0; i < 8; i++) x[i] = i + 1, dx[i] = 1;
    __enzyme_autodiff((void *)downwards, x, dx, enzyme_dup, w, dw, 8L);
    for (int i = 0; i < 8; i++) SAME(dx[i], i % 2 ? 2 * 1.5 * 1.5 * (i + 1) : 1);
    for (int i = 1; i < 8; i += 2) sum += 2 * 1.5 * (i + 1) * (i + 1);
    SAME(dw[0], sum);
    return 0;
}
