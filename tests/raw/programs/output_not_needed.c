/* `enzyme_dupnoneed`: only the shadow matters. */
#include "autodiff.h"

void f(double x, double *y) { *y = x * x * x; }

int main(void) {
    double y = 0, dy = 2;
    double dx = __enzyme_autodiff((void *)f, 3.0, enzyme_dupnoneed, &y, &dy);
    SAME(dx, 54);
    SAME(dy, 0);
    return 0;
}
