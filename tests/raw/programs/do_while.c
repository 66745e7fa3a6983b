/* A loop with its condition at the end. */
#include "autodiff.h"

double f(double x) {
    double y = x;
    int steps = 0;
    do {
        y = sin(y) + 0.1 * x;
        steps++;
    } while (y > 0.5 && steps < 20);
    return y * steps;
}

int main(void) {
    double x = 1.3, h = 1e-6;
    NEAR(__enzyme_autodiff((void *)f, x), (f(x + h) - f(x - h)) / (2 * h), 1e-7);
    return 0;
}
