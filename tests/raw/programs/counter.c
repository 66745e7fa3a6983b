/* Side effects happen once; memory that both see is one and the same. */
#include "autodiff.h"

static int calls;

double f(double x) {
    static int own = 10;
    calls++;
    own++;
    return x * x * own;
}

int main(void) {
    SAME(f(2), 44);
    SAME(__enzyme_autodiff((void *)f, 2.0), 2 * 2 * 12);
    SAME(f(2), 52);
    SAME(calls, 3);
    return 0;
}
