// std::function: code and captures behind pointers.
#include "autodiff.h"
#include <functional>

static double twice(const std::function<double(double)> &g, double x) { return g(g(x)); }

double f(double x, int kind) {
    std::function<double(double)> g;
    if (kind == 0)
        g = [](double t) { return t * t; };
    else
        g = [x](double t) { return t * x; };
    return twice(g, x);
}

int main() {
    SAME(__enzyme_autodiff((void *)f, 1.5, 0), 4 * 1.5 * 1.5 * 1.5);
    SAME(__enzyme_autodiff((void *)f, 1.5, 1), 3 * 1.5 * 1.5);
    return 0;
}
