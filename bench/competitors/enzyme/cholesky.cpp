static void loss(const double *matrix, double *out) {
    const long n = shape[0][0];
    double *a = doubles(n * n), total = 0.0;
    for (long i = 0; i < n * n; i++) a[i] = matrix[i];
    for (long k = 0; k < n; k++) {
        a[k * n + k] = sqrt(a[k * n + k]);
        total += 2.0 * log(a[k * n + k]);
        for (long i = k + 1; i < n; i++) a[i * n + k] /= a[k * n + k];
        for (long i = k + 1; i < n; i++)
            for (long j = k + 1; j <= i; j++) a[i * n + j] -= a[i * n + k] * a[j * n + k];
    }
    free(a);
    *out = total;
}
