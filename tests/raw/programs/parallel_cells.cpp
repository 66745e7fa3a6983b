// OpenMP in C++: a class whose method runs in parallel over its cells, with a lambda inside.
// flags: -fopenmp
#include "autodiff.h"
#include <vector>

struct Rod {
    std::vector<double> heat;
    double conductivity;

    void step() {
        std::vector<double> next(heat);
        auto flow = [this](int a, int b) { return conductivity * (heat[a] - heat[b]); };
        const int n = static_cast<int>(heat.size());
#pragma omp parallel for
        for (int i = 1; i < n - 1; i++) next[i] = heat[i] + flow(i - 1, i) + flow(i + 1, i);
        heat.swap(next);
    }
};

double energy(const double *start, int n, double conductivity, int steps) {
    Rod rod{std::vector<double>(start, start + n), conductivity};
    for (int i = 0; i < steps; i++) rod.step();
    double sum = 0;
#pragma omp parallel for reduction(+ : sum)
    for (int i = 0; i < n; i++) sum += rod.heat[i] * rod.heat[i];
    return sum;
}

int main() {
    double x[6] = {1, 5, 2, 4, 3, 0}, dx[6] = {}, h = 1e-6;
    double by_conductivity = __enzyme_autodiff((void *)energy, x, dx, 6, 0.2, 5);
    NEAR(by_conductivity, (energy(x, 6, 0.2 + h, 5) - energy(x, 6, 0.2 - h, 5)) / (2 * h), 1e-6);
    for (int i = 0; i < 6; i++) {
        double up[6], down[6];
        for (int j = 0; j < 6; j++) up[j] = x[j] + (i == j) * h, down[j] = x[j] - (i == j) * h;
        NEAR(dx[i], (energy(up, 6, 0.2, 5) - energy(down, 6, 0.2, 5)) / (2 * h), 1e-6);
    }
    return 0;
}
