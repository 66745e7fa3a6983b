/* OpenMP: schedules that are decided while the program runs, loops inside loops, sections, one thread for all. */
// flags: -fopenmp
#include "autodiff.h"
#include <omp.h>

double polynomial(const double *x, int n) {
    double sum = 0;
#pragma omp parallel for schedule(dynamic, 2) reduction(+ : sum)
    for (int i = 0; i < n; i++) {
        double power = 1;
        for (int j = 0; j <= i; j++) power *= x[i];
        sum += power;
    }
    return sum;
}

void triangle(const double *x, double *out, unsigned long n) {
#pragma omp parallel
    {
#pragma omp for schedule(guided)
        for (unsigned long i = 0; i < n; i++) {
            out[i] = 0;
            for (unsigned long j = 0; j <= i; j++) out[i] += x[j] * x[i];
        }
#pragma omp barrier
#pragma omp single
        out[0] *= 3;
#pragma omp for schedule(dynamic) collapse(2)
        for (int i = 0; i < 2; i++)
            for (int j = 0; j < 2; j++) out[2 * i + j] *= 2;
    }
}

double sections(double a, double b) {
    double left = 0, right = 0;
#pragma omp parallel sections
    {
#pragma omp section
        left = a * a;
#pragma omp section
        right = a * b;
    }
    return left * right;
}

double last(const double *x, int n) {
    double kept = 0;
#pragma omp parallel for lastprivate(kept) if (n > 2)
    for (int i = 0; i < n; i++) kept = x[i] * (i + 1);
    return kept * kept + omp_get_thread_num();
}

int main(void) {
    double x[4] = {1.5, 2, 0.5, 3}, dx[4] = {0}, out[4], dout[4] = {1, 1, 1, 1}, dy[4] = {0}, dz[4] = {0};
    __enzyme_autodiff((void *)polynomial, x, dx, 4);
    for (int i = 0; i < 4; i++) SAME(dx[i], (i + 1) * pow(x[i], i));

    __irad_autodiff_void((void *)triangle, x, dy, out, dout, 4UL);
    double weight[4] = {6, 2, 2, 2}, wanted[4] = {0};
    for (int i = 0; i < 4; i++)
        for (int j = 0; j <= i; j++) wanted[i] += weight[i] * x[j], wanted[j] += weight[i] * x[i];
    for (int i = 0; i < 4; i++) SAME(dy[i], wanted[i]);
    for (int i = 0; i < 4; i++) SAME(dout[i], 0);

    SAME(__enzyme_autodiff((void *)sections, 2.0, enzyme_const, 5.0), 3 * 4 * 5.0);
    __enzyme_autodiff((void *)last, x, dz, 4);
    for (int i = 0; i < 4; i++) SAME(dz[i], i == 3 ? 2 * 3 * 16.0 : 0);
    __enzyme_autodiff((void *)last, x, dz, 2);
    SAME(dz[1], 2 * 2 * 4.0);
    return 0;
}
