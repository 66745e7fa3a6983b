/* Constants in global memory. */
#include "autodiff.h"

static const double COEFFICIENTS[] = {1, -2, 0.5, 3};
static const int ORDER[] = {3, 1, 0, 2};

double f(double x) {
    double sum = 0;
    for (int i = 0; i < 4; i++) sum = sum * x + COEFFICIENTS[ORDER[i]];
    return sum;
}

int main(void) {
    double x = 0.7; /* 3 x³ - 2 x² + x + 0.5 */
    SAME(__enzyme_autodiff((void *)f, x), 9 * x * x - 4 * x + 1);
    return 0;
}
