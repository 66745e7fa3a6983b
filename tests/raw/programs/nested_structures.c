/* Structures in structures in arrays. */
#include "autodiff.h"

typedef struct {
    double x, y;
} Point;
typedef struct {
    Point center;
    double radius;
    int id;
} Circle;

double area(const Circle *c, int n) {
    double sum = 0;
    for (int i = 0; i < n; i++)
        sum += c[i].radius * c[i].radius + c[i].center.x * c[(i + 1) % n].center.y;
    return sum;
}

int main(void) {
    Circle c[3] = {{{1, 2}, 3, 0}, {{4, 5}, 6, 1}, {{7, 8}, 9, 2}}, dc[3];
    memset(dc, 0, sizeof dc);
    __enzyme_autodiff((void *)area, c, dc, 3);
    for (int i = 0; i < 3; i++) {
        SAME(dc[i].radius, 2 * c[i].radius);
        SAME(dc[i].center.x, c[(i + 1) % 3].center.y);
        SAME(dc[i].center.y, c[(i + 2) % 3].center.x);
    }
    return 0;
}
