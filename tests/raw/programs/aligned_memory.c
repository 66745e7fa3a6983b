/* Memory from posix_memalign, which stores the address it found: used, freed, and not found at all. */
#include "autodiff.h"

double f(const double *x, int n) {
    double *scratch;
    if (posix_memalign((void **)&scratch, 64, n * sizeof(double)) != 0) return 0;
    for (int i = 0; i < n; i++) scratch[i] = x[i] * x[i];
    double sum = 0;
    for (int i = 0; i < n; i++) sum += scratch[i] * scratch[n - 1 - i];
    free(scratch);
    return sum;
}

double refused(double x) {
    void *nothing = NULL;
    return posix_memalign(&nothing, 3, 8) == 0 ? x : 2 * x;   /* 3 is not a power of two: EINVAL */
}

double made_in_loop(double x, int n) {
    double sum = 0;
    for (int i = 1; i <= n; i++) {
        void *memory = NULL;
        if (posix_memalign(&memory, 32, 2 * sizeof(double)) != 0) return -1;
        double *pair = (double *)memory;
        pair[0] = x * i;
        pair[1] = pair[0] * x;
        sum += pair[1] * pair[0];
        free(pair);
    }
    return sum;
}

int main(void) {
    double x[5] = {1, 2, 3, 4, 5}, dx[5] = {0};
    __enzyme_autodiff((void *)f, enzyme_dup, x, dx, 5);
    for (int i = 0; i < 5; i++) SAME(dx[i], 4 * x[i] * x[4 - i] * x[4 - i]);
    SAME(__enzyme_autodiff((void *)refused, 1.5), 2);
    SAME(__enzyme_autodiff((void *)made_in_loop, 1.5, 4), 30 * 3 * 1.5 * 1.5);
    return 0;
}
