/* An array that grows. */
#include "autodiff.h"

double f(double x, int n) {
    int room = 1, count = 0;
    double *items = (double *)malloc(room * sizeof(double));
    for (int i = 0; i < n; i++) {
        if (count == room) {
            room *= 2;
            items = (double *)realloc(items, room * sizeof(double));
        }
        items[count++] = i == 0 ? x : items[i - 1] * x;
    }
    double sum = 0;
    for (int i = 0; i < count; i++) sum += items[i];
    free(items);
    return sum;
}

int main(void) {
    double x = 1.1, wanted = 0;
    for (int i = 1; i <= 9; i++) wanted += i * pow(x, i - 1);
    SAME(__enzyme_autodiff((void *)f, x, 9), wanted);
    return 0;
}
