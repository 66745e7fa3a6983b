/* Floats all the way; variable arguments of C are promoted to double. */
#include "autodiff.h"

float f(float x) { return x * x * sinf(x); }

int main(void) {
    float x = 1.5f;
    float wanted = 2 * x * sinf(x) + x * x * cosf(x);
    NEAR(__irad_autodiff_float((void *)f, x), wanted, 1e-6);
    return 0;
}
