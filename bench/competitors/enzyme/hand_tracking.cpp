static void rotate_by_angles(const double *angles, double *out) {
    double cos_x = cos(angles[0]), sin_x = sin(angles[0]), cos_z = cos(angles[1]), sin_z = sin(angles[1]);
    double cos_y = cos(angles[2]), sin_y = sin(angles[2]);
    out[0] = cos_y * cos_z;
    out[1] = sin_x * sin_y * cos_z - cos_x * sin_z;
    out[2] = cos_x * sin_y * cos_z + sin_x * sin_z;
    out[4] = cos_y * sin_z;
    out[5] = sin_x * sin_y * sin_z + cos_x * cos_z;
    out[6] = cos_x * sin_y * sin_z - sin_x * cos_z;
    out[8] = -sin_y;
    out[9] = sin_x * cos_y;
    out[10] = cos_x * cos_y;
}

static void rotate_about_axis(const double *rotation, double *out) {
    double angle = sqrt(square(rotation[0]) + square(rotation[1]) + square(rotation[2]));
    double x = rotation[0] / angle, y = rotation[1] / angle, z = rotation[2] / angle;
    double cosine = cos(angle), sine = sin(angle);
    out[0] = x * x + (1.0 - x * x) * cosine;
    out[1] = x * y * (1.0 - cosine) - z * sine;
    out[2] = x * z * (1.0 - cosine) + y * sine;
    out[3] = x * y * (1.0 - cosine) + z * sine;
    out[4] = y * y + (1.0 - y * y) * cosine;
    out[5] = y * z * (1.0 - cosine) - x * sine;
    out[6] = x * z * (1.0 - cosine) - y * sine;
    out[7] = z * y * (1.0 - cosine) + x * sine;
    out[8] = z * z + (1.0 - z * z) * cosine;
}

static void compose(const double *left, const double *right, double *out) {
    for (int i = 0; i < 3; i++) {
        for (int j = 0; j < 4; j++)
            out[4 * i + j] = left[4 * i] * right[j] + left[4 * i + 1] * right[4 + j] + left[4 * i + 2] * right[8 + j];
        out[4 * i + 3] += left[4 * i + 3];
    }
}

static void bone_transforms(const double *theta, const long *parents, const double *base_relatives,
                            const double *inverse_base_absolutes, double *transforms) {
    const long bones = shape[1][0];
    double *angles = zeros(3 * bones), *rotation = zeros(12), *relative = doubles(12), *absolutes = doubles(12 * bones);
    for (long finger = 0; finger < (bones - 2) / 4; finger++) {
        const double *given = theta + 6 + 4 * finger;
        double *first = angles + 3 * (2 + 4 * finger);
        first[0] = given[0], first[1] = given[1], first[3] = given[2], first[6] = given[3];
    }
    for (long b = 0; b < bones; b++) {
        rotate_by_angles(angles + 3 * b, rotation);
        compose(base_relatives + 12 * b, rotation, relative);
        if (parents[b] < 0)
            for (int i = 0; i < 12; i++) absolutes[12 * b + i] = relative[i];
        else
            compose(absolutes + 12 * parents[b], relative, absolutes + 12 * b);
        compose(absolutes + 12 * b, inverse_base_absolutes + 12 * b, transforms + 12 * b);
    }
    free(angles), free(rotation), free(relative), free(absolutes);
}

static void loss(const double *theta, const long *parents, const double *base_relatives,
                 const double *inverse_base_absolutes, const double *base_positions, const double *weights,
                 const long *correspondences, const double *points, double *out) {
    const long vertices = shape[5][0], bones = shape[5][1];
    double *transforms = doubles(12 * bones), *positions = zeros(3 * vertices), *rotation = doubles(9), total = 0.0;
    bone_transforms(theta, parents, base_relatives, inverse_base_absolutes, transforms);
    for (long v = 0; v < vertices; v++)
        for (long b = 0; b < bones; b++)
            for (int i = 0; i < 3; i++) {
                const double *row = transforms + 12 * b + 4 * i, *base = base_positions + 3 * v;
                double place = row[0] * base[0] + row[1] * base[1] + row[2] * base[2] + row[3];
                positions[3 * v + i] += weights[v * bones + b] * place;
            }
    rotate_about_axis(theta, rotation);
    for (long k = 0; k < shape[6][0]; k++) {
        const double *position = positions + 3 * correspondences[k];
        for (int i = 0; i < 3; i++) {
            double place = theta[3 + i];
            for (int j = 0; j < 3; j++) place += rotation[3 * i + j] * position[j];
            total += square(points[3 * k + i] - place);
        }
    }
    free(transforms), free(positions), free(rotation);
    *out = 0.5 * total;
}
