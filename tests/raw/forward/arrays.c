/* Arrays: their shadows hold tangents before the call, and those of what the function left there after it. */
#include "forward.h"

double dot(const double *x, const double *y, int n) {
    double sum = 0;
    for (int i = 0; i < n; i++) sum += x[i] * y[i];
    return sum;
}
void in_place(double *x, int n) {
    for (int i = 1; i < n; i++) x[i] = x[i] * x[i - 1];
}
void out_of_place(const double *restrict x, double *restrict y, int n) {
    for (int i = 0; i < n; i++) y[i] = sqrt(x[i]);
    y[0] = 5;
}
void shifted(double *x, int n) {
    double last[8];
    memcpy(last, x, n * sizeof *x);
    memmove(x + 1, x, (n - 1) * sizeof *x);
    x[0] = last[n - 1] * last[0];
    memset(x + 2, 0, sizeof *x);
}
float of_floats(const float *x, const int *where, int n) {
    float product = 1;
    for (int i = 0; i < n; i++) product *= x[where[i]];
    return product;
}
double matrix(double *restrict c, const double (*a)[3], const double (*b)[3]) {
    double trace = 0;
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++) {
            c[3 * i + j] = 0;
            for (int k = 0; k < 3; k++) c[3 * i + j] += a[i][k] * b[k][j];
            if (i == j) trace += c[3 * i + j];
        }
    return trace;
}

int main(void) {
    double x[4] = {1, 2, 3, 4}, dx[4] = {1, 0, -1, 2}, y[4] = {4, 5, 6, 7}, dy[4] = {0, 1, 0, 3};
    SAME(__enzyme_fwddiff((void *)dot, x, dx, y, dy, 4), 4 - 6 + 14 + 2 + 12);
    SAME(__enzyme_fwddiff((void *)dot, enzyme_const, x, enzyme_dup, y, dy, 4), 2 + 12);
    SAME(__enzyme_fwddiff((void *)dot, x, dx, x, dx, 4), 2 * (1 - 3 + 8));
    SAME(__enzyme_fwddiff((void *)dot, x, dx, y, dy, 0), 0);
    SAME(dx[3], 2);

    double z[4] = {9, 9, 9, 9}, dz[4] = {9, 9, 9, 9};
    __irad_fwddiff_void((void *)out_of_place, x, dx, z, dz, 4);
    SAME(z[3], 2);
    SAME(dz[0], 0);
    SAME(dz[1], 0);
    SAME(dz[2], -0.5 / sqrt(3));
    SAME(dz[3], 0.5);
    __irad_fwddiff_void((void *)out_of_place, enzyme_const, x, enzyme_dup, z, dz, 4);
    SAME(dz[3], 0);

    double s[4] = {1, 2, 3, 4}, ds[4] = {1, 20, 300, 4000};
    __irad_fwddiff_void((void *)shifted, s, ds, 4);
    SAME(s[0], 4);
    SAME(ds[0], 4004);
    SAME(ds[1], 1);
    SAME(ds[2], 0);
    SAME(ds[3], 300);

    __irad_fwddiff_void((void *)in_place, x, dx, 4);
    SAME(x[3], 24);
    SAME(dx[0], 1);
    SAME(dx[1], 2);
    SAME(dx[2], 6 - 2);
    SAME(dx[3], 4 * 4 + 6 * 2);

    float w[3] = {2, 3, 5}, dw[3] = {1, 1, 0};
    int where[4] = {0, 1, 1, 2};
    NEAR(__irad_fwddiff_float((void *)of_floats, w, dw, where, 4), 3 * 3 * 5 + 2 * 2 * 3 * 5, 1e-6);

    double a[3][3] = {{1, 2, 3}, {4, 5, 6}, {7, 8, 10}}, b[3][3] = {{2, 1, 0}, {1, 3, 1}, {0, 1, 4}}, c[9], dc[9];
    double da[3][3] = {{1, 0, 0}, {0, 2, 0}, {0, 0, 3}};
    SAME(__enzyme_fwddiff((void *)matrix, c, dc, a, da, enzyme_const, b), 2 + 6 + 12);
    SAME(dc[0], 2);
    SAME(dc[1], 1);
    SAME(dc[5], 2);
    SAME(dc[7], 3);
    return 0;
}
