// A vector whose elements are structures.
#include "autodiff.h"
#include <vector>

struct Particle {
    double x, v;
    int id;
};

double energy(const double *start, int n) {
    std::vector<Particle> all;
    all.reserve(n);
    for (int i = 0; i < n; i++) all.push_back(Particle{start[i], start[i] * 0.5, i});
    double sum = 0;
    for (const Particle &p : all)
        if (p.id != 1) sum += p.v * p.v + p.x;
    return sum;
}

int main() {
    double x[4] = {1, 2, 3, 4}, dx[4] = {};
    __enzyme_autodiff((void *)energy, x, dx, 4);
    for (int i = 0; i < 4; i++) SAME(dx[i], i == 1 ? 0 : 0.5 * x[i] + 1);
    return 0;
}
