// Records in memory that may hold pointers change places: cotangents in the shadow do not move as pointers do.
#include "autodiff.h"

#include <vector>

struct Body {
    double p[2];
    float m;
    bool fixed;
};
struct Named {
    double p;
    float m, q;
};

void step(std::vector<Body> &b, int n) {
    for (int s = 0; s < n; s++) {
        Body t = b[0];
        b[0] = b[1];
        b[1] = t;
        b[0].p[0] *= 2;
        b[1].m *= 3;
    }
}

void shift(std::vector<Named> &b) {
    for (size_t i = 0; i + 1 < b.size(); i++) {
        b[i].p *= 2, b[i].m *= 3, b[i].q *= b[i].m;
        Named t = b[i];
        b[i] = b[i + 1];
        b[i + 1] = t;
    }
}

int main() {
    std::vector<Body> b = {{{1, 2}, 4, false}, {{5, 6}, 8, true}}, d = {{{1, 2}, 4, false}, {{5, 6}, 8, false}};
    __irad_autodiff_void((void *)step, &b, &d, 1);
    SAME(d[0].p[0], 5);
    SAME(d[0].p[1], 6);
    SAME(d[0].m, 24);
    SAME(d[1].p[0], 2);
    SAME(d[1].p[1], 2);
    SAME(d[1].m, 4);
    std::vector<Named> c = {{1, 2, 3}, {4, 5, 6}, {7, 8, 9}}, e = {{1, 0, 0}, {10, 0, 0}, {100, 0, 0}};
    __irad_autodiff_void((void *)shift, &c, &e);
    SAME(e[0].p, 400);
    SAME(e[1].p, 1);
    SAME(e[2].p, 10);
    return 0;
}
