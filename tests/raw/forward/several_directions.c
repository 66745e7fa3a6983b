/* Several tangents beside one run: each in a place of its own, or at equal distances in one array. */
#include "forward.h"
#include <stdlib.h>

extern int enzyme_width, enzyme_dupv, enzyme_dupnoneedv;
typedef struct {
    double at[2];
} Two;
typedef struct {
    double at[3];
} Three;
typedef struct {
    double value, at[2];
} BothTwo;
typedef struct {
    float x, y;
} Point;
typedef struct {
    Point value, at[2];
} BothPoints;
typedef struct {
    double sum, largest, smallest;
} Summary;
typedef struct {
    Summary value, at[2];
} BothSummaries;
Two __enzyme_fwddiff_two(void *, ...);
Three __enzyme_fwddiff_three(void *, ...);
BothTwo __enzyme_fwddiff_both_two(void *, ...);
BothPoints __enzyme_fwddiff_both_points(void *, ...);
BothSummaries __enzyme_fwddiff_both_summaries(void *, ...);
void __enzyme_fwddiff_nothing(void *, ...);

static double f(double x, double y) { return x * x * y; }

static double energy(double *x, double k, int n) {
    double sum = 0;
    for (int i = 0; i < n; i++) {
        x[i] *= k;
        sum += x[i] * x[i];
    }
    return sum;
}

__attribute__((noinline)) static double power(double x, int n) { return n == 0 ? 1 : x * power(x, n - 1); }
static void table(double *out, const double *x, int n) {
    double *powers = malloc(n * sizeof(double));
    for (int i = 0; i < n; i++) powers[i] = power(x[i], i);
    for (int i = 0; i < n; i++) out[i] = 2 * powers[i];
    free(powers);
}

static Point turned(Point *p, float by) {
    Point result = {p->x - by * p->y, p->y + by * p->x};
    return result;
}

static Summary summary(const double *x, int n) {
    Summary s = {0, x[0], x[0]};
    for (int i = 0; i < n; i++) {
        s.sum += x[i];
        s.largest = x[i] > s.largest ? x[i] : s.largest;
        s.smallest = x[i] < s.smallest ? x[i] : s.smallest;
    }
    return s;
}

int main(void) {
    Two two = __enzyme_fwddiff_two((void *)f, enzyme_width, 2, enzyme_dup, 3.0, 1.0, 0.0, enzyme_dup, 2.0, 0.0, 1.0);
    SAME(two.at[0], 12);
    SAME(two.at[1], 9);
    Three three = __enzyme_fwddiff_three((void *)f, enzyme_width, 3, 3.0, 1.0, 2.0, 3.0, enzyme_const, 2.0);
    SAME(three.at[0], 12);
    SAME(three.at[1], 24);
    SAME(three.at[2], 36);
    BothTwo both = __enzyme_fwddiff_both_two((void *)f, enzyme_primal_return, enzyme_width, 2, 3.0, 1.0, 10.0, 2.0, 0.5, 5.0);
    SAME(both.value, 18);
    SAME(both.at[0], 16.5);
    SAME(both.at[1], 165);
    SAME(__enzyme_fwddiff((void *)f, enzyme_width, 1, 3.0, 1.0, 2.0, 0.0), 12);

    double x[2] = {1, 2}, dx[3][2] = {{1, 0}, {0, 1}, {0, 0}};
    three = __enzyme_fwddiff_three((void *)energy, enzyme_width, 3, x, dx[0], dx[1], dx[2], 3.0, 0.0, 0.0, 1.0, 2);
    SAME(three.at[0], 18);
    SAME(three.at[1], 36);
    SAME(three.at[2], 30);
    SAME(x[1], 6);
    SAME(dx[0][0], 3);
    SAME(dx[1][1], 3);
    SAME(dx[2][0], 1);
    SAME(dx[2][1], 2);

    double y[4] = {2, 3, 4, 5}, dy[2 * 4] = {1, 1, 1, 1, 0, 0, 2, 1}, out[4], dout[2 * 5] = {7, 7, 7, 7, 7, 7, 7, 7, 7, 7};
    __enzyme_fwddiff_nothing((void *)table, enzyme_width, 2, enzyme_dupnoneedv, 5 * sizeof(double), out, dout,
                             enzyme_dupv, 4 * sizeof(double), y, dy, 4);
    double expected[2 * 5] = {0, 2, 16, 150, 7, 0, 0, 32, 150, 7};
    for (int i = 0; i < 10; i++) SAME(dout[i], expected[i]);

    Point p = {1, 2}, dp[2] = {{1, 0}, {0, 1}};
    BothPoints points =
        __enzyme_fwddiff_both_points((void *)turned, enzyme_width, 2, enzyme_primal_return, enzyme_dupv, (int)sizeof(Point), &p, dp, 0.5, 0.0, 1.0);
    SAME(points.value.x, 0);
    SAME(points.at[0].x, 1);
    SAME(points.at[0].y, 0.5);
    SAME(points.at[1].x, -2.5);
    SAME(points.at[1].y, 2);
    BothSummaries summaries = __enzyme_fwddiff_both_summaries((void *)summary, enzyme_width, 2, enzyme_primal_return,
                                                              enzyme_dupv, 4 * sizeof(double), y, dy, 4);
    SAME(summaries.value.sum, 14);
    SAME(summaries.value.smallest, 2);
    SAME(summaries.at[0].sum, 4);
    SAME(summaries.at[1].sum, 3);
    SAME(summaries.at[1].largest, 1);
    SAME(summaries.at[1].smallest, 0);
    return 0;
}
