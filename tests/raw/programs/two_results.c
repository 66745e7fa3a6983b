/* Several numbers: the derivatives come back in a structure. */
#include "autodiff.h"

typedef struct {
    double x, y;
} Gradient;
Gradient __irad_autodiff_pair(void *, ...);

double f(double x, double y) { return x * x * y + y; }

int main(void) {
    Gradient g = __irad_autodiff_pair((void *)f, 3.0, 5.0);
    SAME(g.x, 30);
    SAME(g.y, 10);
    return 0;
}
