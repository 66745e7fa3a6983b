/* Behind a comparison for equality a number is not replaced by the one that it was compared to (at -O0; clang may). */
// flags: -Xclang -disable-llvm-passes
#include "autodiff.h"

double f(double x) {
    if (x == 2.0) return x * 5;
    return x * x * x;
}

double largest_mean(const double *x, int n) {
    double largest = x[0], sum = 0;
    int count = 0;
    for (int i = 1; i < n; i++)
        if (x[i] > largest) largest = x[i];
    for (int i = 0; i < n; i++)
        if (x[i] == largest) {
            sum += x[i];
            count++;
        }
    return sum / count;
}

int main(void) {
    SAME(__enzyme_autodiff((void *)f, 2.0), 5);
    SAME(__enzyme_autodiff((void *)f, 3.0), 27);
    double x[5] = {-1, 2, 0.5, 2, 1}, dx[5] = {0};
    __enzyme_autodiff((void *)largest_mean, x, dx, 5);
    for (int i = 0; i < 5; i++) SAME(dx[i], x[i] == 2 ? 0.5 : 0);
    return 0;
}
