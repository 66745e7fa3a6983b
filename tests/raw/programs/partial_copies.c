/* Copies of parts of structures: the beginning, an array in the middle, one number onto another. */
#include "autodiff.h"

#include <stddef.h>

typedef struct {
    float c;
    int n;
    double a;
    double b[2];
} Record;

static double used(const Record *r, int depth) {
    if (depth == 0) return r->b[1] * r->b[0] * r->n * r->a * r->c;
    return used(r, depth - 1) + (depth > 2 ? used(r, depth - 2) : 0);
}

double f(const Record *r) {
    Record t;
    memcpy(&t, r, offsetof(Record, b));
    memcpy(t.b, r->b, sizeof t.b);
    memcpy(t.b + 1, &t.a, sizeof(double));
    return used(&t, 3);
}

int main(void) {
    Record r = {1.5f, 3, 2, {4, 5}}, dr = {0};
    __enzyme_autodiff((void *)f, &r, &dr);
    SAME(dr.a, 2 * 2 * 4 * 3 * 2 * 1.5); /* twice 3 a² b0 c */
    SAME(dr.b[0], 2 * 3 * 4 * 1.5);
    SAME(dr.b[1], 0);
    SAME(dr.c, 2 * 3 * 4 * 4);
    return 0;
}
