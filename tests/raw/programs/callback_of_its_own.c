/* A callback that asks for a derivative itself is called through the pointer: with arguments as C passes them. */
#include "autodiff.h"

typedef struct {
    double a, b, c;
    int n;
} Entry;

static double seen;
static int narrow;
static unsigned wide;

double square(double x) { return x * x; }

void note(Entry e, signed char c, unsigned short u, double *slope) {
    seen = e.a + 10 * e.b + e.n, narrow = c, wide = u;
    e.a = 99;
    if (slope) *slope = __enzyme_autodiff((void *)square, 1.0);
}

double f(double x, void (*log)(Entry, signed char, unsigned short, double *), int k) {
    Entry e = {1, 2, 3, k};
    log(e, (signed char)(k * 77), (unsigned short)(k * 40000), 0);
    return x * x * e.a;
}

int main(void) {
    SAME(__enzyme_autodiff((void *)f, 3.0, enzyme_const, note, 5), 6);
    SAME(seen, 26);
    SAME(narrow, (signed char)(5 * 77));
    SAME(wide, (unsigned short)(5 * 40000));
    return 0;
}
