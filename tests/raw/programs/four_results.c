/* A structure that is returned through memory. */
#include "autodiff.h"

typedef struct {
    double a, b, c, d;
} Gradient;
Gradient __irad_autodiff_four(void *, ...);

double f(double a, double b, double c, double d) { return a * b + b * c * c + sin(d) * a; }

int main(void) {
    Gradient g = __irad_autodiff_four((void *)f, 1.0, 2.0, 3.0, 4.0);
    SAME(g.a, 2 + sin(4.0));
    SAME(g.b, 1 + 9);
    SAME(g.c, 12);
    SAME(g.d, cos(4.0));
    return 0;
}
