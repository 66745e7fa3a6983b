/* Global variables through which functions that are not inlined hand on active values, and a log that nobody reads. */
#include "autodiff.h"

static double sum;
static double *now;
static _Thread_local double mine;
double last;

__attribute__((noinline)) static void add(double v) { sum += v; }
__attribute__((noinline)) static double total(void) { return sum * mine; }
__attribute__((noinline)) static void choose(double *x) { now = x; }
__attribute__((noinline)) static double square(int i) { return now[i] * now[i]; }

double f(double *x) {
    sum = 0, mine = x[0];
    for (int i = 0; i < 2; i++) add(x[i] * x[i]);
    choose(x);
    last = sum;
    return total() + square(1);
}

int main(void) {
    double x[2] = {2, 3}, dx[2] = {0};
    __enzyme_autodiff((void *)f, x, dx);
    SAME(dx[0], 3 * 4 + 9); /* x0³ + x0 x1² + x1² */
    SAME(dx[1], 2 * 2 * 3 + 6);
    SAME(last, 13);
    return 0;
}
