static void rotate(const double *rotation, const double *x, double *out) {
    double angle = sqrt(square(rotation[0]) + square(rotation[1]) + square(rotation[2]));
    double cosine = cos(angle), sine = sin(angle);
    double axis[3] = {rotation[0] / angle, rotation[1] / angle, rotation[2] / angle};
    double along = (axis[0] * x[0] + axis[1] * x[1] + axis[2] * x[2]) * (1.0 - cosine);
    out[0] = x[0] * cosine + (axis[1] * x[2] - axis[2] * x[1]) * sine + axis[0] * along;
    out[1] = x[1] * cosine + (axis[2] * x[0] - axis[0] * x[2]) * sine + axis[1] * along;
    out[2] = x[2] * cosine + (axis[0] * x[1] - axis[1] * x[0]) * sine + axis[2] * along;
}

static void loss(const double *cameras, const double *points, const double *weights, const long *seen,
                 const double *features, double *out) {
    double total = 0.0;
    for (long k = 0; k < shape[3][0]; k++) {
        const double *camera = cameras + 11 * seen[2 * k], *point = points + 3 * seen[2 * k + 1];
        double from[3] = {point[0] - camera[3], point[1] - camera[4], point[2] - camera[5]}, turned[3];
        rotate(camera, from, turned);
        double x = turned[0] / turned[2], y = turned[1] / turned[2], r2 = x * x + y * y;
        double distortion = 1.0 + camera[9] * r2 + camera[10] * r2 * r2;
        double x_error = weights[k] * (camera[6] * x * distortion + camera[7] - features[2 * k]);
        double y_error = weights[k] * (camera[6] * y * distortion + camera[8] - features[2 * k + 1]);
        total += square(x_error) + square(y_error) + square(1.0 - square(weights[k]));
    }
    *out = 0.5 * total;
}
