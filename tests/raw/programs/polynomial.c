/* One number in, its derivative out. */
#include "autodiff.h"

double f(double x) { return 3 * x * x * x - 2 * x + 1; }

int main(void) {
    for (double x = -2; x < 2; x += 0.25) SAME(__enzyme_autodiff((void *)f, x), 9 * x * x - 2);
    return 0;
}
