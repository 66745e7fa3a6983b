static void loss(const double *u0, const double *v0, double a, double b, double diffusion, double step, long steps,
                 double *out) {
    const long n = shape[0][0], size = n * n;
    double *memory = doubles(4 * size), *u = memory, *v = u + size, *u_new = v + size, *v_new = u_new + size;
    for (long i = 0; i < size; i++) u[i] = u0[i], v[i] = v0[i];
    for (long s = 0; s < steps; s++) {
        for (long i = 0; i < n; i++)
            for (long j = 0; j < n; j++) {
                long here = i * n + j, north = (i + n - 1) % n * n + j, south = (i + 1) % n * n + j;
                long west = i * n + (j + n - 1) % n, east = i * n + (j + 1) % n;
                double spread_u = u[north] + u[south] + u[west] + u[east] - 4.0 * u[here];
                double spread_v = v[north] + v[south] + v[west] + v[east] - 4.0 * v[here];
                double reaction = u[here] * u[here] * v[here];
                u_new[here] = u[here] + step * (a + reaction - (b + 1.0) * u[here] + diffusion * spread_u);
                v_new[here] = v[here] + step * (b * u[here] - reaction + diffusion * spread_v);
            }
        double *other = u;
        u = u_new, u_new = other;
        other = v, v = v_new, v_new = other;
    }
    double total = 0.0;
    for (long i = 0; i < size; i++) total += u[i] * u[i] + v[i] * v[i];
    free(memory);
    *out = total;
}
