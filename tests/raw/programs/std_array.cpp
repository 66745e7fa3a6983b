// std::array and algorithms over it.
#include "autodiff.h"
#include <array>
#include <numeric>

double f(const double *start) {
    std::array<double, 5> x;
    for (int i = 0; i < 5; i++) x[i] = start[i] * start[i];
    std::array<double, 5> y = x;
    std::partial_sum(x.begin(), x.end(), y.begin());
    return std::inner_product(x.begin(), x.end(), y.begin(), 0.0) + std::accumulate(y.begin(), y.end(), 0.0);
}

int main() {
    double x[5] = {1, 0.5, 2, 1.5, 3}, dx[5] = {}, h = 1e-6;
    __enzyme_autodiff((void *)f, x, dx);
    for (int i = 0; i < 5; i++) {
        double old = x[i];
        x[i] = old + h;
        double up = f(x);
        x[i] = old - h;
        double down = f(x);
        x[i] = old;
        NEAR(dx[i], (up - down) / (2 * h), 1e-6);
    }
    return 0;
}
