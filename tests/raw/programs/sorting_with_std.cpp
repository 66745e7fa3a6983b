// std::sort with a comparison of its own.
#include "autodiff.h"
#include <algorithm>

double f(double *x, int n) {
    std::sort(x, x + n, [](double a, double b) { return a > b; });
    double sum = 0;
    for (int i = 0; i < n; i++) sum += x[i] * x[i] * (i + 1);
    return sum;
}

int main() {
    enum { N = 20 };
    double x[N], start[N], dx[N] = {};
    for (int i = 0; i < N; i++) x[i] = start[i] = std::sin(1.0 + 7 * i);
    __enzyme_autodiff((void *)f, x, dx, static_cast<int>(N));
    for (int i = 0; i < N; i++) {
        int place = static_cast<int>(std::find(x, x + N, start[i]) - x);
        SAME(dx[i], 2 * start[i] * (place + 1));
    }
    return 0;
}
