static void loss(const double *positions, double epsilon, double sigma, double *out) {
    const long n = shape[0][0];
    double total = 0.0;
    for (long i = 0; i < n; i++)
        for (long j = i + 1; j < n; j++) {
            double dx = positions[3 * i] - positions[3 * j];
            double dy = positions[3 * i + 1] - positions[3 * j + 1];
            double dz = positions[3 * i + 2] - positions[3 * j + 2];
            double s2 = sigma * sigma / (dx * dx + dy * dy + dz * dz);
            double s6 = s2 * s2 * s2;
            total += 4.0 * epsilon * (s6 * s6 - s6);
        }
    *out = total;
}
