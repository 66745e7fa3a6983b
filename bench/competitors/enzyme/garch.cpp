static void loss(const double *parameters, const double *returns, double *out) {
    double mean = parameters[0], constant = parameters[1], shock = parameters[2], memory = parameters[3];
    double variance = constant / (1.0 - shock - memory), total = 0.0;
    for (long i = 0; i < shape[1][0]; i++) {
        double residual = returns[i] - mean;
        total += 0.5 * (log(2.0 * PI * variance) + residual * residual / variance);
        variance = constant + shock * residual * residual + memory * variance;
    }
    *out = total;
}
