/* A structure with a gap between its fields. */
#include "autodiff.h"

typedef struct {
    float a;
    double b;
} Uneven;
Uneven __irad_autodiff_uneven(void *, ...);

double f(float a, double b) { return a * a * b; }

int main(void) {
    Uneven g = __irad_autodiff_uneven((void *)f, 3.0f, 5.0);
    NEAR(g.a, 30, 1e-6);
    SAME(g.b, 9);
    return 0;
}
