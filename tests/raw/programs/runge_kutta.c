/* The right-hand side is a function pointer that is not inlined away at -O0. */
#include "autodiff.h"

typedef void (*Rhs)(double t, const double *y, double *dy, const double *p);

static void lotka(double t, const double *y, double *dy, const double *p) {
    dy[0] = p[0] * y[0] - p[1] * y[0] * y[1];
    dy[1] = -p[2] * y[1] + p[3] * y[0] * y[1] + 0 * t;
}

static void step(Rhs rhs, double t, double h, double *y, const double *p) {
    double k1[2], k2[2], middle[2];
    rhs(t, y, k1, p);
    for (int i = 0; i < 2; i++) middle[i] = y[i] + 0.5 * h * k1[i];
    rhs(t + 0.5 * h, middle, k2, p);
    for (int i = 0; i < 2; i++) y[i] += h * k2[i];
}

double f(const double *p, int steps) {
    double y[2] = {1, 0.5};
    for (int i = 0; i < steps; i++) step(lotka, i * 0.05, 0.05, y, p);
    return y[0] * y[1];
}

int main(void) {
    double p[4] = {1.1, 0.4, 0.4, 0.1}, dp[4] = {0}, h = 1e-6;
    __enzyme_autodiff((void *)f, p, dp, 40);
    for (int i = 0; i < 4; i++) {
        double up[4], down[4];
        memcpy(up, p, sizeof p), memcpy(down, p, sizeof p);
        up[i] += h, down[i] -= h;
        NEAR(dp[i], (f(up, 40) - f(down, 40)) / (2 * h), 1e-7);
    }
    return 0;
}
