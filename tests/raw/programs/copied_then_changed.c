/* Recursive functions copy a structure and then change an integer member of the copy. */
#include "autodiff.h"

typedef struct {
    int first;
    float scale;
    float *data;
    int last;
} Window;

float tile(Window *window) {
    if (window->last - window->first > 2) {
        Window *left = (Window *)malloc(sizeof(Window)), *right = (Window *)malloc(sizeof(Window));
        int middle = window->first + (window->last - window->first) / 2;
        *left = *window;
        *right = *window;
        left->last = middle;
        right->first = middle;
        float sum = tile(left) + tile(right);
        free(left);
        free(right);
        return sum;
    }
    float sum = 0;
    for (int i = window->first; i < window->last; i++) sum += window->scale * window->data[i] * window->data[i];
    return sum;
}

typedef struct {
    double value;
    long depth;
} Node;

double descend(const Node *node, double x) {
    if (node->depth > 5) return node->value * node->value;
    Node next = *node;
    next.depth = node->depth + 2;
    next.value *= x;
    double sum = descend(&next, x);
    next.depth += 1;
    return sum + descend(&next, x + 1);
}

int main(void) {
    float data[10], shadow[10] = {0};
    for (int i = 0; i < 10; i++) data[i] = 1 + i;
    Window window = {0, 0.5f, data, 10}, window_shadow = {0, 0, shadow, 0};
    __irad_autodiff_float((void *)tile, &window, &window_shadow);
    float sum = 0;
    for (int i = 0; i < 10; i++) {
        NEAR(shadow[i], data[i], 1e-6);
        sum += data[i] * data[i];
    }
    NEAR(window_shadow.scale, sum, 1e-6);

    Node node = {1.25, 0}, node_shadow = {0, 0}, more = {1.25 + 1e-6, 0}, less = {1.25 - 1e-6, 0};
    double h = 1e-6, dx = __enzyme_autodiff((void *)descend, &node, &node_shadow, 0.75);
    NEAR(dx, (descend(&node, 0.75 + h) - descend(&node, 0.75 - h)) / (2 * h), 1e-6);
    NEAR(node_shadow.value, (descend(&more, 0.75) - descend(&less, 0.75)) / (2 * h), 1e-6);
    return 0;
}
