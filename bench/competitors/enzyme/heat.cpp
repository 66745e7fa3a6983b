static void loss(const double *initial, const double *target, double ratio, long steps, double *out) {
    const long n = shape[0][0], m = shape[0][1];
    double *memory = doubles(2 * n * m), *now = memory, *next = memory + n * m;
    for (long i = 0; i < n * m; i++) now[i] = next[i] = initial[i];
    for (long s = 0; s < steps; s++) {
        for (long i = 1; i < n - 1; i++)
            for (long j = 1; j < m - 1; j++) {
                double neighbours =
                    now[(i - 1) * m + j] + now[(i + 1) * m + j] + now[i * m + j - 1] + now[i * m + j + 1];
                next[i * m + j] = now[i * m + j] + ratio * (neighbours - 4.0 * now[i * m + j]);
            }
        double *other = now;
        now = next;
        next = other;
    }
    double total = 0.0;
    for (long i = 0; i < n * m; i++) total += square(now[i] - target[i]);
    free(memory);
    *out = 0.5 * total;
}
