/* An array on the stack that is overwritten again and again. */
#include "autodiff.h"

double f(double x) {
    double state[4] = {x, x * x, 1, 0};
    for (int step = 0; step < 5; step++) {
        double next[4];
        for (int i = 0; i < 4; i++) next[i] = sin(state[i]) + state[(i + 1) & 3] * x;
        for (int i = 0; i < 4; i++) state[i] = next[i];
    }
    return state[0] + state[3];
}

int main(void) {
    double x = 0.6, h = 1e-6;
    NEAR(__enzyme_autodiff((void *)f, x), (f(x + h) - f(x - h)) / (2 * h), 1e-7);
    return 0;
}
