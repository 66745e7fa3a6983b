/* Structures over 16 bytes, which C passes by value in memory: the callee's changes stay its own. */
#include "autodiff.h"

typedef struct {
    double a, b, c;
    int n;
} Small;
typedef struct {
    double values[6];
    int n;
} Table;

__attribute__((noinline)) static double scaled(Small s) {
    s.a *= s.b;
    return s.a * s.n * s.c;
}
__attribute__((noinline)) static double added(Small s) {
    s.a += s.b;
    return s.a * s.n + s.c;
}
static double (*const kinds[])(Small) = {scaled, added};

static double recursive(Small s, int depth) {
    if (depth == 0) return s.a * s.c;
    s.a *= s.b;
    s.c += s.n;
    double r = recursive(s, depth - 1);
    return r * s.a + recursive(s, depth - 1);
}

static double indexed(Table t, int depth) {
    if (depth == 0) return t.values[0] * t.values[5];
    t.values[depth % 6] *= t.values[0];
    Table copy = t;
    copy.values[1] += indexed(copy, depth - 1);
    return indexed(copy, depth - 1) + copy.values[1] * t.values[1];
}

double f(double x, int kind) {
    Small s = {x, 2 * x, 3, 2};
    Table t = {{x, 2 * x, 3, 4, 5 * x, 1 + x}, 6};
    return kinds[kind](s) * s.a + recursive(s, 3) + s.a * indexed(t, 3) + t.values[1];
}

double by_value(Small s, double x) {
    s.a *= s.b;
    return s.a * s.n * x * s.c;
}

int main(void) {
    double x = 0.7, h = 1e-6;
    for (int kind = 0; kind < 2; kind++)
        NEAR(__enzyme_autodiff((void *)f, x, kind), (f(x + h, kind) - f(x - h, kind)) / (2 * h), 1e-6);
    Small s = {2, 3, 4, 5}, ds = {1};
    SAME(__enzyme_autodiff((void *)by_value, enzyme_dup, s, &ds, 1.5), 120);
    SAME(ds.a, 1 + 3 * 5 * 1.5 * 4);
    SAME(ds.b, 2 * 5 * 1.5 * 4);
    SAME(ds.c, 2 * 3 * 5 * 1.5);
    SAME(s.a, 2);
    SAME(__enzyme_autodiff((void *)by_value, enzyme_const, s, 1.5), 120);
    return 0;
}
