// std::complex, its products and functions.
#include "autodiff.h"
#include <complex>

double f(double re, double im) {
    std::complex<double> z(re, im);
    for (int i = 0; i < 3; i++) z = z * z + std::complex<double>(0.1, 0.2);
    return std::norm(z) + z.real();
}

struct Pair {
    double re, im;
};
extern "C" Pair __irad_autodiff_pair(void *, ...);

int main() {
    double a = 0.4, b = 0.3, h = 1e-6;
    Pair g = __irad_autodiff_pair((void *)f, a, b);
    NEAR(g.re, (f(a + h, b) - f(a - h, b)) / (2 * h), 1e-7);
    NEAR(g.im, (f(a, b + h) - f(a, b - h)) / (2 * h), 1e-7);
    return 0;
}
