/* Arrays of two dimensions. */
#include "autodiff.h"
#define N 3

void multiply(const double a[N][N], const double b[N][N], double c[N][N]) {
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) {
            c[i][j] = 0;
            for (int k = 0; k < N; k++) c[i][j] += a[i][k] * b[k][j];
        }
}

int main(void) {
    double a[N][N], b[N][N], c[N][N], da[N][N] = {{0}}, db[N][N] = {{0}}, dc[N][N];
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) a[i][j] = i + 2 * j, b[i][j] = i * j + 1, dc[i][j] = 1 + i;
    __irad_autodiff_void((void *)multiply, a, da, b, db, c, dc);
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) {
            double by_a = 0, by_b = 0;
            for (int k = 0; k < N; k++) by_a += (1 + i) * b[j][k], by_b += a[k][i] * (1 + k);
            SAME(da[i][j], by_a);
            SAME(db[i][j], by_b);
        }
    return 0;
}
