/* OpenMP: reductions, atomic updates, critical sections. */
// flags: -fopenmp
#include "autodiff.h"

double norm(const double *x, double scale, int n) {
    double sum = 0, product = 1;
#pragma omp parallel for reduction(+ : sum) reduction(* : product)
    for (int i = 0; i < n; i++) {
        sum += scale * x[i] * x[i];
        product *= x[i];
    }
    return sum + product;
}

double largest(const double *x, int n) {
    double best = x[0];
#pragma omp parallel for reduction(max : best)
    for (int i = 1; i < n; i++) best = x[i] > best ? x[i] : best;
    return best * best;
}

double gathered(const double *x, const int *where, double *bins, int n) {
    int used = 0;
    double total = 0;
#pragma omp parallel for
    for (int i = 0; i < n; i++) {
#pragma omp atomic
        bins[where[i]] += x[i] * x[i];
#pragma omp atomic
        used++;
#pragma omp critical
        total += x[i];
    }
    return bins[0] * bins[1] + total * used;
}

int main(void) {
    double x[5] = {1, 2, 3, 4, 5}, dx[5] = {0};
    double by_scale = __enzyme_autodiff((void *)norm, x, dx, 2.0, 5);
    SAME(by_scale, 55);
    for (int i = 0; i < 5; i++) SAME(dx[i], 4 * x[i] + 120 / x[i]);

    double y[4] = {1, 7, 3, 2}, dy[4] = {0};
    __enzyme_autodiff((void *)largest, y, dy, 4);
    for (int i = 0; i < 4; i++) SAME(dy[i], i == 1 ? 14 : 0);

    int where[5] = {0, 1, 0, 1, 0};
    double bins[2] = {0}, dbins[2] = {0}, dz[5] = {0};
    __enzyme_autodiff((void *)gathered, x, dz, enzyme_const, where, bins, dbins, 5);
    for (int i = 0; i < 5; i++) SAME(dz[i], 2 * x[i] * (i % 2 ? 35 : 20) + 5);
    return 0;
}
