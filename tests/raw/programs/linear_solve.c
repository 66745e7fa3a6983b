/* Gaussian elimination with pivoting. */
#include "autodiff.h"
#define N 4

double f(const double *matrix, const double *rhs) {
    double a[N][N + 1];
    for (int i = 0; i < N; i++) {
        for (int j = 0; j < N; j++) a[i][j] = matrix[i * N + j];
        a[i][N] = rhs[i];
    }
    for (int k = 0; k < N; k++) {
        int pivot = k;
        for (int i = k + 1; i < N; i++)
            if (fabs(a[i][k]) > fabs(a[pivot][k])) pivot = i;
        for (int j = 0; j <= N; j++) {
            double t = a[k][j];
            a[k][j] = a[pivot][j];
            a[pivot][j] = t;
        }
        for (int i = k + 1; i < N; i++) {
            double factor = a[i][k] / a[k][k];
            for (int j = k; j <= N; j++) a[i][j] -= factor * a[k][j];
        }
    }
    double x[N];
    for (int i = N - 1; i >= 0; i--) {
        x[i] = a[i][N];
        for (int j = i + 1; j < N; j++) x[i] -= a[i][j] * x[j];
        x[i] /= a[i][i];
    }
    return x[0] * x[1] + x[2] - x[3];
}

int main(void) {
    double m[16] = {1, 2, 0, 1, 4, 1, 3, -1, 2, 5, 1, 2, 0, 1, -2, 3}, b[4] = {1, 2, 3, 4};
    double dm[16] = {0}, db[4] = {0}, h = 1e-6;
    __enzyme_autodiff((void *)f, m, dm, b, db);
    for (int i = 0; i < 16; i++) {
        double old = m[i];
        m[i] = old + h;
        double up = f(m, b);
        m[i] = old - h;
        double down = f(m, b);
        m[i] = old;
        NEAR(dm[i], (up - down) / (2 * h), 1e-6);
    }
    return 0;
}
