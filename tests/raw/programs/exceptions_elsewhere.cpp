// Exceptions that are thrown and caught around derivatives.
#include "autodiff.h"
#include <stdexcept>
#include <vector>

double f(double x) { return x * x; }

static double guarded(double x) {
    std::vector<double> all(3, x);
    if (x > 10) throw std::runtime_error("large");
    return all.at(2) + __enzyme_autodiff((void *)f, all[1]);
}

int main() {
    double sum = 0;
    for (double x : {1.0, 20.0, 3.0}) {
        try {
            sum += guarded(x);
        } catch (const std::runtime_error &error) {
            sum += error.what()[0] == 'l' ? 1000 : 0;
        }
    }
    SAME(sum, 3 + 1000 + 9);
    return 0;
}
