static void loss(const double *transition, const double *noise, const double *observed, const double *variance,
                 const double *series, double *out) {
    const long d = shape[2][0], n = shape[4][0];
    double *mean = zeros(d), *covariance = zeros(d * d), *gain = doubles(d), *predicted = doubles(d);
    double *half = doubles(d * d), *spread = doubles(d * d), total = 0.0;
    for (long i = 0; i < d; i++) covariance[i * d + i] = 1.0;
    for (long t = 0; t < n; t++) {
        for (long i = 0; i < d; i++) {
            predicted[i] = 0.0;
            for (long j = 0; j < d; j++) half[i * d + j] = 0.0;
            for (long k = 0; k < d; k++) {
                predicted[i] += transition[i * d + k] * mean[k];
                for (long j = 0; j < d; j++) half[i * d + j] += transition[i * d + k] * covariance[k * d + j];
            }
        }
        for (long i = 0; i < d; i++)
            for (long j = 0; j < d; j++) {
                spread[i * d + j] = noise[i * d + j];
                for (long k = 0; k < d; k++) spread[i * d + j] += half[i * d + k] * transition[j * d + k];
            }
        double innovation = series[t], scale = *variance;
        for (long i = 0; i < d; i++) {
            gain[i] = 0.0;
            for (long j = 0; j < d; j++) gain[i] += spread[i * d + j] * observed[j];
            innovation -= observed[i] * predicted[i];
        }
        for (long i = 0; i < d; i++) scale += observed[i] * gain[i];
        total += 0.5 * (log(2.0 * PI * scale) + innovation * innovation / scale);
        for (long i = 0; i < d; i++) {
            mean[i] = predicted[i] + gain[i] * innovation / scale;
            for (long j = 0; j < d; j++)
                covariance[i * d + j] = spread[i * d + j] - gain[i] * gain[j] / scale;
        }
    }
    free(mean), free(covariance), free(gain), free(predicted), free(half), free(spread);
    *out = total;
}
