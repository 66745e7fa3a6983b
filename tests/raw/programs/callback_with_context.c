/* A callback with a pointer to whatever it needs. */
#include "autodiff.h"

typedef struct {
    double a, b;
} Line;

static double line(double x, void *context) {
    const Line *l = (const Line *)context;
    return l->a * x * x + l->b;
}

static double integrate(double (*g)(double, void *), void *context, int n) {
    double sum = 0;
    for (int i = 0; i < n; i++) sum += g((i + 0.5) / n, context) / n;
    return sum;
}

double area(Line *l, int n) { return integrate(line, l, n); }

int main(void) {
    Line l = {2, 3}, dl = {0, 0};
    __enzyme_autodiff((void *)area, &l, &dl, 100);
    NEAR(dl.a, 1.0 / 3, 1e-4);
    SAME(dl.b, 1);
    return 0;
}
