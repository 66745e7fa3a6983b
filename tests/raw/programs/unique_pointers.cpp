// Objects that a smart pointer owns.
#include "autodiff.h"
#include <memory>

struct Node {
    double value;
    std::unique_ptr<Node> next;
    Node(double v, std::unique_ptr<Node> n) : value(v), next(std::move(n)) {}
};

double f(double x) {
    std::unique_ptr<Node> head;
    for (int i = 1; i <= 4; i++) head = std::unique_ptr<Node>(new Node(x * i, std::move(head)));
    double product = 1;
    for (const Node *n = head.get(); n; n = n->next.get()) product *= n->value;
    return product;
}

int main() {
    SAME(__enzyme_autodiff((void *)f, 1.5), 24 * 4 * 1.5 * 1.5 * 1.5);
    return 0;
}
