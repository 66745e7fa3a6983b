/* Numbers with their tangents, constants, integers; what is returned, with and without the value. */
#include "forward.h"

typedef struct {
    double value, tangent;
} Both;
typedef struct {
    float value, tangent;
} BothFloat;
Both __irad_fwddiff_both(void *, ...);
BothFloat __irad_fwddiff_both_float(void *, ...);

double f(double x, double y) { return x * x * sin(y); }
float g(float x) { return x * sqrtf(x); }
double mixed(float a, double b, int n) { return a * b * n; }
double constant(double x) { return 3; }
int whole(double x) { return x > 1; }

int main(void) {
    double value = 9 * sin(0.5), along = 6 * sin(0.5) + 9 * cos(0.5) * 0.25;
    SAME(__enzyme_fwddiff((void *)f, 3.0, 1.0, 0.5, 0.25), along);
    SAME(__irad_fwddiff((void *)f, enzyme_dup, 3.0, 1.0, enzyme_dupnoneed, 0.5, 0.25), along);
    SAME(__enzyme_fwddiff((void *)f, enzyme_dup, 3.0, 2.0, enzyme_const, 0.5), 12 * sin(0.5));
    SAME(__enzyme_fwddiff((void *)f, enzyme_const, 3.0, enzyme_const, 0.5), 0);
    NEAR(__irad_fwddiff_float((void *)g, 4.0f, 2.0f), 6, 1e-6);
    SAME(__enzyme_fwddiff((void *)mixed, 2.0f, 3.0, 5.0, 7.0, 4), 4 * (3 * 5 + 2 * 7));
    SAME(__enzyme_fwddiff((void *)constant, 2.0, 1.0), 0);
    SAME(__enzyme_fwddiff((void *)whole, 2.0, 1.0), 0);
    Both both = __irad_fwddiff_both((void *)f, enzyme_primal_return, 3.0, 1.0, 0.5, 0.25);
    SAME(both.value, value);
    SAME(both.tangent, along);
    both = __irad_fwddiff_both((void *)f, 3.0, 1.0, enzyme_primal_return, 0.5, 0.25);
    SAME(both.value, value);
    SAME(both.tangent, along);
    BothFloat single = __irad_fwddiff_both_float((void *)g, enzyme_primal_return, 4.0f, 2.0f);
    NEAR(single.value, 8, 1e-6);
    NEAR(single.tangent, 6, 1e-6);
    return 0;
}
