// Parameters that are references.
#include "autodiff.h"

static void rotate(double &x, double &y, double angle) {
    double old = x;
    x = x * std::cos(angle) - y * std::sin(angle);
    y = old * std::sin(angle) + y * std::cos(angle);
}

double f(double &x, const double &angle) {
    double y = 1;
    for (int i = 0; i < 3; i++) rotate(x, y, angle);
    return x * y;
}

int main() {
    double x = 2, dx = 0, angle = 0.3, dangle = 0;
    __enzyme_autodiff((void *)f, &x, &dx, &angle, &dangle);
    double c = std::cos(0.9), s = std::sin(0.9);
    double u = 2 * c - s, v = 2 * s + c;
    SAME(dx, c * v + u * s);
    SAME(dangle, 3 * (-v * v + u * u));
    SAME(x, u);
    return 0;
}
