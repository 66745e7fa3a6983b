/* A structure behind a pointer: numbers of two sizes and integers. */
#include "autodiff.h"

typedef struct {
    int count;
    float gain;
    double values[4];
    char name[8];
    double offset;
} Model;

double f(const Model *m) {
    double sum = m->offset;
    for (int i = 0; i < m->count; i++) sum += m->gain * m->values[i] * m->values[i];
    return sum;
}

int main(void) {
    Model m = {3, 2.5f, {1, 2, 3, 4}, "model", 7}, dm;
    memset(&dm, 0, sizeof dm);
    __enzyme_autodiff((void *)f, &m, &dm);
    for (int i = 0; i < 4; i++) SAME(dm.values[i], i < 3 ? 5 * m.values[i] : 0);
    NEAR(dm.gain, 14, 1e-6);
    SAME(dm.offset, 1);
    SAME(dm.count, 0);
    return 0;
}
