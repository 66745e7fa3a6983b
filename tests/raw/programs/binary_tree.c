/* A recursive function over a tree. */
#include "autodiff.h"

typedef struct Tree {
    double value;
    struct Tree *left, *right;
} Tree;

double eval(const Tree *t) {
    if (!t->left) return t->value;
    return eval(t->left) * eval(t->right) + t->value;
}

int main(void) {
    Tree leaves[4], inner[2], root, dleaves[4], dinner[2], droot;
    for (int i = 0; i < 4; i++) {
        leaves[i] = (Tree){i + 1.0, NULL, NULL};
        dleaves[i] = (Tree){0, NULL, NULL};
    }
    for (int i = 0; i < 2; i++) {
        inner[i] = (Tree){0.5, &leaves[2 * i], &leaves[2 * i + 1]};
        dinner[i] = (Tree){0, &dleaves[2 * i], &dleaves[2 * i + 1]};
    }
    root = (Tree){2, &inner[0], &inner[1]};
    droot = (Tree){0, &dinner[0], &dinner[1]};
    __enzyme_autodiff((void *)eval, &root, &droot);
    double a = 1 * 2 + 0.5, b = 3 * 4 + 0.5;
    double wanted[4] = {2 * b, 1 * b, 4 * a, 3 * a};
    for (int i = 0; i < 4; i++) SAME(dleaves[i].value, wanted[i]);
    SAME(dinner[0].value, b);
    SAME(dinner[1].value, a);
    SAME(droot.value, 1);
    return 0;
}
