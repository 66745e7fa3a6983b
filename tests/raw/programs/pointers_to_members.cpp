// Pointers to members, and to methods.
#include "autodiff.h"

struct Model {
    double a, b;
    double line(double x) const { return a * x + b; }
    double curve(double x) const { return a * x * x; }
};

static double evaluate(const Model *m, double (Model::*method)(double) const, double Model::*field, double x) {
    return (m->*method)(x) * (m->*field);
}

double f(const Model *m, double x) {
    return evaluate(m, &Model::line, &Model::b, x) + evaluate(m, &Model::curve, &Model::a, x);
}

int main() {
    Model m = {2, 3}, dm = {0, 0};
    double dx = __enzyme_autodiff((void *)f, &m, &dm, 1.5);
    SAME(dx, 2 * 3 + 2 * 2 * 2 * 1.5);
    SAME(dm.a, 1.5 * 3 + 2 * 2 * 1.5 * 1.5);
    SAME(dm.b, 2 * 1.5 + 2 * 3);
    return 0;
}
