static double log_sum_exp(const double *values, long n) {
    double largest = values[0], total = 0.0;
    for (long i = 1; i < n; i++)
        if (values[i] > largest) largest = values[i];
    for (long i = 0; i < n; i++) total += exp(values[i] - largest);
    return largest + log(total);
}

static double log_wishart_prior(const double *factors, long k, long d, double gamma, long m) {
    long width = d + d * (d - 1) / 2, degrees = d + m + 1;
    double log_gamma = 0.25 * d * (d - 1) * log(PI), out = 0.0;
    for (long j = 1; j <= d; j++) log_gamma += lgamma(0.5 * degrees + 0.5 * (1 - j));
    double constant = degrees * d * (log(gamma) - 0.5 * log(2.0)) - log_gamma;
    for (long ik = 0; ik < k; ik++) {
        double frobenius = 0.0, sum_q = 0.0;
        for (long i = 0; i < d; i++) {
            frobenius += square(exp(factors[ik * width + i]));
            sum_q += factors[ik * width + i];
        }
        for (long i = d; i < width; i++) frobenius += square(factors[ik * width + i]);
        out += 0.5 * gamma * gamma * frobenius - m * sum_q;
    }
    return out - k * constant;
}

static void loss(const double *alphas, const double *means, const double *factors, const double *points, double gamma,
                 long m, double *out) {
    const long k = shape[1][0], d = shape[1][1], n = shape[3][0], width = shape[2][1];
    double *diagonals = doubles(k * d), *sum_q = zeros(k), *centred = doubles(d), *scaled = doubles(d);
    double *terms = doubles(k);
    for (long ik = 0; ik < k; ik++)
        for (long i = 0; i < d; i++) {
            diagonals[ik * d + i] = exp(factors[ik * width + i]);
            sum_q[ik] += factors[ik * width + i];
        }
    double total = 0.0;
    for (long ix = 0; ix < n; ix++) {
        for (long ik = 0; ik < k; ik++) {
            for (long i = 0; i < d; i++) {
                centred[i] = points[ix * d + i] - means[ik * d + i];
                scaled[i] = diagonals[ik * d + i] * centred[i];
            }
            const double *packed = factors + ik * width + d;
            for (long i = 0; i < d; i++) {
                for (long j = i + 1; j < d; j++) scaled[j] += packed[j - i - 1] * centred[i];
                packed += d - i - 1;
            }
            double norm = 0.0;
            for (long i = 0; i < d; i++) norm += square(scaled[i]);
            terms[ik] = alphas[ik] + sum_q[ik] - 0.5 * norm;
        }
        total += log_sum_exp(terms, k);
    }
    free(diagonals), free(sum_q), free(centred), free(scaled), free(terms);
    double prior = log_wishart_prior(factors, k, d, gamma, m);
    *out = -0.5 * n * d * log(2.0 * PI) + total - n * log_sum_exp(alphas, k) + prior;
}
