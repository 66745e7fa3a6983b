/* Calls through pointers: callbacks with context, tables of functions, functions that are chosen at run time. */
#include "forward.h"

typedef double (*Integrand)(double, void *);
typedef struct {
    double scale;
    double *weights;
    int n;
} Context;

static double linear(double t, void *data) {
    Context *context = data;
    return context->scale * t * context->weights[0];
}
static double squared(double t, void *data) {
    Context *context = data;
    for (int i = 0; i < context->n; i++) t *= context->weights[i];
    return t * t;
}
__attribute__((noinline)) static double integral(Integrand f, void *data, double a, double b) {
    double sum = 0;
    for (int i = 0; i < 8; i++) sum += f(a + (b - a) * (i + 0.5) / 8, data) * (b - a) / 8;
    return sum;
}
double chosen(double *weights, double b, int kind) {
    Context context = {2, weights, 2};
    return integral(kind ? squared : linear, &context, 0, b);
}

__attribute__((noinline)) static void doubled(double *x) { *x *= 2; }
__attribute__((noinline)) static void cubed(double *x) { *x = *x * *x * *x; }
static void (*const table[])(double *) = {doubled, cubed};
double of_table(double x, const int *kinds, int n) {
    for (int i = 0; i < n; i++) table[kinds[i]](&x);
    return x;
}
static double apply(double (*f)(double), double x, int depth) {
    return depth == 0 ? f(x) : apply(f, f(x), depth - 1) + x;
}
static double half_square(double x) { return x * x / 2; }
double nested(double x) { return apply(half_square, x, 1); }

int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(void) {
    double w[2] = {3, 5}, dw[2] = {1, 10}, b = 2;
    SAME(__enzyme_fwddiff((void *)chosen, w, dw, b, 0.0, 0), 2 * 2.0 / 2 * 2 * 1);
    SAME(__enzyme_fwddiff((void *)chosen, enzyme_const, w, enzyme_dup, b, 1.0, 0), 2 * 3 * 2);
    double third = 0;
    for (int i = 0; i < 8; i++) third += 4 * (i + 0.5) * (i + 0.5) / 64 * 2 / 8;
    SAME(__enzyme_fwddiff((void *)chosen, w, dw, b, 1.0, 1), third * (2 * 15 * 5 + 2 * 15 * 3 * 10 + 1.5 * 225));
    int kinds[3] = {0, 1, 0};
    SAME(__enzyme_fwddiff((void *)of_table, 1.5, 1.0, kinds, 3), 2 * 8 * 3 * 1.5 * 1.5);
    SAME(__enzyme_fwddiff((void *)nested, 1.5, 1.0), 1.125 * 1.5 + 1);
    return 0;
}
