/* A recursive function hands on a structure with a counter beside a pointer to numbers; the next counter is made of it. */
#include "autodiff.h"

typedef struct {
    long long start;
    double *data;
} Frame;

double power_sum(const Frame *frame) {
    if (frame->start >= 6) return 0;
    Frame *next = (Frame *)malloc(sizeof(Frame));
    next->data = frame->data;
    next->start = frame->start + 1;
    double own = frame->data[frame->start];
    double sum = own * own * (double)frame->start + power_sum(next);
    free(next);
    return sum;
}

typedef struct {
    double weight;
    long long steps;
    long long left;
} Walker;

double walk(Walker *w, double x) {
    if (w->left == 0) return w->weight * (double)w->steps;
    w->weight *= x;
    w->steps = w->steps + w->left;
    w->left--;
    return walk(w, x) + (w->left % 2 ? 0.0 : walk(w, 0.5 * x));
}

double f(double weight, double x) {
    Walker w = {weight, 1, 4};
    return walk(&w, x);
}

int main(void) {
    double data[6] = {1, 2, 3, 4, 5, 6}, shadow[6] = {0};
    Frame frame = {1, data}, frame_shadow = {0, shadow};
    __enzyme_autodiff((void *)power_sum, &frame, &frame_shadow);
    for (int i = 0; i < 6; i++) SAME(shadow[i], 2.0 * i * data[i]);

    Walker w = {1.5, 2, 3}, dw = {0, 0, 0};
    double h = 1e-6;
    double dx = __enzyme_autodiff((void *)walk, &w, &dw, 0.7);
    Walker up = {1.5, 2, 3}, down = {1.5, 2, 3}, more = {1.5 + h, 2, 3}, less = {1.5 - h, 2, 3};
    NEAR(dx, (walk(&up, 0.7 + h) - walk(&down, 0.7 - h)) / (2 * h), 1e-6);
    NEAR(dw.weight, (walk(&more, 0.7) - walk(&less, 0.7)) / (2 * h), 1e-6);
    NEAR(__irad_autodiff((void *)f, enzyme_const, 1.5, 0.7), (f(1.5, 0.7 + h) - f(1.5, 0.7 - h)) / (2 * h), 1e-6);
    return 0;
}
