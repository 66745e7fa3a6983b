/* A function that calls itself. */
#include "autodiff.h"

double power(double x, int n) {
    if (n == 0) return 1;
    double half = power(x, n / 2);
    return n % 2 ? x * half * half : half * half;
}

int main(void) {
    for (int n = 1; n < 12; n++) SAME(__enzyme_autodiff((void *)power, 1.3, n), n * pow(1.3, n - 1));
    return 0;
}
