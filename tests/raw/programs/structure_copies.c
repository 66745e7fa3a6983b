/* Structures that are assigned as a whole. */
#include "autodiff.h"

typedef struct {
    double x, y, z;
    int tag;
} Body;

double f(const Body *bodies, int n) {
    Body best = bodies[0];
    for (int i = 1; i < n; i++) {
        Body next = bodies[i];
        next.x *= 2;
        if (next.x > best.x) best = next;
    }
    return best.x * best.y + best.z;
}

int main(void) {
    Body b[3] = {{1, 2, 3, 0}, {5, 6, 7, 1}, {2, 1, 0, 2}}, db[3];
    memset(db, 0, sizeof db);
    __enzyme_autodiff((void *)f, b, db, 3);
    SAME(db[1].x, 12);
    SAME(db[1].y, 10);
    SAME(db[1].z, 1);
    SAME(db[0].x, 0);
    SAME(db[2].x, 0);
    return 0;
}
