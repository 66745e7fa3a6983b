/* A function that is an argument. */
#include "autodiff.h"

static double cube(double x) { return x * x * x; }
static double wave(double x) { return sin(2 * x); }

double apply(double (*g)(double), double x) { return g(x) * g(x + 1); }

int main(void) {
    double x = 0.4;
    SAME(__enzyme_autodiff((void *)apply, enzyme_const, cube, x),
         3 * x * x * cube(x + 1) + cube(x) * 3 * (x + 1) * (x + 1));
    SAME(__enzyme_autodiff((void *)apply, enzyme_const, wave, x),
         2 * cos(2 * x) * wave(x + 1) + wave(x) * 2 * cos(2 * x + 2));
    return 0;
}
