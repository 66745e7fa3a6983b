/* Two arguments that are one and the same structure; pointers are stored through the one and read through the other. */
#include "autodiff.h"

typedef struct {
    double *data;
    double value;
} Box;

double f(Box *a, Box *b, double x) {
    double own[2] = {x, x * x};
    double *before = a->data;
    a->data = own;
    double result = b->data[1] * b->value;
    a->data = before;
    return result;
}

int main(void) {
    double data[2] = {5, 7}, shadow[2] = {0, 0};
    Box box = {data, 2}, dbox = {shadow, 0};
    double dx = __enzyme_autodiff((void *)f, &box, &dbox, &box, &dbox, 3.0);
    SAME(dx, 2 * 2 * 3);
    SAME(dbox.value, 9);
    SAME(shadow[1], 0);
    return 0;
}
