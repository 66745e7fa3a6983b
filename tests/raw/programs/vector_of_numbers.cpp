// std::vector as an argument: its shadow is another vector.
#include "autodiff.h"
#include <vector>

double f(const std::vector<double> *x) {
    double sum = 0;
    for (double value : *x) sum += value * value;
    return sum;
}

int main() {
    std::vector<double> x = {1, 2, 3}, dx(3, 0.0);
    __enzyme_autodiff((void *)f, &x, &dx);
    for (int i = 0; i < 3; i++) SAME(dx[i], 2 * x[i]);
    return 0;
}
