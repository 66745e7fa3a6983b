/* Loops whose number of iterations depends on numbers, branches, recursion, and iterations that feed themselves. */
#include "forward.h"

double newton(double a) {
    double x = a;
    while (fabs(x * x - a) > 1e-14 * a) x = 0.5 * (x + a / x);
    return x;
}
double taylor(double x, int n) {
    double sum = 0, term = 1;
    for (int i = 0; i <= n; ++i) {
        sum += term;
        term *= x / (i + 1);
    }
    return sum;
}
double piecewise(double x) {
    switch ((int)x) {
    case 0: return x * x;
    case 1: return x < 1.5 ? sin(x) : cos(x);
    default: break;
    }
    do x /= 2;
    while (x > 1);
    return x > 0 ? sqrt(x) : -x * x * x;
}
static double power(double x, int n) { return n == 0 ? 1 : n % 2 ? x * power(x, n - 1) : power(x * x, n / 2); }
static double odd(const double *x, int n);
static double even(const double *x, int n) { return n == 0 ? 1 : x[n - 1] * odd(x, n - 1); }
static double odd(const double *x, int n) { return n == 0 ? 2 : x[n - 1] + even(x, n - 1); }
static void halved(double *x, int n) {
    if (n < 2) return;
    halved(x, n / 2);
    halved(x + n / 2, n - n / 2);
    x[0] = x[0] * x[n / 2];
}
double of_halves(double *x, int n) {
    halved(x, n);
    return x[0];
}
double euler(double y, double rate, int n) {
    for (int i = 0; i < n; i++) y += rate * y / n;
    return y;
}

int main(void) {
    SAME(__enzyme_fwddiff((void *)newton, 5.0, 2.0), 1 / sqrt(5));
    SAME(__enzyme_fwddiff((void *)taylor, 0.7, 2.0, 20), 2 * exp(0.7));
    SAME(__enzyme_fwddiff((void *)piecewise, 0.5, 1.0), 1);
    SAME(__enzyme_fwddiff((void *)piecewise, 1.25, 1.0), cos(1.25));
    SAME(__enzyme_fwddiff((void *)piecewise, 1.75, 1.0), -sin(1.75));
    SAME(__enzyme_fwddiff((void *)piecewise, 5.0, 1.0), 0.125 / 2 / sqrt(5.0 / 8));
    SAME(__enzyme_fwddiff((void *)piecewise, -3.0, 1.0), -3 * 2.25 / 2);
    SAME(__enzyme_fwddiff((void *)power, 1.3, 1.0, 13), 13 * pow(1.3, 12));
    double x[4] = {2, 3, 5, 7}, dx[4] = {1, 0, 0, 0};
    SAME(__enzyme_fwddiff((void *)even, x, dx, 4), 7 * 3);
    dx[0] = 0, dx[1] = 1;
    SAME(__enzyme_fwddiff((void *)even, x, dx, 4), 7 * (2 + 1));
    dx[0] = 1, dx[1] = 2, dx[2] = 3, dx[3] = 4;
    double product = 210;
    SAME(__enzyme_fwddiff((void *)of_halves, x, dx, 4), product * (1.0 / 2 + 2.0 / 3 + 3.0 / 5 + 4.0 / 7));
    SAME(__enzyme_fwddiff((void *)euler, 1.5, 1.0, 0.3, 2.0, 10), pow(1.03, 10) + 1.5 * 10 * pow(1.03, 9) * 0.2);
    return 0;
}
