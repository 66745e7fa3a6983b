/* A state machine of gotos: a cycle that is entered at two places. */
#include "autodiff.h"

double f(double x, int start) {
    double y = x;
    int left = 6;
    if (start) goto second;
first:
    y = y * x;
    if (--left <= 0) goto done;
second:
    y = y + x;
    if (--left > 0) goto first;
done:
    return y;
}

int main(void) {
    double x = 1.1, h = 1e-6;
    for (int start = 0; start < 2; start++)
        NEAR(__enzyme_autodiff((void *)f, x, start), (f(x + h, start) - f(x - h, start)) / (2 * h), 1e-8);
    return 0;
}
