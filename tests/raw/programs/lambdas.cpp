// Lambdas with and without captures, as arguments of templates.
#include "autodiff.h"

template <typename F>
double integrate(F g, double a, double b, int n) {
    double sum = 0, h = (b - a) / n;
    for (int i = 0; i < n; i++) sum += g(a + (i + 0.5) * h) * h;
    return sum;
}

double f(double k) {
    double twice = 2 * k;
    auto wave = [&](double t) { return twice * t * t; };
    return integrate(wave, 0, k, 2000);
}

int main() {
    double k = 1.5;
    NEAR(__enzyme_autodiff((void *)f, k), 8 * k * k * k / 3, 1e-6);  // 2 k⁴ / 3
    auto plain = +[](double x) { return x * x; };
    SAME(__enzyme_autodiff((void *)plain, 3.0), 6);
    return 0;
}
