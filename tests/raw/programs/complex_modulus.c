/* Absolute value and angle of complex numbers in both precisions: functions of two numbers, however they are passed. */
#include "autodiff.h"

#include <complex.h>

double f(double x, double y) { return cabs(x + y * I) * carg(x * x + y * I); }
float g(float x, float y) { return cabsf(x + y * I) * cargf(x * x + y * I); }

typedef struct {
    double x, y;
} Pair;
typedef struct {
    float x, y;
} Single;
Pair __irad_autodiff_pair(void *, ...);
Single __irad_autodiff_single(void *, ...);

int main(void) {
    double x = 1.2, y = -0.7, h = 1e-6;
    Pair d = __irad_autodiff_pair((void *)f, x, y);
    Single s = __irad_autodiff_single((void *)g, (float)x, (float)y);
    NEAR(d.x, (f(x + h, y) - f(x - h, y)) / (2 * h), 1e-7);
    NEAR(d.y, (f(x, y + h) - f(x, y - h)) / (2 * h), 1e-7);
    NEAR(s.x, d.x, 1e-5);
    NEAR(s.y, d.y, 1e-5);
    return 0;
}
