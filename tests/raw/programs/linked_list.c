/* A list that the caller made, with a shadow list. */
#include "autodiff.h"

typedef struct Node {
    double value;
    struct Node *next;
} Node;

double sum_of_squares(const Node *n) {
    double sum = 0;
    for (; n; n = n->next) sum += n->value * n->value;
    return sum;
}

int main(void) {
    Node nodes[4], shadows[4];
    for (int i = 0; i < 4; i++) {
        nodes[i].value = i + 1.5;
        nodes[i].next = i < 3 ? &nodes[i + 1] : NULL;
        shadows[i].value = 0;
        shadows[i].next = i < 3 ? &shadows[i + 1] : NULL;
    }
    __enzyme_autodiff((void *)sum_of_squares, &nodes[0], &shadows[0]);
    for (int i = 0; i < 4; i++) SAME(shadows[i].value, 2 * nodes[i].value);
    return 0;
}
