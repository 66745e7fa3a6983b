/* Structures: by value, returned, in memory, with pointers, copied as a whole. */
#include "forward.h"

typedef struct {
    double x, y;
} Point;
typedef struct {
    float x, y;
} Small;
typedef struct {
    double values[3];
    float factor;
    int n;
} Large;
typedef struct {
    double number;
    long count;
} Counted;
typedef struct {
    Large value, tangent;
} BothLarge;
typedef struct {
    Point value, tangent;
} BothPoints;
Point __irad_fwddiff_point(void *, ...);
Small __irad_fwddiff_small(void *, ...);
Large __irad_fwddiff_large(void *, ...);
Counted __irad_fwddiff_counted(void *, ...);
BothLarge __irad_fwddiff_both_large(void *, ...);
BothPoints __irad_fwddiff_both_points(void *, ...);

Point turned(double angle, double r) { return (Point){r * cos(angle), r * sin(angle)}; }
Small small(float x) { return (Small){x * x, 3 * x}; }
Large large(double x) { return (Large){{x, x * x, 1}, (float)(x * x * x), 7}; }
Counted counted(double x) { return (Counted){x * x, 5}; }
double sum(Large l, double x) {
    l.values[0] *= x;
    return (l.values[0] + l.values[1] * l.values[2]) * l.factor * l.n;
}
double area(double x, double y) { return x * y; } /* a Point by value, member by member */
double product(const Point *p, int n) {
    Point all = p[0];
    for (int i = 1; i < n; i++) {
        Point next = p[i];
        next.x *= all.x;
        next.y += all.y;
        all = next;
    }
    return all.x * all.y;
}

typedef struct Node {
    double value;
    struct Node *next;
} Node;
double of_list(const Node *node) {
    double total = 1;
    for (; node; node = node->next) total *= node->value;
    return total;
}
typedef struct {
    int n;
    double *weights, *data;
} Layer;
double loss(const Layer *l) {
    double total = 0;
    for (int i = 0; i < l->n; i++) total += l->weights[i] * l->data[i] * l->data[i];
    return total;
}

int main(void) {
    Point t = __irad_fwddiff_point((void *)turned, 0.4, 1.0, 2.0, 3.0);
    SAME(t.x, -2 * sin(0.4) + 3 * cos(0.4));
    SAME(t.y, 2 * cos(0.4) + 3 * sin(0.4));
    BothPoints both = __irad_fwddiff_both_points((void *)turned, enzyme_primal_return, 0.4, 1.0, 2.0, 3.0);
    SAME(both.value.y, 2 * sin(0.4));
    SAME(both.tangent.x, t.x);
    Small s = __irad_fwddiff_small((void *)small, 2.0f, 0.5f);
    NEAR(s.x, 2, 1e-6);
    NEAR(s.y, 1.5, 1e-6);
    Counted c = __irad_fwddiff_counted((void *)counted, 3.0, 1.0);
    SAME(c.number, 6);
    Large l = __irad_fwddiff_large((void *)large, 1.5, 2.0);
    SAME(l.values[0], 2);
    SAME(l.values[1], 6);
    SAME(l.values[2], 0);
    NEAR(l.factor, 13.5, 1e-6);
    BothLarge bl = __irad_fwddiff_both_large((void *)large, enzyme_primal_return, 1.5, 2.0);
    SAME(bl.value.values[1], 2.25);
    SAME(bl.value.n, 7);
    SAME(bl.tangent.values[1], 6);

    Large by_value = {{1, 2, 3}, 0.5f, 4}, tangent = {{1, 0, 2}, 3};
    double wanted = ((1 * 5 + 0 * 3 + 2 * 2) * 0.5 + (5 + 6) * 3) * 4;
    SAME(__enzyme_fwddiff((void *)sum, enzyme_dup, by_value, &tangent, enzyme_const, 5.0), wanted);
    SAME(__enzyme_fwddiff((void *)sum, enzyme_dup, by_value, tangent, enzyme_const, 5.0), wanted);
    SAME(tangent.values[0], 1);
    SAME(__enzyme_fwddiff((void *)sum, enzyme_const, by_value, 5.0, 1.0), 1 * 0.5 * 4);
    SAME(__enzyme_fwddiff((void *)area, 2.0, 1.0, 3.0, 10.0), 23);

    Point p[3] = {{1, 2}, {3, 4}, {5, 6}}, dp[3] = {{1, 0}, {0, 1}, {0, 0}};
    SAME(__enzyme_fwddiff((void *)product, p, dp, 3), 15 * 12 + 15);
    Node last = {3, NULL}, first = {2, &last}, dlast = {1, NULL}, dfirst = {0, &dlast};
    SAME(__enzyme_fwddiff((void *)of_list, &first, &dfirst), 2);
    double w[2] = {1, 2}, d[2] = {3, 4}, dw[2] = {1, 1}, dd[2] = {10, 0};
    Layer layer = {2, w, d}, dlayer = {2, dw, dd};
    SAME(__enzyme_fwddiff((void *)loss, &layer, &dlayer), 9 + 16 + 2 * 1 * 3 * 10);
    return 0;
}
