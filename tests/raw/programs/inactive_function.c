/* A function that is declared to carry no derivative, by an annotation. */
#include "autodiff.h"

static double seen;

__attribute__((annotate("enzyme_inactive"), noinline)) static double note(double x) {
    seen = x;
    return 1;
}

double f(double x) { return x * x * note(x * 3); }

__attribute__((annotate("enzyme_inactive"), noinline)) static long log_all(const double *x, double *log, long n) {
    for (long i = 0; i < n; i++) log[i] = x[i];
    return n;
}

double g(double *x, double *log) {
    x[1] *= x[0];
    long n = log_all(x, log, 2);
    return x[1] * log[0] * (double)n;
}

int main(void) {
    SAME(__enzyme_autodiff((void *)f, 2.0), 4);
    SAME(seen, 6);
    double x[2] = {3, 5}, dx[2] = {0, 0}, log[2];
    __enzyme_autodiff((void *)g, enzyme_dup, x, dx, enzyme_const, log);
    SAME(dx[0], 30);
    SAME(dx[1], 18);
    SAME(log[1], 15);
    return 0;
}
