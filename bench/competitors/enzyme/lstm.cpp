static double sigmoid(double x) { return 1.0 / (1.0 + exp(-x)); }

static void loss(const double *inner, const double *outer, const double *bias, const double *sequence,
                 const double *target, double *out) {
    const long width = shape[0][1], n = shape[3][0], depth = shape[3][1];
    double *hidden = zeros(width), *cell = zeros(width), *gates = doubles(4 * width);
    for (long t = 0; t < n; t++) {
        const double *x = sequence + t * depth;
        for (long i = 0; i < 4 * width; i++) {
            gates[i] = bias[i];
            for (long j = 0; j < depth; j++) gates[i] += outer[i * depth + j] * x[j];
            for (long j = 0; j < width; j++) gates[i] += inner[i * width + j] * hidden[j];
        }
        for (long i = 0; i < width; i++) {
            double forget = sigmoid(gates[i]), write = sigmoid(gates[width + i]);
            cell[i] = forget * cell[i] + write * tanh(gates[2 * width + i]);
            hidden[i] = sigmoid(gates[3 * width + i]) * tanh(cell[i]);
        }
    }
    double total = 0.0;
    for (long i = 0; i < width; i++) total += square(hidden[i] - target[i]);
    free(hidden), free(cell), free(gates);
    *out = 0.5 * total;
}
