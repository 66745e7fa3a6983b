static void loss(const double *weights, const double *bias, const double *features, const long *labels, double ridge,
                 double *out) {
    const long n = shape[2][0], width = shape[2][1], classes = shape[1][0];
    double *scores = doubles(classes);
    double total = 0.0, penalty = 0.0;
    for (long i = 0; i < n; i++) {
        for (long c = 0; c < classes; c++) scores[c] = bias[c];
        for (long j = 0; j < width; j++)
            for (long c = 0; c < classes; c++) scores[c] += features[i * width + j] * weights[j * classes + c];
        double largest = scores[0], exponentials = 0.0;
        for (long c = 1; c < classes; c++)
            if (scores[c] > largest) largest = scores[c];
        for (long c = 0; c < classes; c++) exponentials += exp(scores[c] - largest);
        total += largest + log(exponentials) - scores[labels[i]];
    }
    for (long j = 0; j < width * classes; j++) penalty += weights[j] * weights[j];
    free(scores);
    *out = total / n + 0.5 * ridge * penalty;
}
