/* Both modes of one function: their products with vectors agree, and each is independent of the other. */
#include "forward.h"

static void step(double *state, const double *rates, int n) {
    for (int i = 0; i < n; i++) {
        double left = state[(i + n - 1) % n], right = state[(i + 1) % n];
        state[i] += 0.1 * rates[i] * (tanh(left) - state[i] * right);
    }
}
void simulate(double *state, const double *rates, int n, int steps) {
    for (int k = 0; k < steps; k++) step(state, rates, n);
}

int main(void) {
    enum { N = 5 };
    double rates[N], d_rates[N], r_rates[N] = {0}, start[N], d_start[N], r_start[N], s[N], ds[N], seed[N];
    for (int i = 0; i < N; i++) {
        start[i] = sin(i + 1), d_start[i] = cos(3 * i), rates[i] = 1 + 0.2 * i, d_rates[i] = sin(5 * i);
        s[i] = start[i], ds[i] = d_start[i], seed[i] = 1.0 / (i + 1), r_start[i] = seed[i];
    }
    __irad_fwddiff_void((void *)simulate, s, ds, rates, d_rates, N, 20);
    double along = 0, back = 0;
    for (int i = 0; i < N; i++) along += seed[i] * ds[i], s[i] = start[i];
    __irad_autodiff_void((void *)simulate, s, r_start, rates, r_rates, N, 20);
    for (int i = 0; i < N; i++) back += r_start[i] * d_start[i] + r_rates[i] * d_rates[i];
    SAME(along, back);

    double h = 1e-5, found[2][N];
    for (int side = 0; side < 2; side++) {
        double moved[N];
        for (int i = 0; i < N; i++) {
            found[side][i] = start[i] + (side ? h : -h) * d_start[i];
            moved[i] = rates[i] + (side ? h : -h) * d_rates[i];
        }
        simulate(found[side], moved, N, 20);
    }
    for (int i = 0; i < N; i++) NEAR(ds[i], (found[1][i] - found[0][i]) / (2 * h), 1e-7);
    return 0;
}
