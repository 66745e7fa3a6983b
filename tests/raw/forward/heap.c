/* Memory that the function allocates: freed, grown, kept in lists, cleared. */
#include "forward.h"
#include <sys/resource.h>

typedef struct Node {
    double value;
    struct Node *next;
} Node;

double scratch(const double *x, int n) {
    double *copy = malloc(n * sizeof *copy), *sums = calloc(n + 1, sizeof *sums);
    for (int i = 0; i < n; i++) copy[i] = x[i] * x[i];
    for (int i = 0; i < n; i++) sums[i + 1] = sums[i] + copy[i];
    double result = sums[n] * sums[n / 2];
    free(copy);
    free(sums);
    return result;
}
double of_list(double x, int n) {
    Node *head = NULL;
    for (int i = 0; i < n; i++) {
        Node *node = malloc(sizeof *node);
        *node = (Node){pow(x, i), head};
        head = node;
    }
    double sum = 0;
    while (head) {
        Node *next = head->next;
        sum += head->value;
        free(head);
        head = next;
    }
    return sum;
}
double grown(double x, int n) {
    int room = 1;
    double *values = malloc(sizeof *values);
    for (int i = 0; i < n; i++) {
        if (i == room) values = realloc(values, (room *= 2) * sizeof *values);
        values[i] = x * (i + 1);
    }
    double product = 1;
    for (int i = 0; i < n; i++) product *= values[i];
    free(values);
    return product;
}
double many(double x, int n) {
    for (int i = 0; i < n; i++) {
        double *a = malloc(1 << 20);
        a[i % 100] = x * 0.5;
        a[i % 100 + 1] = a[i % 100] + 1;
        x = a[i % 100 + 1];
        free(a);
    }
    return x;
}
double aligned(double x) {
    double *a = aligned_alloc(64, 64);
    a[3] = x * x;
    double y = a[3] * x;
    free(a);
    return y;
}
double from_either(double x, double *own, int allocates) {
    double *a = allocates ? malloc(sizeof *a) : own;
    *a = x * x;
    double y = *a * 3;
    if (allocates) free(a);
    return y;
}


typedef struct {
    double *values;
    int n, room;
} Stack;
void push(Stack *s, double x) {
    if (s->n == s->room) s->values = realloc(s->values, (s->room = 2 * s->room + 1) * sizeof(double));
    s->values[s->n++] = x * x;
}
void push_many(Stack *s, double x, int n) {
    for (int i = 0; i < n; i++) push(s, x + i);
}
void prepend(Node **head, double x) {
    Node *node = malloc(sizeof *node);
    *node = (Node){3 * x, *head};
    *head = node;
}
void replaced(double **x) {
    double *y = malloc(2 * sizeof *y);
    y[0] = (*x)[0] * (*x)[1];
    y[1] = (*x)[0] + (*x)[1];
    free(*x);
    *x = y;
}
double of_constants(double *constants, double x) {
    double *more = realloc(constants, 3 * sizeof *more);
    more[2] = x;
    double result = more[0] * more[2] + more[1];
    free(more);
    return result;
}
double nothing(double x) {
    double *none = NULL, *some = realloc(none, sizeof *some);
    *some = x * x;
    double y = *some;
    free(none);
    free(realloc(some, 0));
    return y;
}
double too_much(double x) {
    double *some = malloc(sizeof *some);
    *some = x * x;
    volatile size_t huge = (size_t)1 << 62;
    double *more = realloc(some, huge);
    if (more) some = more;
    double y = *some * x;
    free(some);
    return y;
}

int main(void) {
    double x[4] = {1, 2, 3, 4}, dx[4] = {1, 0, 1, 0};
    SAME(__enzyme_fwddiff((void *)scratch, x, dx, 4), (2 + 6) * 5 + 30 * 2);
    double wanted = 0;
    for (int i = 1; i < 6; i++) wanted += i * pow(1.2, i - 1);
    SAME(__enzyme_fwddiff((void *)of_list, 1.2, 1.0, 6), wanted);
    SAME(__enzyme_fwddiff((void *)grown, 1.1, 2.0, 5), 2 * 120 * 5 * pow(1.1, 4));
    SAME(__enzyme_fwddiff((void *)many, 3.0, 1.0, 10), pow(0.5, 10));
    SAME(__enzyme_fwddiff((void *)aligned, 1.5, 1.0), 3 * 1.5 * 1.5);
    double own = 0, down = 0;
    SAME(__enzyme_fwddiff((void *)from_either, 1.5, 1.0, &own, &down, 1), 9);
    SAME(__enzyme_fwddiff((void *)from_either, 1.5, 1.0, &own, &down, 0), 9);
    SAME(down, 3);

    struct rlimit limit;
    getrlimit(RLIMIT_AS, &limit);
    limit.rlim_cur = (size_t)1 << 30;
    setrlimit(RLIMIT_AS, &limit); /* far less than all iterations together allocate */
    SAME(__enzyme_fwddiff((void *)many, 3.0, 1.0, 5000), 0);

    Stack s = {NULL, 0, 0}, ds = {NULL, 0, 0}; /* what stays has a shadow that stays */
    __irad_fwddiff_void((void *)push_many, &s, &ds, 1.0, 0.5, 5);
    __irad_fwddiff_void((void *)push_many, &s, &ds, 6.0, 2.0, 5);
    for (int i = 0; i < 10; i++) {
        SAME(s.values[i], (1.0 + i) * (1 + i));
        SAME(ds.values[i], 2 * (1 + i) * (i < 5 ? 0.5 : 2));
    }
    free(s.values);
    free(ds.values);
    Node *head = NULL, *dhead = NULL;
    __irad_fwddiff_void((void *)prepend, &head, &dhead, 2.0, 5.0);
    __irad_fwddiff_void((void *)prepend, &head, &dhead, 3.0, 7.0);
    SAME(head->next->value, 6);
    SAME(dhead->value, 21);
    SAME(dhead->next->value, 15);
    double *p = malloc(2 * sizeof *p), *dp = malloc(2 * sizeof *dp);
    p[0] = 2, p[1] = 3, dp[0] = 1, dp[1] = 10;
    __irad_fwddiff_void((void *)replaced, &p, &dp);
    SAME(p[0], 6);
    SAME(dp[0], 23);
    SAME(dp[1], 11);
    double *constants = malloc(2 * sizeof *constants);
    constants[0] = 4, constants[1] = 5;
    SAME(__enzyme_fwddiff((void *)of_constants, enzyme_const, constants, 2.0, 3.0), 12);
    SAME(__enzyme_fwddiff((void *)nothing, 3.0, 1.0), 6);
    SAME(__enzyme_fwddiff((void *)too_much, 2.0, 1.0), 12);
    return 0;
}
