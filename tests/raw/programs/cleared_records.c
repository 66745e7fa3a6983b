/* Records of numbers beside pointers are cleared, or overwritten with constants: what the caller left in the shadow of
   the numbers counts, the shadows of the pointers stay usable. */
#include "autodiff.h"

struct Item {
    double *p;
    double d, e;
};

void clear_one(struct Item *s, double *q, double x) {
    double v = s->d * s->p[0];
    *s = (struct Item){0};
    s->p = q;
    s->e = x * v * s->p[0];
}

void clear_bytes(struct Item *s, double *q, long n, double x) {
    double v = s[0].d * s[0].p[0];
    memset(s, 0, n * sizeof *s);
    s[1].p = q;
    s[1].e = x * v * s[1].p[0];
}

void clear_all(struct Item *s, double *q, long n, double x) {
    double v = 0;
    for (long i = 0; i < n; i++) v += s[i].d * s[i].p[0];
    memset(s, 0, n * sizeof *s);
    for (long i = 1; i < n; i++) s[i].p = q, s[i].e = x * v * q[0];
}

static const struct Item prototype = {0, 4, 5};

void overwrite(struct Item *s, double *q, double x) {
    double v = s->d * s->p[0];
    *s = prototype;
    s->p = q;
    s->e *= x * v * s->p[0];
}

int main(void) {
    double a[1] = {3}, da[1] = {0}, q[1] = {5}, dq[1] = {0};
    for (int times = 0; times < 2; times++) {
        struct Item s = {a, 2, 7}, ds = {da, 10, 1};
        da[0] = dq[0] = 0;
        double dx = __irad_autodiff((void *)clear_one, enzyme_dup, &s, &ds, enzyme_dup, q, dq, enzyme_out, 11.0);
        SAME(dx, 30);
        SAME(ds.d, 165);
        SAME(ds.e, 0);
        SAME(dq[0], 66);
        SAME(da[0], 110);
        if (ds.p != dq) return 2;
    }
    struct Item t[2] = {{a, 2, 7}, {a, 2, 7}}, dt[2] = {{da, 10, 1}, {da, 10, 1}};
    dq[0] = da[0] = 0;
    double dx = __irad_autodiff((void *)clear_bytes, enzyme_dup, t, dt, enzyme_dup, q, dq, 2L, enzyme_out, 11.0);
    SAME(dx, 30);
    SAME(dt[0].d, 165);
    SAME(dt[1].e, 0);
    SAME(dq[0], 66);
    SAME(da[0], 110);
    struct Item u[3] = {{a, 2, 7}, {a, 2, 7}, {a, 4, 7}}, du[3] = {{da, 9, 9}, {da, 9, 1}, {da, 9, 2}};
    dq[0] = da[0] = 0;
    dx = __irad_autodiff((void *)clear_all, enzyme_dup, u, du, enzyme_dup, q, dq, 3L, enzyme_out, 11.0);
    SAME(dx, 3 * 24 * 5);
    for (int i = 0; i < 3; i++) {
        SAME(du[i].d, 3 * 11 * 5 * 3);
        SAME(du[i].e, 0);
    }
    SAME(dq[0], 3 * 11 * 24);
    SAME(da[0], 3 * 11 * 5 * 8);
    struct Item w = {a, 2, 7}, dw = {da, 10, 1};
    dq[0] = da[0] = 0;
    dx = __irad_autodiff((void *)overwrite, enzyme_dup, &w, &dw, enzyme_dup, q, dq, enzyme_out, 11.0);
    SAME(dx, 150);
    SAME(dw.d, 5 * 165);
    SAME(dw.e, 0);
    SAME(dq[0], 5 * 66);
    SAME(da[0], 5 * 110);
    return 0;
}
