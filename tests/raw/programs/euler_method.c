/* A differential equation, step by step, with the state overwritten. */
#include "autodiff.h"

double simulate(double *state, double k, int steps) {
    for (int i = 0; i < steps; i++) {
        double velocity = state[1], force = -k * state[0];
        state[0] += 0.01 * velocity;
        state[1] += 0.01 * force;
    }
    return state[0];
}

static double value(double k) {
    double state[2] = {1, 0.5};
    return simulate(state, k, 100);
}

int main(void) {
    double state[2] = {1, 0.5}, shadow[2] = {0, 0}, h = 1e-6;
    double by_k = __enzyme_autodiff((void *)simulate, state, shadow, 2.0, 100);
    NEAR(by_k, (value(2 + h) - value(2 - h)) / (2 * h), 1e-8);
    double a[2] = {1, 0}, b[2] = {0, 1}; /* the state depends linearly on where it begins */
    SAME(shadow[0], simulate(a, 2, 100));
    SAME(shadow[1], simulate(b, 2, 100));
    return 0;
}
