const double GRAVITY = 9.81;

static void loss(const double *surface, const double *target, double ratio, long steps, double *out) {
    const long n = shape[0][0], size = n * n;
    double *memory = zeros(6 * size), *h = memory, *p = h + size, *q = p + size;
    double *h_new = q + size, *p_new = h_new + size, *q_new = p_new + size;
    for (long i = 0; i < size; i++) h[i] = surface[i];
    for (long s = 0; s < steps; s++) {
        for (long i = 0; i < n; i++)
            for (long j = 0; j < n; j++) {
                long at = i * n + j, a = (i + n - 1) % n * n + j, b = (i + 1) % n * n + j;
                long c = i * n + (j + n - 1) % n, d = i * n + (j + 1) % n;
                h_new[at] = 0.25 * (h[a] + h[b] + h[c] + h[d]) - ratio * (p[b] - p[a] + q[d] - q[c]);
                double below = p[b] * p[b] / h[b] + 0.5 * GRAVITY * h[b] * h[b];
                double above = p[a] * p[a] / h[a] + 0.5 * GRAVITY * h[a] * h[a];
                double across = p[d] * q[d] / h[d] - p[c] * q[c] / h[c];
                p_new[at] = 0.25 * (p[a] + p[b] + p[c] + p[d]) - ratio * (below - above + across);
                double right = q[d] * q[d] / h[d] + 0.5 * GRAVITY * h[d] * h[d];
                double left = q[c] * q[c] / h[c] + 0.5 * GRAVITY * h[c] * h[c];
                across = p[b] * q[b] / h[b] - p[a] * q[a] / h[a];
                q_new[at] = 0.25 * (q[a] + q[b] + q[c] + q[d]) - ratio * (right - left + across);
            }
        double *other = h;
        h = h_new, h_new = other;
        other = p, p = p_new, p_new = other;
        other = q, q = q_new, q_new = other;
    }
    double total = 0.0;
    for (long i = 0; i < size; i++) total += square(h[i] - target[i]);
    free(memory);
    *out = 0.5 * total;
}
