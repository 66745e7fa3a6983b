/* Two arrays that change places in each step. */
#include "autodiff.h"
#define N 12

double f(const double *start, int steps) {
    double a[N], b[N], *now = a, *next = b;
    for (int i = 0; i < N; i++) now[i] = start[i];
    for (int s = 0; s < steps; s++) {
        next[0] = now[0], next[N - 1] = now[N - 1];
        for (int i = 1; i + 1 < N; i++) next[i] = 0.25 * now[i - 1] + 0.5 * now[i] + 0.25 * now[i + 1] * now[i];
        double *t = now;
        now = next;
        next = t;
    }
    double sum = 0;
    for (int i = 0; i < N; i++) sum += now[i] * now[i];
    return sum;
}

int main(void) {
    double x[N], dx[N] = {0}, h = 1e-6;
    for (int i = 0; i < N; i++) x[i] = 0.5 + 0.1 * i;
    __enzyme_autodiff((void *)f, x, dx, 7);
    for (int i = 0; i < N; i++) {
        double old = x[i];
        x[i] = old + h;
        double up = f(x, 7);
        x[i] = old - h;
        double down = f(x, 7);
        x[i] = old;
        NEAR(dx[i], (up - down) / (2 * h), 1e-7);
    }
    return 0;
}
