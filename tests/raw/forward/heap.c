/* Memory that the function allocates: freed, grown, kept in lists, cleared. */
#include "forward.h"

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
    return 0;
}
