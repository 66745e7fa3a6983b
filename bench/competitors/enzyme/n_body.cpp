static void accelerate(const double *x, const double *masses, double softening, long n, double *out) {
    for (long i = 0; i < n; i++) {
        for (long d = 0; d < 3; d++) out[3 * i + d] = 0.0;
        for (long j = 0; j < n; j++) {
            double dx = x[3 * j] - x[3 * i], dy = x[3 * j + 1] - x[3 * i + 1], dz = x[3 * j + 2] - x[3 * i + 2];
            double r2 = dx * dx + dy * dy + dz * dz + softening * softening;
            double pull = masses[j] / (r2 * sqrt(r2));
            out[3 * i] += pull * dx;
            out[3 * i + 1] += pull * dy;
            out[3 * i + 2] += pull * dz;
        }
    }
}

static void loss(const double *initial, const double *velocities, const double *masses, double softening, double step,
                 long steps, double *out) {
    const long n = shape[0][0];
    double *x = doubles(3 * n), *v = doubles(3 * n), *pull = doubles(3 * n), total = 0.0;
    for (long i = 0; i < 3 * n; i++) x[i] = initial[i], v[i] = velocities[i];
    for (long s = 0; s < steps; s++) {
        for (long i = 0; i < 3 * n; i++) x[i] += 0.5 * step * v[i];
        accelerate(x, masses, softening, n, pull);
        for (long i = 0; i < 3 * n; i++) v[i] += step * pull[i];
        for (long i = 0; i < 3 * n; i++) x[i] += 0.5 * step * v[i];
    }
    for (long i = 0; i < 3 * n; i++) total += x[i] * x[i];
    free(x), free(v), free(pull);
    *out = total;
}
