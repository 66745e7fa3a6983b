/* The same, by a list of functions. */
#include "autodiff.h"

static double measured;
__attribute__((noinline)) static double measure(double x) { return measured = 2 * x; }
void *__enzyme_inactivefn[] = {(void *)measure};

double f(double x) { return x * measure(x); }

int main(void) {
    SAME(__enzyme_autodiff((void *)f, 3.0), 6);
    SAME(measured, 6);
    return 0;
}
