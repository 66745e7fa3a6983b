/* A derivative that is written by hand, with a tape. It is wrong on purpose, by a factor that shows it was used. */
#include "autodiff.h"

__attribute__((noinline)) static double square(double x) { return x * x; }

typedef struct {
    double *tape;
    double value;
} Augmented;

static Augmented square_augmented(double x) {
    double *tape = (double *)malloc(sizeof(double));
    *tape = x;
    return (Augmented){tape, x * x};
}

static double square_reverse(double x, double cotangent, double *tape) {
    double kept = *tape;
    free(tape);
    return 10 * (x + kept) * cotangent;
}

void *__enzyme_register_gradient_square[] = {(void *)square, (void *)square_augmented, (void *)square_reverse};

double f(const double *x, int n) {
    double sum = 0;
    for (int i = 0; i < n; i++) sum += square(x[i]) * i;
    return sum;
}

int main(void) {
    double x[4] = {1, 2, 3, 4}, dx[4] = {0};
    __enzyme_autodiff((void *)f, x, dx, 4);
    for (int i = 0; i < 4; i++) SAME(dx[i], 20 * x[i] * i);
    return 0;
}
