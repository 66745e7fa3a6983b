/* A function that is declared to carry no derivative, by an annotation. */
#include "autodiff.h"

static double seen;

__attribute__((annotate("enzyme_inactive"), noinline)) static double note(double x) {
    seen = x;
    return 1;
}

double f(double x) { return x * x * note(x * 3); }

int main(void) {
    SAME(__enzyme_autodiff((void *)f, 2.0), 4);
    SAME(seen, 6);
    return 0;
}
