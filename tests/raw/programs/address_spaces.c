/* Pointers to other address spaces, which are ordinary memory on this machine: arguments, results, copies, casts. */
#include "autodiff.h"

#define GLOBAL __attribute__((address_space(1)))
#define SHARED __attribute__((address_space(3)))

double f(GLOBAL double *x, SHARED double *y, int n) {
    double sum = 0;
    for (int i = 0; i < n; i++) {
        y[i] = x[i] * x[i];
        *(double *)(x + i) *= 2;         /* the same memory, by an ordinary pointer */
        sum += y[i] * x[i];              /* 2 x³ */
    }
    return sum;
}

__attribute__((noinline)) static GLOBAL double *larger(GLOBAL double *a, GLOBAL double *b) { return *a > *b ? a : b; }

double g(GLOBAL double *x, SHARED double *scratch, int n) {
    for (int i = 0; i < n; i++) scratch[i] = x[i];
    double sum = *larger(x, x + 1);
    for (int i = 0; i < n; i++) sum += sin(scratch[i]) * sin(scratch[n - 1 - i]);
    for (int i = 0; i < n; i++) scratch[i] = 0;
    return sum;
}

int main(void) {
    double x[4] = {1, 2, 3, 4}, dx[4] = {0}, y[4], dy[4] = {0, 1, 0, 0};
    __irad_autodiff((void *)f, (GLOBAL double *)x, (GLOBAL double *)dx, (SHARED double *)y, (SHARED double *)dy, 4);
    for (int i = 0; i < 4; i++) SAME(dx[i], 6 * (i + 1.0) * (i + 1) + (i == 1 ? 2 * 2 : 0));
    for (int i = 0; i < 4; i++) SAME(dy[i], 0);
    double z[4] = {1, 0.5, 0.25, 0.125}, dz[4] = {0};
    __irad_autodiff((void *)g, (GLOBAL double *)z, (GLOBAL double *)dz, (SHARED double *)y, (SHARED double *)dy, 4);
    for (int i = 0; i < 4; i++) SAME(dz[i], 2 * cos(z[i]) * sin(z[3 - i]) + (i == 0));
    return 0;
}
