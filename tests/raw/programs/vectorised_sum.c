/* A sum that may be reordered: vectors that are added up at the end. */
#include "autodiff.h"

float f(const float *x, int n) {
#pragma clang fp reassociate(on)
    float sum = 0, top = 0;
    for (int i = 0; i < n; i++) {
        sum += x[i] * x[i];
        top = x[i] > top ? x[i] : top;
    }
    return sum + top;
}

int main(void) {
    enum { N = 101 };
    float x[N], dx[N] = {0};
    for (int i = 0; i < N; i++) x[i] = sinf(i);
    int top = 0;
    for (int i = 0; i < N; i++) top = x[i] > x[top] ? i : top;
    __irad_autodiff_float((void *)f, x, dx, N);
    for (int i = 0; i < N; i++) NEAR(dx[i], 2 * x[i] + (i == top), 1e-5);
    return 0;
}
