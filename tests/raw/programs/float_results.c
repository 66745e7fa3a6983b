/* A structure of floats, which C passes in vector registers. */
#include "autodiff.h"

typedef struct {
    float a, b, c;
} Three;
typedef struct {
    float a, b;
} Two;
Three __irad_autodiff_three(void *, ...);
Two __irad_autodiff_two(void *, ...);

float f(float a, float b, float c) { return a * b * c; }
float g(float a, float b) { return a / b; }

int main(void) {
    Three three = __irad_autodiff_three((void *)f, 2.0f, 3.0f, 5.0f);
    NEAR(three.a, 15, 1e-6);
    NEAR(three.b, 10, 1e-6);
    NEAR(three.c, 6, 1e-6);
    Two two = __irad_autodiff_two((void *)g, 2.0f, 4.0f);
    NEAR(two.a, 0.25, 1e-6);
    NEAR(two.b, -0.125, 1e-6);
    return 0;
}
