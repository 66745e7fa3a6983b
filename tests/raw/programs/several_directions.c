/* Several gradients with one run and one tape: shadows of each direction, or all of them in one array. */
#include "autodiff.h"

extern int enzyme_width, enzyme_dupv;
typedef struct {
    double by_x[2], by_y[2];
} Gradients;
typedef struct {
    float by_x[3];
    double by_y[3];
} Mixed;
Gradients __enzyme_autodiff_gradients(void *, ...);
Mixed __enzyme_autodiff_mixed(void *, ...);

__attribute__((noinline)) static double power(double x, int n) { return n == 0 ? 1 : x * power(x, n - 1); }
static void outputs(double *out, double x, double y, const double *table, int n) {
    double scale = y;
    for (int i = 0; i < n; i++) {
        scale *= table[i];
        out[i] = power(x, i + 1) * scale;
    }
}
static double product(float x, double y) { return x * y * y; }

int main(void) {
    double out[2], dout[2][2] = {{1, 0}, {0, 1}}, table[2] = {3, 5}, dtable[2 * 3] = {0, 0, 7, 0, 0, 7};
    Gradients g = __enzyme_autodiff_gradients((void *)outputs, enzyme_width, 2, enzyme_dup, out, dout[0], dout[1], 2.0,
                                              4.0, enzyme_dupv, 3 * sizeof(double), table, dtable, 2);
    double expected[6] = {8, 0, 7, 80, 48, 7};
    for (int i = 0; i < 6; i++) SAME(dtable[i], expected[i]);
    SAME(g.by_x[0], 12);
    SAME(g.by_x[1], 240);
    SAME(g.by_y[0], 6);
    SAME(g.by_y[1], 60);
    SAME(dout[0][0], 0);
    Mixed m = __enzyme_autodiff_mixed((void *)product, enzyme_width, 3, 2.0f, 3.0);
    for (int i = 0; i < 3; i++) {
        SAME(m.by_x[i], 9);
        SAME(m.by_y[i], 12);
    }
    return 0;
}
