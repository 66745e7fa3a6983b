/* A structure that leads to arrays: its shadow leads to theirs. */
#include "autodiff.h"

typedef struct {
    int n;
    double *weights;
    double *data;
} Layer;

double loss(const Layer *l) {
    double sum = 0;
    for (int i = 0; i < l->n; i++) sum += l->weights[i] * l->data[i] * l->data[i];
    return sum;
}

int main(void) {
    double w[3] = {1, 2, 3}, x[3] = {4, 5, 6}, dw[3] = {0}, dx[3] = {0};
    Layer l = {3, w, x}, dl = {3, dw, dx};
    __enzyme_autodiff((void *)loss, &l, &dl);
    for (int i = 0; i < 3; i++) {
        SAME(dw[i], x[i] * x[i]);
        SAME(dx[i], 2 * w[i] * x[i]);
    }
    return 0;
}
