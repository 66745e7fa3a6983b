/* Functions of the C library in both precisions, against differences. */
#include "forward.h"

#define OF_ONE(name, at)                                                                                          \
    {                                                                                                             \
        double h = 1e-5, x = at;                                                                                  \
        NEAR(__enzyme_fwddiff((void *)call_##name, x, 0.5), 0.5 * (name(x + h) - name(x - h)) / (2 * h), 1e-8);   \
        NEAR(__irad_fwddiff_float((void *)call_##name##f, (float)x, 0.5f),                                        \
             0.5 * (name(x + h) - name(x - h)) / (2 * h), 1e-5);                                                  \
    }
#define OF_TWO(name, a, b)                                                                                        \
    {                                                                                                             \
        double h = 1e-5, x = a, y = b;                                                                            \
        double along = (name(x + h, y + 2 * h) - name(x - h, y - 2 * h)) / (2 * h);                               \
        NEAR(__enzyme_fwddiff((void *)call_##name, x, 1.0, y, 2.0), along, 1e-8);                                 \
        NEAR(__irad_fwddiff_float((void *)call_##name##f, (float)x, 1.0f, (float)y, 2.0f), along, 1e-5);          \
    }
#define DEFINE_ONE(name)                                                                                          \
    double call_##name(double x) { return name(x); }                                                              \
    float call_##name##f(float x) { return name##f(x); }
#define DEFINE_TWO(name)                                                                                          \
    double call_##name(double x, double y) { return name(x, y); }                                                 \
    float call_##name##f(float x, float y) { return name##f(x, y); }

DEFINE_ONE(sqrt) DEFINE_ONE(cbrt) DEFINE_ONE(exp) DEFINE_ONE(exp2) DEFINE_ONE(expm1) DEFINE_ONE(log) DEFINE_ONE(log2)
DEFINE_ONE(log10) DEFINE_ONE(log1p) DEFINE_ONE(sin) DEFINE_ONE(cos) DEFINE_ONE(tan) DEFINE_ONE(asin) DEFINE_ONE(acos)
DEFINE_ONE(atan) DEFINE_ONE(sinh) DEFINE_ONE(cosh) DEFINE_ONE(tanh) DEFINE_ONE(asinh) DEFINE_ONE(atanh) DEFINE_ONE(erf)
DEFINE_ONE(erfc) DEFINE_ONE(tgamma) DEFINE_ONE(lgamma) DEFINE_ONE(fabs) DEFINE_ONE(floor)
DEFINE_TWO(pow) DEFINE_TWO(atan2) DEFINE_TWO(hypot) DEFINE_TWO(fmod) DEFINE_TWO(fmax) DEFINE_TWO(fmin)
DEFINE_TWO(copysign) DEFINE_TWO(fdim)

double integer_power(double x, int n) { return __builtin_powi(x, n) + ldexp(x, n); }
double with_parts(double x) {
    int exponent;
    double whole, rest = modf(x, &whole);
    return rest * rest * whole + frexp(x, &exponent);
}
double fused(double x, double y, double z) { return fma(x, y, z); }

int main(void) {
    OF_ONE(sqrt, 0.7) OF_ONE(cbrt, 0.7) OF_ONE(exp, 0.7) OF_ONE(exp2, 0.7) OF_ONE(expm1, 0.7) OF_ONE(log, 0.7)
    OF_ONE(log2, 0.7) OF_ONE(log10, 0.7) OF_ONE(log1p, 0.7) OF_ONE(sin, 0.7) OF_ONE(cos, 0.7) OF_ONE(tan, 0.7)
    OF_ONE(asin, 0.7) OF_ONE(acos, 0.7) OF_ONE(atan, 0.7) OF_ONE(sinh, 0.7) OF_ONE(cosh, 0.7) OF_ONE(tanh, 0.7)
    OF_ONE(asinh, 0.7) OF_ONE(atanh, 0.7) OF_ONE(erf, 0.7) OF_ONE(erfc, 0.7) OF_ONE(tgamma, 1.7) OF_ONE(lgamma, 1.7)
    OF_ONE(fabs, -0.7) OF_ONE(floor, 0.7)
    OF_TWO(pow, 1.3, 2.5) OF_TWO(atan2, 0.5, -0.7) OF_TWO(hypot, 0.3, 0.4) OF_TWO(fmod, 7.3, 2.1)
    OF_TWO(fmax, 1.0, 2.0) OF_TWO(fmin, 1.0, 2.0) OF_TWO(copysign, 1.5, -1.0) OF_TWO(fdim, 3.0, 2.0)
    SAME(__enzyme_fwddiff((void *)integer_power, 1.5, 2.0, 3), 2 * (3 * 1.5 * 1.5 + 8));
    SAME(__enzyme_fwddiff((void *)with_parts, 3.25, 1.0), 2 * 0.25 * 3 + 0.25);
    SAME(__enzyme_fwddiff((void *)fused, 2.0, 1.0, 3.0, 10.0, 4.0, 100.0), 3 + 20 + 100);
    SAME(__enzyme_fwddiff((void *)call_sqrt, 0.0, 0.0), 0); /* a zero tangent wins over an infinite slope */
    return 0;
}
