/* Small structures of numbers, which C passes in registers: two floats in one. */
#include "autodiff.h"

typedef struct {
    float x, y;
} Vec2;
typedef struct {
    double x, y;
} Point;

static Vec2 add(Vec2 a, Vec2 b) { return (Vec2){a.x + b.x, a.y * b.y}; }
static Point turn(Point p, double angle) {
    return (Point){p.x * cos(angle) - p.y * sin(angle), p.x * sin(angle) + p.y * cos(angle)};
}

double f(double angle, float s) {
    Point p = turn((Point){1, 2}, angle);
    Vec2 v = add((Vec2){s, 2 * s}, (Vec2){1, s});
    return p.x * p.y + v.x * v.y;
}

typedef struct {
    double angle;
    float s;
} Gradient;
Gradient __irad_autodiff_mixed(void *, ...);

int main(void) {
    double a = 0.3, h = 1e-6;
    Gradient g = __irad_autodiff_mixed((void *)f, a, 1.5f);
    NEAR(g.angle, (f(a + h, 1.5f) - f(a - h, 1.5f)) / (2 * h), 1e-6);
    NEAR(g.s, 6 * 1.5 * 1.5 + 4 * 1.5, 1e-5); /* (s + 1) 2 s² */
    return 0;
}
