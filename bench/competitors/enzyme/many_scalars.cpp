struct Vector {
    double x, y, z;
};
struct Link {
    double cosine, sine, length, offset, mass;
    Vector centre, inertia;
    double motor;
};
struct Motion {
    Vector spin, spin_rate, lift;
};
struct Wrench {
    Vector force, moment;
};

constexpr Link links[6] = {
    {1.0, 0.0, 0.0, 0.0, 0.0, {0.0, 0.0, 0.0}, {0.0, 0.0, 0.35}, 1.14},
    {0.0, -1.0, 0.0, 0.2435, 17.4, {0.068, 0.006, -0.016}, {0.13, 0.524, 0.539}, 4.71},
    {1.0, 0.0, 0.4318, -0.0934, 4.8, {0.0, -0.07, 0.014}, {0.066, 0.0125, 0.086}, 0.83},
    {0.0, 1.0, -0.0203, 0.4331, 0.82, {0.0, 0.0, -0.019}, {1.8e-3, 1.8e-3, 1.3e-3}, 0.2},
    {0.0, -1.0, 0.0, 0.0, 0.34, {0.0, 0.0, 0.0}, {3.0e-4, 3.0e-4, 4.0e-4}, 0.179},
    {0.0, 1.0, 0.0, 0.0, 0.09, {0.0, 0.0, 0.032}, {1.5e-4, 1.5e-4, 4.0e-5}, 0.193},
};

#define PART static inline __attribute__((always_inline))

PART Vector add(Vector a, Vector b) { return {a.x + b.x, a.y + b.y, a.z + b.z}; }
PART Vector scale(double factor, Vector a) { return {factor * a.x, factor * a.y, factor * a.z}; }
PART Vector each(Vector a, Vector b) { return {a.x * b.x, a.y * b.y, a.z * b.z}; }
PART Vector cross(Vector a, Vector b) { return {a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x}; }
PART Vector origin(const Link &link) { return {link.length, -link.sine * link.offset, link.cosine * link.offset}; }

PART Vector into(const Link &link, double c, double s, Vector a) {
    double y = link.cosine * a.y + link.sine * a.z, z = link.cosine * a.z - link.sine * a.y;
    return {c * a.x + s * y, c * y - s * a.x, z};
}

PART Vector out_of(const Link &link, double c, double s, Vector a) {
    double x = c * a.x - s * a.y, y = s * a.x + c * a.y;
    return {x, link.cosine * y - link.sine * a.z, link.sine * y + link.cosine * a.z};
}

PART Vector swing(Vector spin, Vector spin_rate, Vector arm) {
    return add(cross(spin_rate, arm), cross(spin, cross(spin, arm)));
}

PART Motion move(const Link &link, double c, double s, double speed, double acceleration, Motion before) {
    Vector carried = into(link, c, s, before.spin), turned = into(link, c, s, before.spin_rate);
    turned = add(turned, {carried.y * speed, -carried.x * speed, acceleration});
    Vector lifted = into(link, c, s, add(before.lift, swing(before.spin, before.spin_rate, origin(link))));
    return {add(carried, {0.0, 0.0, speed}), turned, lifted};
}

PART Wrench load(const Link &link, Motion motion) {
    Vector force = scale(link.mass, add(motion.lift, swing(motion.spin, motion.spin_rate, link.centre)));
    Vector gyration = add(each(link.inertia, motion.spin_rate), cross(motion.spin, each(link.inertia, motion.spin)));
    return {force, add(gyration, cross(link.centre, force))};
}

PART Wrench carry(const Link &after, double c, double s, Wrench wrench, Wrench own) {
    Vector force = out_of(after, c, s, wrench.force), moment = out_of(after, c, s, wrench.moment);
    return {add(own.force, force), add(own.moment, add(moment, cross(origin(after), force)))};
}

PART double effort_of_arm(Motion base, const double *q, const double *v, const double *a) {
    double c0 = cos(q[0]), c1 = cos(q[1]), c2 = cos(q[2]), c3 = cos(q[3]), c4 = cos(q[4]), c5 = cos(q[5]);
    double s0 = sin(q[0]), s1 = sin(q[1]), s2 = sin(q[2]), s3 = sin(q[3]), s4 = sin(q[4]), s5 = sin(q[5]);
    Motion m0 = move(links[0], c0, s0, v[0], a[0], base);
    Motion m1 = move(links[1], c1, s1, v[1], a[1], m0);
    Motion m2 = move(links[2], c2, s2, v[2], a[2], m1);
    Motion m3 = move(links[3], c3, s3, v[3], a[3], m2);
    Motion m4 = move(links[4], c4, s4, v[4], a[4], m3);
    Motion m5 = move(links[5], c5, s5, v[5], a[5], m4);
    Wrench w5 = load(links[5], m5);
    Wrench w4 = carry(links[5], c5, s5, w5, load(links[4], m4));
    Wrench w3 = carry(links[4], c4, s4, w4, load(links[3], m3));
    Wrench w2 = carry(links[3], c3, s3, w3, load(links[2], m2));
    Wrench w1 = carry(links[2], c2, s2, w2, load(links[1], m1));
    Wrench w0 = carry(links[1], c1, s1, w1, load(links[0], m0));
    double first = square(w0.moment.z + links[0].motor * a[0]) + square(w1.moment.z + links[1].motor * a[1]);
    double second = square(w2.moment.z + links[2].motor * a[2]) + square(w3.moment.z + links[3].motor * a[3]);
    return first + second + square(w4.moment.z + links[4].motor * a[4]) + square(w5.moment.z + links[5].motor * a[5]);
}

static void loss(const double *angles, const double *speeds, const double *accelerations, double *out) {
    const Motion left = {{0.0, 0.0, 0.0}, {0.0, 0.0, 0.0}, {1.7, 6.8, 6.8}};
    const Motion right = {{0.0, 0.0, 0.0}, {0.0, 0.0, 0.0}, {1.7, -6.8, 6.8}};
    double total = 0.0;
    for (long k = 0; k < shape[0][0]; k++) {
        const double *q = angles + 12 * k, *v = speeds + 12 * k, *a = accelerations + 12 * k;
        total += effort_of_arm(left, q, v, a) + effort_of_arm(right, q + 6, v + 6, a + 6);
    }
    *out = 0.5 * total;
}
