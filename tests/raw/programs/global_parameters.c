/* Settings in global variables: constant for the derivative, and read as they are when it runs. */
#include "autodiff.h"

double rate = 2;
static int steps = 3;

double f(double x) {
    for (int i = 0; i < steps; i++) x = rate * x;
    return x;
}

int main(void) {
    SAME(__enzyme_autodiff((void *)f, 1.0), 8);
    rate = 3;
    steps = 4;
    SAME(__enzyme_autodiff((void *)f, 1.0), 81);
    return 0;
}
