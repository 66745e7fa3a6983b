/* _Complex numbers: products and quotients, which compilers make calls of for the sake of infinities. */
#include "autodiff.h"
#include <complex.h>

double f(double a, double b, double c, double d) {
    double _Complex z = (a + b * I) * (c + d * I);
    z = z / (b - d * I) + 1.0;
    return creal(z) * cimag(z);
}

typedef struct {
    double a, b, c, d;
} Gradient;
Gradient __irad_autodiff_four(void *, ...);

int main(void) {
    double x[4] = {0.5, -1.5, 2, 0.75}, h = 1e-6;
    Gradient g = __irad_autodiff_four((void *)f, x[0], x[1], x[2], x[3]);
    double found[4] = {g.a, g.b, g.c, g.d};
    for (int i = 0; i < 4; i++) {
        double up[4], down[4];
        memcpy(up, x, sizeof x), memcpy(down, x, sizeof x);
        up[i] += h, down[i] -= h;
        NEAR(found[i], (f(up[0], up[1], up[2], up[3]) - f(down[0], down[1], down[2], down[3])) / (2 * h), 1e-6);
    }
    return 0;
}
