static void slope(const double *state, const double *rates, double *out) {
    double prey = state[0], predator = state[1];
    out[0] = rates[0] * prey - rates[1] * prey * predator;
    out[1] = rates[2] * prey * predator - rates[3] * predator;
}

static void loss(const double *initial, const double *rates, const double *target, double step, long steps,
                 double *out) {
    double *state = doubles(2), *inner = doubles(2);
    double *k1 = doubles(2), *k2 = doubles(2), *k3 = doubles(2), *k4 = doubles(2);
    state[0] = initial[0], state[1] = initial[1];
    for (long s = 0; s < steps; s++) {
        slope(state, rates, k1);
        for (int i = 0; i < 2; i++) inner[i] = state[i] + 0.5 * step * k1[i];
        slope(inner, rates, k2);
        for (int i = 0; i < 2; i++) inner[i] = state[i] + 0.5 * step * k2[i];
        slope(inner, rates, k3);
        for (int i = 0; i < 2; i++) inner[i] = state[i] + step * k3[i];
        slope(inner, rates, k4);
        for (int i = 0; i < 2; i++) state[i] += step / 6.0 * (k1[i] + 2.0 * k2[i] + 2.0 * k3[i] + k4[i]);
    }
    double total = square(state[0] - target[0]) + square(state[1] - target[1]);
    free(state), free(inner), free(k1), free(k2), free(k3), free(k4);
    *out = total;
}
