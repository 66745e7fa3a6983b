static void loss(const double *lower, const double *diagonal, const double *upper, const double *right,
                 const double *target, double *out) {
    const long n = shape[0][0];
    double *above = doubles(n), *x = doubles(n), total = 0.0;
    above[0] = upper[0] / diagonal[0];
    x[0] = right[0] / diagonal[0];
    for (long i = 1; i < n; i++) {
        double pivot = diagonal[i] - lower[i] * above[i - 1];
        above[i] = upper[i] / pivot;
        x[i] = (right[i] - lower[i] * x[i - 1]) / pivot;
    }
    for (long i = n - 2; i >= 0; i--) x[i] -= above[i] * x[i + 1];
    for (long i = 0; i < n; i++) total += square(x[i] - target[i]);
    free(above), free(x);
    *out = 0.5 * total;
}
