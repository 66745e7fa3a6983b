static void swap(double *x, double *y) {
    double other = *x;
    *x = *y;
    *y = other;
}

static void loss(const double *matrix, const double *right, const double *target, double *out) {
    const long n = shape[1][0];
    double *a = doubles(n * n), *x = doubles(n), total = 0.0;
    for (long i = 0; i < n * n; i++) a[i] = matrix[i];
    for (long i = 0; i < n; i++) x[i] = right[i];
    for (long k = 0; k < n; k++) {
        long best = k;
        for (long i = k + 1; i < n; i++)
            if (fabs(a[i * n + k]) > fabs(a[best * n + k])) best = i;
        if (best != k) {
            for (long j = 0; j < n; j++) swap(a + k * n + j, a + best * n + j);
            swap(x + k, x + best);
        }
        for (long i = k + 1; i < n; i++) {
            a[i * n + k] /= a[k * n + k];
            for (long j = k + 1; j < n; j++) a[i * n + j] -= a[i * n + k] * a[k * n + j];
            x[i] -= a[i * n + k] * x[k];
        }
    }
    for (long i = n - 1; i >= 0; i--) {
        for (long j = i + 1; j < n; j++) x[i] -= a[i * n + j] * x[j];
        x[i] /= a[i * n + i];
    }
    for (long i = 0; i < n; i++) total += square(x[i] - target[i]);
    free(a), free(x);
    *out = 0.5 * total;
}
