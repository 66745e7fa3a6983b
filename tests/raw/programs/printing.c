/* Output of a differentiated function, with variable arguments, happens once. */
#include "autodiff.h"

double f(double x, int n) {
    char text[64];
    int length = 0;
    for (int i = 0; i < n; i++) {
        x = x * 1.5;
        length += snprintf(text, sizeof text, "%d: %g", i, x);
        fprintf(stdout, "%s\n", text);
    }
    return x * length;
}

int main(void) {
    int length = 0;
    double x = 2;
    for (int i = 0; i < 3; i++) x *= 1.5, length += snprintf(NULL, 0, "%d: %g", i, x);
    SAME(__enzyme_autodiff((void *)f, 2.0, 3), 1.5 * 1.5 * 1.5 * length);
    return 0;
}
