static void loss(const double *matrix, double *out) {
    const long n = shape[0][0];
    double *factor = zeros(n * n), total = 0.0;
    for (long j = 0; j < n; j++) {
        double pivot = matrix[j * n + j];
        for (long k = 0; k < j; k++) pivot -= square(factor[j * n + k]);
        factor[j * n + j] = sqrt(pivot);
        total += 2.0 * log(factor[j * n + j]);
        for (long i = j + 1; i < n; i++) {
            double rest = matrix[i * n + j];
            for (long k = 0; k < j; k++) rest -= factor[i * n + k] * factor[j * n + k];
            factor[i * n + j] = rest / factor[j * n + j];
        }
    }
    free(factor);
    *out = total;
}
