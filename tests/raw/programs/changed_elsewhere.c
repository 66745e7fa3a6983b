/* Constant memory that an argument leads to is changed by code that is not handed it: the reverse uses the old values. */
#include "autodiff.h"

static double weights[2], scale;
static double *known = weights;

__attribute__((weak)) void change(void) { scale += 1, weights[0] *= 2; } /* the linker may put another in its place */
static void step(int n) {
    known[n % 2] += n;
    if (n > 0) step(n - 1);
    if (n > 3) step(n - 3);
}
double square(double x) { return x * x; }
static void observe(double *slope) { /* is no part of what is differentiated: it asks for a derivative itself */
    weights[1] *= 1.5;
    if (slope) *slope = __enzyme_autodiff((void *)square, 1.0);
}

double f(double x, const double *w, void (*call)(double *), int n) {
    double sum = 0;
    for (int i = 0; i < n; i++) {
        sum += sin(x) * x * w[i % 2] * scale;
        change();
        sum += x * x * w[0];
        step(4);
        sum += x * exp(x) * w[1];
        call(0);
    }
    return sum;
}

static void reset(void) { weights[0] = 1, weights[1] = 2, scale = 1; }

static double value(double x) {
    reset();
    return f(x, weights, observe, 4);
}

int main(void) {
    double x = 0.7, h = 1e-6;
    reset();
    double found = __enzyme_autodiff((void *)f, x, enzyme_const, weights, enzyme_const, observe, 4);
    NEAR(found, (value(x + h) - value(x - h)) / (2 * h), 1e-6);
    return 0;
}
