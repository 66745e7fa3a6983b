/* A list that the differentiated function makes and frees. */
#include "autodiff.h"

typedef struct Node {
    double value;
    struct Node *next;
} Node;

double f(double x, int n) {
    Node *head = NULL;
    for (int i = 0; i < n; i++) {
        Node *node = (Node *)malloc(sizeof(Node));
        node->value = pow(x, i);
        node->next = head;
        head = node;
    }
    double sum = 0;
    while (head) {
        Node *next = head->next;
        sum += head->value * head->value;
        free(head);
        head = next;
    }
    return sum;
}

int main(void) {
    double x = 1.2, wanted = 0;
    for (int i = 0; i < 6; i++) wanted += 2 * i * pow(x, 2 * i - 1);
    SAME(__enzyme_autodiff((void *)f, x, 6), wanted);
    return 0;
}
