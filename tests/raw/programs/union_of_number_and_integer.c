/* A tagged union: the number, or an integer, in the same bytes. */
#include "autodiff.h"

typedef struct {
    int is_number;
    union {
        double number;
        long integer;
    } as;
} Variant;

double f(double x, int n) {
    Variant v[4];
    for (int i = 0; i < 4; i++) {
        v[i].is_number = i % 2 == 0;
        if (v[i].is_number)
            v[i].as.number = x * (i + 1);
        else
            v[i].as.integer = n + i;
    }
    double sum = 0;
    for (int i = 0; i < 4; i++) sum += v[i].is_number ? v[i].as.number * v[i].as.number : (double)v[i].as.integer;
    return sum;
}

int main(void) {
    SAME(__enzyme_autodiff((void *)f, 1.5, 3), 2 * 1.5 * (1 + 9));
    return 0;
}
