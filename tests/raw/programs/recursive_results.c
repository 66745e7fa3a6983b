/* Integers that recursive functions return, alone or beside numbers, are indices, not addresses. */
#include "autodiff.h"

struct Found {
    long at;
    double value;
};

static long __attribute__((noinline)) depth(const double *v, long n) {
    if (n <= 1) return 0;
    long left = depth(v, n / 2), right = depth(v + n / 2, n - n / 2);
    return (left > right ? left : right) * 2 + 1;
}

static struct Found __attribute__((noinline)) largest(const double *v, long n) {
    if (n == 1) return (struct Found){0, v[0] * v[0]};
    struct Found rest = largest(v + 1, n - 1), own = {0, v[0] * v[0]};
    if (own.value > rest.value) return own;
    rest.at++;
    return rest;
}

static double f(const double *v, long n, struct Found *out) {
    struct Found best = largest(v, n);
    out->at = depth(v, n);
    out->value = best.value * v[best.at];
    return best.value * (best.at + 1) * out->at;
}

int main(void) {
    double v[5] = {1, 2, -5, 4, 3}, dv[5] = {0};
    struct Found out = {0, 0}, dout = {0, 2};
    __irad_autodiff((void *)f, enzyme_dup, v, dv, enzyme_const, 5L, enzyme_dup, &out, &dout);
    SAME(out.at, 7);
    SAME(out.value, -125);
    for (int i = 0; i < 5; i++) SAME(dv[i], i == 2 ? 2 * 3 * 25 + 2 * -5 * 3 * 7 : 0);
    return 0;
}
