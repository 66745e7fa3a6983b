/* A derivative by hand of a function that reads and writes memory; no tape. */
#include "autodiff.h"

__attribute__((noinline)) static void scale(const double *x, double *y, double by, int n) {
    for (int i = 0; i < n; i++) y[i] = x[i] * by;
}

static int augmented, reversed;

static void scale_augmented(const double *x, double *dx, double *y, double *dy, double by, int n) {
    (void)dx, (void)dy;
    augmented++;
    scale(x, y, by, n);
}

static double scale_reverse(const double *x, double *dx, double *y, double *dy, double by, int n) {
    double sum = 0;
    reversed++;
    for (int i = 0; i < n; i++) {
        dx[i] += dy[i] * by;
        sum += dy[i] * x[i];
        dy[i] = 0;
    }
    (void)y;
    return sum;
}

void *__irad_register_gradient_scale[] = {(void *)scale, (void *)scale_augmented, (void *)scale_reverse};

double f(const double *x, double by, int n) {
    double y[8], sum = 0;
    scale(x, y, by, n);
    for (int i = 0; i < n; i++) sum += y[i] * y[i];
    return sum;
}

int main(void) {
    double x[3] = {1, 2, 3}, dx[3] = {0};
    double by = __enzyme_autodiff((void *)f, x, dx, 2.0, 3);
    SAME(by, 2 * 2 * 14);
    for (int i = 0; i < 3; i++) SAME(dx[i], 2 * 4 * x[i]);
    SAME(augmented, 1);
    SAME(reversed, 1);
    return 0;
}
